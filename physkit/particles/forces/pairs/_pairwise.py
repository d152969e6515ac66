"""Forces between pairs of particles within a cutoff."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import (
    Clock,
    CutoffError,
    Fault,
    Faults,
    Module,
    NotReversible,
    ParameterError,
    ShapeError,
    as_parameter,
    concrete_value,
    data,
    replace_fields,
    static,
)

from ..._particles import Particles
from ...neighbors import (
    DEFAULT_SKIN,
    AbstractPairs,
    AllPairs,
    AllPairsWithin,
    NeighborList,
    ShardedNeighborList,
    all_pairs_within,
    neighbor_list,
    sharded_neighbor_list,
)
from .._force import AbstractForce
from ..potentials import AbstractPairPotential
from ._pair_kernels import PairKernel, pair_arrays
from ._pair_sum import exact_pair_sum, max_term, pair_sum
from ._truncation import AbstractTruncated, PlainCut, check_truncation, truncated

# Bits between the quantum and the largest pair force at the start: sums lose nothing to rounding, and
# there is room above for forces 2¹⁰ times larger.
_BITS = {4: 28, 8: 56}


class PairCache(Module):
    """What `Pairwise` carries: its list (None: no cutoff), the quantum of exact sums, faults."""

    neighbors: NeighborList | ShardedNeighborList | AllPairsWithin | None
    quantum: Float[Array, "*b"] | None = data()
    faults: Faults

    @property
    def pairs(self) -> AbstractPairs:
        """The pairs to sum over."""
        return AllPairs() if self.neighbors is None else self.neighbors.pairs

    def arrays(self, particles: Particles, potential: AbstractPairPotential) -> dict[str, Any]:
        """What the pairs are of: on several devices, with the particles near this one's slab."""
        own = pair_arrays(particles, potential)
        return (
            self.neighbors.joined(particles, own)
            if isinstance(self.neighbors, ShardedNeighborList)
            else own
        )


