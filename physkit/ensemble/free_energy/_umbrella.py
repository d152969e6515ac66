"""Umbrella windows: the energies of their springs, and WHAM."""

import numpy as np
from jax.typing import ArrayLike

from physkit.core import ShapeError, explain_call

from ..statistics._edges import as_edges
from ._free_energies import FreeEnergies, Profile, free_energies


@explain_call
def umbrella_energies(
    x: ArrayLike, stiffness: ArrayLike, centers: ArrayLike, *, period: float | None = None
) -> np.ndarray:
    """The energies that the springs of all windows would have in all frames, ½ k (x − c)².

        found = free_energies(umbrella_energies(x, 50.0, centers), temperature)
        found.profile(x, edges, target=0.0)

    **Arguments:**

    - `x`: the collective variable, `[windows frames]`, or of any shape.
    - `stiffness`, `centers`: of the windows, as of `HarmonicBias`: `[windows]`; one stiffness may serve all.
    - `period`: of the variable, such as 2π of a torsion.

    **Returns:** `[windows frames windows]`.

    **Errors:** `ShapeError` for stiffness or centers of another shape.
    """
    centers, stiffness = np.asarray(centers, float), np.asarray(stiffness, float)
    if centers.ndim != 1 or stiffness.shape not in ((), centers.shape):
        raise ShapeError(
            f"centers are [windows], stiffness is one or [windows]; got {centers.shape} and {stiffness.shape}"
        )
    delta = np.asarray(x, float)[..., None] - centers
    if period is not None:
        delta -= period * np.round(delta / period)
    return 0.5 * stiffness * delta**2


@explain_call
def wham(
    x: ArrayLike,
    edges: ArrayLike,
    stiffness: ArrayLike,
    centers: ArrayLike,
    temperature: float,
    *,
    period: float | None = None,
    subsample: bool = True,
) -> tuple[Profile, FreeEnergies]:
    """The weighted histogram analysis of umbrella windows.

        p_b = Σ_k n_kb / Σ_k N_k e^{(F_k − U_k(x_b))/k_B T},   e^{−F_k/k_B T} = Σ_b p_b e^{−U_k(x_b)/k_B T}

    It is MBAR with the energy of each spring taken at the center of the bin: both agree as bins become narrow.
    MBAR needs no bins to find F_k; prefer it.

    **Arguments:**

    - `x`: the collective variable, `[windows frames]`. `edges`: of the bins; frames outside of them do not
      count in the profile.
    - `stiffness`, `centers`, `period`: as of `umbrella_energies`. `subsample`: as of `free_energies`.
    - `temperature`: k_B T.

    **Returns:** the profile, and the free energies of the windows.

    **Errors:** `ShapeError` for x of another shape, `ParameterError` for edges that do not rise; those of
    `free_energies`.

    **Reference:** Kumar, Rosenberg, Bouzida, Swendsen & Kollman, J. Comput. Chem. 13, 1011 (1992).
    """
    x, edges = np.asarray(x, float), as_edges(edges)
    if x.ndim != 2 or x.shape[0] != np.size(centers):
        raise ShapeError(f"x must be [windows frames] of {np.size(centers)} windows; got {x.shape}")
    middle = 0.5 * (edges[1:] + edges[:-1])
    bins = np.digitize(x, edges) - 1
    inside = (bins >= 0) & (bins < len(middle))
    binned = np.where(inside, middle[np.clip(bins, 0, len(middle) - 1)], x)
    energies = umbrella_energies(binned, stiffness, centers, period=period)
    found = free_energies(energies, temperature, subsample=subsample)
    return found.profile(x, edges, target=0.0), found
