"""Whether a carry belongs to a simulation."""

import contextlib
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from physkit.core import ParameterError, PhyskitError

from ..distributed._capacity import for_shape_inference
from ..distributed._gather import is_part_shape
from ..distributed._sharded_carry import ShardedCarry
from ..loop._carry import Carry, init
from ..loop._simulation import Simulation
from ._run_result import Run


def require_compatible(sim: Simulation, carry_or_state: Any) -> None:
    """**Errors:** `ParameterError` for a carry of a simulation with other observers or guards, for one in the
    layout of devices, and for a whole `Run`."""
    if isinstance(carry_or_state, Run):
        raise ParameterError("a Run is no state: go on from run.carry, or start from run.state")
    if not isinstance(carry_or_state, Carry | ShardedCarry):
        return
    if isinstance(carry_or_state, Carry) and np.ndim(carry_or_state.step.low):
        raise ParameterError(
            "this carry is in the layout of devices, or of a batch: go on from Run.carry or "
            "Result.carry, whose state is whole, or vmap"
        )
    carry = getattr(carry_or_state, "carry", carry_or_state)
    has, needs = (
        (len(carry.observer_state), len(carry.guards)),
        (len(sim.observers), len(sim.guards)),
    )
    if has != needs:
        raise ParameterError(
            f"this carry is of another simulation: it is of {has[0]} observers and {has[1]} guards, where "
            f"this one has {needs[0]} and {needs[1]}; start from carry.state"
        )


@contextlib.contextmanager
def explain_carry_errors(sim: Simulation, carry_or_state: Any) -> Iterator[None]:
    """Going on from a carry that must belong to `sim`. Whether all of it does is asked only when it fails.

    **Errors:** `ParameterError` for a carry of another simulation.
    """
    require_compatible(sim, carry_or_state)
    try:
        yield
    except PhyskitError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(carry_or_state, Carry | ShardedCarry):
            _need_like(sim, carry_or_state, error)
        raise


def _need_like(sim: Simulation, carry: Carry | ShardedCarry, error: Exception) -> None:
    inner, devices = getattr(carry, "carry", carry), getattr(carry, "devices", ())
    begin = lambda carry: init(for_shape_inference(sim), carry.state, key=carry.key, capacity=1)
    like = eqx.filter_eval_shape(begin, carry)
    pairs = [
        *(
            (type(o).__name__, a, b)
            for o, a, b in zip(sim.observers, inner.observer_state, like.observer_state)
        ),
        *(
            (type(g).__name__, a, b)
            for g, (a, _), (b, _) in zip(sim.guards, inner.guards, like.guards)
        ),
    ]
    for name, has, needs in pairs:
        there, here = _shapes(has, bool(devices)), _shapes(needs, False)
        if set(there) == set(here) and all(is_part_shape(there[k], here[k], devices) for k in here):
            continue
        raise ParameterError(
            f"this carry is of another simulation: what {name} remembers there is "
            f"{_said(there)}, and here {_said(here)}; start from carry.state"
        ) from error
    # Over devices there are other lists; the room in lists changes no names.
    lacking = sorted(_shapes(like.aux, False).keys() - _shapes(inner.aux, False).keys())
    if lacking and not devices:
        raise ParameterError(
            f"this carry is of another simulation: it lacks what {type(sim.integrator).__name__} carries "
            f"({', '.join(lacking[:3])}); start from carry.state"
        ) from error


def _shapes(tree: Any, over_devices: bool) -> dict[str, tuple[int, ...]]:
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(k): np.shape(x)[over_devices:] for k, x in flat}


def _said(shapes: dict[str, tuple[int, ...]]) -> str:
    most = [f"{name} {list(shape)}" for name, shape in list(shapes.items())[:3]]
    return ", ".join(most) + (", …" if len(shapes) > 3 else "") if most else "nothing"