class Pairwise(AbstractForce):
    """The same potential between all pairs of particles closer than a cutoff.

        Fᵢ = −Σⱼ U′(r) (xᵢ − xⱼ)/r,   r = |xᵢ − xⱼ| by the nearest image, r < r_c

    Carries a neighbor list, rebuilt by itself when something has moved half the skin. Differentiable
    in positions, charges, the box and every parameter of the potential; neither the force nor its
    derivatives scatter, and their memory does not grow with the number of pairs.

    **Arguments:**

    - `potential`: `LennardJones()`, … or your own: an `AbstractPairPotential` with an `energy(r)`.
    - `cutoff`: r_c, length. None: every pair, in `Free` space.
    - `skin`: how much further than the cutoff the list reaches, length; 0.12 r_c if left out, or what
      the box still allows. A longer skin means fewer rebuilds and more pairs.
    - `truncation`: `"shifted-force"` (energy and force go to 0 at the cutoff), `"switch"`, `"plain"`
      or `"shifted"`; see `truncated`.
    - `tail`: add to energy and virial what a plain cutoff leaves out, for a fluid that is uniform
      beyond it.
    - `exact`: round each pair's force to a multiple of a quantum and add these exactly. The force then
      depends on no order: not on the list, its capacity, the batch, or how particles are numbered;
      and total momentum is conserved to the last bit of these sums. Energies are plain sums.
    - `quantum`: the quantum of `exact`, force; rounded up to a power of two. By default 2⁻²⁸
      (float32) or 2⁻⁵⁶ (float64) of the largest pair force at the start.
    - `exclude`: `[m 2]`, pairs of particles (by place in the arrays) that do not interact this way:
      bonded neighbors.
    - `capacity`: room for so many neighbors of a particle, where it cannot be measured because the
      program is traced before numbers are known; `run` grows it by itself.
    - `listed`: False goes over every pair at every step instead of keeping a list: for up to some 200
      particles faster, in sweeps twice, and compiled in a quarter of the time. Over devices lists are
      kept in any case.
    - `of`: name of the particle component; None where the state is one component.

    Cutoff, skin and capacity are static: they shape the compiled program.

    **Errors:** `CutoffError` for a cutoff (plus skin) beyond the image limit of the box, or none in a
    periodic one; `ParameterError` for a potential whose charges or species the particles lack.
    Overlaps at the start, a leap of more than half the list's radius between two calls, and a range
    overflow of exact sums are faults.

    **Good values:** Lennard-Jones: cutoff 2.5 σ, skin 0.3 σ.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 5.3.
    """

    conserves_momentum: ClassVar[bool] = True

    potential: AbstractPairPotential
    cutoff: float | None = static()
    skin: float | None = static()
    truncation: str = static()
    tail: bool = static()
    exact: bool = static()
    quantum: Float[Array, ""] | None = data()
    exclude: Int[Array, "m 2"] | None = data()
    excluded_partners: Int[Array, "p e"] | None = (
        data()
    )  # by particle, of `exclude`; −1 for no more
    capacity: int | None = static()
    use_neighbor_list: bool = static()
    component: str | None = static()

    def __init__(
        self,
        potential: AbstractPairPotential,
        cutoff: float | None = None,
        skin: float | None = None,
        truncation: str = "shifted-force",
        *,
        tail: bool = False,
        exact: bool = False,
        quantum: Any = None,
        exclude: Any = None,
        capacity: int | None = None,
        use_neighbor_list: bool = True,
        component: str | None = None,
    ):
        self.potential = potential
        self.cutoff = _length("cutoff", cutoff, above=0.0)
        self.skin = _length("skin", skin)
        self.truncation, self.tail, self.exact = truncation, bool(tail), bool(exact)
        self.quantum = None if quantum is None else as_parameter(quantum)
        self.exclude = self.excluded_partners = None
        if exclude is not None:
            self.exclude, self.excluded_partners = _pairs(exclude)
        self.capacity, self.use_neighbor_list, self.component = (
            capacity,
            use_neighbor_list,
            component,
        )
        check_truncation(truncation, cutoff)
        if tail and (truncation != "plain" or cutoff is None):
            raise ParameterError(
                'tail=True adds what a plain cutoff leaves out: it needs truncation="plain" and a '
                f"cutoff; got truncation={truncation!r}, cutoff={cutoff}"
            )
        if quantum is not None and not exact:
            raise ParameterError("quantum=… is for exact=True")
        if cutoff is None and exclude is not None:
            raise ParameterError("exclude=… needs a cutoff: pairs are left out of the list")
        if not use_neighbor_list and (skin, capacity, exclude) != (None, None, None):
            raise ParameterError(
                "listed=False keeps no list: skin, capacity and exclude are of lists"
            )

    def init(self, state: Any) -> PairCache:
        particles = self.particles(state)
        pair_arrays(particles, self.potential)  # says what is missing while numbers can be seen
        return _opened(self, particles, self._list(particles))

    def with_common_skin(self, states: Sequence[Any]) -> "Pairwise":
        """This force with a skin that the boxes of all these states allow, unless it was given one.

        For sweeps: how far a list reaches is part of the compiled program. A state whose box is too small
        even for the cutoff does not count; it will be found wrong by itself.
        """
        if self.cutoff is None or self.skin is not None:
            return self
        boxes = [self.particles(state) for state in states]
        limits = np.array([float(b.space.max_cutoff(b.dimension)) for b in boxes])
        slack = limits[limits >= self.cutoff] - self.cutoff
        if len(slack) and slack.min() < DEFAULT_SKIN * self.cutoff:
            # Slightly less than the box allows, so that rounding does not decide.
            return replace_fields(self, {"skin": float(max(0.0, slack.min() * (1 - 1e-6)))})
        return self

    def require_reversible(self, state: Any) -> None:
        keeps_list = self.use_neighbor_list or self.particles(state).ownership is not None
        if self.cutoff is not None and keeps_list and not self.exact:
            name = type(self.potential).__name__
            raise NotReversible(
                f"Pairwise({name}(…), cutoff={self.cutoff:g}) adds in the order of its neighbor list, "
                "which is built at other steps on the way back: Reversible() needs "
                f"Pairwise({name}(…), {self.cutoff:g}, exact=True)"
            )

    def __call__(self, clock: Clock, state: Any, cache: PairCache):
        del clock
        particles = self.particles(state)
        cache = self._refreshed(particles, cache)
        if not self.exact:
            return self._force(particles, cache), cache
        shared, arrays = self._shared(particles), cache.arrays(particles, self.potential)
        kernel = PairKernel("force", self.cutoff)
        quantum = cache.quantum.astype(particles.position.dtype)
        pull, held = exact_pair_sum(kernel, arrays, shared, cache.pairs, -1, quantum)
        # Sums of what is not finite are out of range, too; that has its own fault.
        out = ~held & jnp.all(jnp.isfinite(particles.position))
        cache = PairCache(
            cache.neighbors, cache.quantum, cache.faults.set_if(Fault.EXACT_SUM_RANGE, out)
        )
        return _whole(jnp.stack(pull, axis=1), cache), cache

    def force(self, clock: Clock, state: Any) -> Float[Array, "n d"]:
        return self(clock, state, self.init(state))[0]

    def energies(
        self, clock: Clock, state: Any, cache: PairCache | None = None
    ) -> Float[Array, " n"]:
        """Half of every pair's energy for each of the two particles; without tail correction."""
        del clock
        particles = self.particles(state)
        return self._sum("energy", particles, self._refreshed(particles, cache)) / 2

    def energy(self, clock: Clock, state: Any, cache: PairCache | None = None) -> Float[Array, ""]:
        particles = self.particles(state)
        total = particles.space.sum(jnp.sum(self.energies(clock, state, cache)))
        return total + self._tail("tail_energy", particles)

    def virial(
        self, clock: Clock, state: Any, cache: PairCache | None = None
    ) -> Float[Array, "d d"]:
        del clock
        particles = self.particles(state)
        d = particles.dimension
        each = self._sum("virial", particles, self._refreshed(particles, cache))
        total = {ab: particles.space.sum(jnp.sum(x)) / 2 for ab, x in each.items()}
        rows = [[total[min(a, b), max(a, b)] for b in range(d)] for a in range(d)]
        tail = self._tail("tail_virial", particles) / d
        return jnp.array(rows) + tail * jnp.eye(d, dtype=particles.position.dtype)

    def _list(
        self, particles: Particles
    ) -> NeighborList | ShardedNeighborList | AllPairsWithin | None:
        if self.cutoff is not None and not self.use_neighbor_list and particles.ownership is None:
            return all_pairs_within(particles, self.cutoff)
        if self.cutoff is not None:
            excluded = (
                None
                if self.excluded_partners is None
                else _table(self.excluded_partners, particles.num_particles)
            )
            make = neighbor_list if particles.ownership is None else sharded_neighbor_list
            return make(particles, self.cutoff, self.skin, self.capacity, excluded)
        if any(particles.space.periodic_axes(particles.dimension)):
            raise CutoffError(
                "without a cutoff a sum runs over every pair once, but in a periodic space a particle "
                "has endless images: give cutoff=…, or use a mesh or Ewald sum for long-range forces"
            )
        return None

    def _refreshed(self, particles: Particles, cache: PairCache | None) -> PairCache:
        if cache is None:
            return PairCache(self._list(particles), None, Faults.none())
        if cache.neighbors is None:
            return cache
        return PairCache(cache.neighbors.update(particles), cache.quantum, cache.faults)

    def _law(self, dtype: Any) -> AbstractTruncated:
        if self.cutoff is None:
            return PlainCut(self.potential, jnp.asarray(jnp.inf, dtype))
        return truncated(self.potential, jnp.asarray(self.cutoff, dtype), self.truncation)

    def _shared(self, particles: Particles) -> tuple[AbstractTruncated, Any]:
        return self._law(particles.position.dtype), particles.space

    def _sum(self, quantity: str, particles: Particles, cache: PairCache) -> Any:
        kernel = PairKernel(quantity, self.cutoff)
        arrays, shared = cache.arrays(particles, self.potential), self._shared(particles)
        terms = pair_sum(kernel, arrays, shared, cache.pairs, -1 if quantity == "force" else 1)
        return _whole(terms, cache)

    def _force(self, particles: Particles, cache: PairCache) -> Float[Array, "n d"]:
        return jnp.stack(self._sum("force", particles, cache), axis=1)

    def _tail(self, which: str, particles: Particles) -> Array:
        if not self.tail:
            return jnp.zeros((), particles.position.dtype)
        n, d, species = particles.num_particles, particles.dimension, particles.species
        density = n / particles.space.volume
        share = None
        if species is not None and self.potential.species is not None:
            kinds = jnp.arange(self.potential.species)
            counts = particles.sum(species[:, None] == kinds[None])
            share = counts.astype(density.dtype) / n
        return getattr(self._law(density.dtype), which)(density, n, d, share)


