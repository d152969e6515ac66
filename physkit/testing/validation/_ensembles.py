"""Ensembles: rare events."""

from typing import Any

import jax
import jax.numpy as jnp

from physkit.ensemble import passage_rate
from physkit.simulate import simulate
from physkit.systems import DOUBLE_WELL_RATE, double_well

from ._case import Case, Published


def escape_from_a_double_well() -> dict[str, Any]:
    """4096 members over three mean escape times, in steps of 0.1: each has noise of its own key.

    The number of members that reached +1 over the time that all were waiting; 5 % never do.
    """
    return {"rate": _escapes(4096, 0.1)}


def escape_from_a_double_well_again() -> dict[str, Any]:
    """The same with 20 000 members in steps of 0.05: standard error 0.7 %."""
    return {"rate": _escapes(20_000, 0.05)}


def _escapes(members: int, dt: float) -> Any:
    sim, start = double_well(jnp.float32(0.05), dt=jnp.float32(dt), dtype=jnp.float32)
    steps = round(3 / DOUBLE_WELL_RATE / dt)
    escape = lambda key: simulate(sim, start, steps, key=key).summary["escape"][0]
    times = jax.jit(jax.vmap(escape))(jax.random.split(jax.random.key(0), members))
    return passage_rate(times, steps * dt, key=jax.random.key(1)).value


CASES = (
    Case(
        "double-well-escape",
        escape_from_a_double_well,
        (Published("rate", DOUBLE_WELL_RATE, 0.05, "relative"),),
        "quadrature of the mean first-passage time; Kramers 1940",
    ),
    Case(
        "double-well-escape-large",
        escape_from_a_double_well_again,
        (Published("rate", DOUBLE_WELL_RATE, 0.02, "relative"),),
        "quadrature of the mean first-passage time; Kramers 1940",
        slow=True,
    ),
)
