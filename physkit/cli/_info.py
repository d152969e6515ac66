"""Versions, devices and precision; or, of a file or a run's folder, what is in it."""

import argparse
import importlib.metadata
import os
import platform
from pathlib import Path

import physkit

from ._look import look
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
    """What `physkit info` may be asked about."""
    parser.add_argument("path", nargs="?", help="a recording, a checkpoint, or the folder of a run")


def run(given: argparse.Namespace, report: Report) -> int:
    """Print what this installation consists of and runs on, or what is in a file."""
    if given.path is not None:
        from physkit.core import FileError

        try:
            look(Path(given.path), report)
        except FileError as error:
            report.problem(str(error))
            return 1
        return 0
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
