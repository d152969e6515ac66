"""Sums of matrices on a few subsystems, applied with few passes over a state.

Term by term, each operator costs a pass, and chains of them are fused into expressions that grow with their
number: three transmons with decay compiled for a minute. Their sum is one small matrix instead.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from physkit.core import tensordot

from ._contraction import apply_matrix, check_rows, check_sites

# Levels of all subsystems together whose matrix costs less than passes term by term.
FEW_LEVELS = 32


class LocalPart(NamedTuple):
    """A matrix, constant in a program, on some subsystems, times some numbers."""

    sites: tuple[int, ...]
    matrix: np.ndarray
    factors: tuple[ArrayLike, ...] = ()

    def times(self, *factors: ArrayLike) -> "LocalPart":
        return self._replace(factors=(*self.factors, *factors))

    def squared(self) -> "LocalPart":
        """L†L."""
        both = self.factors + tuple(jnp.conj(f) for f in self.factors)
        return LocalPart(self.sites, np.conj(self.matrix.T) @ self.matrix, both)

    def conjugation(self, num_sites: int) -> "LocalPart":
        """ρ → L ρ L†, a matrix on the rows and columns of a density matrix."""
        both = self.factors + tuple(jnp.conj(f) for f in self.factors)
        sites = self.sites + tuple(num_sites + s for s in self.sites)
        return LocalPart(sites, np.kron(self.matrix, np.conj(self.matrix)), both)


def apply_parts(parts: Sequence[LocalPart], x: Array, dims: tuple[int, ...]) -> Array:
    """The sum of `parts` on the leading axes of `x`, which are those of subsystems of dimensions `dims`."""
    x = jax.lax.optimization_barrier(x)  # or what made it is computed again for every element
    total = jnp.zeros_like(x)
    for sites, members in _groups(parts, dims).items():
        total = total + apply_matrix(_sum(members, sites, dims, x.dtype), x, sites)
    return total


def _groups(
    parts: Sequence[LocalPart], dims: tuple[int, ...]
) -> dict[tuple[int, ...], list[LocalPart]]:
    """Parts by the subsystems of the matrix that they are added to."""
    groups: dict[tuple[int, ...], list[LocalPart]] = {}
    if math.prod(dims) <= FEW_LEVELS:
        groups[tuple(range(len(dims)))] = []
    for part in sorted(parts, key=lambda part: -len(part.sites)):
        check_sites(part.sites, dims)
        check_rows(part.matrix.shape, part.sites, [dims[s] for s in part.sites])
        own = set(part.sites)
        home = next((sites for sites in groups if own <= set(sites)), tuple(sorted(own)))
        groups.setdefault(home, []).append(part)
    return {sites: members for sites, members in groups.items() if members}


def _sum(
    parts: Sequence[LocalPart], sites: tuple[int, ...], dims: tuple[int, ...], dtype: DTypeLike
) -> Array:
    """The sum of matrices as one on `sites`."""
    constant = [_enlarge(p, sites, dims) for p in parts if not p.factors]
    scaled = [p for p in parts if p.factors]
    total = jnp.asarray(sum(constant, np.zeros((1, 1))), dtype)
    if not scaled:
        return total
    factors = jnp.stack(
        [
            math.prod((jnp.asarray(f).astype(dtype) for f in p.factors), start=jnp.ones((), dtype))
            for p in scaled
        ]
    )
    matrices = np.stack([_enlarge(p, sites, dims) for p in scaled])
    return total + tensordot(factors, jnp.asarray(matrices, dtype), 1)


def _enlarge(part: LocalPart, sites: tuple[int, ...], dims: tuple[int, ...]) -> np.ndarray:
    """The matrix of `part` on `sites`, among which its own are; the identity on others."""
    order = [*part.sites, *(s for s in sites if s not in part.sites)]
    shape = [dims[s] for s in order]
    size, own = math.prod(shape), len(part.matrix)
    whole = np.kron(part.matrix, np.eye(size // own)).reshape(*shape, *shape)
    back = [order.index(s) for s in sites]
    return whole.transpose(*back, *(len(sites) + b for b in back)).reshape(size, size)
