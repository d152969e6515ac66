"""The carry of the backward pass, and what stays constant in it."""

from typing import NamedTuple

from jaxtyping import Array, Int

from physkit.core import Aux, Clock, Key, Plan, PyTree, State, StepCount

from ..loop._simulation import Simulation


class Cotangents(NamedTuple):
    """Derivatives of the loss, each in the structure of what it is taken by; None for leaves without one.

    - `sim`, `plan`: θ̄ and p̄, sums over the steps reversed so far.
    - `state`, `aux`: λ = x̄ and ā, at the step that the backward pass has reached.
    - `observer_state`, `guards`: m̄, of what observers and guards hold there.
    """

    sim: PyTree
    plan: PyTree
    state: PyTree
    aux: PyTree
    observer_state: PyTree
    guards: PyTree


class BackwardState(NamedTuple):
    """The carry of the backward pass: the state after `step` steps of the forward pass, with cotangents."""

    state: State
    aux: Aux
    observer_state: PyTree
    guards: PyTree
    step: Int[Array, ""]
    cotangents: Cotangents


class BackwardContext(NamedTuple):
    """What is constant throughout the backward pass.

    - `initial_step`, `key`: of the carry that the forward pass began with.
    - `sim_mask`, `state_mask`: which leaves of the simulation and of a state have cotangents.
    - `is_observed`: whether the loss depends on frames or on what observers hold.
    """

    sim: Simulation
    plan: Plan
    initial_step: StepCount
    key: Key | None
    sim_mask: PyTree
    state_mask: PyTree
    is_observed: bool

    def clock_at(self, step: Int[Array, ""], sim: Simulation | None = None) -> Clock:
        """The clock of a step, counted from the first of the forward pass.

        - `sim`: take dt and t0 from this simulation, in order to differentiate by them.
        """
        sim = self.sim if sim is None else sim
        return Clock.at(self.initial_step.plus(step), sim.t0, sim.dt, self.key)
