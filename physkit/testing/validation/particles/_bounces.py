"""Events within steps: a ball that bounces, and what follows by its derivatives."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import Function
from physkit.integrators import RK4, Event, Events
from physkit.simulate import Simulation, simulate

from .._case import Case, Published

_END = 2.3


def bouncing_ball() -> dict[str, Any]:
    """A ball from rest at 1.3 m, g = 9.81 m/s², restitution 0.8, after three bounces within 2.3 s in steps of
    0.46 s: the largest errors of height and speed, and of their derivatives by height, g and restitution."""

    def end(height: Any, gravity: Any, restitution: Any) -> Any:
        fall = Function(lambda t, x, g: jnp.stack([x[1], -g]), gravity)
        floor = Event(
            lambda t, x, e: x[0], lambda t, x, e: jnp.stack([0 * x[0], -e * x[1]]), restitution
        )
        simulation = Simulation(Events(RK4(fall), floor), dt=_END / 5)
        return simulate(simulation, jnp.stack([height, 0 * height]), 5).state

    numbers = tuple(jnp.asarray(v) for v in (1.3, 9.81, 0.8))
    exact = np.array([_closed_form(*numbers), *jax.jacfwd(_closed_form, (0, 1, 2))(*numbers)])
    both = lambda *a: (end(*a),) * 2
    slopes, value = jax.jit(jax.jacfwd(both, (0, 1, 2), has_aux=True))(*numbers)
    return {
        "state": np.max(np.abs(value - exact[0])),
        "derivatives": np.max(np.abs(np.array(slopes) - exact[1:])),
    }


def _closed_form(height: Any, gravity: Any, restitution: Any) -> Any:
    """Down after √(2 x₀/g); then flights of 2 eᵏ v/g between bounces, three of which are over by the end."""
    speed = jnp.sqrt(2 * gravity * height)
    begin = speed / gravity * (1 + 2 * restitution + 2 * restitution**2)
    v, s = speed * restitution**3, _END - begin
    return jnp.stack([v * s - 0.5 * gravity * s**2, v - gravity * s])


CASES = (
    Case(
        "bouncing-ball",
        bouncing_ball,
        (
            Published("state", 0, 1e-12),
            Published("derivatives", 0, 1e-10),
        ),
        "closed form; Leine & Nijmeijer, Dynamics and Bifurcations of Non-Smooth Mechanical Systems (2004)",
    ),
)
