"""Forces of energies that depend on the whole neighborhood of each particle."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from physkit.core import (
    Clock,
    Fault,
    Faults,
    NotReversible,
    NoVirialError,
    ParameterError,
    State,
    as_count,
    call_user_function,
    concrete_value,
    einsum,
    evaluate_now,
    poison_where,
    replace_fields,
    static,
)

from ..._particles import Particles
from ..._velocities import mobile_velocity
from ...neighbors import (
    PAIRS_PER_LARGE_BLOCK,
    PAIRS_PER_SMALL_BLOCK,
    ListedPairs,
    ListPlan,
    block_shape,
    concatenate_blocks,
    find_neighbors,
    neighbor_list,
)
from .._listed_force import AbstractListedForce, as_length
from .._species import poison_unknown_species, require_species, require_species_names
from ..pairs._pair_cache import PairCache
from ._neighborhoods import Neighborhoods
from ._partners import Components, by_particle, displacements, num_rows, of_neighbors, of_rows
from ._potential import AbstractManyBodyPotential


class ManyBody(AbstractListedForce):
    """A many-body potential between all particles closer than its cutoff.

        U = Σᵢ E(neighbors of i),   gᵢⱼ = ∂U/∂rᵢⱼ,   rᵢⱼ = xⱼ − xᵢ,   Fᵢ = Σⱼ (gᵢⱼ − gⱼᵢ),   W = −Σᵢⱼ rᵢⱼ ⊗ gᵢⱼ

    Carries a neighbor list that also holds where each pair is found from its other end, so that neither the
    force nor its derivatives scatter. Energies are computed block by block: memory grows with the number of
    listed pairs, not with what a potential computes from them. Differentiable in positions, the box and every
    parameter of the potential, in both modes and any number of times.

    **Arguments:**

    - `potential`: `StillingerWeber()`, … or your own: an `AbstractManyBodyPotential`.
    - `cutoff`: length; that of the potential if left out. It is static: it shapes the list. Give a larger one
      where the potential's own grows with a parameter that is fitted.
    - `skin`: how much further than the cutoff the list reaches, length; 0.12 of the cutoff if left out, or what
      the box still allows.
    - `capacity`: most neighbors of a particle, where it cannot be measured because the program is traced before
      numbers are known; `run` grows it by itself.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `CutoffError` for a cutoff (plus skin) beyond the image limit of the box; `ParameterError` for a
    potential whose species the particles lack. A potential whose cutoff grows beyond `cutoff`, and a
    displacement of more than half the list's radius between two calls, are faults.

    **Notes:** sums go in the order of the list, so that `Reversible` refuses it.

    **Reference:** Thompson, Plimpton & Mattson, J. Chem. Phys. 131, 154107 (2009), for the virial; Fan et al.,
    Phys. Rev. B 92, 094301 (2015), eq. 20, for the heat flux.
    """

    needs_reverse: ClassVar[bool] = True

    potential: AbstractManyBodyPotential
    cutoff: float = static()
    skin: float | None = static()
    capacity: int | None = static()
    component: str | None = static()
    plan: ListPlan | None = static(repr=False)

    def __init__(
        self,
        potential: AbstractManyBodyPotential,
        cutoff: ArrayLike | None = None,
        skin: ArrayLike | None = None,
        *,
        capacity: int | None = None,
        component: str | None = None,
    ):
        self.potential = potential
        self.cutoff = _static_cutoff(potential, cutoff)
        self.skin = as_length("skin", skin)
        self.capacity = None if capacity is None else as_count(capacity, "capacity", ParameterError)
        self.component, self.plan = component, None

    def require_valid(self, particles: Particles) -> None:
        name = type(self.potential).__name__
        require_species(particles, name, self.potential.num_species)
        require_species_names(particles, name, self.potential.species_names)

    def require_reversible(self, state: State) -> None:
        del state
        raise NotReversible(
            f"ManyBody({type(self.potential).__name__}(…)) adds in the order of its neighbor list, which the "
            "backward pass rebuilds at other steps: take NestedCheckpoint()"
        )

    def init(self, state: State) -> PairCache:
        particles = self.particles(state)
        self.require_valid(particles)
        if self.plan is None:
            neighbors = find_neighbors(
                particles, self.cutoff, self.skin, self.capacity, with_reverse=True
            )
        else:
            neighbors = neighbor_list(particles, self.cutoff, plan=self.plan)
        return PairCache(neighbors, None, Faults.none())

    def __call__(
        self, clock: Clock, state: State, cache: PairCache
    ) -> tuple[Float[Array, "n d"], PairCache]:
        del clock
        particles, cache = self.particles(state), self._update(cache, state)

        def energy(position: Float[Array, "n d"]) -> Float[Array, ""]:
            moved = particles.replace(position=position)
            vectors = _displacements(moved, cache)
            return jnp.sum(self._site_energies(moved, vectors, cache))

        # Over devices: what this device's energies do to copies travels back to the particles' owners.
        return _poison(-jax.grad(energy)(particles.position), cache), cache

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        return self(clock, state, self.init(state))[0]

    def particle_energies(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, " n"]:
        del clock
        particles, cache = self.particles(state), self._update(cache, state)
        return _poison(
            self._site_energies(particles, _displacements(particles, cache), cache), cache
        )

    def energy(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, ""]:
        each = self.particle_energies(clock, state, cache)
        return self.particles(state).space.sum(jnp.sum(each))

    def virial(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, "d d"]:
        del clock
        particles, cache = self.particles(state), self._update(cache, state)
        vectors, slopes = self._slopes(particles, cache)
        total = -einsum("aik,bik->ab", jnp.stack(vectors), jnp.stack(slopes))
        # An energy of distances and angles has a symmetric virial; rounding does not see that.
        return particles.space.sum(_poison((total + total.T) / 2, cache))

    def heat_flux(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, " d"]:
        """−Σᵢⱼ rᵢⱼ (gᵢⱼ · vⱼ)."""
        del clock
        if self.potential.num_passes:
            raise NoVirialError(
                f"{type(self.potential).__name__} passes features on: an energy then depends on particles "
                "beyond the cutoff, and its heat flux is not known"
            )
        particles, cache = self.particles(state), self._update(cache, state)
        vectors, slopes = self._slopes(particles, cache)
        velocity = cache.neighbors.exchange_halo(particles, _axes(mobile_velocity(particles)))
        partners = of_neighbors(velocity, _listed(cache))
        work = sum(g * v for g, v in zip(slopes, partners, strict=True))
        flux = jnp.stack([-jnp.sum(r * work) for r in vectors])
        return particles.space.sum(_poison(flux, cache))

    def map_neighborhoods(
        self,
        function: Callable[[Neighborhoods], Float[Array, "c ..."]],
        state: State,
        cache: PairCache | None = None,
    ) -> Float[Array, "n ..."]:
        """`function(near)` for each particle, `near` as of `site_energies`: descriptors, coordinations.

        With all neighbors within `cutoff`, those beyond the potential's own, too.
        """
        particles, cache = self.particles(state), self._update(cache, state)
        pairs, of_pairs, species = self._known(particles, _displacements(particles, cache), cache)
        known = (*of_pairs, None), (species, None)
        rows = self._by_blocks(function, "function", *known, self.cutoff)
        return _poison(particles.mask_empty(by_particle(rows, pairs)), cache)

    def _slopes(self, particles: Particles, cache: PairCache) -> tuple[Components, Components]:
        """rᵢⱼ of all listed pairs, and gᵢⱼ."""
        vectors = _displacements(particles, cache)
        slopes = jax.grad(lambda v: jnp.sum(self._site_energies(particles, v, cache)))(vectors)
        return vectors, slopes

    @property
    def _reach(self) -> float | Float[Array, ""]:
        """How far away the potential's neighbors are: to its own cutoff, where the list reaches further."""
        own = self.potential.cutoff
        if isinstance(own, int | float):
            return min(self.cutoff, float(own))
        return jnp.minimum(self.cutoff, jax.lax.stop_gradient(own))

    def _update(self, cache: PairCache | None, state: State) -> PairCache:
        particles = self.particles(state)
        cache = self.init(state) if cache is None else self.update_cache(cache, particles)
        # The potential's own cutoff may depend on a parameter that is fitted.
        reach = jax.lax.stop_gradient(jnp.asarray(self.potential.cutoff))
        faults = cache.faults.set_if(Fault.CUTOFF, reach > self.cutoff * (1 + 1e-6))
        return replace_fields(cache, {"faults": faults})

    def _site_energies(
        self, particles: Particles, vectors: Components, cache: PairCache
    ) -> Float[Array, " n"]:
        """The energy of each particle of this device, from rᵢⱼ of all listed pairs."""
        name, features, neighbor_features = type(self.potential).__name__, None, None
        pairs, of_pairs, species = self._known(particles, vectors, cache)
        for number in range(self.potential.num_passes):
            rows = self._by_blocks(
                lambda near, number=number: self.potential.features(near, number),
                f"{name}.features",
                (*of_pairs, neighbor_features),
                (species, features),
                self._reach,
            )
            everywhere = cache.neighbors.exchange_halo(particles, by_particle(rows, pairs))
            features, (neighbor_features,) = rows, of_neighbors((everywhere,), pairs)
        rows = self._by_blocks(
            self.potential.site_energies,
            f"{name}.site_energies",
            (*of_pairs, neighbor_features),
            (species, features),
            self._reach,
        )
        if rows.ndim != 1:
            raise ParameterError(
                f"{name}.site_energies must return one energy for each particle; it returned arrays of shape "
                f"{rows.shape[1:]} for each"
            )
        energies = particles.mask_empty(by_particle(rows, pairs))
        return poison_unknown_species(energies, particles.species, self.potential.num_species)

    def _known(
        self, particles: Particles, vectors: Components, cache: PairCache
    ) -> tuple[ListedPairs, tuple, Int[Array, " c"] | None]:
        """The listed pairs, what is known of them before any pass, `[k c]` each, and the rows' species."""
        pairs = _listed(cache)
        index = pairs.index[: num_rows(pairs)].T
        species = neighbor_species = None
        if particles.species is not None:
            everywhere = cache.neighbors.exchange_halo(particles, particles.species)
            species = of_rows(everywhere, pairs)
            neighbor_species = jnp.take(everywhere[pairs.order], index, mode="clip")
        return pairs, (vectors, index < pairs.index.shape[0], neighbor_species), species

    def _by_blocks(
        self,
        function: Callable,
        what: str,
        of_pairs: tuple,
        of_rows: tuple,
        reach: float | Float[Array, ""],
    ) -> Float[Array, "n ..."]:
        """`function` of the neighborhoods of all rows, block by block, from arrays `[k n …]` and `[n …]`."""
        k, n = of_pairs[1].shape

        def of_block(of_pairs: tuple, of_rows: tuple) -> Float[Array, "c ..."]:
            near = Neighborhoods.of(*of_pairs, *of_rows, reach)
            rows = call_user_function(function, (near,), what, "(near)")
            if rows.shape[:1] != near.present.shape[1:]:
                raise ParameterError(
                    f"{what} must return a row for each of {near.present.shape[1]} particles; it returned "
                    f"shape {rows.shape}"
                )
            return rows

        def in_blocks(count: int, size: int) -> Float[Array, "n ..."]:
            if count == 1:
                return of_block(of_pairs, of_rows)
            starts = jnp.minimum(jnp.arange(count) * size, n - size)

            def from_row(start: Int[Array, ""]) -> Float[Array, "c ..."]:
                cut = lambda x, axis: jax.lax.dynamic_slice_in_dim(x, start, size, axis)
                return of_block(
                    jax.tree.map(lambda x: cut(x, 1), of_pairs),
                    jax.tree.map(lambda x: cut(x, 0), of_rows),
                )

            # The derivative computes a block again rather than keeping what all blocks computed.
            rows = jax.lax.map(jax.checkpoint(from_row, prevent_cse=False), starts)
            return concatenate_blocks(rows, n)

        width = k * k if self.potential.uses_pairs_of_neighbors else k
        # Small ones on a CPU: potentials compute many arrays of a block, which should stay in a core's cache;
        # but at least a few vectors of particles.
        small = block_shape(n, width, max(PAIRS_PER_SMALL_BLOCK, 32 * width))
        large = block_shape(n, width, PAIRS_PER_LARGE_BLOCK)
        if small == large:
            return in_blocks(*small)
        return jax.lax.platform_dependent(
            cpu=lambda: in_blocks(*small), default=lambda: in_blocks(*large)
        )


