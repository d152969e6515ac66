"""The base of bonds and angles: forces on given tuples of particles."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ShapeError,
    State,
    as_parameter,
    evaluate_now,
    matmul,
    recomputed,
    safe_divide,
    safe_norm,
)

from ..._arguments import Numbers
from ..._particles import Particles
from ..._velocities import mobile_velocity
from .._force import AbstractForce
from ._local_tuples import LocalTuples
from ._sharded_tuples import ShardedTuples, local_tuples
from ._start_checks import vectors_at_start
from ._tuples import Tuples

Vectors = tuple[Float[Array, "m d"], ...]
Differences = tuple[tuple[int, int], ...]


class AbstractBonded(AbstractForce):
    """A force on given pairs, triples, … of particles; the energy is a function of vectors between members.

    A new one writes `differences` and `energies`. With the vectors v = x_a − x_b of a tuple,

        U = Σ energies(v),   f = −∂U/∂v,   F_a += f,   F_b −= f,   virial = Σ v ⊗ f

    - `tuples`: which particles are bonded. `tuple_name`: what messages call them.
    - `differences`: (a, b) of each vector, places within a tuple.
    """

    conserves_momentum: ClassVar[bool] = True

    tuples: eqx.AbstractVar[Tuples]
    tuple_name: eqx.AbstractClassVar[str]

    @property
    @abc.abstractmethod
    def differences(self) -> Differences:
        """(a, b) of each vector x_a − x_b, places within a tuple."""

    @abc.abstractmethod
    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        """The energy of each tuple; its parameters are `local.parameters(self.stiffness)`, …"""

    def vector_forces(self, local: LocalTuples, vectors: Vectors) -> Vectors:
        """f = −∂U/∂v; override it where a closed form is faster."""
        # Tuples do not depend on one another: the gradient of the sum has the derivative of each.
        slopes = jax.grad(lambda v: jnp.sum(self.energies(local, v)))(vectors)
        return tuple(-slope for slope in slopes)

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
        local = self._local(particles, cache)
        forces = recomputed(_forces_on_members)(self, local.tables, particles)
        return local.sum_forces(forces), _as_cache(local)

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

    def particle_energies(
        self, clock: Clock, state: State, cache: ShardedTuples | None = None
    ) -> Float[Array, " n"]:
        """The energy of each particle: an equal part of that of each of its tuples."""
        del clock
        local, vectors = self._local_vectors(self.particles(state), cache)
        width = self.tuples.places.shape[1]
        part = self.energies(local, vectors) / width
        return local.sum_forces(jnp.broadcast_to(part[:, None], (width, *part.shape, 1)))[:, 0]

    def heat_flux(
        self, clock: Clock, state: State, cache: ShardedTuples | None = None
    ) -> Float[Array, " d"]:
        """Σ (x_a − x̄) F_a·v_a over the members a of tuples, x̄ the mean of their positions."""
        del clock
        particles = self.particles(state)
        local, vectors = self._local_vectors(particles, cache)
        forces = self._member_forces(self.vector_forces(local, vectors))
        velocity = local.tables.members(mobile_velocity(particles), particles)
        from_first = local.vectors(tuple((a, 0) for a in range(1, len(forces))))
        places = jnp.stack([jnp.zeros_like(from_first[0]), *from_first])
        places = places - jnp.mean(places, axis=0, keepdims=True)
        work = jnp.sum(forces * velocity, axis=-1, keepdims=True)
        each = local.weight_by_ownership(jnp.sum(places * work, axis=0))
        return particles.space.sum(jnp.sum(each, axis=0))

    def require_valid(self, particles: Particles) -> None:
        """**Errors:** `ParameterError` or `ShapeError` for particles that these tuples do not fit."""
        self.tuples.require_inside(particles, self.tuple_name)

    def check_state(self, state: State) -> None:
        particles = self.particles(state)
        if particles.is_distributed:
            return  # it was checked before it was sharded
        self.require_valid(particles)
        # A member of a sweep is traced: what its numbers are known from all the same is computed here.
        with evaluate_now():
            vectors = vectors_at_start(self.tuples, self.differences, particles)
            if vectors is not None:
                self.check_start(vectors, particles)

    def check_start(self, vectors: Float[np.ndarray, "v m d"], particles: Particles) -> None:
        """Compare the vectors at the start with what the energy is defined for; here nothing.

        **Errors:** `ParameterError` for tuples that make no sense there.
        """
        del vectors, particles

    def _set(self, places: Numbers, parameters: dict[str, Numbers], component: str | None) -> None:
        """What constructors do: the tuples, and each parameter, one for all tuples or `[m]`.

        **Errors:** `ShapeError` for other shapes.
        """
        width = 1 + max(max(pair) for pair in self.differences)
        self.tuples, self.component = Tuples.of(places, width, self.tuple_name), component
        for name, value in parameters.items():
            setattr(self, name, self._by_tuple(name, as_parameter(value)))

    def _by_tuple(self, name: str, value: Array) -> Array:
        m = self.tuples.places.shape[0]
        if getattr(value, "ndim", 0) and value.shape != (m,):
            raise ShapeError(f"{name} must be a scalar or have shape ({m},); got {value.shape}")
        return value

    def _local(self, particles: Particles, cache: ShardedTuples | None) -> LocalTuples:
        self.require_valid(particles)
        return LocalTuples(local_tuples(self.tuples, particles, cache), particles)

    def _local_vectors(
        self, particles: Particles, cache: ShardedTuples | None
    ) -> tuple[LocalTuples, Vectors]:
        local = self._local(particles, cache)
        return local, local.vectors(self.differences)

    def _member_forces(self, forces: Vectors) -> Float[Array, "k m d"]:
        """The force on the first, second, … member of each tuple, from the forces along its vectors."""
        total: dict[int, Array] = {}
        for (a, b), force in zip(self.differences, forces, strict=True):
            total[a] = total[a] + force if a in total else force
            total[b] = total[b] - force if b in total else -force
        return jnp.stack([total[member] for member in sorted(total)])


def _forces_on_members(
    bonded: AbstractBonded, tables: Tuples | ShardedTuples, particles: Particles
) -> Float[Array, "k m d"]:
    local = LocalTuples(tables, particles)
    vectors = local.vectors(bonded.differences)
    return bonded._member_forces(bonded.vector_forces(local, vectors))


def unit_vectors(vectors: Vectors) -> Vectors:
    """Each vector divided by its length; 0 where that is 0.

    Products of several vectors of 10⁻¹⁰ m are beyond float32; of unit vectors they are not.
    """
    return tuple(safe_divide(v, safe_norm(v, keepdims=True)) for v in vectors)


def _as_cache(local: LocalTuples) -> ShardedTuples | None:
    # On a single device the tuples are part of the force, and nothing is carried.
    return local.tables if isinstance(local.tables, ShardedTuples) else None
