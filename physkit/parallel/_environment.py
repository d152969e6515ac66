"""What a program runs on and in: versions, and variables of the environment."""

import contextlib
import os
import platform
from collections.abc import Iterator

import jax
import numpy as np

import physkit


def versions() -> dict[str, str]:
    """Versions and precision, which decide on the bits of what is calculated."""
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
    """A variable of the environment with this value, and afterwards as it was."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