def _displacements(particles: Particles, cache: PairCache) -> Components:
    x = cache.neighbors.exchange_halo(particles, _axes(particles.position))
    return displacements(x, particles.space, _listed(cache))


def _axes(x: Float[Array, "n d"]) -> tuple[Float[Array, " n"], ...]:
    return tuple(x[:, a] for a in range(x.shape[1]))


def _listed(cache: PairCache) -> ListedPairs:
    assert isinstance(cache.pairs, ListedPairs)
    return cache.pairs


def _poison(x: Any, cache: PairCache) -> Any:
    """`x`, or NaN where neighbors are missing or the potential reaches further than the list."""
    return poison_where(cache.poison_if_incomplete(x), cache.faults.bits != 0)


def _static_cutoff(potential: AbstractManyBodyPotential, cutoff: ArrayLike | None) -> float:
    given = cutoff
    if cutoff is None:
        # Inside a trace, too, the cutoff of numbers that are known is a number.
        try:
            with evaluate_now():
                given = potential.cutoff
        except jax.errors.UnexpectedTracerError:
            given = None
        if given is None or concrete_value(given) is None:
            raise ParameterError(
                f"the cutoff of {type(potential).__name__} shapes the neighbor list, and depends on a traced "
                "parameter: give cutoff=… as a number, a little larger than it will become"
            )
    length = as_length("cutoff", given, above=0.0)
    assert length is not None
    return length
