"""A step of the lattice Boltzmann equation."""

from jaxtyping import Array, Bool

from physkit.core import Clock, State, put_component
from physkit.fields.lattice_boltzmann import LatticeBoltzmann, require_populations

from .._integrator import AbstractOneStep, StepSize


class StreamAndCollide(AbstractOneStep):
    """Populations move to the neighboring cells, then collide: a step of the lattice Boltzmann equation.

    Every number is read once and written once. Collisions lose what they relax: for gradients take checkpoints,
    not `Reversible`.

    **Arguments:** `equation`: `LatticeBoltzmann(…)`.

    **Good values:** dt = `pk.lattice_boltzmann.time_step(grid, speed)`.

    **Errors:** `SimulationDiverged` where the flow becomes faster than sound.
    """

    equation: LatticeBoltzmann

    def step(self, plan: None, clock: Clock, state: State, aux: None) -> tuple[State, None]:
        del plan
        name = self.equation.component
        after = self.equation.advance(clock, require_populations(state, name))
        return put_component(state, name, after), aux

    def check_step(self, state: State, dt: StepSize) -> None:
        self.equation.check_step(state, dt)

    def is_unresolved(
        self, plan: None, clock: Clock, state: State, aux: None
    ) -> Bool[Array, ""] | None:
        del plan, clock, aux
        return self.equation.mach_number(require_populations(state, self.equation.component)) > 1
