"""The software environment: versions that decide the bits of results, and environment variables."""

import contextlib
import os
import platform
from collections.abc import Iterator

import jax
import numpy as np

import physkit


def versions() -> dict[str, str]:
    """Versions and precision, on which the bits of results depend."""
    return {
        "physkit": physkit.__version__,
        "jax": jax.__version__,
        "jaxlib": jax.lib.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "precision": "float64" if jax.config.jax_enable_x64 else "float32",
    }


@contextlib.contextmanager
def environment_variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable inside the block, and restore it afterwards."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
