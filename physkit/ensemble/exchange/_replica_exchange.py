"""`replica_exchange`: the members of a sweep as one simulation in which they swap their states."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    Count,
    ParameterError,
    PyTree,
    SelectionError,
    as_count,
    explain_call,
    replace_fields,
)
from physkit.integrators import ReplicaExchange, Replicas
from physkit.observe import observe_replicas
from physkit.simulate import Simulation

from ..design._sweep_axes import Design, SweepAxis, as_design
from ..design._sweep_checks import as_model, check_axes
from ..design._swept_leaves import resolve_axes


@explain_call
def replica_exchange(
    model: PyTree,
    *,
    over: SweepAxis | Design | Sequence[SweepAxis | Design],
    interval: Count = 100,
) -> tuple[Simulation, Replicas]:
    """Replicas of a simulation that differ in some numbers and swap their states: temperatures, or forces.

        temperatures = SweepAxis(lambda m: m[0].integrator.temperature, [0.6, 0.8, 1.0, 1.3])
        sim, state = replica_exchange((simulation, atoms), over=temperatures, interval=50)
        run(sim, state, 100_000, key=0, to="frames", checkpoint="checkpoints", resume=True)

    It returns a simulation like any other, whose integrator is a `ReplicaExchange`: `run` continues it bitwise
    after a kill, `sweep(…, replicas=8)` computes several. Observers record every place, in the order of `over`:
    frames are `[times, replicas, …]`. Beside them `replica` is which state is where, and `acceptance` the
    accepted part of swaps between each place and the next.

    **Arguments:**

    - `model`: `(simulation, state)`, with one thermostat.
    - `over`: what differs, as of `sweep`: numbers of the integrator; whole states, `SweepAxis("state", …)`, to
      start each replica from its own.
    - `interval`: steps between rounds of swaps.

    **Errors:** `SelectionError` for what is neither; `ParameterError` for less than two replicas; those of
    `ReplicaExchange`.

    **Good values:** some 10 to 1 000 steps; values so close that a fifth of swaps is accepted.

    **Notes:** observers' intervals and that of swaps need not divide one another.
    """
    sim, state = as_model(model)
    design = as_design(over)
    swept = resolve_axes(design, (sim, state))
    check_axes((sim, state), swept)
    count = len(design)
    if count < 2:
        raise ParameterError(f"replicas that swap are two or more; got {count}")
    # In the flattened model the integrator, the first field of a simulation, comes first, and the state last.
    num_integrator, before_state = len(jax.tree.leaves(sim.integrator)), len(jax.tree.leaves(sim))
    values, positions = [], []
    states = [jnp.broadcast_to(x, (count, *jnp.shape(x))) for x in jax.tree.leaves(state)]
    for leaf in swept:
        if leaf.leaf is None:
            raise SelectionError(
                "replicas draw noise of their own from the one key of a run: leave out the axis of keys"
            )
        rows = np.asarray(leaf.values)[design.rows[:, leaf.axis]]
        if leaf.leaf < num_integrator:
            values.append(jnp.asarray(rows))
            positions.append((leaf.leaf, leaf.index))
        elif leaf.leaf >= before_state:
            k = leaf.leaf - before_state
            place = (slice(None), *leaf.index)
            states[k] = (
                states[k].at[place].set(rows) if leaf.index else jnp.asarray(rows, states[k].dtype)
            )
        else:
            raise SelectionError(
                f"replicas differ in numbers of the integrator or in their states; {leaf.name} is neither"
            )
    if not values:
        raise SelectionError(
            "replicas differ in nothing but their states: sweep a temperature, or a number of a force"
        )
    batch = jax.tree.unflatten(jax.tree.structure(state), states)
    interval = as_count(interval, "interval", ParameterError)
    exchange = ReplicaExchange(sim.integrator, tuple(values), tuple(positions), interval)
    observers, guards = observe_replicas(
        sim.observers, sim.guards, min(sim.intervals, default=interval)
    )
    changes = {"integrator": exchange, "observers": observers, "guards": guards}
    return replace_fields(sim, changes), Replicas(batch)
