"""Whether a carry belongs to a simulation."""

import contextlib
from collections.abc import Iterator

import equinox as eqx
import jax
import numpy as np

from physkit.core import (
    ParameterError,
    PhyskitError,
    PyTree,
    State,
    explain_traced_values,
    is_concrete,
    warn,
)
from physkit.storage import Identity, compare_identities, describe_array, describe_numbers

from ..distributed._domain import cast_to_state_precision
from ..distributed._gather import is_part_shape
from ..distributed._sharded_carry import ShardedCarry
from ..distributed._whole_domain import init_on_one_device
from ..loop._array_notes import ArrayNotes
from ..loop._carry import Carry
from ..loop._simulation import Simulation

# A start from a state begins at t0, whatever time the state is of.
_START_ANEW = (
    "start from carry.state, at Simulation(…, t0=…): for time to go on, that of the carry, t0 + dt * "
    "int(carry.step) of the simulation that made it"
)
_observers: ArrayNotes[Identity] = ArrayNotes()  # by what they have accumulated
_clocks: ArrayNotes[tuple[float, float]] = ArrayNotes()  # t0 and dt, by the number of steps


def remember_observers(sim: Simulation, carry: Carry | ShardedCarry) -> None:
    """Note that observers of `sim` have accumulated what `carry` holds of observers (host only)."""
    accumulated = _one_device_form(carry).observer_state
    if jax.tree.leaves(accumulated):
        _observers.add(accumulated, _identity_of_observers(sim, carry))


def remember_time(sim: Simulation, carry: Carry | ShardedCarry) -> None:
    """Note which time the step of `carry` is (host only)."""
    if is_concrete((sim.t0, sim.dt)):
        _clocks.add(_one_device_form(carry).step, (float(sim.t0), float(sim.dt)))


def _warn_of_jump_in_time(sim: Simulation, carry: Carry | ShardedCarry) -> None:
    """Warn of a carry that would go on at another time than it has come to."""
    known = _clocks.find(_one_device_form(carry).step)
    if known is None or not is_concrete((sim.t0, sim.dt)):
        return
    clock = float(sim.t0), float(sim.dt)
    if clock == known:
        return
    steps = int(carry.step)
    (t0, dt), (new_t0, new_dt) = known, clock
    was, goes_on = t0 + steps * dt, new_t0 + steps * new_dt
    if abs(goes_on - was) > 1e-3 * abs(new_dt) + 1e-6 * abs(was):
        warn(
            f"this carry has come to t = {was:.6g}, and with t0 = {new_t0:g} and dt = {new_dt:g} it goes on at "
            f"t = {goes_on:.6g}, since t = t0 + n·dt: for time to go on, start from carry.state at "
            f"Simulation(…, t0={was:.6g})"
        )


def _identity_of_observers(sim: Simulation, carry: Carry | ShardedCarry) -> Identity:
    accumulated = _one_device_form(carry).observer_state
    sim = cast_to_state_precision(sim, carry)
    dt = {"dt": describe_array(sim.dt)}
    sections = {
        f"{type(observer).__name__} ({k})": describe_numbers(observer)
        | (dt if observer.needs_equal_times else {})
        for k, (observer, own) in enumerate(zip(sim.observers, accumulated, strict=True))
        if jax.tree.leaves(own)
    }
    return Identity(sections, {})


def require_no_run(carry_or_state: object) -> None:
    """**Errors:** `ParameterError` for a whole `Run` or `Result` in the place of a state."""
    # What `simulate` returns is known by what it has: its class is defined beside `simulate`.
    holds_carry = isinstance(getattr(carry_or_state, "carry", None), Carry | ShardedCarry)
    if holds_carry and not isinstance(carry_or_state, ShardedCarry):
        kind = type(carry_or_state).__name__
        name = kind.lower()
        raise ParameterError(
            f"a {kind} is no state: continue from {name}.carry, or start from {name}.state, anew at the time "
            "of Simulation(…, t0=…)"
        )


