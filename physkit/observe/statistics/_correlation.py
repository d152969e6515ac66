"""Correlations in time, averaged over many time origins: mean-square displacement, velocity autocorrelation."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import Frame, Module, ObserverError, PyTree, count_of, data, matmul, static
from physkit.particles import Particles

from .._observer import AbstractObserver, check_interval
from .._selection import mobile_mask, select_particles
from .._snapshot import Snapshot
from ._curve_mean import CurveMean


class CorrelationState(Module):
    """A ring buffer of past samples that serve as time origins, and the mean over all pairs so far.

    - `ring`: arrays `[slots n …]`. `origin`: the number of the sample in each slot; −1 for an empty one.
    - `curve`: the correlation by lag. `spacing`: time between two samples.
    """

    ring: PyTree
    origin: Int[Array, " slots"] = data()
    num_samples: Int[Array, ""] = data()
    curve: CurveMean
    spacing: Float[Array, ""] = data()


class AbstractCorrelation(AbstractObserver):
    """C(l) = ⟨c(x(t), x(t + l))⟩ over particles and all time origins t in the run.

    Every `stride`-th sample is a time origin and is kept until it is `lags` samples old. The memory is
    n · d · lags / stride numbers, which each sample reads once; it does not grow with the run.

    Subclasses say what to record of a sample, and c of two samples.
    """

    interval: eqx.AbstractVar[int]

    lags: eqx.AbstractVar[int]
    component: eqx.AbstractVar[str | None]
    species: eqx.AbstractVar[int | None]
    stride: eqx.AbstractVar[int]
    name: eqx.AbstractVar[str]

    @abc.abstractmethod
    def record(self, particles: Particles) -> PyTree:
        """What a time origin keeps of a sample: arrays `[n …]`."""

    @abc.abstractmethod
    def correlate(self, particles: Particles, now: PyTree, then: PyTree) -> Float[Array, "slots n"]:
        """c per particle, of the sample `now`, `[n …]`, with each time origin in `then`, `[slots n …]`."""

    @property
    def needs_equal_times(self) -> bool:
        return True

    def init(self, snapshot: Snapshot) -> CorrelationState:
        particles = select_particles(snapshot, self.component)
        mobile_mask(particles, self.species)  # raises where there are no species
        record = jax.tree.map(particles.equal_shard, self.record(particles))
        # Origins of ages 0 to `lags`, one every `stride` samples, are in use at once.
        slots = self.lags // self.stride + 1
        dtype = particles.position.dtype
        return CorrelationState(
            ring=jax.tree.map(lambda x: jnp.zeros((slots, *x.shape), x.dtype), record),
            origin=jnp.full(slots, -1, jnp.int32),
            num_samples=jnp.int32(0),
            curve=CurveMean.zero((self.lags + 1,), dtype),
            spacing=(self.interval * snapshot.clock.macro_dt).astype(dtype),
        )

    def __call__(self, snapshot: Snapshot, observer_state: CorrelationState):
        particles = select_particles(snapshot, self.component)
        # Over devices, each keeps the same particles at all times, although they migrate.
        now = jax.tree.map(particles.equal_shard, self.record(particles))
        samples = observer_state.num_samples
        slot = (samples // self.stride) % len(observer_state.origin)
        is_origin = samples % self.stride == 0

        def store(kept: Array, x: Array) -> Array:
            # Select within the slot, not between old and new rings: then XLA writes one slot in place.
            return kept.at[slot].set(jnp.where(is_origin, x, kept[slot]))

        ring = jax.tree.map(store, observer_state.ring, now)
        origin = store(observer_state.origin, samples)

        selected = particles.equal_shard(mobile_mask(particles, self.species))
        num_selected = particles.space.sum(jnp.sum(selected)).astype(observer_state.spacing.dtype)
        products = jnp.where(selected[None], self.correlate(particles, now, ring), 0)
        means = particles.space.sum(jnp.sum(products, axis=1)) / num_selected  # (slots,)

        # Each slot has another origin, so that no lag comes twice. Origins that are too old wait to be
        # overwritten: like empty slots they get an index out of range, whose value the scatter drops.
        age = samples - origin
        dropped = self.lags + 1
        lag = jnp.where((origin >= 0) & (age <= self.lags), age, dropped)
        curve = jnp.zeros(self.lags + 1, means.dtype).at[lag].set(means, mode="drop")
        where = jnp.zeros(self.lags + 1, bool).at[lag].set(True, mode="drop")
        curve = observer_state.curve.plus(curve, where)
        return {}, CorrelationState(ring, origin, samples + 1, curve, observer_state.spacing)

    def summary(self, observer_state: CorrelationState) -> Frame:
        lag = jnp.arange(self.lags + 1, dtype=observer_state.spacing.dtype) * observer_state.spacing
        return {self.name: {"lag": lag, **observer_state.curve.summary()}}


class MeanSquareDisplacement(AbstractCorrelation):
    """Mean-square displacement of the unwrapped paths, over many time origins.

        MSD(l) = ⟨|r(t + l) − r(t)|²⟩

    v² l² at short times; 2 d D l in a liquid at long times; a plateau in a solid.

    Summary, under `name`: `lag` (time), `value`, `error` (from blocks of time), `blocks` and
    `weights`, from which `diffusion_coefficient` gets its error bar. Lags that the run did not reach
    are NaN.

    **Arguments:**

    - `interval`: steps between observations.
    - `lags`: the longest lag, in observations.
    - `component`: which component, where there are several.
    - `species`: only particles of this species. Frozen particles never count.
    - `stride`: observations between time origins; larger needs less memory.
    - `name`: of the summary.

    **Good values:** a run of at least ten times the longest lag.

    **Notes:** positions and crossings of the cell are subtracted separately, so that float32
    does not lose digits to long paths. A drift of the center of mass adds v² l².

    **Reference:** Frenkel & Smit, Understanding Molecular Simulation, 2nd ed., sec. 4.4.
    """

    interval: int = static(converter=check_interval)
    lags: int = static(converter=count_of("lags", ObserverError))
    component: str | None = static(default=None, kw_only=True)
    species: int | None = static(default=None, kw_only=True)
    stride: int = static(default=1, converter=count_of("stride", ObserverError), kw_only=True)
    name: str = static(default="mean_square_displacement", kw_only=True)

    def record(self, particles: Particles) -> PyTree:
        return particles.position, particles.image

    def correlate(self, particles: Particles, now: PyTree, then: PyTree) -> Float[Array, "slots n"]:
        (position, image), (old_position, old_image) = now, then
        displacement = position[None] - old_position  # (slots, particles, dim)
        cell = particles.space.cell(particles.dimension)
        if cell is not None:
            # Integers are subtracted exactly, before they become lengths.
            crossings = (image[None] - old_image).astype(displacement.dtype)
            displacement = displacement + matmul(crossings, cell)
        return jnp.sum(displacement * displacement, axis=-1)


class VelocityAutocorrelation(AbstractCorrelation):
    """Velocity autocorrelation function, over many time origins.

        C(l) = ⟨v(t) · v(t + l)⟩,   C(0) = d k_B T / m

    Decays within a collision time; dips below zero where neighbors bounce a particle back. Its
    integral gives the diffusion coefficient: `green_kubo`.

    Summary, under `name`: `lag` (time), `value`, `error` (from blocks of time), `blocks` and
    `weights`. Lags that the run did not reach are NaN.

    **Arguments:** as of `MeanSquareDisplacement`.

    **Good values:** an interval that resolves the decay, some twentieth of the collision time.

    **Reference:** Frenkel & Smit, Understanding Molecular Simulation, 2nd ed., sec. 4.4.
    """

    interval: int = static(converter=check_interval)
    lags: int = static(converter=count_of("lags", ObserverError))
    component: str | None = static(default=None, kw_only=True)
    species: int | None = static(default=None, kw_only=True)
    stride: int = static(default=1, converter=count_of("stride", ObserverError), kw_only=True)
    name: str = static(default="velocity_autocorrelation", kw_only=True)

    def record(self, particles: Particles) -> PyTree:
        return particles.velocity

    def correlate(self, particles: Particles, now: PyTree, then: PyTree) -> Float[Array, "slots n"]:
        del particles
        return jnp.sum(now[None] * then, axis=-1)
