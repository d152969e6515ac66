"""Electric and magnetic fields that are given: numbers, functions of time and place, fields of the state."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Cache,
    Clock,
    Module,
    NoEnergyError,
    ParameterError,
    PyTree,
    ShapeError,
    State,
    get_component,
    static,
)
from physkit.coupling import AbstractKernel, interpolate
from physkit.fields import Field
from physkit.geometry import as_space_time_value
from physkit.particles import Particles
from physkit.particles.forces import AbstractExternalForce


class ElectricForce(AbstractExternalForce):
    """q E of an integrator that takes E by itself, as a term: energies without it would be wrong in silence.

    - `integrator`: `Boris` or `RelativisticMotion`. `no_energy`: why there is no energy, and what to do.
    """

    integrator: PyTree
    no_energy: str = static()
    component: str | None = static(default=None)

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        raise NoEnergyError(self.no_energy)

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        particles, given = self.particles(state), self.integrator
        assert particles.charge is not None  # the integrator's `init` refuses particles without
        rows = electric_rows(
            given.electric, given.electric_field, clock, state, particles, given.kernel
        )
        return particles.charge[:, None] * rows


def value_or_name(value: PyTree) -> tuple[PyTree, str | None]:
    """A value that is known now, or the name of a field in the state."""
    if isinstance(value, str):
        return None, value
    return (None if value is None else as_space_time_value(value)), None


def require_magnetic(value: PyTree, owner: str) -> None:
    """**Errors:** `ParameterError` for None."""
    if value is None:
        raise ParameterError(
            f"{owner} turns charges about B: give a number, a function (t, *x), a field or the name of one; "
            "without any, 0.0 in the plane and [0.0, 0.0, 0.0] in space"
        )


def electric_rows(
    value: PyTree,
    name: str | None,
    clock: Clock,
    state: State,
    particles: Particles,
    kernel: AbstractKernel,
) -> Float[Array, "n d"]:
    """E where the particles are; 0 where none is given.

    **Errors:** `ShapeError` for a wrong number of components.
    """
    if value is None and name is None:
        return jnp.zeros_like(particles.velocity)
    values = _evaluate(value, name, clock, state, particles, kernel)
    return _as_rows(values, particles, "E", particles.dimension)


def magnetic_rows(
    value: PyTree,
    name: str | None,
    clock: Clock,
    state: State,
    particles: Particles,
    kernel: AbstractKernel,
) -> Float[Array, "n c"]:
    """B where the particles are: three components, in the plane the one across it.

    **Errors:** `ShapeError` for a wrong number of components.
    """
    values = _evaluate(value, name, clock, state, particles, kernel)
    return _as_rows(values, particles, "B", 3 if particles.dimension == 3 else 1)


def _evaluate(
    value: PyTree,
    name: str | None,
    clock: Clock,
    state: State,
    particles: Particles,
    kernel: AbstractKernel,
) -> Array:
    """A field, a function of time and place, or a constant, where the particles are."""
    if name is not None:
        value = get_component(state, name)
    if isinstance(value, Field):
        return interpolate(value.at_time(clock.t), particles, kernel)
    if isinstance(value, Module):
        columns = [particles.position[:, k] for k in range(particles.dimension)]
        value = value(clock.t, *columns)  # type: ignore[operator]
        if isinstance(value, tuple | list):
            columns = [jnp.broadcast_to(jnp.asarray(v), (particles.num_slots,)) for v in value]
            value = jnp.stack(columns, axis=1)
    value = jnp.asarray(value)
    # `[n d]` may be given for all particles: each device takes the rows of its own.
    return particles.local_rows(value) if value.ndim else value


def _as_rows(value: Array, particles: Particles, what: str, components: int) -> Float[Array, "n c"]:
    """`value`, one for all or one each, as `[n, components]`."""
    n = particles.num_slots
    if components == 1 and value.ndim <= 1:
        value = value[..., None]
    if value.shape not in ((components,), (n, components)):
        raise ShapeError(
            f"{what} in {particles.dimension} dimensions has {components} components; got shape "
            f"{value.shape} for {n} particles"
        )
    return jnp.broadcast_to(value.astype(particles.position.dtype), (n, components))
