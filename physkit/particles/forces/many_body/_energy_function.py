"""Any function that gives an energy, of another package or one's own, as a force."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    DeclarationError,
    Faults,
    NoEnergyError,
    ParameterError,
    PyTree,
    State,
    as_count,
    as_parameter,
    call_user_function,
    describe,
    static,
)

from ..._particles import Particles
from ...neighbors import ListPlan, find_neighbors, neighbor_list
from .._listed_force import AbstractListedForce, as_length
from ..pairs._pair_cache import PairCache
from ._edges import Edges


class EnergyFunction(AbstractListedForce):
    """Any energy written in JAX as a force: of MACE, NequIP, jax-md, or your own.

        F = −∂E/∂x,   W = −∂E/∂strain

        EnergyFunction(lambda x, cell, species: model(x, cell, species))
        EnergyFunction(lambda x, cell, species, edges, p: model.apply(p, edges.vectors, …), p, cutoff=5.0)

    Force, virial and derivatives by positions, box and parameters are those of the function.

    **Arguments:**

    - `function`: `(positions, cell, species) → energy`, and after these `edges` where a cutoff is given, and
      `parameters` where there are any. Positions are `[n d]`; the cell has the vectors of the box as rows, None
      in open space; species are numbers from 0, or None. It returns a number, or one for each particle, `[n]`.
    - `parameters`: arrays that it depends on, in any pytree: they have derivatives, and are fitted.
    - `cutoff`: length; a neighbor list is kept, and the function gets its pairs as `Edges`. Left out, it sees
      to periodic images by itself.
    - `skin`, `capacity`: of the list, as of `ManyBody`.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `DeclarationError` for a function that is called otherwise, for a module with arrays (these are
    parameters), and over devices, where it would get one device's particles only; `ParameterError` for what is
    no energy; `NoEnergyError` for energies of particles where it returns one number; `NoVirialError` for heat
    flux.

    **Notes:** units are those of the function; the species' numbers are those of the particles: a function of
    atomic numbers gets `jnp.array([14, 8])[species]`. Define it once: a new function object compiles again. A
    step costs one gradient of the function, a pressure another one. `ManyBody` is faster where an energy can
    be written for its neighborhoods: without scatters, block by block, over devices.
    """

    conserves_momentum: ClassVar[bool] = True
    needs_reverse: ClassVar[bool] = True

    function: Callable = static()
    parameters: PyTree
    cutoff: float | None = static()
    skin: float | None = static()
    capacity: int | None = static()
    component: str | None = static()
    plan: ListPlan | None = static(repr=False)

    def __init__(
        self,
        function: Callable,
        parameters: PyTree = None,
        *,
        cutoff: ArrayLike | None = None,
        skin: ArrayLike | None = None,
        capacity: int | None = None,
        component: str | None = None,
    ):
        if isinstance(function, eqx.Module) and any(map(eqx.is_array, jax.tree.leaves(function))):
            raise DeclarationError(
                "the function of EnergyFunction is a module with arrays, which would be constants without a "
                "derivative; give it as parameters: EnergyFunction(lambda x, cell, species, m: m(x), "
                "pk.Network(module))"
            )
        if cutoff is None and (skin is not None or capacity is not None):
            raise ParameterError(
                "skin and capacity are those of a neighbor list: give cutoff=…, too"
            )
        self.function = function
        self.parameters = jax.tree.map(_as_parameter, parameters)
        self.cutoff = as_length("cutoff", cutoff, above=0.0)
        self.skin = as_length("skin", skin)
        self.capacity = None if capacity is None else as_count(capacity, "capacity", ParameterError)
        self.component, self.plan = component, None

    def require_valid(self, particles: Particles) -> None:
        particles.require_single_device("EnergyFunction", "an AbstractManyBodyPotential")

    def keeps_list(self, particles: Particles) -> bool:
        del particles
        return self.cutoff is not None

    def init(self, state: State) -> PairCache:
        particles = self.particles(state)
        self.require_valid(particles)
        neighbors = None
        if self.cutoff is not None and self.plan is not None:
            neighbors = neighbor_list(particles, self.cutoff, plan=self.plan)
        elif self.cutoff is not None:
            neighbors = find_neighbors(
                particles, self.cutoff, self.skin, self.capacity, with_reverse=True
            )
        return PairCache(neighbors, None, Faults.none())

    def __call__(
        self, clock: Clock, state: State, cache: PairCache
    ) -> tuple[Float[Array, "n d"], PairCache]:
        del clock
        particles, cache = self.particles(state), self._update(cache, state)

        def energy(position: Float[Array, "n d"]) -> Float[Array, ""]:
            return jnp.sum(self._evaluate(particles.replace(position=position), cache))

        return cache.poison_if_incomplete(-jax.grad(energy)(particles.position)), cache

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        return self(clock, state, self.init(state))[0]

    def energy(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, ""]:
        del clock
        cache = self._update(cache, state)
        return cache.poison_if_incomplete(jnp.sum(self._evaluate(self.particles(state), cache)))

    def particle_energies(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, " n"]:
        del clock
        cache = self._update(cache, state)
        found = self._evaluate(self.particles(state), cache)
        if found.ndim == 0:
            raise NoEnergyError(
                "the function of this EnergyFunction returns one energy of all particles: return energies [n] "
                "to say which part is whose"
            )
        return cache.poison_if_incomplete(found)

    def _update(self, cache: PairCache | None, state: State) -> PairCache:
        particles = self.particles(state)
        self.require_valid(particles)
        return self.init(state) if cache is None else self.update_cache(cache, particles)

    def _evaluate(self, particles: Particles, cache: PairCache) -> Float[Array, "..."]:
        """What the function returns: an energy, or `[n]`."""
        n, d = particles.position.shape
        cell = particles.space.cell(d)
        arguments: tuple[Any, ...] = (particles.position, cell, particles.species)
        signature = "positions, cell, species"
        if self.cutoff is not None:
            arguments += (Edges.of(particles, cache, self.cutoff),)
            signature += ", edges"
        if self.parameters is not None:
            arguments += (self.parameters,)
            signature += ", parameters"
        found = call_user_function(
            self.function, arguments, "the function of EnergyFunction", f"({signature})"
        )
        if jnp.shape(found) not in ((), (n,)) or not jnp.issubdtype(
            jnp.result_type(found), jnp.floating
        ):
            raise ParameterError(
                f"the function of EnergyFunction must return an energy, a real number, or energies [{n}] of "
                f"particles; it returned {describe(found)}"
            )
        return jnp.asarray(found)


def _as_parameter(leaf: Any) -> Any:
    return as_parameter(leaf) if isinstance(leaf, int | float) else leaf
