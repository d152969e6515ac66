"""The leapfrog of sound and elastic waves: the velocity, then what it compresses and shears."""

from physkit.core import Clock, Plan, State
from physkit.fields.equations import AbstractStaggeredWave

from .._integrator import AbstractStateless, StepSize
from ._half_steps import add_half_step


class StaggeredLeapfrog(AbstractStateless):
    """Steps of `KSpaceAcoustics` and `ElasticWaves`: the velocity half a step behind. Order 2.

        v' = v + dt a(p),   p' = p + dt r(v')

    A run begins with both halves at the same instant, and moves the velocity by half a step first; continue it
    from its carry, `simulate(simulation, result.carry, steps)`. Each half adds to one part of the field what
    follows from the other: without losses a step is reversible to the last bit.

    **Arguments:** `equations`: `KSpaceAcoustics(…)`, `ElasticWaves(…)`.

    **Reference:** Virieux, Geophysics 51, 889 (1986), eqs. 3–7.
    """

    equations: AbstractStaggeredWave

    @property
    def staggers_time(self) -> bool:
        return True

    def prepare(self, state: State, dt: StepSize) -> Plan:
        return self.equations.prepare(state, dt)

    def step(self, plan: Plan, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        for half in self.equations.half_steps:
            state = add_half_step(half, self.equations.component, plan, clock, state)
        return state, aux

    def check_step(self, state: State, dt: StepSize) -> None:
        self.equations.check_step(state, dt)

    def require_reversible(self, state: State) -> None:
        self.equations.require_reversible(state)

    def reverse_step(
        self, plan: Plan, clock: Clock, state: State, aux: None, aux_clock: Clock
    ) -> tuple[State, None]:
        del aux_clock
        for half in reversed(self.equations.half_steps):
            state = add_half_step(half, self.equations.component, plan, clock, state, -1)
        return state, aux
