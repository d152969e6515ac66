"""Matrices of a single oscillator or qudit, for `LocalOperator`."""

import numpy as np

from physkit.core import ParameterError


def destroy(dimension: int) -> np.ndarray:
    """The annihilation operator a of an oscillator cut off at `dimension` levels: a|n⟩ = √n |n − 1⟩."""
    if dimension < 2:
        raise ParameterError(f"an oscillator has two levels or more; got dimension={dimension}")
    return np.diag(np.sqrt(np.arange(1.0, dimension)), 1)


def create(dimension: int) -> np.ndarray:
    """The creation operator a†, the transpose of `destroy`."""
    return destroy(dimension).T


def number(dimension: int) -> np.ndarray:
    """a†a = diag(0, 1, …)."""
    return np.diag(np.arange(float(dimension)))


def anharmonicity(dimension: int) -> np.ndarray:
    """½ a†a†aa = ½ n(n − 1): times α, how far a transmon's levels are from even spacing."""
    n = np.arange(float(dimension))
    return np.diag(0.5 * n * (n - 1))
