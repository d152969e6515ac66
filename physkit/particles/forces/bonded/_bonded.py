"""The base of bonds and angles: forces on given tuples of particles."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, ShapeError, State, as_parameter, matmul
from physkit.geometry import AbstractSpace

from ..._arguments import Numbers
from ..._particles import Particles
from .._force import AbstractForce
from ._sharded_tuples import ShardedTuples, local_tuples
from ._tuples import Tuples

LocalTuples = Tuples | ShardedTuples  # all tuples, or over devices those of this device's particles
Vectors = tuple[Float[Array, "m d"], ...]


class AbstractBonded(AbstractForce):
    """A force on given pairs, triples, … of particles; the energy is a function of vectors between members.

    A new one writes `vectors`, `energies` and `member_forces`. With v the vectors of a tuple,

        U = Σ energies(v),   f = −∂U/∂v,   virial = Σ v ⊗ f

    - `tuples`: which particles are bonded. `tuple_name`: what messages call the tuples.
    """

    conserves_momentum: ClassVar[bool] = True

    tuples: eqx.AbstractVar[Tuples]
    tuple_name: eqx.AbstractClassVar[str]

    @abc.abstractmethod
    def vectors(self, space: AbstractSpace, members: Float[Array, "k m d"]) -> Vectors:
        """The vectors of each tuple, from the positions of its first, second, … member."""

    @abc.abstractmethod
    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        """The energy of each tuple; its parameters are `local.local_parameters(self.stiffness)`, …"""

    def vector_forces(self, local: LocalTuples, vectors: Vectors) -> Vectors:
        """f = −∂U/∂v; override it where a closed form is faster."""
        # Tuples do not depend on one another: the gradient of the sum has the derivative of each.
        slopes = jax.grad(lambda v: jnp.sum(self.energies(local, v)))(vectors)
        return tuple(-slope for slope in slopes)

    @abc.abstractmethod
    def member_forces(self, forces: Vectors) -> Float[Array, "k m d"]:
        """The force on the first, second, … member of each tuple, from the forces along its vectors."""

    @property
    def needs_halo(self) -> bool:
        return True

    def init(self, state: State) -> ShardedTuples | None:
        return _as_cache(self._local(self.particles(state), None))

    def __call__(
        self, clock: Clock, state: State, cache: ShardedTuples | None = None
    ) -> tuple[Float[Array, "n d"], ShardedTuples | None]:
        del clock
        particles = self.particles(state)
        local, vectors = self._local_vectors(particles, cache)
        forces = self.member_forces(self.vector_forces(local, vectors))
        return local.sum_forces(forces, particles), _as_cache(local)

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        return self(clock, state)[0]

    def energy(
        self, clock: Clock, state: State, cache: ShardedTuples | None = None
    ) -> Float[Array, ""]:
        del clock
        particles = self.particles(state)
        local, vectors = self._local_vectors(particles, cache)
        each = local.weight_by_ownership(self.energies(local, vectors))
        return particles.space.sum(jnp.sum(each))

    def virial(
        self, clock: Clock, state: State, cache: ShardedTuples | None = None
    ) -> Float[Array, "d d"]:
        del clock
        particles = self.particles(state)
        local, vectors = self._local_vectors(particles, cache)
        total = jnp.zeros((particles.dimension,) * 2, particles.position.dtype)
        for v, f in zip(vectors, self.vector_forces(local, vectors), strict=True):
            total += matmul(v.T, local.weight_by_ownership(f))
        return particles.space.sum(total)

    def require_valid(self, particles: Particles) -> None:
        """**Errors:** `ParameterError` or `ShapeError` for particles that these tuples do not fit."""
        self.tuples.require_inside(particles, self.tuple_name)

    def _local(self, particles: Particles, cache: ShardedTuples | None) -> LocalTuples:
        self.require_valid(particles)
        return local_tuples(self.tuples, particles, cache)

    def _local_vectors(
        self, particles: Particles, cache: ShardedTuples | None
    ) -> tuple[LocalTuples, Vectors]:
        local = self._local(particles, cache)
        return local, self.vectors(particles.space, local.positions(particles))


def parameter_by_tuple(value: Numbers, tuples: Tuples, name: str) -> Float[Array, "..."]:
    """A parameter that is one for all tuples, or `[m]`.

    **Errors:** `ShapeError` for other shapes.
    """
    array, m = as_parameter(value), tuples.places.shape[0]
    if getattr(array, "ndim", 0) and array.shape != (m,):
        raise ShapeError(f"{name} must be a scalar or have shape ({m},); got {array.shape}")
    return array


def _as_cache(local: LocalTuples) -> ShardedTuples | None:
    # On a single device the tuples are part of the force, and nothing is carried.
    return local if isinstance(local, ShardedTuples) else None
