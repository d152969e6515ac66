"""External forces: uniform fields, traps, driving, and any function of time and particles."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Cache,
    Clock,
    DeclarationError,
    NoVirialError,
    ParameterError,
    PyTree,
    ShapeError,
    State,
    as_arguments,
    call_user_function,
    param,
    static,
)

from .._particles import Particles
from ._force import AbstractExternalForce, AbstractForce


class AbstractUniformForce(AbstractExternalForce):
    """A force that does not depend on where a particle is: U = −Σ F·x, by unwrapped positions."""

    def particle_energies(
        self, clock: Clock, state: State, cache: Cache = None
    ) -> Float[Array, " n"]:
        particles = self.particles(state)
        work = particles.mask_empty(particles.unwrapped * self.force(clock, state))
        return -jnp.sum(work, axis=1)

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        return self.particles(state).space.sum(jnp.sum(self.particle_energies(clock, state, cache)))


class UniformAcceleration(AbstractUniformForce):
    """The same acceleration for every particle, such as gravity near the ground.

        F = m g,   U = −Σ m g·x

    **Arguments:**

    - `acceleration`: g, `[d]`, length / time².
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` where g has another number of axes than the particles.

    **Good values:** `[0, 0, -9.80665]` in SI units.

    **Notes:** the energy goes by unwrapped positions: in a periodic box it falls forever.
    """

    acceleration: Float[Array, " d"] = param()
    component: str | None = static(default=None)

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        del clock
        particles = self.particles(state)
        return particles.mass[:, None] * _vector(self.acceleration, particles, "acceleration")


class UniformField(AbstractUniformForce):
    """The same field for every charge.

        F = q E,   U = −Σ q E·x

    **Arguments:**

    - `field`: E, `[d]`, energy / (charge · length).
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` where E has another number of axes than the particles;
    `ParameterError` for particles without charge.

    **Notes:** the energy goes by unwrapped positions: in a periodic box it falls forever. A field
    that oscillates is `Modulated(UniformField(E), frequency)`.
    """

    field: Float[Array, " d"] = param()
    component: str | None = static(default=None)

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        del clock
        particles = self.particles(state)
        if particles.charge is None:
            raise ParameterError("UniformField acts on charges: give Particles(charge=…)")
        return particles.charge[:, None] * _vector(self.field, particles, "field")


class HarmonicTrap(AbstractExternalForce):
    """A spring from every particle to a fixed point: traps, position restraints, Einstein crystals.

        U = ½ Σ k |x − c|²,   F = −k (x − c)

    Each particle oscillates with √(k/m); in equilibrium ⟨(x − c)²⟩ = k_B T / k along each axis.

    **Arguments:**

    - `stiffness`: k, energy / length²; a scalar, or `[d]` for a trap that differs by axis.
    - `center`: c, length; `[d]`, or `[n d]` for a point of each particle's own. The origin if
      left out.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for other shapes.

    **Notes:** in a periodic box the nearest image of the center attracts.
    """

    stiffness: Float[Array, "..."] = param(1.0)
    center: Float[Array, "..."] = param(0.0)
    component: str | None = static(default=None)

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        del clock
        particles = self.particles(state)
        return -_vector(self.stiffness, particles, "stiffness") * self._stretch(particles)

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        particles = self.particles(state)
        stiffness = _vector(self.stiffness, particles, "stiffness")
        each = 0.5 * stiffness * self._stretch(particles) ** 2
        return particles.space.sum(jnp.sum(particles.mask_empty(each)))

    def particle_energies(
        self, clock: Clock, state: State, cache: Cache = None
    ) -> Float[Array, " n"]:
        particles = self.particles(state)
        stiffness = _vector(self.stiffness, particles, "stiffness")
        each = 0.5 * stiffness * self._stretch(particles) ** 2
        return jnp.sum(particles.mask_empty(each), axis=1)

    def _stretch(self, particles: Particles) -> Float[Array, "n d"]:
        x, center = particles.position, self.center
        # `[n d]` is in the user's order: over devices take the rows of this device's particles.
        if center.ndim == 2:
            center = particles.local_rows(center)
        if center.shape != x.shape:
            center = jnp.broadcast_to(_vector(center, particles, "center"), x.shape)
        return particles.space.displacement(x, center)


def _without_arrays(function: Callable) -> Callable:
    """`function`, unless it is an Equinox module with arrays: as part of the program they had no derivative."""
    if isinstance(function, eqx.Module) and any(map(eqx.is_array, jax.tree.leaves(function))):
        raise DeclarationError(
            "the function of ExternalEnergy or ExternalForce is a module with arrays, which would be constants "
            "without a derivative; give them as args: "
            "ExternalEnergy(lambda t, p, module: module(t, p), args=pk.Network(module))"
        )
    return function


class ExternalEnergy(AbstractForce):
    """Any energy of particles, as a plain function; the force is its negative gradient.

        ExternalEnergy(lambda t, p, k: k * jnp.sum(jnp.cos(p.position)), args=jnp.asarray(2.0))

    **Arguments:**

    - `function`: `(t, particles) → energy`, or `(t, particles, args) → energy`.
    - `args`: arrays that the function depends on and that should be differentiable.
    - `component`: name of the particle component; None where the state is one component.
    - `outside`: only for pressure and stress: True where the energy is one of places (a trap, a field), which
      has no virial; False where it is one of particles among themselves, whose virial is found by strain.

    **Errors:** `NoVirialError` where a virial is asked for and `outside` is left out; `DeclarationError` over
    several devices, where the function would get one device's particles only.

    **Notes:** define the function once, at module level or outside of loops: every new function object
    compiles again.
    """

    conserves_momentum: ClassVar[bool] = False

    function: Callable = static(converter=_without_arrays)
    args: PyTree = eqx.field(default=None, converter=as_arguments)
    component: str | None = static(default=None)
    outside: bool | None = static(default=None)

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        self.particles(state).require_single_device("ExternalEnergy", "ExternalForce")
        return _call(self.function, clock, self.particles(state), self.args)

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        return _virial_of_function(self, clock, state, cache)


class ExternalForce(AbstractForce):
    """Any force on particles, as a plain function; it has no energy.

        ExternalForce(lambda t, p, drag: -drag * p.velocity, args=jnp.asarray(0.1))

    **Arguments:**

    - `function`: `(t, particles) → [n d]`, or `(t, particles, args) → [n d]`.
    - `args`: arrays that the function depends on and that should be differentiable.
    - `component`: name of the particle component; None where the state is one component.
    - `outside`: only for pressure and stress: True where the force comes from outside (a field, a drag), which
      has no virial.

    **Errors:** `ShapeError` for a function that returns another shape; `NoVirialError` where a virial is asked
    for and `outside` is not True.

    **Notes:** symplectic integrators take forces to depend on positions and time only; with a
    velocity in it their order drops to one. Use Runge–Kutta then.
    """

    conserves_momentum: ClassVar[bool] = False

    function: Callable = static(converter=_without_arrays)
    args: PyTree = eqx.field(default=None, converter=as_arguments)
    component: str | None = static(default=None)
    outside: bool | None = static(default=None)

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        particles = self.particles(state)
        force = _call(self.function, clock, particles, self.args)
        if jnp.shape(force) != particles.position.shape:
            raise ShapeError(
                f"the function of ExternalForce must return {particles.position.shape}, one force "
                f"per particle; it returned {jnp.shape(force)}"
            )
        return force

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        return _virial_of_function(self, clock, state, cache)


def _virial_of_function(
    term: ExternalEnergy | ExternalForce, clock: Clock, state: State, cache: Cache
) -> Float[Array, "d d"]:
    """The virial of a plain function, which does not tell by itself where it acts from."""
    name = type(term).__name__
    if term.outside is None:
        inside = ", outside=False for one of particles among themselves" * (
            name == "ExternalEnergy"
        )
        raise NoVirialError(
            f"whether this {name} has a virial cannot be seen from its function: give "
            f"{name}(…, outside=True) for one that acts from outside (its virial is 0){inside}"
        )
    if term.outside:
        d = term.particles(state).dimension
        return jnp.zeros((d, d), term.particles(state).position.dtype)
    return term._virial_by_strain(clock, state, cache)


def _call(function: Callable, clock: Clock, particles: Particles, args: PyTree) -> Any:
    given = (clock.t, particles) if args is None else (clock.t, particles, args)
    signature = "(t, particles)" if args is None else "(t, particles, args)"
    return call_user_function(function, given, "an external force or energy", signature)


def _vector(value: Array, particles: Particles, name: str) -> Float[Array, "1 d"]:
    """`value`, a scalar or `[d]`, as a row."""
    if value.ndim and value.shape != (particles.dimension,):
        raise ShapeError(
            f"{name} must have {particles.dimension} components like the positions; got shape "
            f"{value.shape}"
        )
    return jnp.broadcast_to(value, (1, particles.dimension))