@eqx.filter_jit
def _opened(force: Pairwise, particles: Particles, near: Any) -> PairCache:
    """The cache of a new list: the quantum, and whether particles overlap."""
    cache = PairCache(near, None, Faults.none())
    shared, arrays = force._shared(particles), cache.arrays(particles, force.potential)
    size = PairKernel("size", force.cutoff)
    largest = jax.lax.stop_gradient(max_term(size, arrays, shared, cache.pairs))
    largest = particles.space.max(largest)
    clash = ~jnp.isfinite(largest) & jnp.all(jnp.isfinite(particles.position))
    if force.exact:
        cache = PairCache(near, _quantum(force, particles, largest), cache.faults)
    return PairCache(near, cache.quantum, cache.faults.set_if(Fault.OVERLAP, clash))


def _quantum(force: Pairwise, particles: Particles, largest: Array) -> Float[Array, ""]:
    """A power of two, some 2²⁸ or 2⁵⁶ times smaller than the largest pair force."""
    dtype = particles.position.dtype
    if force.quantum is not None:
        mantissa, exponent = jnp.frexp(jax.lax.stop_gradient(force.quantum).astype(dtype))
        return jnp.ldexp(jnp.ones((), dtype), exponent - (mantissa == 0.5).astype(exponent.dtype))
    if force.cutoff is not None:
        # A lattice may start without any force: the potential's own slope counts as well.
        r = jnp.linspace(0.5, 1.0, 33, dtype=dtype) * force.cutoff
        law = force._law(dtype)
        slope = jax.vmap(lambda r: jnp.max(jnp.abs(law.force_over_distance(r * r) * r)))(r)
        steepest = jax.lax.stop_gradient(jnp.max(jnp.where(jnp.isfinite(slope), slope, 0)))
        if force.potential.charged:
            charge = jax.lax.stop_gradient(particles.charge)
            steepest = steepest * particles.space.max(jnp.max(jnp.abs(charge))) ** 2
        largest = jnp.maximum(largest, steepest)
    _, exponent = jnp.frexp(jnp.where(largest > 0, largest, 1))
    return jnp.ldexp(jnp.ones((), dtype), exponent - _BITS[jnp.dtype(dtype).itemsize])


