"""The ways to advance a state: alone, in a batch, from the host, over two devices."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

import physkit as pk

from .outcome import check_health

_simulate = eqx.filter_jit(lambda sim, state, steps, key: pk.simulate(sim, state, steps, key=key))
_batch = eqx.filter_jit(
    lambda sim, states, steps, key: eqx.filter_vmap(
        lambda state: pk.simulate(sim, state, steps, key=key)
    )(states)
)


def advance(
    sim: pk.Simulation,
    states: Sequence,
    steps: int,
    verb: str,
    causes: Sequence[str],
    read: Callable,
    key=None,
) -> tuple:
    """The last state and the frames of the first of `states`; a fault must be one of `causes`.

    - `verb`: "simulate", "vmap" over all of `states`, "run", or "devices": `run` over two of them.
    - `read`: the arrays of a state that a fault must poison.
    """
    if verb == "run" or (verb == "devices" and jax.device_count() > 1):
        devices = {"devices": (2,)} if verb == "devices" else {}
        done = pk.run(sim, states[0], steps, key=key, progress=False, **devices)
        return done.state, done.frames
    if verb == "vmap" and len(states) > 1:
        batch = jax.tree.map(lambda *a: jnp.stack(a), *states)
        result = jax.tree.map(lambda a: a[0], _batch(sim, batch, steps, key))
    else:
        result = _simulate(sim, states[0], steps, key)
    check_health(result.health, read(result.state), causes)
    return result.state, result.frames
