"""Forces between pairs of particles within a cutoff."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from physkit.core import (
    Clock,
    CutoffError,
    Fault,
    Faults,
    NotReversible,
    ParameterError,
    PyTree,
    State,
    as_count,
    as_device_array,
    as_parameter,
    data,
    poison_where,
    static,
)

from ..._arguments import Numbers
from ..._particles import Particles
from ..._velocities import mobile_velocity
from ...neighbors import (
    AbstractNeighbors,
    ListPlan,
    find_neighbors,
    neighbor_list,
)
from .._listed_force import AbstractListedForce, as_length
from ..potentials import AbstractPairPotential
from ..potentials._potential import with_symmetric_tables
from ._excluded_pairs import as_pairs, excluded_by_particle, partners_by_particle
from ._pair_cache import PairCache, quantum_below, round_up_to_power_of_two
from ._pair_kernels import (
    PairContext,
    PairKernel,
    charges_are_lost,
    pair_arrays,
    poison_without_table,
    require_pair_properties,
    with_charge_unit,
)
from ._pair_sum import exact_pair_sum, max_term, pair_sum
from ._potential_sum import PotentialSum, TruncatedSum
from ._truncation import AbstractTruncated, PlainCut, check_truncation, truncate

# Up to this many particles all pairs cost less than a list, rebuilds included.
ALL_PAIRS_UP_TO = 200


class Pairwise(AbstractListedForce):
    """The same potential between all pairs of particles closer than a cutoff.

        Fᵢ = −Σⱼ U′(r) (xᵢ − xⱼ)/r,   r = |xᵢ − xⱼ| by the nearest image, r < r_c

    Carries a neighbor list, which is rebuilt when a particle has moved half the skin. Differentiable
    in positions, charges, the box and every parameter of the potential; neither the force nor its
    derivatives scatter, and their memory does not grow with the number of pairs.

    **Arguments:**

    - `potential`: `LennardJones()`, … or your own: an `AbstractPairPotential` with an `energy(r)`.
    - `cutoff`: r_c, length. None: every pair, in `Free` space.
    - `skin`: how much further than the cutoff the list reaches, length; 0.12 r_c if left out, or what
      the box still allows. A longer skin means fewer rebuilds and more pairs.
    - `truncation`: `"shifted-force"` (energy and force go to 0 at the cutoff), `"switch"`, `"plain"`
      or `"shifted"`; see `truncate`.
    - `switch_start`: where a switch begins, length; 0.9 r_c if left out.
    - `tail`: add to energy and virial what a plain cutoff or a switch leaves out, assuming that the fluid is
      uniform there.
    - `exact`: round each pair's force to a multiple of a quantum and add these exactly. The force then
      does not depend on the order of the sum: not on the list, its capacity, or how particles are
      numbered; and total momentum is conserved to the last bit of these sums. Energies are plain sums. Pairs
      are rounded as the program computes them: another one, such as a batch, may differ by some quanta.
    - `quantum`: the quantum of `exact`, force; rounded up to a power of two. By default 2⁻²⁸
      (float32) or 2⁻⁵⁶ (float64) of the largest initial pair force.
    - `exclude`: `[m 2]`, pairs of particles (by index in the arrays) that do not interact this way:
      bonded neighbors.
    - `capacity`: most neighbors of a particle, where it cannot be measured because the
      program is traced before numbers are known; `run` grows it by itself.
    - `use_neighbor_list`: False sums over all pairs at every step instead of keeping a list, which is faster
      for few particles and compiles in a quarter of the time. Left out, up to 200 particles go without a
      list, unless skin, capacity or exclude ask for one. Over devices lists are kept in any case.
    - `component`: name of the particle component; None where the state is one component.

    Cutoff, skin and capacity are static: they shape the compiled program.

    **Errors:** `CutoffError` for a cutoff (plus skin) beyond the image limit of the box, or none in a
    periodic one; `ParameterError` for a potential whose charges or species the particles lack.
    Initial overlaps, a displacement of more than half the list's radius between two calls, and a range
    overflow of exact sums are faults.

    **Good values:** Lennard-Jones: cutoff 2.5 σ, skin 0.3 σ.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 5.3.
    """

    needs_reverse: ClassVar[bool] = False
    ignores_velocities: ClassVar[bool] = True

    potential: AbstractPairPotential
    cutoff: float | None = static()
    skin: float | None = static()
    truncation: str = static()
    switch_start: float | None = static()
    tail: bool = static()
    exact: bool = static()
    quantum: Float[Array, ""] | None = data()
    exclude: Int[Array, "m 2"] | None = data()
    # From `exclude`: the partners of each particle; −1 for no more.
    excluded_partners: Int[Array, "p e"] | None = data()
    capacity: int | None = static()
    use_neighbor_list: bool | None = static()
    component: str | None = static()
    plan: ListPlan | None = static(repr=False)

    def __init__(
        self,
        potential: AbstractPairPotential,
        cutoff: float | None = None,
        skin: float | None = None,
        truncation: str = "shifted-force",
        *,
        switch_start: float | None = None,
        tail: bool = False,
        exact: bool = False,
        quantum: ArrayLike | None = None,
        exclude: Numbers | None = None,
        capacity: int | None = None,
        use_neighbor_list: bool | None = None,
        component: str | None = None,
    ):
        self.potential = potential
        self.cutoff = as_length("cutoff", cutoff, above=0.0)
        self.skin = as_length("skin", skin)
        self.truncation, self.tail, self.exact = truncation, bool(tail), bool(exact)
        self.switch_start = as_length("switch_start", switch_start)
        self.quantum = None if quantum is None else as_parameter(quantum)
        self.exclude = self.excluded_partners = None
        if exclude is not None:
            pairs = as_pairs(exclude)
            self.exclude = as_device_array(pairs, jnp.int32)
            self.excluded_partners = partners_by_particle(pairs)
        self.capacity = None if capacity is None else as_count(capacity, "capacity", ParameterError)
        of_a_list = any(x is not None for x in (skin, capacity, exclude))
        self.use_neighbor_list = (
            True if of_a_list and use_neighbor_list is None else use_neighbor_list
        )
        self.component, self.plan = component, None
        check_truncation(truncation, cutoff, self.switch_start)
        potential.require_truncation(truncation, cutoff)
        if tail and (truncation not in ("plain", "switch") or cutoff is None):
            raise ParameterError(
                'tail=True adds what a cutoff leaves out: it needs truncation="plain" or "switch", and a '
                f"cutoff; got truncation={truncation!r}, cutoff={cutoff}"
            )
        if quantum is not None and not exact:
            raise ParameterError("quantum=… is for exact=True")
        if cutoff is None and exclude is not None:
            raise ParameterError("exclude=… needs a cutoff: pairs are left out of the list")
        if of_a_list and not self.use_neighbor_list:
            raise ParameterError(
                "use_neighbor_list=False keeps no list: skin, capacity and exclude belong to a list"
            )

    def init(self, state: State) -> PairCache:
        particles = self.particles(state)
        self.require_valid(particles)
        return _new_cache(self, particles, self._find_neighbors(particles))

    def require_valid(self, particles: Particles) -> None:
        require_pair_properties(particles, self.potential)

    def excluded_by_particle(self, particles: Particles) -> Int[Array, "n e"] | None:
        partners = self.excluded_partners
        return None if partners is None else excluded_by_particle(partners, particles.num_particles)

    def keeps_list(self, particles: Particles) -> bool:
        if particles.is_distributed:
            return True
        if self.use_neighbor_list is None:
            return particles.position.shape[0] > ALL_PAIRS_UP_TO
        return self.use_neighbor_list

    def require_reversible(self, state: State) -> None:
        if self.cutoff is not None and self.keeps_list(self.particles(state)) and not self.exact:
            name = type(self.potential).__name__
            raise NotReversible(
                f"Pairwise({name}(…), cutoff={self.cutoff:g}) adds in the order of its neighbor list, "
                "which the backward pass rebuilds at other steps: Reversible() needs "
                f"Pairwise({name}(…), {self.cutoff:g}, exact=True)"
            )

    def __call__(
        self, clock: Clock, state: State, cache: PairCache
    ) -> tuple[Float[Array, "n d"], PairCache]:
        del clock
        particles = self.particles(state)
        cache = self.update_cache(cache, particles)
        context, arrays = self._context(particles), cache.arrays(particles, self.potential)
        kernel = PairKernel("force", self.cutoff)
        if self.exact:
            assert cache.quantum is not None
            quantum = cache.quantum.astype(particles.position.dtype)
            forces, in_range = exact_pair_sum(kernel, arrays, context, cache.pairs, -1, quantum)
            # Sums of what is not finite are out of range as well, but that has its own fault.
            out_of_range = ~in_range & jnp.all(jnp.isfinite(particles.position))
            faults = cache.faults.set_if(Fault.EXACT_SUM_RANGE, out_of_range)
            cache = PairCache(cache.neighbors, cache.quantum, faults)
        else:
            forces = pair_sum(kernel, arrays, context, cache.pairs, -1)
        return jnp.stack(self._poison(forces, particles, cache), axis=1), cache

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        force, cache = self(clock, state, self.init(state))
        # In a loop the whole state is poisoned; here there is only the force, and its derivatives.
        is_broken = (cache.faults.bits & int(Fault.EXACT_SUM_RANGE)) != 0
        return poison_where(force, is_broken) if self.exact else force

    def particle_energies(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, " n"]:
        """The energy of each particle: half the energy of each of its pairs. Without tail correction."""
        del clock
        particles = self.particles(state)
        return self._sum_over_pairs("energy", particles, cache) / 2

    def energy(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, ""]:
        particles = self.particles(state)
        total = particles.space.sum(jnp.sum(self.particle_energies(clock, state, cache)))
        return total + self.tail_correction("tail_energy", particles)

    def virial(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, "d d"]:
        del clock
        particles = self.particles(state)
        d = particles.dimension
        sums = self._sum_over_pairs("virial", particles, cache)
        # Each pair is in the sums of both its particles.
        total = {ab: particles.space.sum(jnp.sum(x)) / 2 for ab, x in sums.items()}
        rows = [[total[min(a, b), max(a, b)] for b in range(d)] for a in range(d)]
        tail = self.tail_correction("tail_virial", particles) / d
        return jnp.array(rows) + tail * jnp.eye(d, dtype=particles.position.dtype)

    def heat_flux(
        self, clock: Clock, state: State, cache: PairCache | None = None
    ) -> Float[Array, " d"]:
        """½ Σ (xᵢ − xⱼ) Fᵢⱼ·(vᵢ + vⱼ) over pairs. Without tail correction."""
        del clock
        particles = self.particles(state)
        sums = self._sum_over_pairs("heat", particles, cache)
        return jnp.stack([particles.space.sum(jnp.sum(x)) / 4 for x in sums])

    def truncated_potential(
        self, dtype: jnp.dtype, potential: AbstractPairPotential | None = None
    ) -> AbstractTruncated:
        """The potential, or another, truncated at the cutoff; to be called inside the traced program."""
        potential = potential or self.potential
        if isinstance(potential, PotentialSum):
            others = (other.truncated_potential(dtype) for other in potential.others)
            return TruncatedSum(
                potential.coulomb, (self.truncated_potential(dtype, potential.coulomb), *others)
            )
        potential = with_symmetric_tables(potential)
        if self.cutoff is None:
            return PlainCut(potential, jnp.asarray(jnp.inf, dtype))
        start = None if self.switch_start is None else jnp.asarray(self.switch_start, dtype)
        return truncate(potential, jnp.asarray(self.cutoff, dtype), self.truncation, start)

    def _find_neighbors(self, particles: Particles) -> AbstractNeighbors | None:
        if self.cutoff is None:
            if any(particles.space.periodic_axes(particles.dimension)):
                raise CutoffError(
                    "without a cutoff the sum takes every pair once, but in a periodic space a particle "
                    "has infinitely many images: give cutoff=…, or use a mesh or Ewald sum for long-range "
                    "forces"
                )
            return None
        excluded = self.excluded_by_particle(particles)
        if self.plan is not None:
            return neighbor_list(particles, self.cutoff, excluded=excluded, plan=self.plan)
        keeps = self.keeps_list(particles)
        return find_neighbors(particles, self.cutoff, self.skin, self.capacity, excluded, keeps)

    def _context(self, particles: Particles) -> PairContext:
        potential, _ = with_charge_unit(self.potential, particles)
        return self.truncated_potential(particles.position.dtype, potential), particles.space

    def _sum_over_pairs(
        self, quantity: str, particles: Particles, cache: PairCache | None
    ) -> PyTree:
        """Sums of a symmetric quantity of each pair: energy, virial or heat."""
        if cache is None:
            cache = PairCache(self._find_neighbors(particles), None, Faults.none())
        else:
            cache = self.update_cache(cache, particles)
        kernel = PairKernel(quantity, self.cutoff)
        velocity = mobile_velocity(particles) if quantity == "heat" else None
        context = self._context(particles)
        arrays = cache.arrays(particles, self.potential, velocity)
        terms = pair_sum(kernel, arrays, context, cache.pairs, 1)
        return self._poison(terms, particles, cache)

    def _poison(self, sums: PyTree, particles: Particles, cache: PairCache) -> PyTree:
        """`sums` by particle, NaN where pairs or tables are missing."""
        return poison_without_table(cache.poison_if_incomplete(sums), particles, self.potential)

    def tail_correction(self, which: str, particles: Particles) -> Float[Array, ""]:
        """What the cutoff leaves out of the `"tail_energy"` or the `"tail_virial"`; 0 without `tail`."""
        if not self.tail:
            return jnp.zeros((), particles.position.dtype)
        n, d, species = particles.num_particles, particles.dimension, particles.species
        density = n / particles.space.volume
        fractions = None
        if species is not None and self.potential.species is not None:
            kinds = jnp.arange(self.potential.species, dtype=species.dtype)
            counts = particles.sum(species[:, None] == kinds[None])
            fractions = counts.astype(density.dtype) / n
        return getattr(self.truncated_potential(density.dtype), which)(density, n, d, fractions)


@eqx.filter_jit
def _new_cache(
    force: Pairwise, particles: Particles, neighbors: AbstractNeighbors | None
) -> PairCache:
    """The cache for new neighbors, with the quantum of exact sums, and a fault where particles overlap."""
    # Compiled as one program: op by op, going over all pairs would hold arrays of all of them.
    cache = PairCache(neighbors, None, Faults.none())
    context, arrays = force._context(particles), cache.arrays(particles, force.potential)
    if force.exact:
        magnitude = PairKernel("magnitude", force.cutoff)
        largest = max_term(magnitude, arrays, context, cache.pairs)
    else:
        # The sums that a step takes, so that they are traced once; not finite where two particles overlap.
        sums = pair_sum(PairKernel("force", force.cutoff), arrays, context, cache.pairs, -1)
        largest = jnp.max(jnp.abs(jnp.stack(sums)))
    largest = jax.lax.stop_gradient(largest)
    largest = particles.space.max(largest)
    # Positions that are not finite have a fault of their own: a diverged state is no overlap.
    is_known = jnp.all(jnp.isfinite(particles.position))
    for numbers in jax.tree.leaves(eqx.filter(particles.space, eqx.is_inexact_array)):
        is_known = is_known & ~jnp.any(jnp.isnan(numbers))
    overlap = ~jnp.isfinite(largest) & is_known
    quantum = _quantum(force, particles, largest) if force.exact else None
    faults = cache.faults.set_if(Fault.OVERLAP, overlap)
    lost = charges_are_lost(force.potential, particles)
    return PairCache(neighbors, quantum, faults.set_if(Fault.FORCE_RANGE, lost))


def _quantum(force: Pairwise, particles: Particles, largest: Float[Array, ""]) -> Float[Array, ""]:
    """The quantum of exact sums, for a largest initial pair force `largest`."""
    dtype = particles.position.dtype
    if force.quantum is not None:
        return round_up_to_power_of_two(jax.lax.stop_gradient(force.quantum).astype(dtype))
    if force.cutoff is not None:
        # A perfect crystal may start without any force: take the potential's own slope into account.
        r = jnp.linspace(0.5, 1.0, 33, dtype=dtype) * force.cutoff
        potential, _ = force._context(particles)

        def largest_slope(r: Array) -> Array:
            # The largest over all pairs of species.
            return jnp.max(jnp.abs(potential.force_over_distance(r * r) * r))

        slope = jax.vmap(largest_slope)(r)
        steepest = jax.lax.stop_gradient(jnp.max(jnp.where(jnp.isfinite(slope), slope, 0)))
        if force.potential.charged:
            charge = jax.lax.stop_gradient(pair_arrays(particles, force.potential)["charge"])
            steepest = steepest * particles.space.max(jnp.max(jnp.abs(charge))) ** 2
        largest = jnp.maximum(largest, steepest)
    return quantum_below(largest)
