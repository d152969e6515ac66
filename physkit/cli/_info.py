"""Versions, devices and precision, for a bug report or a first look."""

import argparse
import importlib.metadata
import os
import platform

import physkit

from ._report import Report

NEEDS_DOUBLE = False

_PACKAGES = (
    "jax",
    "jaxlib",
    "equinox",
    "diffrax",
    "optax",
    "h5py",
    "matplotlib",
    "jaxtyping",
    "numpy",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`physkit info` asks for nothing else."""
    del parser


def run(given: argparse.Namespace, report: Report) -> int:
    """Print what this installation consists of and runs on."""
    del given
    import jax
    import jax.numpy as jnp

    rows = [("physkit", physkit.__version__), ("python", platform.python_version())]
    rows += [(name, _version(name)) for name in _PACKAGES]
    devices = ", ".join(f"{d.platform}:{d.id} {d.device_kind}" for d in jax.devices())
    rows += [
        ("system", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
        ("devices", devices),
        ("precision", f"{jnp.zeros(()).dtype} (JAX_ENABLE_X64=1 for float64)"),
    ]
    report.table(("what", "is"), rows)
    return 0


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