def _whole(terms: Any, cache: PairCache) -> Any:
    """`terms`, or NaN where the list has left pairs out."""
    if cache.neighbors is None:
        return terms
    usable = cache.neighbors.is_complete
    return jax.tree.map(lambda x: jnp.where(usable, x, jnp.nan), terms)


def _table(partners: Int[Array, "p e"], n: int) -> Int[Array, "n e"]:
    """Partners that each particle's row leaves out; n where there are no more."""
    missing = n - partners.shape[0]
    if missing < 0:
        raise ParameterError(f"exclude names particle {n - missing - 1}; there are 0 … {n - 1}")
    table = jnp.pad(partners, ((0, missing), (0, 0)), constant_values=-1)
    return jnp.where(table < 0, n, table)


def _pairs(exclude: Any) -> tuple[Int[Array, "m 2"], Int[Array, "p e"]]:
    """The pairs, and by particle its partners; −1 where there are no more."""
    pairs = np.asarray(exclude)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ShapeError(f"exclude is a list of pairs of integers, [m 2]; got shape {pairs.shape}")
    if pairs.min(initial=0) < 0:
        raise ParameterError(f"exclude names particles by place, from 0; got {pairs.min()}")
    rows: list[list[int]] = [[] for _ in range(int(pairs.max(initial=-1)) + 1)]
    for i, j in pairs.tolist():
        rows[i].append(j)
        rows[j].append(i)
    wide = max(map(len, rows), default=0)
    table = np.full((len(rows), wide), -1, np.int32)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return jnp.asarray(pairs, jnp.int32), jnp.asarray(table)


def _length(name: str, value: Any, above: float | None = None) -> float | None:
    if value is None:
        return None
    number = concrete_value(value)
    if number is None:
        raise ParameterError(
            f"{name} is static (it shapes the program): a number, not a value of a trace"
        )
    number = float(number)
    if not (number > above if above is not None else number >= 0):
        raise ParameterError(f"{name} must be a positive length; got {number}")
    return number
