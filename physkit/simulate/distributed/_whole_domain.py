"""Shapes that one device would have for the whole domain: traced, nothing is computed."""

from typing import TypeAlias

import equinox as eqx
import jax
import numpy as np

from physkit.core import Frame, Key, PyTree, State, unshard

from ..adjoint._adjoint import Direct
from ..loop._advance import advance, observe_initial
from ..loop._carry import Carry, summary
from ..loop._init import init
from ..loop._simulation import Simulation
from ._capacity import for_shape_inference
from ._sharded_carry import ShardedCarry

KeyShape: TypeAlias = Key | jax.ShapeDtypeStruct | None  # a random key, or its shape


def whole_state_and_key(carry: ShardedCarry) -> tuple[State, KeyShape]:
    """Shapes of the state of the whole domain, and of the random key."""

    def unshard_both(state: State, key: Key | None) -> tuple[State, Key | None]:
        return unshard(state, carry.devices), None if key is None else key[0]

    return eqx.filter_eval_shape(unshard_both, carry.carry.state, carry.carry.key)


def result_shapes(sim: Simulation, state: State, key: KeyShape = None) -> tuple[Frame, Frame]:
    """Shapes of one frame of each name, and of the results of accumulating observers, on one device."""
    frames, summaries = eqx.filter_eval_shape(_results_on_one_device, sim, state, key)
    return _without_time(frames), summaries


def recorded_shapes(sim: Simulation, carry: Carry | ShardedCarry) -> Frame:
    """Shapes of one frame of each name that a run from `carry` records."""
    if isinstance(carry, ShardedCarry):
        return result_shapes(sim, *whole_state_and_key(carry))[0]
    return _without_time(eqx.filter_eval_shape(observe_initial, sim, carry, True)[1])


def require_works_on_one_device(sim: Simulation, state: State, key: KeyShape) -> None:
    """Trace a block on one device; raises whatever that raises."""
    eqx.filter_eval_shape(_advance_on_one_device, sim, state, key)


def init_on_one_device(sim: Simulation, state: State, key: Key | None) -> Carry:
    """`init` for a trace that asks for shapes only; capacities of caches are not those of a run."""
    # Any capacity will do: it changes no shape of a result, and inside a trace it cannot be estimated.
    return init(for_shape_inference(sim), state, key=key, capacity=1)


# Jitted only for JAX to keep what it traced: further runs of a simulation ask for the same shapes.
@eqx.filter_jit
def _results_on_one_device(sim: Simulation, state: State, key: Key | None) -> tuple[Frame, Frame]:
    carry = init_on_one_device(sim, state, key)
    return observe_initial(sim, carry)[1], summary(sim, carry)


def _advance_on_one_device(sim: Simulation, state: State, key: Key | None) -> PyTree:
    return advance(sim, init_on_one_device(sim, state, key), 1, Direct())


def _without_time(frames: Frame) -> Frame:
    """The shapes of one frame, from those of frames with time first."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], np.dtype(x.dtype)), frames)
