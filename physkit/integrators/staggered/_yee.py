"""Yee's leapfrog: the magnetic field, then the electric field."""

from physkit.core import Clock, Plan, State, get_component, separate_kernels
from physkit.fields.equations import Maxwell

from .._integrator import AbstractStateless, StepSize
from ._half_steps import add_half_step


class Yee(AbstractStateless):
    """Yee's finite differences in time: H half a step behind E. Order 2.

        H' = H − dt/μ ∇×E,   E' = E + dt/ε (∇×H' − J)

    Each half adds to one field what follows from the other: without losses a step is reversible to the last
    bit. Currents of dispersive media move with H, and those of a start are half a step old, too; their
    polarization moves with E. Energy is bounded, not constant.

    **Arguments:** `maxwell`: the equations, `Maxwell(…)`.

    **Good values:** dt = 0.99 · `maxwell.longest_step(grid)`; the closer to the limit the smaller the error.

    **Reference:** Yee, IEEE Trans. Antennas Propag. 14, 302 (1966), eqs. 4–8.
    """

    maxwell: Maxwell

    @property
    def staggers_time(self) -> bool:
        return True

    def prepare(self, state: State, dt: StepSize) -> Plan:
        return self.maxwell.prepare(state, dt)

    def step(self, plan: Plan, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        # Of small fields, as those on a line are, a GPU takes fewest kernels without a barrier.
        is_large = get_component(state, self.maxwell.component).grid.dimension == 3
        for increments in (self.maxwell.magnetic_increments, self.maxwell.electric_increments):
            state = add_half_step(increments, self.maxwell.component, plan, clock, state)
            state = separate_kernels(state) if is_large else state
        return state, aux

    def check_step(self, state: State, dt: StepSize) -> None:
        self.maxwell.check_step(state, dt)

    def require_reversible(self, state: State) -> None:
        self.maxwell.require_reversible(state)

    def reverse_step(
        self, plan: Plan, clock: Clock, state: State, aux: None, aux_clock: Clock
    ) -> tuple[State, None]:
        del aux_clock
        for increments in (self.maxwell.electric_increments, self.maxwell.magnetic_increments):
            state = add_half_step(increments, self.maxwell.component, plan, clock, state, -1)
        return state, aux
