"""Basin hopping: Monte Carlo over the minima of an energy."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Cache,
    Clock,
    ComponentError,
    DeclarationError,
    Module,
    State,
    count_of,
    data,
    get_component,
    param,
    put_component,
    require_nonnegative,
    require_positive,
    static,
)
from physkit.particles import AbstractBodies, Particles, descend
from physkit.particles.forces import Forces

from .._accept_reject import choose, energy_of, is_accepted
from .._integrator import AbstractIntegrator, StepSize, TermsWithCaches


class BasinHoppingAux(Module):
    """What `BasinHopping` carries.

    - `caches`: of the forces. `energy`: of the minimum that the state is in.
    - `lowest_energy`, `lowest_state`: of the lowest minimum so far.
    """

    caches: Cache
    energy: Float[Array, ""] = data()
    lowest_energy: Float[Array, ""] = data()
    lowest_state: State


class BasinHopping(AbstractIntegrator):
    """Basin hopping: each step displaces all particles, minimizes the energy, and accepts or refuses.

        x' = minimum of U from x + s u,   u uniform in (−1, 1) along every axis,
        accepted with min(1, e^{−(U(x') − U(x))/k_B T})

    The search for the lowest of many minima, of a cluster or a molecule. Time has no meaning: give dt=1. Many
    searches are members of a sweep:

        search = BasinHopping(Pairwise(LennardJones()), temperature=0.8, displacement=0.4)
        sim = Simulation(search, dt=1.0, observers=Every(1, lowest=LowestEnergy()))
        sweep((sim, atoms), 1_000, replicas=16, key=0)

    **Arguments:**

    - `force`: a force or a sum of forces, with energies.
    - `temperature`: k_B T of the choice between minima, energy.
    - `displacement`: s, length.
    - `allowed_force`: the largest force on a particle at which a minimization ends, force unit.
    - `max_move`: of a particle in a step of the minimization, length; s/4 if left out.
    - `steps`: of a minimization, at most. One that has not ended by then is refused.

    **Errors:** `ParameterError` for numbers out of their ranges; `NoEnergyError` for a force without an energy;
    `ComponentError` for rigid bodies; `DeclarationError` over several devices.

    **Good values:** for Lennard-Jones clusters k_B T = 0.8 ε and s = 0.4 σ. In open space add a wall, such as
    an `ExternalEnergy` that begins outside of the cluster: atoms that have evaporated feel no force.

    **Notes:** needs a key. Minimizes by FIRE, as `minimize` does. Velocities are left as they are. The
    quantities `LowestEnergy` and `LowestPositions` record the best minimum so far. No derivatives.

    **Reference:** Wales & Doye, J. Phys. Chem. A 101, 5111 (1997).
    """

    force: Forces = eqx.field(converter=Forces.of)
    temperature: Float[Array, ""] = param()
    displacement: Float[Array, ""] = param()
    allowed_force: Float[Array, ""] = param(1e-4, kw_only=True)
    max_move: Float[Array, ""] | None = param(None, kw_only=True)
    steps: int = static(default=2000, converter=count_of("steps"), kw_only=True)

    def __check_init__(self):
        require_nonnegative(self, "temperature")
        require_positive(self, "displacement", "allowed_force", "max_move")

    def prepare(self, state: State, dt: StepSize) -> None:
        del dt
        for name in self.force.components:
            part = get_component(state, name)
            if isinstance(part, AbstractBodies) and not isinstance(part, Particles):
                raise ComponentError(
                    f"BasinHopping moves point particles; {name or 'the state'} is {type(part).__name__}"
                )
            if part.is_distributed:
                raise DeclarationError(
                    "BasinHopping runs on one device; sweep(…, replicas=…) computes many searches"
                )

    def init(self, plan: None, clock: Clock, state: State) -> BasinHoppingAux:
        # The first minimum is that below the start; the state itself stays as it was given.
        minimum, caches, _ = self._minimize(state, self.force.init(state))
        energy = self._energy(clock, minimum, caches)
        return BasinHoppingAux(caches, energy, energy, minimum)

    def refresh(
        self, plan: None, clock: Clock, state: State, aux: BasinHoppingAux
    ) -> BasinHoppingAux:
        energy = self._energy(clock, state, aux.caches)
        return BasinHoppingAux(aux.caches, energy, aux.lowest_energy, aux.lowest_state)

    def terms(self, aux: BasinHoppingAux) -> TermsWithCaches:
        return tuple(zip(self.force.terms, aux.caches, strict=True))

    def step(
        self, plan: None, clock: Clock, state: State, aux: BasinHoppingAux
    ) -> tuple[State, BasinHoppingAux]:
        for_moves, for_choice = jax.random.split(clock.key)
        trial = state
        for number, name in enumerate(self.force.components):
            particles = get_component(state, name)
            key, x = jax.random.fold_in(for_moves, number), particles.position
            change = self.displacement * jax.random.uniform(key, x.shape, x.dtype, -1.0, 1.0)
            trial = put_component(trial, name, particles.displace(change))
        trial, caches, is_minimum = self._minimize(trial, aux.caches)
        energy = self._energy(clock, trial, caches)
        draw = jax.random.uniform(for_choice, (), energy.dtype)
        # At temperature 0 what costs nothing is a cost of 0/0, and refused.
        accepted = is_minimum & is_accepted(draw, (energy - aux.energy) / self.temperature)
        is_lowest = accepted & (energy < aux.lowest_energy)
        aux = BasinHoppingAux(
            caches,
            jnp.where(accepted, energy, aux.energy),
            jnp.where(is_lowest, energy, aux.lowest_energy),
            choose(is_lowest, trial, aux.lowest_state),
        )
        return choose(accepted, trial, state), aux

    def _minimize(self, state: State, caches: Cache) -> tuple[State, Cache, Array]:
        # Computed where it is used: a sweep over displacements varies both.
        max_move = self.displacement / 4 if self.max_move is None else self.max_move
        state, caches, force = descend(
            self.force, state, caches, self.allowed_force, max_move, self.steps
        )
        return state, caches, force <= self.allowed_force

    def _energy(self, clock: Clock, state: State, caches: Cache) -> Float[Array, ""]:
        return energy_of(tuple(zip(self.force.terms, caches, strict=True)), clock, state)
