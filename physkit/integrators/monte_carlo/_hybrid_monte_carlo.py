"""Hybrid Monte Carlo: a trajectory is a trial."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Aux,
    Clock,
    DeclarationError,
    ParameterError,
    Plan,
    PyTree,
    State,
    as_count,
    describe,
    put_component,
    require_positive,
    safe_sqrt,
)
from physkit.particles import kinetic_energy

from .._accept_reject import choose, energy_of, is_accepted
from .._integrator import AbstractIntegrator
from ..baths._bath import AbstractBath, as_integrator, thermal_velocity
from ..baths._targets import Target, as_target, positive, target_at
from ..particle._kicks_and_drifts import AbstractKicksAndDrifts
from ..particle._leapfrog import Leapfrog
from ..particle._optimized_splittings import PEFRL
from ..splitting._subcycle import Subcycle


class HybridAux(NamedTuple):
    """What `HybridMonteCarlo` carries.

    - `inner`: of the integrator inside. `heat`: taken up by the bath, energy. `acceptance`: 1 where the last
      trial was accepted, else 0.
    """

    inner: Aux
    heat: Float[Array, ""]
    acceptance: Float[Array, ""]


class HybridMonteCarlo(AbstractBath):
    """Hybrid (Hamiltonian) Monte Carlo of particles: a short trajectory is a trial.

        v ~ e^{−m v²/2 k_B T},   (x, v) → (x', v') by `steps` steps of the integrator,
        accepted with min(1, e^{−(H' − H)/k_B T});   else x stays, with the v that were drawn

    The canonical distribution without an error of dt: that of the integrator only lowers the acceptance. All
    particles move at once, along forces.

        sim = Simulation(HybridMonteCarlo(VelocityVerlet(force), temperature=1.0, steps=20), dt=0.2)

    A step of the simulation is a trial: `dt` is the length of the trajectory, dt/steps that of its steps.

    **Arguments:**

    - `integrator`: reversible and volume-preserving: `VelocityVerlet(force)`, `Leapfrog`, `BlanesMoan`,
      `PEFRL`, `Yoshida`, `Suzuki`, `KahanLi`.
    - `temperature`: k_B T, energy; a number, or a function of time.
    - `steps`: of the integrator, in a trial.

    **Errors:** `DeclarationError` for another integrator; `ParameterError` for a temperature that is not
    positive; `NoEnergyError` for a force without an energy.

    **Good values:** steps so short that 65 % of trials are accepted (Beskos et al., Bernoulli 19, 1501 (2013));
    for equal acceptance dt/steps ~ N^{−1/4}. A trajectory as long as the slowest vibration takes for a quarter
    of its period.

    **Notes:** needs a key. `Acceptance` records what was accepted. Constraints hold. A trial without a finite
    energy is refused. Trials are choices: derivatives are those of the trials that were made.
    `ConservedEnergy` counts the heat of new velocities; its steps are the H' − H of accepted trials.

    **Reference:** Duane, Kennedy, Pendleton & Roweth, Phys. Lett. B 195, 216 (1987); Mehlig, Heermann &
    Forrest, Phys. Rev. B 45, 679 (1992).
    """

    integrator: AbstractIntegrator = eqx.field(converter=as_integrator)
    temperature: Target = eqx.field(converter=as_target)

    def __init__(self, integrator: object, temperature: Target | ArrayLike, *, steps: int = 10):
        kinds = (AbstractKicksAndDrifts, Leapfrog, PEFRL)
        integrator = as_integrator(integrator)
        if not isinstance(integrator, kinds):
            raise DeclarationError(
                "HybridMonteCarlo needs a reversible trajectory that keeps volumes in phase space, such as "
                f"VelocityVerlet(force), without a bath; got {describe(integrator)}"
            )
        self.integrator = Subcycle(integrator, as_count(steps, "steps", ParameterError))
        self.temperature = as_target(temperature)

    def __check_init__(self):
        require_positive(self, "temperature")

    @property
    def conserves_momentum(self) -> bool:
        return False

    @property
    def removes_momentum(self) -> bool:
        return False

    def draws_momentum(self, plan: Plan, clock: Clock, state: State, aux: HybridAux) -> bool:
        return True

    def init(self, plan: Plan, clock: Clock, state: State) -> HybridAux:
        inner, heat = super().init(plan, clock, state)
        # Raises for a force without an energy.
        jax.eval_shape(lambda: energy_of(self.current_terms(state, inner), clock, state))
        return HybridAux(inner, heat, jnp.zeros_like(heat))

    def with_memory(self, aux: HybridAux, memory: PyTree) -> HybridAux:
        return HybridAux(*super().with_memory(aux, memory))

    def refresh(self, plan: Plan, clock: Clock, state: State, aux: HybridAux) -> HybridAux:
        return aux._replace(inner=self.integrator.refresh(plan, clock, state, aux.inner))

    def step(
        self, plan: Plan, clock: Clock, state: State, aux: HybridAux
    ) -> tuple[State, HybridAux]:
        own, end = self.own_clock(clock), self.end_clock(clock)
        temperature = positive(target_at(self.temperature, own))
        before = self._kinetic_energy(state)
        state = self._draw_velocities(own, state, temperature)
        drawn = self._kinetic_energy(state)
        energy = drawn + energy_of(self.current_terms(state, aux.inner), end, state)
        trial, tried = self.integrator.step(plan, clock, state, aux.inner)
        potential = energy_of(self.current_terms(trial, tried), end, trial)
        gain = self._kinetic_energy(trial) + potential - energy
        draw = jax.random.uniform(own.key, (), gain.dtype)
        accepted = is_accepted(draw, gain / temperature)

        def refresh(carried: Aux) -> Aux:
            # From the lists of the trial, refused or not: an overflow of them must not get lost.
            return self.integrator.refresh(plan, end, state, carried)

        inner = jax.lax.cond(accepted, lambda carried: carried, refresh, tried)
        after = choose(accepted, trial, state)
        return after, HybridAux(inner, aux.heat + before - drawn, accepted.astype(gain.dtype))

    def _draw_velocities(self, clock: Clock, state: State, temperature: Array) -> State:
        # As a root of the variance, whose derivative at 0 is 0.
        deviation = safe_sqrt(temperature)
        # By name, so that the order of forces does not matter.
        for tag, name in enumerate(sorted(self.names(), key=str)):
            bodies = self.particles(state)[self.names().index(name)]
            velocity = thermal_velocity(clock.substep(0.0, 1.0, tag), bodies, deviation)
            change = velocity - bodies.generalized_velocity
            state = put_component(state, name, bodies.shift_velocity(change))
        return state

    def _kinetic_energy(self, state: State) -> Float[Array, ""]:
        energies = [kinetic_energy(bodies) for bodies in self.particles(state)]
        return sum(energies[1:], energies[0])