def require_compatible(sim: Simulation, carry_or_state: State | Carry | ShardedCarry) -> None:
    """Check what can be checked without tracing.

    **Errors:** `ParameterError` for a carry of a simulation with other observers or guards, as far as is known
    which it had, and for one in the layout of devices.
    """
    if not isinstance(carry_or_state, Carry | ShardedCarry):
        return
    # The step of a carry is a scalar; with an axis, all of it has an axis of devices or members.
    if isinstance(carry_or_state, Carry) and np.ndim(carry_or_state.step.low):
        raise ParameterError(
            "this carry is in the layout of devices, or of a batch: continue from Run.carry or "
            "Result.carry, whose state is whole, or vmap"
        )
    _warn_of_jump_in_time(sim, carry_or_state)
    carry = _one_device_form(carry_or_state)
    for kind, in_carry, in_sim in (
        ("observers", len(carry.observer_state), len(sim.observers)),
        ("guards", len(carry.guards), len(sim.guards)),
    ):
        if in_carry != in_sim:
            raise ParameterError(
                f"this carry has {in_carry} {kind}, the simulation {in_sim}; {_START_ANEW}"
            )
    known = _observers.find(carry.observer_state)
    if known is None:  # of a carry from a file, say
        return
    changes = compare_identities(_identity_of_observers(sim, carry_or_state), known, "carry")
    if lines := changes.describe():
        raise ParameterError(
            "\n  ".join(
                [
                    "this carry holds what other observers have accumulated:",
                    *lines,
                    _START_ANEW,
                ]
            )
        )


@contextlib.contextmanager
def explain_carry_errors(
    sim: Simulation, carry_or_state: State | Carry | ShardedCarry
) -> Iterator[None]:
    """Explain errors of code that continues from a carry: it must belong to `sim`.

    A full comparison needs a trace, so that it is made only after something failed.

    **Errors:** `ParameterError` for a carry of another simulation.
    """
    require_compatible(sim, carry_or_state)
    try:
        with explain_traced_values("what a simulation is made of"):
            yield
    except PhyskitError:  # says by itself what is wrong
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(carry_or_state, Carry | ShardedCarry):
            _require_same_structure(sim, carry_or_state, error)
        raise


def _require_same_structure(sim: Simulation, carry: Carry | ShardedCarry, error: Exception) -> None:
    """**Errors:** `ParameterError` where observers, guards or caches are not those that `sim` begins with."""

    def init_like(carry: Carry | ShardedCarry) -> Carry:
        return init_on_one_device(sim, carry.state, carry.key)

    expected, given = eqx.filter_eval_shape(init_like, carry), _one_device_form(carry)
    devices = carry.devices if isinstance(carry, ShardedCarry) else ()
    observers = zip(sim.observers, given.observer_state, expected.observer_state)
    guards = zip(sim.guards, given.guards, expected.guards)
    pairs = [
        *((type(observer).__name__, has, needs) for observer, has, needs in observers),
        *((type(guard).__name__, has, needs) for guard, (has, _), (needs, _) in guards),
    ]
    for name, has, needs in pairs:
        in_carry, in_sim = _shapes(has, bool(devices)), _shapes(needs, False)
        same_names = set(in_carry) == set(in_sim)
        if same_names and all(is_part_shape(in_carry[k], in_sim[k], devices) for k in in_sim):
            continue
        raise ParameterError(
            f"this carry is of another simulation: its {name} holds {_describe(in_carry)}, that of this "
            f"simulation {_describe(in_sim)}; {_START_ANEW}"
        ) from error
    # By name, not by shape: the capacity of a list may differ. Over devices there are lists of another class.
    missing = sorted(_shapes(expected.aux, False).keys() - _shapes(given.aux, False).keys())
    if missing and not devices:
        raise ParameterError(
            f"this carry is of another simulation: it lacks what {type(sim.integrator).__name__} carries "
            f"({', '.join(missing[:3])}); {_START_ANEW}"
        ) from error


def _one_device_form(carry: Carry | ShardedCarry) -> Carry:
    return carry.carry if isinstance(carry, ShardedCarry) else carry


def _shapes(tree: PyTree, over_devices: bool) -> dict[str, tuple[int, ...]]:
    """Shapes by path, without the leading axis over devices if there is one."""
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    first_axis = 1 if over_devices else 0
    return {jax.tree_util.keystr(path): np.shape(x)[first_axis:] for path, x in flat}


def _describe(shapes: dict[str, tuple[int, ...]]) -> str:
    first = [f"{name} {list(shape)}" for name, shape in list(shapes.items())[:3]]
    return ", ".join(first) + (", …" if len(shapes) > 3 else "") if first else "nothing"
