"""Momentum, kinetic energy, temperature and their degrees of freedom, counted here and nowhere else."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import ParameterError, ShapeError, concrete_value, safe_divide, safe_sqrt

from ._arguments import Numbers
from ._particles import Particles


def mobile_velocity(particles: Particles) -> Float[Array, "n d"]:
    """Velocities, zero for frozen particles, whatever their array says."""
    if particles.frozen is None:
        return particles.velocity
    return jnp.where(particles.frozen[:, None], 0, particles.velocity)


def degrees_of_freedom(particles: Particles, momentum_conserved: bool = True) -> Float[Array, ""]:
    """How many independent velocity components there are: what temperature is shared over.

        N_f = d·n_moving − d,   the last term only where total momentum is conserved

    **Arguments:**

    - `momentum_conserved`: nothing outside acts on the particles. Where some are frozen, they do,
      and nothing is subtracted.

    **Reference:** Frenkel & Smit, Understanding Molecular Simulation, 2nd ed., section 4.1.
    """
    d = particles.dimension
    dtype = particles.position.dtype
    if particles.frozen is None:
        moving = jnp.asarray(particles.num_particles, dtype)
        return d * (moving - 1) if momentum_conserved else d * moving
    # Counted in integers: float32 stops counting at 2²⁴.
    count = lambda x: particles.space.sum(jnp.sum(particles.mask_empty(x), dtype=jnp.int32))
    moving, frozen = count(~particles.frozen), count(particles.frozen)
    bound = jnp.where(momentum_conserved & (frozen == 0), 1, 0)
    return d * (moving - bound).astype(dtype)


def kinetic_energy(particles: Particles) -> Float[Array, ""]:
    """½ Σ m v² of the particles that move."""
    v = mobile_velocity(particles)
    return particles.space.sum(
        0.5 * jnp.sum(particles.mask_empty(particles.mass * jnp.sum(v * v, axis=1)))
    )


def temperature(particles: Particles, momentum_conserved: bool = True) -> Float[Array, ""]:
    """Instantaneous temperature as an energy, k_B T = 2 K / N_f.

    **Arguments:**

    - `momentum_conserved`: see `degrees_of_freedom`. K includes a drift of the center of mass.

    **Notes:** 0 where there are no degrees of freedom.
    """
    degrees = degrees_of_freedom(particles, momentum_conserved)
    return safe_divide(2 * kinetic_energy(particles), degrees)


def total_momentum(particles: Particles) -> Float[Array, " d"]:
    """Σ m v of the particles that move."""
    v = mobile_velocity(particles)
    return particles.sum(particles.mass[:, None] * v)


def center_of_mass(particles: Particles) -> Float[Array, " d"]:
    """Σ m x / Σ m of all particles, along unwrapped paths."""
    weighted = particles.sum(particles.mass[:, None] * particles.unwrapped)
    return weighted / particles.sum(particles.mass)


def angular_momentum(particles: Particles, about: Numbers | None = None) -> Float[Array, "..."]:
    """Σ m (x − c) × v: a vector in three dimensions, a number in two.

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
    spin = jnp.cross(x, p) if x.shape[1] == 3 else x[:, 0] * p[:, 1] - x[:, 1] * p[:, 0]
    return particles.sum(spin)


def maxwell_boltzmann(
    key: Array,
    particles: Particles,
    temperature: ArrayLike,
    *,
    remove_momentum: bool = True,
    exact: bool = True,
) -> Particles:
    """`particles` with velocities drawn from the Maxwell–Boltzmann distribution.

        p(v) ∝ exp(−m v² / 2 k_B T)

    Drawn by particle id, so neither order nor devices matter; frozen particles are put at rest.

    **Arguments:**

    - `key`: a JAX random key.
    - `temperature`: k_B T, energy; differentiable.
    - `remove_momentum`: make the total momentum zero.
    - `exact`: rescale so that the instantaneous temperature is the one asked for, with d degrees
      of freedom fewer where momentum was removed; otherwise it is so on average.

    **Errors:** `ParameterError` for a negative temperature.
    """
    number = concrete_value(temperature)
    if number is not None and not (number.ndim == 0 and number >= 0):
        raise ParameterError(f"temperature must be one number, not negative; got {temperature!r}")
    dtype, d = particles.position.dtype, particles.dimension
    goal = jnp.asarray(temperature, dtype)
    draw = lambda i: jax.random.normal(jax.random.fold_in(key, i), (d,), dtype)
    v = jax.vmap(draw)(particles.id) / jnp.sqrt(particles.mass)[:, None]
    unit = particles.replace(velocity=v)
    unit = unit.replace(velocity=mobile_velocity(unit))
    if remove_momentum:
        unit = remove_drift(unit)
    degrees = degrees_of_freedom(particles, remove_momentum)
    scale = safe_divide(degrees * goal, 2 * kinetic_energy(unit)) if exact else goal
    return unit.replace(velocity=safe_sqrt(scale) * unit.velocity)


def remove_drift(particles: Particles) -> Particles:
    """`particles` seen from the center of mass of those that move: no total momentum."""
    mass = particles.mass
    if particles.frozen is not None:
        mass = jnp.where(particles.frozen, 0, mass)
    drift = safe_divide(total_momentum(particles), particles.sum(mass))
    moved = particles.replace(velocity=particles.velocity - drift[None, :])
    if particles.frozen is None:
        return moved
    still = jnp.where(particles.frozen[:, None], particles.velocity, moved.velocity)
    return moved.replace(velocity=still)
