"""Momentum, kinetic energy, temperature and degrees of freedom; the only place where these are counted."""

from collections.abc import Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    Key,
    KeyLike,
    ParameterError,
    ShapeError,
    as_key,
    as_parameter,
    concrete_value,
    explain_call,
    matmul,
    ratio,
    safe_divide,
    safe_sqrt,
)

from ._abstract_bodies import AbstractBodies
from ._arguments import Numbers

B = TypeVar("B", bound=AbstractBodies)


def mobile_velocity(particles: AbstractBodies) -> Float[Array, "n d"]:
    """Velocities, with 0 for frozen particles, whatever `velocity` holds for them."""
    if particles.frozen is None:
        return particles.velocity
    return jnp.where(particles.frozen[:, None], 0, particles.velocity)


def degrees_of_freedom(
    particles: AbstractBodies, momentum_conserved: bool = True
) -> Float[Array, ""]:
    """The number of independent velocity components, each of which holds k_B T / 2 on average.

        N_f = (d + r)·n_moving − n_constraints − d,   the last term only where total momentum is conserved

    with r = 3 axes about which a rigid body turns, 2 for linear ones, 0 for points.

    **Arguments:**

    - `momentum_conserved`: no external force acts on the particles. Frozen particles exert such forces, and
      where there are some, nothing is subtracted.

    **Reference:** Frenkel & Smit, Understanding Molecular Simulation, 2nd ed., section 4.1.
    """
    d, turns = particles.dimension, particles.num_rotations
    dtype = particles.position.dtype
    constraints = particles.constraints
    bound = 0 if constraints is None else constraints.num_constraints
    if particles.frozen is None:
        moving = jnp.asarray(particles.num_particles, dtype)
        free = d * (moving - 1) if momentum_conserved else d * moving
        free = free + turns * moving if turns else free
        return free - bound if bound else free

    def count(mask: Bool[Array, " n"]) -> Int[Array, ""]:
        # In integers: float32 cannot count beyond 2²⁴.
        return particles.space.sum(jnp.sum(particles.mask_empty(mask), dtype=jnp.int32))

    moving, frozen = count(~particles.frozen), count(particles.frozen)
    conserved = jnp.where(momentum_conserved & (frozen == 0), 1, 0)
    free = d * (moving - conserved).astype(dtype)
    free = free + turns * moving.astype(dtype) if turns else free
    return free - bound if bound else free


def total_degrees_of_freedom(
    parts: Sequence[AbstractBodies], momentum_conserved: bool = True
) -> Float[Array, ""]:
    """The degrees of freedom of several components that move together, with one total momentum.

    **Arguments:**

    - `momentum_conserved`: as of `degrees_of_freedom`; of all components together.
    """
    # Counted with and without the conserved momentum: the difference is what momentum binds.
    counts = [degrees_of_freedom(p, False) for p in parts]
    degrees = jnp.asarray(sum(counts), parts[0].velocity.dtype)
    if not momentum_conserved:
        return degrees
    # Total momentum binds d degrees of freedom once, however many components share it; none where frozen
    # particles take it up.
    bound = [c - degrees_of_freedom(p, True) for c, p in zip(counts, parts, strict=True)]
    return degrees - jnp.min(jnp.stack([jnp.asarray(b, degrees.dtype) for b in bound]))


def kinetic_energy(particles: AbstractBodies) -> Float[Array, ""]:
    """½ Σ m v² of the particles that move; of rigid bodies with that of their rotation."""
    energies = particles.mask_empty(particles.kinetic_energies())
    if particles.frozen is not None:
        energies = jnp.where(particles.frozen, 0, energies)
    return particles.space.sum(jnp.sum(energies))


def temperature(particles: AbstractBodies, momentum_conserved: bool = True) -> Float[Array, ""]:
    """Instantaneous temperature as an energy, k_B T = 2 K / N_f.

    **Arguments:**

    - `momentum_conserved`: see `degrees_of_freedom`. K includes a drift of the center of mass.

    **Notes:** 0 where there are no degrees of freedom.
    """
    degrees = degrees_of_freedom(particles, momentum_conserved)
    return safe_divide(2 * kinetic_energy(particles), degrees)


def total_momentum(particles: AbstractBodies) -> Float[Array, " d"]:
    """Σ m v of the particles that move."""
    v = mobile_velocity(particles)
    return particles.sum(particles.mass[:, None] * v)


def momentum_flux(particles: AbstractBodies) -> Float[Array, "d d"]:
    """Σ m v ⊗ v of the particles that move."""
    # Over devices, slots may be empty: their velocities do not count.
    velocity = particles.mask_empty(mobile_velocity(particles))
    # (dim, particles) @ (particles, dim), then one sum over devices.
    return particles.space.sum(matmul((particles.mass[:, None] * velocity).T, velocity))


