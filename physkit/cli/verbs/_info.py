"""Show what is in a file or a run's folder, and whether it is sound.

Without one: versions, devices and precision of this installation.
"""

import argparse
import os
import platform
from pathlib import Path

import physkit

from ..common._report import Report
from ._inspect import inspect_path

NEEDS_DOUBLE = False
EXAMPLES = """\
  physkit info                        # this installation
  physkit info out                    # a run: what, when, how long, sizes, health
  physkit info out/trajectory.h5md
  physkit info out --json
"""

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
    """Add the arguments of `physkit info`."""
    parser.add_argument(
        "path",
        nargs="?",
        metavar="FILE",
        help="a recording, a checkpoint, or the folder of a run",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(args: argparse.Namespace, report: Report) -> int:
    """Print what this installation consists of and runs on, or what is in a file; 1 for a damaged run."""
    if args.path is not None:
        return inspect_path(Path(args.path), report)
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
    report.json_result(dict(rows))
    return 0


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
