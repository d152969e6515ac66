"""`show_versions`: what this installation consists of, and what it runs on."""

import os
import platform
from importlib import metadata

import jax

from ._environment import versions

_NEEDED = (
    "jax", "jaxlib", "equinox", "diffrax", "lineax", "optimistix", "optax", "jaxtyping", "numpy", "scipy",
    "h5py", "matplotlib", "filelock",
)  # fmt: skip
# What extras bring, one package that stands for each.
_OPTIONAL = (
    "xarray",
    "h5netcdf",
    "pandas",
    "pyarrow",
    "ase",
    "openmm",
    "pymbar",
    "openqasm3",
    "submitit",
)


def installation() -> dict[str, str]:
    """Versions of physkit, Python, and the packages it needs or can use; system, devices, precision.

    JAX is asked for its devices, which starts them.
    """
    found = versions()
    devices = ", ".join(f"{d.platform}:{d.id} {d.device_kind}" for d in jax.devices())
    return {
        "physkit": found["physkit"],
        "python": found["python"],
        **{name: installed_version(name) or "not installed" for name in _NEEDED},
        **{name: installed_version(name) or "not installed (extra)" for name in _OPTIONAL},
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "devices": devices,
        "precision": f"{found['precision']} (JAX_ENABLE_X64=1 for float64)",
    }


def installed_version(package: str) -> str | None:
    """The version of an installed package; None where there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def show_versions() -> None:
    """Print versions, devices and precision, to be put into a report of a fault.

    `physkit info` prints the same, and `physkit doctor` examines it.
    """
    found = installation()
    width = max(map(len, found))
    print("\n".join(f"{name:{width}}  {value}" for name, value in found.items()))
