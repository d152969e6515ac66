"""`check_devices`: a simulation over several devices against the same on one."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import ObserverError, PhyskitError, PyTree, State, cast_floats, explain_call
from physkit.parallel import BACKEND_VARIABLE, environment_variable
from physkit.simulate import Simulation, simulate

from ._compare import (
    check_equal,
    check_finite,
    double_precision,
    leaves_by_name,
    tolerance,
    typical_magnitude,
)
from ._integrator import physical_leaves
from ._trees import first_line, flatten_floats, random_like


@explain_call
@double_precision()
def check_devices(
    sim: Simulation,
    state: State,
    steps: int,
    devices: Sequence[tuple[int, ...]] = ((2,),),
    key: jax.Array | None = None,
    *,
    objective: Callable[[Any], Any] | None = None,
    gradient: bool = True,
    backend: str = "vmap",
    compare: str = "sum",
) -> None:
    """A simulation gives over several devices what it gives on one, and so do its derivatives.

        check_devices(sim, state, 20, devices=[(2,), (2, 2)])

    In double precision, the devices emulated on one: the last state, the frames, what observers have
    accumulated, and the derivatives of the last state by every number of simulation and state.

    **Arguments:**

    - `steps`: a multiple of the longest observer interval; few, since chaos amplifies round-off.
    - `devices`: grids of devices, one after the other.
    - `objective`: state → number that is differentiated; random weights of all observables if left
      out.
    - `gradient`: False leaves derivatives out.
    - `backend`: `"pmap"` or `"shard_map"` on devices that there are.
    - `compare`: row of the tolerance table for states, frames and summaries.

    **Errors:** `AssertionError` that names what differs, by how much, and where: most often a sum, a
    mean or a largest value over the arrays of one device (`grid.sum`, `field.mean`, `grid.max`,
    `particles.sum` are over the domain), or a neighbor that did not come from `grid.pad`.
    """
    sim, state = cast_floats((sim, state), jnp.float64)
    # Float64, so that only another order of sums is left between one device and several.
    one = _observables(jax.jit(lambda s: simulate(sim, s, steps, key=key))(state))
    check_finite(one["state"], "the last state on one device")
    weights = objective or _weighted_sum(one["state"])
    # By simulation and state at once: a parameter counted once per device shows here.
    numbers, rest = eqx.partition((sim, state), eqx.is_inexact_array)

    def gradient_over(grid: tuple[int, ...] | None) -> Any:
        def outcome(numbers: PyTree) -> Any:
            sim, state = eqx.combine(numbers, rest)
            return weights(simulate(sim, state, steps, key=key, devices=grid).state)

        # Over devices `simulate` compiles its SPMD program itself.
        return (jax.jit(jax.grad(outcome)) if grid is None else jax.grad(outcome))(numbers)

    expected = gradient_over(None) if gradient else None
    check_finite(expected, "the derivatives on one device")  # NaN would agree with NaN
    # Terms of a derivative by p are as large as those of the objective over p, and may cancel one another:
    # the weighted sum has one of size 1 for each number of the state.
    size = sum(x.size for x in flatten_floats(one["state"])[1]) if objective is None else 0
    terms = tolerance(jnp.float64, "round-off") * size
    cancellation = {p: terms / typical_magnitude(x) for p, x in leaves_by_name(numbers).items()}
    with environment_variable(BACKEND_VARIABLE, backend):
        for grid in devices:
            what = f"over {'×'.join(map(str, grid))} devices against one"
            found = _require_success(
                lambda g=grid: simulate(sim, state, steps, key=key, devices=g), what
            )
            check_equal(_observables(found), one, what, compare)
            if gradient:
                computed = _require_success(lambda g=grid: gradient_over(g), f"derivatives {what}")
                check_equal(
                    computed, expected, f"derivatives {what}", "gradient", floor=cancellation
                )


def _observables(result: PyTree) -> dict[str, Any]:
    return {
        "state": physical_leaves(result.state),
        "frames": result.frames,
        "times": result.times,
        "summary": result.summary,
    }


def _require_success(function: Callable[[], Any], what: str) -> Any:
    """What `function` returns; an `AssertionError` where arrays of a part and of the domain are mixed."""
    try:
        return function()
    except ObserverError as error:
        raise AssertionError(f"{what}: {first_line(error)}") from error
    except PhyskitError:
        raise  # says by itself what is wrong, although some are ValueErrors, too
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"{what}: fails, perhaps because arrays of a device's part are mixed with those of the domain "
            f"(grid.local_shape, grid.local_shape_at and grid.local are of the part): {first_line(error)}"
        ) from error


def _weighted_sum(state: State) -> Callable[[Any], Any]:
    # Random weights, so that no two errors cancel; divided by size, so that small leaves count, too.
    _, leaves, _ = flatten_floats(state)
    weights = [random_like(x, (29, i)) / typical_magnitude(x) for i, x in enumerate(leaves)]

    def weighted_sum(last: PyTree) -> Any:
        last_leaves = flatten_floats(physical_leaves(last))[1]
        return sum(jnp.sum((w * x).real) for w, x in zip(weights, last_leaves, strict=True))

    return weighted_sum
