"""The radial distribution function, as a histogram of all pair distances."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    CutoffError,
    Frame,
    ObserverError,
    ParameterError,
    State,
    concrete_value,
    static,
)
from physkit.particles import Particles, device_index, num_devices
from physkit.particles.neighbors import space_numbers

from .._observer import AbstractObserver, check_interval
from .._selection import particles_in, require_volume, select_particles, species_mask
from .._snapshot import Snapshot
from ._curve_mean import CurveMean

_BLOCK_PAIRS = 2**18  # computed at a time, so that temporaries stay in the processor's cache


class RadialDistribution(AbstractObserver):
    """Radial distribution function: density at distance r of a particle over the mean density.

        g(r) = V / N_pairs · ⟨n(r)⟩ / v(r)

    n(r) pairs, each counted once, fall into the shell of volume v(r); N_pairs = N (N − 1)/2, or
    N_a N_b between two species. g = 1 for an ideal gas, in 1, 2 and 3 dimensions. A liquid peaks
    near its particles' diameter and tends to 1; a crystal has separate peaks.

    Summary, under `name`: `r` (middles of the bins), `value`, `error` (from blocks of time),
    `blocks` and `weights` (the blocks).

    **Arguments:**

    - `interval`: steps between observations.
    - `r_max`: largest distance, length. At most the image limit of the space.
    - `bins`: number of bins.
    - `component`: which component, where there are several.
    - `species`: a pair of species `(a, b)`; all particles if left out.
    - `smooth`: divide each pair between the two nearest bins, by its distance from their middles (needs
      half a bin beyond r_max). Plain bins have zero derivative; these are differentiable in the
      positions, at the cost of g being averaged over two bins. On a GPU their sums are added in any order, so
      that last bits may differ from call to call; plain bins are whole numbers.
    - `name`: of the summary.

    **Errors:** `ObserverError` for open axes, bad sizes, or species that are not there;
    `CutoffError` for `r_max` beyond the image limit. Where a trace hides the box, g is NaN beyond the limit.

    **Good values:** bins of 0.02 σ; an interval of tens of steps: each sample measures all N²/2 pairs.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., sec. 8.2.
    """

    interval: int = static()
    r_max: float = static()
    bins: int = static()
    component: str | None = static()
    species: tuple[int, int] | None = static()
    smooth: bool = static()
    name: str = static()

    def __init__(
        self,
        interval: int,
        r_max: ArrayLike,
        bins: int = 100,
        *,
        component: str | None = None,
        species: tuple[int, int] | None = None,
        smooth: bool = False,
        name: str = "radial_distribution",
    ):
        self.interval = check_interval(interval)
        if concrete_value(r_max) is None:
            raise ParameterError("r_max sets the bins and so must be a plain number, not traced")
        self.r_max, self.bins = float(r_max), int(bins)
        if not (math.isfinite(self.r_max) and self.r_max > 0 and self.bins >= 1):
            raise ObserverError(
                f"g(r) needs a finite r_max > 0 and bins ≥ 1; got r_max={r_max}, bins={bins}"
            )
        if species is not None and len(species) != 2:
            raise ObserverError(f"species is a pair (a, b); got {species!r}")
        self.component, self.smooth, self.name = component, smooth, name
        self.species = None if species is None else (int(species[0]), int(species[1]))

    def init(self, snapshot: Snapshot) -> CurveMean:
        particles = select_particles(snapshot, self.component)
        require_volume(particles, "g(r)")
        _num_pairs(particles, self.species)  # raises where there are no species
        limit = concrete_value(particles.space.max_cutoff(particles.dimension))
        if limit is not None:
            self._require_within(float(limit.min()))
        return CurveMean.zero((self.bins,), particles.position.dtype)

    def check_start(self, state: State) -> None:
        particles = particles_in(state, self.component)
        self._require_within(space_numbers(particles.space, particles.dimension).max_cutoff)

    def _require_within(self, limit: float) -> None:
        """**Errors:** `CutoffError` for distances beyond `limit`, the image limit of the box."""
        if self._largest_distance > limit * (1 + 1e-6):
            raise CutoffError(
                f"g(r) up to {self._largest_distance:g} reaches beyond the image limit {limit:g} of the box, "
                "half its smallest height: give a smaller r_max or a larger box"
            )

    def __call__(self, snapshot: Snapshot, observer_state: CurveMean) -> tuple[Frame, CurveMean]:
        particles = select_particles(snapshot, self.component)
        space, d = particles.space, particles.dimension
        dtype = particles.position.dtype
        num_pairs = _num_pairs(particles, self.species)
        counts = self._histogram(particles).astype(dtype)
        shells = jnp.asarray(self._shell_volumes(d), dtype)
        g = counts * (space.volume / num_pairs) / shells
        # The box may shrink during a run, under a barostat: bins beyond its image limit miss pairs.
        limit = space.max_cutoff(d)
        edges = self._middles() + (self._width if self.smooth else self._width / 2)
        g = jnp.where(jnp.asarray(edges, dtype) <= limit * (1 + 1e-5), g, jnp.nan)
        return {}, observer_state.plus(g, jnp.ones(self.bins, bool))

    def summary(self, observer_state: CurveMean) -> Frame:
        curve = observer_state.summary()
        r = jnp.asarray(self._middles(), curve["value"].dtype)
        return {self.name: {"r": r, **curve}}

    @property
    def _width(self) -> float:
        return self.r_max / self.bins

    @property
    def _largest_distance(self) -> float:
        """Of pairs that count: the last of the smooth bins has half of its weight beyond `r_max`."""
        return self.r_max + (self._width / 2 if self.smooth else 0.0)

    def _middles(self) -> np.ndarray:
        return (np.arange(self.bins) + 0.5) * self._width

    def _shell_volumes(self, d: int) -> np.ndarray:
        """∫ w(r) dV of each bin's weight w: constant over one bin's width, or a hat function over two."""
        r, h = self._middles(), self._width
        surface = {1: 2.0, 2: 2 * np.pi, 3: 4 * np.pi}[d]
        # In 3-D ∫ w(s) s² ds = h (r² + second moment of w): h²/12 of a constant, h²/6 of a hat.
        curvature = 0 if d < 3 else h**2 / (6 if self.smooth else 12)
        shells = surface * h * (r ** (d - 1) + curvature)
        if self.smooth:  # less the part of the first hat at r < 0, where no pairs are
            shells[0] -= surface * h**d * {1: 1 / 8, 2: -1 / 48, 3: 1 / 192}[d]
        return shells

    def _histogram(self, particles: Particles) -> Array:
        """Pairs per bin: exact integers, or sums of weights where smooth."""
        n, d, dtype = particles.num_particles, particles.dimension, particles.position.dtype
        # Pairs (i, i + s) for shifts s = 1 … n/2 are all pairs once; the last shift of an even n
        # would count each pair twice. Blocks of shifts keep the temporaries small.
        half = n // 2
        block = max(1, min(half, _BLOCK_PAIRS // max(n, 1)))
        # Over devices, each takes every num_devices-th block of shifts, of the particles of the whole domain.
        stride = block * num_devices(particles)
        num_blocks = -(-half // stride)
        position = particles.all_rows(particles.position)
        i = jnp.arange(n, dtype=jnp.int32)
        # An array per axis, as the minimum image takes them.
        columns = [position[:, k] for k in range(d)]
        if self.species is not None:
            in_a, in_b = (particles.all_rows(species_mask(particles, s)) for s in self.species)

        def count_block(total: Array, first: Int[Array, ""]) -> tuple[Array, None]:
            shift = first + jnp.arange(block, dtype=jnp.int32)[:, None]
            j = (i[None] + shift) % n  # (shifts, particles)
            parts = particles.space.minimum_image(tuple(x[None] - x[j] for x in columns))
            square = sum((p * p for p in parts[1:]), parts[0] * parts[0])
            # The last block may go beyond the last shift.
            counted = (shift <= half) & ((2 * shift != n) | (2 * i[None] < n))
            if self.species is not None:
                counted = counted & ((in_a[None] & in_b[j]) | (in_b[None] & in_a[j]))
            return total + self._bin(square, counted, dtype), None

        zero = jnp.zeros(self.bins, dtype if self.smooth else jnp.int32)
        starts = 1 + stride * jnp.arange(num_blocks, dtype=jnp.int32)
        if num_devices(particles) > 1:
            starts = starts + block * jnp.asarray(device_index(particles), jnp.int32)
        return particles.space.sum(jax.lax.scan(count_block, zero, starts)[0])

    def _bin(
        self,
        square: Float[Array, "shifts n"],
        counted: Bool[Array, "shifts n"],
        dtype: DTypeLike,
    ) -> Array:
        """The histogram of the distances whose squares these are, of pairs that are `counted`."""
        # √ has an infinite derivative at 0: take it of 1 there, so that no NaN reaches the cotangents.
        is_regular = counted & (square > 0)
        u = jnp.sqrt(jnp.where(is_regular, square, 1)) / self._width
        u = jnp.where(is_regular, u, 0)
        if not self.smooth:
            # Out of range for pairs that do not count, and for those beyond r_max: the scatter drops both.
            bin = jnp.where(counted, u.astype(jnp.int32), self.bins).reshape(-1)
            return jnp.zeros(self.bins, jnp.int32).at[bin].add(1, mode="drop")
        low = jnp.floor(u - 0.5)  # the bin whose middle is below the distance
        upper_weight = u - 0.5 - low
        empty = jnp.zeros(self.bins + 1, dtype)
        # Shifted by one: below the first middle the lower bin is −1, which would mean the last one.
        index = jnp.where(counted, low.astype(jnp.int32) + 1, self.bins + 1)
        lower = empty.at[index.reshape(-1)].add((1 - upper_weight).reshape(-1), mode="drop")
        index = jnp.where(counted, index + 1, self.bins + 1)
        return lower.at[index.reshape(-1)].add(upper_weight.reshape(-1), mode="drop")[1:]


def _num_pairs(particles: Particles, species: tuple[int, int] | None) -> Float[Array, ""]:
    """The number of pairs, each counted once."""
    dtype = particles.position.dtype
    if species is None:
        n = particles.num_particles  # a Python integer: n² does not overflow
        return jnp.asarray(n * (n - 1) / 2, dtype)
    a, b = (particles.sum(species_mask(particles, s)).astype(dtype) for s in species)
    return a * b if species[0] != species[1] else a * (a - 1) / 2
