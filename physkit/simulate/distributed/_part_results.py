"""Finds observed functions that sum a device's part of the domain as if that were all of it.

Their numbers may by chance be the same on all devices, so that comparing numbers is not enough.
"""

import equinox as eqx
import jax

from physkit.core import (
    AbstractSlottedComponent,
    Frame,
    ObserverError,
    PyTree,
    State,
    at_full_precision,
    path_name,
)
from physkit.geometry import AbstractSpace, with_comm
from physkit.observe import AbstractObserver, AbstractQuantity, Snapshot
from physkit.parallel import AbstractComm, trace_part_dependence

from ..loop._carry import Carry, snapshot
from ..loop._simulation import Simulation

SUMS_OVER_THE_DOMAIN = (
    "sums, means and extremes over the domain are "
    "field.integral(), field.mean(), field.max(), grid.sum(x), particles.sum(x)"
)


def require_no_part_results(
    sim: Simulation, carry: Carry, whole: State, frames: Frame, devices: tuple[int, ...]
) -> None:
    """Check what plain functions in `Every` record; only traced.

    A result that has the same shape on each device as on one device counts as the same number everywhere. So it
    must not depend on a device's part of the state, but by a collective.

    **Arguments:**

    - `sim`, `carry`: in device layout.
    - `whole`, `frames`: shapes of the state of the whole domain and of one frame of each name, on one device.

    **Errors:** `ObserverError` names what depends on a part.
    """
    names = {name for observer in sim.observers for name in _plain_functions(observer)}
    if not names:
        return
    is_part = _mark_parts(carry.state, whole)
    sim, carry = jax.tree.map(_shape, (sim, carry))
    parts, rest = eqx.partition(carry.state, is_part)

    def observe(
        comm: AbstractComm, parts: PyTree, rest: PyTree, sim: Simulation, carry: Carry
    ) -> Frame:
        carry = carry.replace(state=eqx.combine(parts, rest))
        return _observe_plain_functions(*with_comm((sim, carry), comm))

    depends, results = trace_part_dependence(observe, devices, parts, rest, sim, carry)
    wholes = {name: frames[name] for name in results}
    for (path, is_of_part), result, one in zip(
        jax.tree_util.tree_flatten_with_path(depends)[0],
        jax.tree.leaves(results),
        jax.tree.leaves(wholes),
        strict=True,
    ):
        if is_of_part and result.shape[1:] == one.shape:
            raise ObserverError(
                f"{path_name(path)!r} is computed from each device's part of the domain as if that were all of "
                f"it: {SUMS_OVER_THE_DOMAIN}; rows of all particles are particles.all_rows(x)"
            )


def _plain_functions(observer: AbstractObserver) -> dict[str, AbstractQuantity]:
    """The plain functions whose values an observer records, by name."""
    return {name: q for name, q in observer.recorded_quantities().items() if q.is_plain_function}


@at_full_precision
def _observe_plain_functions(sim: Simulation, carry: Carry) -> Frame:
    """What plain functions in `Every` return on one device."""
    now: Snapshot = snapshot(sim, sim.integrator.prepare(carry.state, sim.dt), carry)
    functions = [f for observer in sim.observers for f in _plain_functions(observer).items()]
    return {name: function(now) for name, function in functions}


def _mark_parts(state: State, whole: State) -> PyTree:
    """Which leaves of a state in device layout are a device's part of an array, and not one for all devices."""

    def is_slotted(x: PyTree) -> bool:
        return isinstance(x, AbstractSlottedComponent)

    def is_space(x: PyTree) -> bool:
        return isinstance(x, AbstractSpace)

    def mark(x: PyTree, one: PyTree) -> PyTree:
        if not is_slotted(x):
            return eqx.is_array(x) and x.shape[1:] != one.shape
        # Slots may by chance be as many as particles; but a space holds no rows, whatever its lengths' number.
        return jax.tree.map(
            lambda y: eqx.is_array(y) and y.ndim > 1 and y.shape[1] == x.num_slots,
            x,
            is_leaf=is_space,
        )

    leaves, structure = jax.tree.flatten(state, is_leaf=is_slotted)
    wholes = jax.tree.leaves(whole, is_leaf=is_slotted)
    return jax.tree.unflatten(
        structure, [mark(x, one) for x, one in zip(leaves, wholes, strict=True)]
    )


def _shape(x: PyTree) -> PyTree:
    return jax.ShapeDtypeStruct(x.shape, x.dtype) if eqx.is_array(x) else x
