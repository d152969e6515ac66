"""Which cutoffs and skins a space allows."""

import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import CutoffError, evaluate_now, is_concrete
from physkit.geometry import AbstractSpace, heights

DEFAULT_SKIN = 0.12  # in units of the cutoff
_ROUNDING = 1e-6  # relative: a cutoff written in decimals may exceed a computed limit by this much


class SpaceNumbers(NamedTuple):
    """What the host needs to know of a space whose numbers are visible.

    - `max_cutoff`, `volume`: its own. `vectors`: that cells are cut along, as rows. `heights`: of the cell
      that they span. `basis`: lattice vectors as rows, None for open space.
    """

    max_cutoff: float
    volume: float
    vectors: np.ndarray
    heights: np.ndarray
    basis: np.ndarray | None


def space_numbers(space: AbstractSpace, d: int) -> SpaceNumbers:
    """The numbers of a space that no trace hides, in `d` dimensions (host only)."""
    # Inside a trace, too, a box that is a constant has numbers: evaluate them now.
    with evaluate_now():
        max_cutoff, volume, vectors, height, basis = _space_numbers(space, d)
        vectors, height = (np.asarray(x, float) for x in (vectors, height))
        rows = None if basis is None else np.asarray(basis, float)
        return SpaceNumbers(float(max_cutoff), float(volume), vectors, height, rows)


@eqx.filter_jit
def _space_numbers(space: AbstractSpace, d: int) -> tuple[Array | None, ...]:
    # One program: operation by operation each of them would be compiled by itself.
    vectors, _ = cell_vectors(space, d, jnp.zeros(()).dtype)
    lengths = cell_lengths(space, d, vectors.dtype)
    height = heights(vectors) if lengths is None else lengths
    max_cutoff, volume = jnp.asarray(space.max_cutoff(d)), jnp.asarray(space.volume)
    return max_cutoff, volume, vectors, height, space.basis(d)


def cell_vectors(
    space: AbstractSpace, d: int, dtype: np.dtype
) -> tuple[Float[Array, "d d"], np.ndarray]:
    """Vectors that cells are cut along, as rows (unit vectors along open axes), and which axes are periodic."""
    periodic = np.asarray(space.periodic_axes(d))
    basis = space.basis(d)
    if basis is None:
        return jnp.eye(d, dtype=dtype), periodic
    return jnp.where(periodic[:, None], basis, jnp.eye(d, dtype=basis.dtype)), periodic


def cell_lengths(space: AbstractSpace, d: int, dtype: np.dtype) -> Float[Array, " d"] | None:
    """Lengths of the vectors that cells are cut along; None unless they lie along the axes."""
    if space.cell(d) is None:
        return jnp.ones(d, dtype)
    lengths = space.edge_lengths(d)
    return None if lengths is None else jnp.where(np.asarray(space.periodic_axes(d)), lengths, 1)


def exceeds(radius: float, limit: float) -> bool:
    """Whether `radius` is beyond `limit` by more than rounding."""
    return radius > limit * (1 + _ROUNDING)


def default_skin(cutoff: float, limit: float) -> float:
    """The default skin, or less where cutoff + skin would exceed `limit`.

    In steps of an eighth, so that boxes of nearly the same size share a program, which the skin is part of.
    """
    allowed, step = max(0.0, (limit - cutoff) * (1 - _ROUNDING)), DEFAULT_SKIN * cutoff / 8
    return allowed if allowed < step else step * math.floor(min(8.0, allowed / step))


def fit_skin(space: AbstractSpace, d: int, cutoff: float, skin: float | None) -> float | None:
    """`skin`, or one that the space allows if it is None; None again where a trace hides the space.

    **Errors:** `CutoffError` for a cutoff or a skin that is too large, where numbers can be seen.
    """
    if not is_concrete(space):
        # What a box that a trace hides allows is found in every step instead: `allowed_skin`.
        return skin
    limit = require_max_cutoff(space, d, cutoff)
    if skin is None:
        return default_skin(cutoff, limit)
    if exceeds(cutoff + skin, limit):
        raise CutoffError(
            f"cutoff + skin = {cutoff + skin:g} is beyond the image limit {limit:.6g} of this "
            f"{type(space).__name__}; the cutoff fits, with a skin of at most {limit - cutoff:.6g}"
        )
    return skin


def require_max_cutoff(space: AbstractSpace, d: int, cutoff: float) -> float:
    """The largest cutoff in a space whose numbers are visible, in `d` dimensions.

    **Errors:** `CutoffError` for a cutoff beyond it.
    """
    limit = space_numbers(space, d).max_cutoff
    if exceeds(cutoff, limit):
        raise CutoffError(
            f"the cutoff {cutoff:g} is beyond the image limit {limit:.6g} of this "
            f"{type(space).__name__}: a particle would meet two images of another; use a larger box or "
            "a shorter cutoff"
        )
    return limit


def allowed_skin(
    space: AbstractSpace, position: Float[Array, "n d"], cutoff: float, skin: float | None = None
) -> Float[Array, ""]:
    """`skin` or the default one, less where cutoff + skin would exceed the limit of this space (traceable)."""
    d, wanted = position.shape[1], DEFAULT_SKIN * cutoff if skin is None else skin
    if not any(space.periodic_axes(d)):
        # Open space has no numbers, and so no precision: that of the positions.
        return jnp.asarray(wanted, position.dtype)
    slack = (space.max_cutoff(d) - cutoff) * (1 - _ROUNDING)
    return jnp.clip(slack, 0.0, wanted)


def exceeds_max_cutoff(space: AbstractSpace, d: int, radius: float) -> Bool[Array, ""]:
    """Whether a pair closer than `radius` could have two images (traceable)."""
    if not any(space.periodic_axes(d)):
        return jnp.zeros((), bool)
    limit = space.max_cutoff(d)
    # `radius` was fitted to this limit on the host, in other arithmetic: allow some units in the last place.
    return radius > limit * (1 + 4 * float(jnp.finfo(limit.dtype).eps))
