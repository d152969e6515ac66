"""The spectrum of Fisher's information: which combinations of parameters the data determine, and how well."""

from typing import NamedTuple

import numpy as np

_SMALLEST_PART = 0.2  # parts of a direction that are smaller, beside its largest, are not named


class FisherSpectrum(NamedTuple):
    """Eigenvalues and eigenvectors of Fisher's information, in units in which parameters are of order 1.

    - `eigenvalues`: `[p]`, largest first; 1/√λ is the standard error along the direction.
    - `directions`: `[p p]`, a row each.
    - `labels`: of the coordinates.
    - `is_unidentifiable`: `[p]`, whether the data do not determine it: the standard error along it is
      larger than the parameters themselves, or infinite.
    """

    eigenvalues: np.ndarray
    directions: np.ndarray
    labels: tuple[str, ...]
    is_unidentifiable: np.ndarray

    def describe(self, k: int) -> str:
        """Direction k in words: `stiffness and mass rising together (0.71, 0.71)`."""
        return describe_direction(self.directions[k], self.labels)

    @property
    def unidentifiable(self) -> list[str]:
        """The directions that the data do not determine, in words."""
        return [self.describe(int(k)) for k in np.flatnonzero(self.is_unidentifiable)]


def fisher_spectrum(matrix: np.ndarray, labels: tuple[str, ...], rounding: float) -> FisherSpectrum:
    """The spectrum of Fisher's information; relative eigenvalues below `rounding` count as 0."""
    values, vectors = np.linalg.eigh(matrix)
    values, directions = values[::-1], vectors.T[::-1]
    # Below the rounding of the largest an eigenvalue is noise, and may be negative.
    values = np.where(values > rounding * max(values[0], 0), values, 0.0)
    # An eigenvector has no sign of its own: let its largest part rise.
    largest = np.argmax(np.abs(directions), axis=1)
    sign = np.sign(np.take_along_axis(directions, largest[:, None], axis=1))
    return FisherSpectrum(values, directions * sign, labels, values < 1.0)


def describe_direction(direction: np.ndarray, labels: tuple[str, ...]) -> str:
    """What changes along a direction, in words; at most four parameters are named."""
    order = np.argsort(-np.abs(direction))
    parts = [k for k in order if abs(direction[k]) >= _SMALLEST_PART * abs(direction[order[0]])][:4]
    sizes = ", ".join(f"{direction[k]:.2g}" for k in parts)
    names = [labels[k] for k in parts]
    if len(parts) == 1:
        return f"{names[0]} alone"
    rising = [n for n, k in zip(names, parts, strict=True) if direction[k] > 0]
    falling = [n for n, k in zip(names, parts, strict=True) if direction[k] < 0]
    if not falling:
        return f"{_enumerate(rising)} rising together ({sizes})"
    return f"{_enumerate(rising)} rising while {_enumerate(falling)} {_verb(falling)} ({sizes})"


def _verb(names: list[str]) -> str:
    return "falls" if len(names) == 1 else "fall"


def _enumerate(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
