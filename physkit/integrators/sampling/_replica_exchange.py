"""Replica exchange: simulations at several temperatures or Hamiltonians that swap their states."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import (
    AbstractTerm,
    Aux,
    Clock,
    DeclarationError,
    Module,
    Plan,
    PyTree,
    State,
    data,
    get_component,
    put_component,
    replace_fields,
    static,
)
from physkit.particles import AbstractBodies

from .._accept_reject import choose, energy_of, is_accepted
from .._integrator import AbstractIntegrator, AdvancedParts, Drifts, StepSize
from ..baths._barostat import is_due, particle_names
from ..baths._targets import temperature_at, thermostat_temperature
from ._replicas import Replicas

_SWAP_TAG = 2**21  # of the noise of swaps; replicas tag theirs by their numbers

# Where a value goes: the number of a leaf of the flattened integrator, and a part of it, () for all.
LeafPosition = tuple[int, tuple]


class ReplicaExchangeAux(Module):
    """What `ReplicaExchange` carries.

    - `inner`: what the integrators of the replicas carry, `[replicas, …]`.
    - `replica`: which of the first states has come to each place, `[replicas]`.
    - `attempts`, `accepts`: of swaps between each place and the next, `[replicas − 1]`.
    - `rounds`: of swaps, so far.
    """

    inner: Aux
    replica: Int[Array, " m"] = data()
    attempts: Int[Array, " p"] = data()
    accepts: Int[Array, " p"] = data()
    rounds: Int[Array, ""] = data()


class ReplicaExchange(AbstractIntegrator):
    """Replicas that differ in numbers of their integrator, and swap their states every `interval` steps.

        places k and k + 1 swap x with min(1, e^Δ),   v ← v √(T_new/T_old),
        Δ = β_k [U_k(x_k) − U_k(x_{k+1})] + β_{k+1} [U_{k+1}(x_{k+1}) − U_{k+1}(x_k)]

    Each place keeps its temperature and its forces; states wander. Even pairs and odd pairs take turns. Any
    number of the integrator may differ: its temperature, a λ, the center of a window. What thermostats carry
    stays at its place. `replica_exchange` makes one of a simulation and a sweep axis.

    **Arguments:**

    - `integrator`: of one replica, with one thermostat.
    - `values`: for each number that differs, `[replicas, …]`. `positions`: where they go.
    - `interval`: steps between rounds of swaps.

    **Errors:** `DeclarationError` for barostats, and without a thermostat; `NoEnergyError` for a force without
    an energy.

    **Good values:** temperatures in a geometric series, so close that a fifth or more of swaps is accepted.

    **Notes:** needs a key: swaps draw from (seed, step) alone, so that runs which go on are bitwise the same. A
    round costs three evaluations of the forces. On one device.

    **Reference:** Sugita & Okamoto, Chem. Phys. Lett. 314, 141 (1999); alternating pairs: Syed, Bouchard-Côté,
    Deligiannidis & Doucet, J. R. Stat. Soc. B 84, 321 (2022).
    """

    hides_terms: ClassVar[bool] = True

    integrator: AbstractIntegrator
    values: tuple[Array, ...]
    positions: tuple[LeafPosition, ...] = static()
    interval: int = static(default=100)

    def __check_init__(self):
        if self.integrator.evolves_space:
            raise DeclarationError(
                "ReplicaExchange swaps states at constant volume; leave the barostat out"
            )
        thermostat_temperature(self.integrator, type(self).__name__)

    def member(self, values: tuple[Array, ...]) -> AbstractIntegrator:
        """The integrator of the place with these values."""
        leaves, structure = jax.tree.flatten(self.integrator)
        for (leaf, index), value in zip(self.positions, values, strict=True):
            old = jnp.asarray(leaves[leaf])
            value = jnp.asarray(value, old.dtype)
            leaves[leaf] = old.at[index[0]].set(value) if index else value
        return jax.tree.unflatten(structure, leaves)

    def map_places(self, function: Callable, clock: Clock, *stacked: Any) -> Any:
        """`function(integrator, clock, …)` at every place; `stacked`, and the results, are `[replicas, …]`."""

        def one(values: tuple[Array, ...], number: Int[Array, ""], *rest: Any) -> Any:
            # The same step, with noise of its own.
            return function(self.member(values), clock.substep(0.0, 1.0, number), *rest)

        number = jnp.arange(self._count, dtype=jnp.int32)
        axes = (eqx.if_array(0),) * (2 + len(stacked))
        return eqx.filter_vmap(one, in_axes=axes)(self.values, number, *stacked)

    @property
    def _count(self) -> int:
        return self.values[0].shape[0]

    # --- the contract of integrators -----------------------------------------------------------

    def check_state(self, state: State) -> None:
        replicas = self._replicas(state)
        for term in jax.tree.leaves(self.integrator, is_leaf=_is_term):
            for k in range(self._count if _is_term(term) else 0):
                term.check_state(replicas.replica(k))

    def for_start(self, state: State, least: int = 0) -> "ReplicaExchange":
        # All lists are of one shape: planned for the first, and longer where another turns out to need it.
        first = self._replicas(state).replica(0)

        def plan(x: PyTree) -> PyTree:
            return x.for_start(first, least) if _is_term(x) else x

        planned = jax.tree.map(plan, self.integrator, is_leaf=_is_term)
        return replace_fields(self, {"integrator": planned})

    def prepare(self, state: State, dt: StepSize) -> Plan:
        def prepare(values: tuple[Array, ...], replica: State) -> Plan:
            return self.member(values).prepare(replica, dt)

        axes = (eqx.if_array(0), eqx.if_array(0))
        states = self._replicas(state).states
        return eqx.filter_vmap(prepare, in_axes=axes)(self.values, states)

    def init(self, plan: Plan, clock: Clock, state: State) -> ReplicaExchangeAux:
        def init(integrator: AbstractIntegrator, clock: Clock, plan: Plan, replica: State) -> Aux:
            return integrator.init(plan, clock, replica)

        inner = self.map_places(init, clock, plan, self._replicas(state).states)
        zeros = jnp.zeros(self._count - 1, jnp.int32)
        number = jnp.arange(self._count, dtype=jnp.int32)
        return ReplicaExchangeAux(inner, number, zeros, zeros, jnp.int32(0))

    def refresh(
        self, plan: Plan, clock: Clock, state: State, aux: ReplicaExchangeAux
    ) -> ReplicaExchangeAux:
        inner = self._refresh_all(plan, clock, self._replicas(state).states, aux.inner)
        return eqx.tree_at(lambda a: a.inner, aux, inner)

    def step(
        self, plan: Plan, clock: Clock, state: State, aux: ReplicaExchangeAux
    ) -> tuple[Replicas, ReplicaExchangeAux]:
        def step(
            integrator: AbstractIntegrator, clock: Clock, plan: Plan, replica: State, inner: Aux
        ) -> tuple[State, Aux]:
            return integrator.step(plan, clock, replica, inner)

        states, inner = self.map_places(step, clock, plan, state.states, aux.inner)
        aux = ReplicaExchangeAux(inner, aux.replica, aux.attempts, aux.accepts, aux.rounds)

        def swap(states: PyTree, aux: ReplicaExchangeAux) -> tuple[PyTree, ReplicaExchangeAux]:
            return self._swap(plan, clock, states, aux)

        def keep(states: PyTree, aux: ReplicaExchangeAux) -> tuple[PyTree, ReplicaExchangeAux]:
            return states, aux

        states, aux = jax.lax.cond(is_due(clock, self.interval), swap, keep, states, aux)
        return Replicas(states), aux

    def end_clock(self, clock: Clock) -> Clock:
        return self.integrator.end_clock(clock)

    def is_stale(self, before: State, after: State) -> bool:
        return self.integrator.is_stale(before.states, after.states)

    # What is inside acts on one replica: nothing of it is about the state as a whole.
    def terms(self, aux: Aux) -> tuple:
        del aux
        return ()

    @property
    def drifts(self) -> Drifts:
        return ()

    @property
    def position_forces(self) -> tuple:
        return ()

    def advanced_parts(self, state: State) -> AdvancedParts:
        del state
        return ()

    @property
    def conserves_momentum(self) -> bool:
        return False

    # --- swaps ----------------------------------------------------------------------------------

    def _swap(
        self, plan: Plan, clock: Clock, states: PyTree, aux: ReplicaExchangeAux
    ) -> tuple[PyTree, ReplicaExchangeAux]:
        end, own = self.end_clock(clock), clock.substep(0.0, 1.0, _SWAP_TAG).at_fraction(1.0)
        number = jnp.arange(self._count, dtype=jnp.int32)
        # Pairs (0, 1), (2, 3), … and (1, 2), (3, 4), … in turn; the ends may be left over.
        partner = number + jnp.where((number + aux.rounds) % 2 == 0, 1, -1)
        partner = jnp.where((partner < 0) | (partner >= self._count), number, partner)
        temperature = self._temperatures(own)
        trial = _take(states, partner)
        trial = jax.vmap(_scale_velocities)(trial, jnp.sqrt(temperature / temperature[partner]))
        tried = self._refresh_all(plan, end, trial, aux.inner)
        before = self._energies(end, states, aux.inner)
        loss = (before - self._energies(end, trial, tried)) / temperature
        first = jnp.minimum(number, partner)
        draw = jax.random.uniform(own.key, (self._count,), temperature.dtype)[first]
        # A gain that is not a number, where lists have overflowed, is refused: the chunk is replayed.
        accepted = (partner != number) & is_accepted(draw, -loss - loss[partner])
        states = choose(accepted, trial, states)
        # From the lists of the trial, refused or not: an overflow of them must not get lost.
        inner = self._refresh_all(plan, end, states, tried)
        pairs = (partner == number + 1)[:-1]
        return states, ReplicaExchangeAux(
            inner,
            aux.replica[jnp.where(accepted, partner, number)],
            aux.attempts + pairs.astype(jnp.int32),
            aux.accepts + (pairs & accepted[:-1]).astype(jnp.int32),
            aux.rounds + 1,
        )

    def _temperatures(self, clock: Clock) -> Float[Array, " m"]:
        def temperature(integrator: AbstractIntegrator, clock: Clock) -> Float[Array, ""]:
            target = thermostat_temperature(integrator, type(self).__name__)
            return temperature_at(target, clock)

        return jnp.broadcast_to(self.map_places(temperature, clock), (self._count,))

    def _energies(self, clock: Clock, states: PyTree, inner: Aux) -> Float[Array, " m"]:
        def energy(
            integrator: AbstractIntegrator, clock: Clock, state: State, inner: Aux
        ) -> Float[Array, ""]:
            return energy_of(integrator.terms(inner), clock, state)

        return self.map_places(energy, clock, states, inner)

    def _refresh_all(self, plan: Plan, clock: Clock, states: PyTree, inner: Aux) -> Aux:
        def refresh(
            integrator: AbstractIntegrator, clock: Clock, plan: Plan, state: State, inner: Aux
        ) -> Aux:
            return integrator.refresh(plan, clock, state, inner)

        return self.map_places(refresh, clock, plan, states, inner)

    def _replicas(self, state: State) -> Replicas:
        if not isinstance(state, Replicas) or state.num_replicas != self._count:
            raise DeclarationError(
                f"ReplicaExchange advances Replicas, {self._count} of them; make both by "
                "sim, state = replica_exchange((simulation, state), over=SweepAxis(…))"
            )
        return state


def _is_term(x: PyTree) -> bool:
    return isinstance(x, AbstractTerm)


def _take(states: PyTree, rows: Int[Array, " m"]) -> PyTree:
    return jax.tree.map(lambda x: x[rows], states)


def _scale_velocities(state: State, factor: Float[Array, ""]) -> State:
    for name in particle_names(state):
        part = get_component(state, name)
        if isinstance(part, AbstractBodies):
            moved = part.replace_velocity(factor * part.generalized_velocity)
            state = put_component(state, name, moved)
    return state