def center_of_mass(particles: AbstractBodies) -> Float[Array, " d"]:
    """Σ m x / Σ m of all particles, along unwrapped paths."""
    weighted = particles.sum(particles.mass[:, None] * particles.unwrapped)
    return ratio(weighted, particles.sum(particles.mass))


def angular_momentum(
    particles: AbstractBodies, about: Numbers | None = None
) -> Float[Array, "..."]:
    """Σ m (x − c) × v: a vector in three dimensions, a number in two. With the spin of rigid bodies.

    **Arguments:**

    - `about`: the point c, `[d]`, length; the origin if left out.

    **Errors:** `ShapeError` in one dimension, where there is none.

    **Notes:** along unwrapped paths; not conserved in periodic boxes.
    """
    if particles.dimension == 1:
        raise ShapeError("there is no angular momentum in one dimension")
    x = particles.unwrapped
    if about is not None:
        x = x - jnp.asarray(about, x.dtype)[None, :]
    p = particles.mass[:, None] * mobile_velocity(particles)
    momenta = jnp.cross(x, p) if x.shape[1] == 3 else x[:, 0] * p[:, 1] - x[:, 1] * p[:, 0]
    spin = particles.spin
    return particles.sum(momenta if spin is None else momenta + spin)


@explain_call
def maxwell_boltzmann(
    key: KeyLike,
    particles: B,
    temperature: ArrayLike,
    *,
    remove_momentum: bool = True,
    exact: bool = True,
) -> B:
    """`particles` with velocities drawn from the Maxwell–Boltzmann distribution.

        p(v) ∝ exp(−m v² / 2 k_B T)

    Of rigid bodies angular velocities, too. Drawn by particle id, so neither order nor devices matter; frozen
    particles are put at rest. Constraints are kept: velocities are projected onto them, which is again the
    distribution.

    **Arguments:**

    - `key`: a JAX random key, or a whole number.
    - `temperature`: k_B T, energy; differentiable.
    - `remove_momentum`: make the total momentum zero.
    - `exact`: rescale so that the instantaneous temperature is exactly `temperature`, with d degrees of
      freedom fewer where momentum was removed; otherwise it is only so on average.

    **Errors:** `ParameterError` for a negative temperature, and for a single point without its momentum, which
    is all it has.
    """
    key = as_key(key)
    number = concrete_value(temperature)
    if number is not None and not (number.ndim == 0 and number >= 0):
        raise ParameterError(f"temperature must be one number, not negative; got {temperature!r}")
    frozen = None if particles.frozen is None else concrete_value(particles.frozen)
    num_mobile = particles.num_particles - (0 if frozen is None else int(frozen.sum()))
    if remove_momentum and num_mobile == 1 and not particles.num_rotations and number != 0:
        raise ParameterError(
            "without total momentum a single mobile particle is at rest at any temperature: give "
            "remove_momentum=False"
        )
    target = as_parameter(temperature)
    return _maxwell_boltzmann(key, particles, target, remove_momentum, exact)


@eqx.filter_jit
def _maxwell_boltzmann(
    key: Key,
    particles: B,
    temperature: Float[Array, ""],
    remove_momentum: bool,
    exact: bool,
) -> B:
    dtype, masses = particles.position.dtype, particles.generalized_mass
    width = particles.generalized_velocity.shape[1]
    target = temperature.astype(dtype)

    def draw(particle_id: Int[Array, ""]) -> Float[Array, " k"]:
        # A key for each id: the same numbers in any order of particles and on any device.
        return jax.random.normal(jax.random.fold_in(key, particle_id), (width,), dtype)

    # A rigid line does not turn about itself: there its mass is 0.
    u = safe_divide(jax.vmap(draw)(particles.id), jnp.sqrt(masses))
    if particles.frozen is not None:
        u = jnp.where(particles.frozen[:, None], 0, u)
    unit = particles.replace_velocity(u).constrain_velocities()
    if remove_momentum:
        unit = remove_drift(unit)
    degrees = degrees_of_freedom(particles, remove_momentum)
    scale = safe_divide(degrees * target, 2 * kinetic_energy(unit)) if exact else target
    # safe_sqrt: at temperature 0 the derivative of a root is infinite.
    return unit.replace_velocity(safe_sqrt(scale) * unit.generalized_velocity)


@explain_call
def remove_drift(particles: B) -> B:
    """`particles` in the rest frame of those that move: without total momentum."""
    # Frozen particles neither contribute to the drift nor are changed.
    mass = particles.mass
    if particles.frozen is not None:
        mass = jnp.where(particles.frozen, 0, mass)
    drift = safe_divide(total_momentum(particles), particles.sum(mass))
    moved = particles.replace(velocity=particles.velocity - drift[None, :])
    if particles.frozen is None:
        return moved
    still = jnp.where(particles.frozen[:, None], particles.velocity, moved.velocity)
    return moved.replace(velocity=still)
