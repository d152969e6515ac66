"""States in the exact form that `Reversible` computes on."""

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import Clock, NotReversible, State, StepCount, is_exact_component

from ..loop._simulation import Simulation


def to_fixed_point(
    sim: Simulation, state: State, range_factor: float, smallest_range: float = 0.0
) -> State:
    """`state` with fixed-point numbers, where it has none yet.

    **Errors:** `NotReversible` names what cannot be reversed.
    """
    sim.integrator.require_reversible(state)
    nodes = jax.tree.leaves(state, is_leaf=is_exact_component)
    for node in nodes:
        if not is_exact_component(node) and eqx.is_inexact_array(node):
            raise NotReversible(
                "Reversible() moves Particles and Fields; the state holds other floating numbers, "
                f"of shape {jnp.shape(node)}"
            )
    components = [node for node in nodes if is_exact_component(node)]
    if all(component.fixed_point is not None for component in components):
        return state
    # A field may be zero at the start, as velocities often are: its range follows from what a step changes.
    needs_trial_step = any(component.needs_trial_step for component in components)
    after = _trial_step(sim, state) if needs_trial_step else state

    def convert(node, node_after):
        if not is_exact_component(node) or node.fixed_point is not None:
            return node
        return node.to_fixed_point(sim.dt, range_factor, node_after, smallest_range)

    return jax.tree.map(convert, state, after, is_leaf=is_exact_component)


def _trial_step(sim: Simulation, state: State) -> State:
    """`state` one step later, in floats; the size of the change tells which range is needed."""
    plan = sim.integrator.prepare(state, sim.dt)
    clock = Clock.at(StepCount.of(0), sim.t0, sim.dt)
    aux = sim.integrator.init(plan, clock, state)
    return sim.integrator.step(plan, clock, state, aux)[0]
