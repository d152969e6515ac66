"""The cache of a pair force: what it carries from step to step."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Faults, Module, PyTree, data, power_of_two

from ..._particles import Particles
from ...neighbors import AbstractNeighbors, AbstractPairs, AllPairs
from ..potentials import AbstractPairPotential
from ._pair_kernels import PairArrays, pair_arrays

# Bits between the quantum and the largest initial pair force, by bytes of a number: more than a significand
# has, so that rounding to the quantum loses nothing, and few enough that forces may grow 2¹⁰ times.
_QUANTUM_BITS = {4: 28, 8: 56}


class PairCache(Module):
    """What `Pairwise` carries: neighbors (None: all pairs, no cutoff), the quantum of exact sums, faults.

    - `current`: particles that the neighbors are up to date for, in what observers are shown; None in a carry.
    """

    # Of what is given instead of one.
    advice: ClassVar[str] = (
        "an integrator's init makes it, force.init(state), and its steps hand it on"
    )

    neighbors: AbstractNeighbors | None
    quantum: Float[Array, "*b"] | None = data()
    faults: Faults
    current: Particles | None = None

    @property
    def pairs(self) -> AbstractPairs:
        """The pairs to sum over."""
        return AllPairs() if self.neighbors is None else self.neighbors.pairs

    def update(self, particles: Particles) -> "PairCache":
        """This cache with neighbors that are up to date."""
        # The very same object: whatever was moved or strained is another one, and so is a copy.
        is_current = self.neighbors is None or particles is self.current
        neighbors = self.neighbors if is_current else self.neighbors.update(particles)
        return PairCache(neighbors, self.quantum, self.faults)

    def arrays(
        self,
        particles: Particles,
        potential: AbstractPairPotential,
        velocity: Float[Array, "n d"] | None = None,
    ) -> PairArrays:
        """The arrays that the potential depends on, for all particles that `pairs` names, the halo's too."""
        arrays = pair_arrays(particles, potential)
        if velocity is not None:
            arrays["v"] = tuple(velocity[:, k] for k in range(particles.dimension))
        return arrays if self.neighbors is None else self.neighbors.exchange_halo(particles, arrays)

    def poison_if_incomplete(self, sums: PyTree) -> PyTree:
        """`sums` over the pairs, or NaN where pairs are missing."""
        return sums if self.neighbors is None else self.neighbors.poison_if_incomplete(sums)


def round_up_to_power_of_two(quantum: Float[Array, ""]) -> Float[Array, ""]:
    """The least power of two that is not less than `quantum`."""
    # quantum = mantissa · 2^exponent with ½ ≤ mantissa < 1: a power of two has the mantissa ½.
    mantissa, exponent = jnp.frexp(quantum)
    is_power = (mantissa == 0.5).astype(exponent.dtype)
    return power_of_two(exponent - is_power, quantum.dtype)


def quantum_below(largest: Float[Array, ""]) -> Float[Array, ""]:
    """A power of two that is smaller than the largest pair force by about 2²⁸ (float32) or 2⁵⁶ (float64)."""
    _, exponent = jnp.frexp(jnp.where(largest > 0, largest, 1))
    bits = _QUANTUM_BITS[jnp.dtype(largest.dtype).itemsize]
    return power_of_two(exponent - bits, largest.dtype)
