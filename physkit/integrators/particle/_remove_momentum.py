"""Removal of the motion of the center of mass."""

from collections.abc import Iterable

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    ComponentError,
    State,
    get_component,
    put_component,
    safe_divide,
    static,
)
from physkit.particles import AbstractBodies, total_momentum

from .._integrator import AbstractOneStep


def _as_names(component: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(component, str):
        return (component,)
    return None if component is None else tuple(component)


class RemoveMomentum(AbstractOneStep):
    """Takes the motion of the center of mass out of the velocities; a part for compositions.

        v' = v − Σ m v / Σ m

    `Lie(BAOAB(…), RemoveMomentum())` keeps a thermostatted system from drifting away. Positions are
    left alone, so forces that others carry stay valid.

    **Arguments:**

    - `component`: name or names of the components that the center of mass is taken over; all particles if
      left out. Frozen particles do not count.

    **Errors:** `ComponentError` where there are no particles.

    **Notes:** as the last part of a composition over all particles, temperatures count d degrees of
    freedom less.
    """

    component: tuple[str, ...] | None = static(default=None, converter=_as_names)

    @property
    def conserves_momentum(self) -> bool:
        return self.component is None

    @property
    def removes_momentum(self) -> bool:
        return self.component is None

    def step(self, plan: None, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        names = self._names(state)
        parts = [get_component(state, name) for name in names]
        # One drift over all components together, or momentum would be left in their relative motion.
        momentum = sum(total_momentum(p) for p in parts)
        # Everything frozen has no mass to share: 0/0 is 0 here.
        drift = safe_divide(momentum, sum(_moving_mass(p) for p in parts))
        for name, p in zip(names, parts, strict=True):
            # An increment, not new velocities: frozen particles ignore it, fixed-point numbers take it exactly.
            # Rigid bodies go on turning: their other velocities are not changed.
            u = p.generalized_velocity
            opposite = jnp.pad(-drift[None, :], ((0, 0), (0, u.shape[1] - p.dimension)))
            state = put_component(
                state, name, p.shift_velocity(jnp.broadcast_to(opposite, u.shape))
            )
        return state, None

    def _names(self, state: State) -> tuple[str | None, ...]:
        names: tuple[str | None, ...] = (None,)
        if self.component is not None:
            names = self.component
        elif isinstance(state, dict):
            names = tuple(sorted(k for k, v in state.items() if isinstance(v, AbstractBodies)))
        if not names or not all(
            isinstance(get_component(state, name), AbstractBodies) for name in names
        ):
            raise ComponentError(
                "RemoveMomentum acts on particles; it found none in "
                f"{'the state' if names in ((), (None,)) else names}"
            )
        return names


def _moving_mass(particles: AbstractBodies) -> Float[Array, ""]:
    mass = particles.mass
    if particles.frozen is not None:
        mass = jnp.where(particles.frozen, 0, mass)
    return particles.sum(mass)
