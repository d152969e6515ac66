"""What a pair force carries from step to step."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Faults, Module, data

from ..._particles import Particles
from ...neighbors import AbstractNeighbors, AbstractPairs
from ..potentials import AbstractPairPotential
from ._pair_kernels import PairArrays, pair_arrays

# Bits between the quantum and the largest pair force at the start, by bytes of a number: sums lose nothing
# to rounding, and there is room above for forces 2¹⁰ times larger.
_QUANTUM_BITS = {4: 28, 8: 56}


class PairCache(Module):
    """What `Pairwise` carries: neighbors, the quantum of exact sums, faults."""

    neighbors: AbstractNeighbors
    quantum: Float[Array, "*b"] | None = data()
    faults: Faults

    @property
    def pairs(self) -> AbstractPairs:
        """The pairs to sum over."""
        return self.neighbors.pairs

    def arrays(self, particles: Particles, potential: AbstractPairPotential) -> PairArrays:
        """What the potential is a function of, for all particles that `pairs` names."""
        return self.neighbors.exchange_halo(particles, pair_arrays(particles, potential))


def round_up_to_power_of_two(quantum: Float[Array, ""]) -> Float[Array, ""]:
    """The least power of two that is not less than `quantum`."""
    mantissa, exponent = jnp.frexp(quantum)
    is_power = (mantissa == 0.5).astype(exponent.dtype)
    return jnp.ldexp(jnp.ones((), quantum.dtype), exponent - is_power)


def quantum_below(largest: Float[Array, ""]) -> Float[Array, ""]:
    """A power of two, some 2²⁸ (float32) or 2⁵⁶ times smaller than the largest pair force."""
    _, exponent = jnp.frexp(jnp.where(largest > 0, largest, 1))
    bits = _QUANTUM_BITS[jnp.dtype(largest.dtype).itemsize]
    return jnp.ldexp(jnp.ones((), largest.dtype), exponent - bits)
