"""The inverse map:  (xₙ, aₙ) = Φₙ⁻¹(xₙ₊₁, aₙ₊₁).

Shears are reversed one by one, x ⊖ round(δ). Each δ is computed from the same numbers as in the forward step,
so that increments and states are equal to the last bit.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Int

from physkit.core import Aux, Clock, Plan, State
from physkit.integrators import select_clock

from ..loop._simulation import Simulation


def invert_step(
    sim: Simulation,
    plan: Plan,
    clock_at: Callable[[Int[Array, ""]], Clock],
    n: Int[Array, ""],
    state: State,
    aux: Aux,
) -> tuple[State, Aux, Clock]:
    """State and aux before step `n`, from those after it; and the clock for which that aux was computed.

    - `clock_at`: the clock of each step, counted from the first.
    """
    computed_at = clock_of_aux(sim, clock_at, n)
    state, aux = sim.integrator.reverse_step(plan, clock_at(n), state, aux, computed_at)
    return state, aux, computed_at


def clock_of_aux(
    sim: Simulation, clock_at: Callable[[Int[Array, ""]], Clock], n: Int[Array, ""]
) -> Clock:
    """The clock for which the aux before step `n` was computed.

    - `clock_at`: as of `invert_step`.
    """
    # Step n used the force that step n − 1 left, for the time at which that one ended. In floats, t + dt may
    # round otherwise than the time at which step n begins, so it must be the end's. Before step 0 there was
    # no step: its force is that of `refresh`, at its own clock.
    end_of_last = sim.integrator.end_clock(clock_at(jnp.maximum(n - 1, 0)))
    return select_clock(n == 0, clock_at(n), end_of_last)
