"""Specimens for the battery: one good term, integrator and observer of each kind, and broken ones."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import (
    AbstractGrowable,
    AbstractTendency,
    Clock,
    StepCount,
    as_parameter,
    cond_for_batch,
    data,
    param,
    replace_fields,
    static,
)
from physkit.geometry import Box, Free, Triclinic
from physkit.integrators import AbstractIntegrator
from physkit.observe import AbstractObserver
from physkit.particles import Particles
from physkit.particles.forces import AbstractExternalForce, AbstractForce
from physkit.particles.forces.potentials import AbstractPairPotential


def irregular_particles(space=None, n=6, d=3, dtype=jnp.float64, seed=0) -> Particles:
    """A few particles without any symmetry in a box of about 3."""
    rng = np.random.default_rng(seed)
    sites = np.stack(np.meshgrid(*[np.arange(2)] * d), -1).reshape(-1, d)[:n] * 1.5 + 0.4
    x = sites + rng.uniform(-0.3, 0.3, sites.shape)
    v = rng.normal(size=x.shape)
    mass = rng.uniform(0.5, 2.0, len(x))
    space = Free() if space is None else space
    return Particles(
        jnp.asarray(x, dtype), jnp.asarray(v, dtype), mass, space, charge=rng.normal(size=len(x))
    )


def rectangular_box() -> Box:
    return Box([3.1, 3.3, 3.7])


def tilted_box() -> Triclinic:
    return Triclinic([[3.1, 0.0, 0.0], [0.9, 3.3, 0.0], [-0.4, 0.7, 3.7]])


# --- pair potentials -----------------------------------------------------------------------------


class AbstractGaussian(AbstractPairPotential):
    """U = A exp(−r²/w²)."""

    height: Float[Array, "..."] = param(1.5)
    width: Float[Array, "..."] = param(0.7)

    def energy(self, r):
        return self.height * jnp.exp(-((r / self.width) ** 2))


class Gaussian(AbstractGaussian):
    """Good."""

    def force_over_distance(self, r2):
        return 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)


class GaussianByDefault(AbstractGaussian):
    """Good: the force comes from the base class, by derivative of the energy."""


class WrongSign(AbstractGaussian):
    def force_over_distance(self, r2):
        return -2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)


class StopsGradient(AbstractGaussian):
    def energy(self, r):
        return self.height * jnp.exp(-((r / jax.lax.stop_gradient(self.width)) ** 2))


class SinglePrecisionInside(AbstractGaussian):
    def energy(self, r):
        x = ((r / self.width) ** 2).astype(jnp.float32)
        return self.height * jnp.exp(-x).astype(r.dtype)


class SinglePrecisionOut(AbstractGaussian):
    def energy(self, r):
        return (self.height * jnp.exp(-((r / self.width) ** 2))).astype(jnp.float32)

    def force_over_distance(self, r2):
        return (2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)).astype(jnp.float32)


class DoublePrecisionOut(AbstractGaussian):
    def energy(self, r):
        return (self.height * jnp.exp(-((r / self.width) ** 2))).astype(jnp.float64)

    def force_over_distance(self, r2):
        u = 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)
        return u.astype(jnp.float64)


class BranchesInPython(AbstractGaussian):
    def energy(self, r):
        if np.all(np.asarray(r) > 0):
            return self.height * jnp.exp(-((r / self.width) ** 2))
        return jnp.zeros_like(r)


class LosesElements(AbstractGaussian):
    def energy(self, r):
        return self.height * jnp.exp(-((jnp.max(r) / self.width) ** 2)) + 0 * r


class NaNGradient(AbstractGaussian):
    def energy(self, r):
        at_edge = jnp.sqrt(jnp.maximum(self.width - self.width, 0))
        return self.height * jnp.exp(-((r / self.width) ** 2)) + at_edge

    def force_over_distance(self, r2):
        return 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)


class StaticNumber(AbstractPairPotential):
    height: Float[Array, "..."] = param(1.5)
    width: float = static(default=0.7)

    def energy(self, r):
        return self.height * jnp.exp(-((r / self.width) ** 2))


class ConsumedInInit(AbstractPairPotential):
    height: Float[Array, "..."] = param()
    width: Float[Array, "..."] = param()
    rate: Float[Array, "..."] = data()

    def __init__(self, height=1.5, width=0.7):
        self.height, self.width = as_parameter(height), as_parameter(width)
        self.rate = jnp.asarray(1 / float(self.width) ** 2)

    def energy(self, r):
        return self.height * jnp.exp(-(r**2) * self.rate)


class IgnoresTables(AbstractGaussian):
    def between(self, i, j):
        first = lambda x: x if x.ndim == 0 else x[0, 0]
        return Gaussian(first(self.height), first(self.width))


GOOD_POTENTIALS = [
    Gaussian,
    GaussianByDefault,
    lambda: Gaussian(jnp.array([[1.0, 0.5], [0.5, 2.0]]), 0.7),
]
BROKEN_POTENTIALS = [
    (WrongSign, r"force_over_distance against −\(dU/dr\)/r"),
    (StopsGradient, r"width'?\]? is exactly 0, but the finite difference is"),
    (SinglePrecisionInside, r"automatic against differences|Taylor"),
    (
        SinglePrecisionOut,
        r"energy of \[\d\] distances: the value is float32\[\d\], expected float64",
    ),
    (DoublePrecisionOut, r"float32: the value is float64\[\d\], expected float32"),
    (BranchesInPython, r"reads the numbers of an array in Python"),
    (LosesElements, r"of an array against a loop"),
    (NaNGradient, r"derivative by .*width.* not finite"),
    (StaticNumber, r"static field StaticNumber.width = 0.7"),
    (ConsumedInInit, r"\.width has no effect.*consumed in __init__"),
    (IgnoresTables, r"between\(i, j\)\.energy of tables"),
]


# --- forces --------------------------------------------------------------------------------------


class AbstractPairForce(AbstractForce):
    """All pairs, U = A exp(−r²/w²)."""

    component: str | None = static(default=None)
    height: Float[Array, ""] = param(1.5)
    width: Float[Array, ""] = param(0.7)
    conserves_momentum: ClassVar[bool] = True

    def separations(self, state):
        p = self.particles(state)
        a, b = jnp.broadcast_arrays(p.position[:, None, :], p.position[None, :, :])
        return p.space.displacement(a, b)

    def energy(self, clock, state, cache=None):
        r2 = jnp.sum(self.separations(state) ** 2, axis=-1)
        u = self.height * jnp.exp(-r2 / self.width**2)
        return 0.5 * (jnp.sum(u) - jnp.sum(jnp.diagonal(u)))

    def virial(self, clock, state, cache=None):
        r = self.separations(state)
        r2 = jnp.sum(r**2, axis=-1)
        f = 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)
        return 0.5 * jnp.einsum("ij,ija,ijb->ab", f, r, r)


class PairForce(AbstractPairForce):
    """Good."""


class WrongSignForce(AbstractPairForce):
    def force(self, clock, state):
        return -super().force(clock, state)


class EnergyTwice(AbstractPairForce):
    """Every pair counted twice in the energy only."""

    def force(self, clock, state):
        return 0.5 * super().force(clock, state)


class BreaksThirdLaw(AbstractPairForce):
    """No counter-force on the first particle, and no energy that could tell."""

    def energy(self, clock, state, cache=None):
        return AbstractForce.energy(self, clock, state, cache)

    def force(self, clock, state):
        r = self.separations(state)
        r2 = jnp.sum(r**2, axis=-1, keepdims=True)
        f = jnp.sum(2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2) * r, axis=1)
        return f.at[0].set(0.5 * f[0])


class DependsOnOrigin(AbstractPairForce):
    """Adds up to zero, but depends on where the particles are."""

    def energy(self, clock, state, cache=None):
        return AbstractForce.energy(self, clock, state, cache)

    def force(self, clock, state):
        x = self.height * self.width * self.particles(state).position
        f = jnp.sin(x)
        return f - jnp.mean(f, axis=0, keepdims=True)


class NoVirial(AbstractPairForce):
    def virial(self, clock, state, cache=None):
        return jnp.zeros((self.particles(state).dimension,) * 2)


class KeepsFirstBox(AbstractPairForce):
    """Its cache is the volume of the box that it was made for; the forces know nothing of it."""

    pressure: Float[Array, ""] = param(50.0)

    def init(self, state):
        return self.particles(state).space.volume

    def __call__(self, clock, state, cache):
        return self.force(clock, state), cache

    def energy(self, clock, state, cache=None):
        volume = self.particles(state).space.volume if cache is None else cache
        return super().energy(clock, state) - self.pressure * volume

    def virial(self, clock, state, cache=None):
        volume = self.particles(state).space.volume if cache is None else cache
        return super().virial(clock, state) + self.pressure * volume * jnp.eye(3)


class ShearStress(AbstractPairForce):
    """What a rectangular box cannot show by its lengths."""

    def virial(self, clock, state, cache=None):
        return super().virial(clock, state) + 0.1 * (1 - jnp.eye(3))


class VirialWithoutMomentum(AbstractPairForce):
    """Says that it does not conserve momentum; its virial is wrong all the same."""

    conserves_momentum: ClassVar[bool] = False

    def virial(self, clock, state, cache=None):
        return 1.001 * super().virial(clock, state)


class VirialFromOutside(AbstractExternalForce):
    component: str | None = static(default=None)
    stiffness: Float[Array, ""] = param(1.5)

    def energy(self, clock, state, cache=None):
        return 0.5 * self.stiffness * jnp.sum(self.particles(state).position ** 2)

    def virial(self, clock, state, cache=None):
        x = self.particles(state).position
        return -self.stiffness * x.T @ x


class AbstractParticleEnergies(AbstractPairForce):
    """Half the energy of a pair to each of its particles, and the heat flux of that."""

    def pairs(self, state):
        r = self.separations(state)
        u = self.height * jnp.exp(-jnp.sum(r**2, axis=-1) / self.width**2)
        return r, u - jnp.diag(jnp.diagonal(u))

    def particle_energies(self, clock, state, cache=None):
        return 0.5 * jnp.sum(self.pairs(state)[1], axis=1)

    def heat_flux(self, clock, state, cache=None):
        r, u = self.pairs(state)
        v = self.particles(state).velocity
        both = jnp.sum(r * (v[:, None] + v[None, :]), axis=-1)
        return 0.25 * jnp.einsum("ij,ijd->d", 2 / self.width**2 * u * both, r)


class ParticleEnergies(AbstractParticleEnergies):
    """Good."""


class EnergiesOfAllPairsTwice(AbstractParticleEnergies):
    def particle_energies(self, clock, state, cache=None):
        return 2 * super().particle_energies(clock, state)


class HeatOfOneOfEachPair(AbstractParticleEnergies):
    """Leaves out what a particle's partner does."""

    def heat_flux(self, clock, state, cache=None):
        r, u = self.pairs(state)
        mine = jnp.sum(r * self.particles(state).velocity[:, None], axis=-1)
        return 0.25 * jnp.einsum("ij,ijd->d", 2 / self.width**2 * u * mine, r)


class FirstIsSpecial(AbstractPairForce):
    """Depends on the order of the particles."""

    def energy(self, clock, state, cache=None):
        r2 = jnp.sum(self.separations(state) ** 2, axis=-1)
        u = self.height * jnp.exp(-r2 / self.width**2)
        return jnp.sum(u[0, 1:])

    def virial(self, clock, state, cache=None):
        r = self.separations(state)[0, 1:]
        r2 = jnp.sum(r**2, axis=-1)
        f = 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)
        return jnp.einsum("i,ia,ib->ab", f, r, r)


class NaNAtZeroDistance(AbstractPairForce):
    """Masks the value at r = 0 but not its derivative."""

    def energy(self, clock, state, cache=None):
        r = jnp.sqrt(jnp.sum(self.separations(state) ** 2, axis=-1))
        u = jnp.where(r > 0, self.height * jnp.exp(-((r / self.width) ** 2)), 0)
        return 0.5 * jnp.sum(u)


class FrozenWidth(AbstractPairForce):
    def force(self, clock, state):
        stopped = PairForce(self.component, self.height, jax.lax.stop_gradient(self.width))
        return stopped.force(clock, state)


class CutOffPosition(AbstractPairForce):
    """Right value, derivative by position cut off: second derivatives are lost."""

    def force(self, clock, state):
        p = self.particles(state)
        stopped = p.replace(position=jax.lax.stop_gradient(p.position))
        return super().force(clock, stopped)


class NarrowsCache(AbstractPairForce):
    """The cache becomes single precision after the first call."""

    def init(self, state):
        return jnp.zeros((), self.particles(state).position.dtype)

    def __call__(self, clock, state, cache):
        return self.force(clock, state), (cache + 1).astype(jnp.float32)


class NeverRecomputesForce(AbstractPairForce):
    """Keeps the first force, however far particles move."""

    def init(self, state):
        return PairForce(self.component, self.height, self.width).force(
            Clock.at(StepCount.of(0), 0.0, 0.01), state
        )

    def __call__(self, clock, state, cache):
        return cache, cache

    def energy(self, clock, state, cache=None):
        return AbstractForce.energy(self, clock, state, cache)


class BranchesOnPosition(AbstractPairForce):
    def force(self, clock, state):
        if float(self.particles(state).position[0, 0]) > 100:
            return 0 * self.particles(state).position
        return super().force(clock, state)


class WrongUnderVmap(AbstractPairForce):
    """Under `vmap` its rule gives every member the force of the first."""

    def force(self, clock, state):
        return _first_of_batch(super().force(clock, state))


class SingleConstant(AbstractPairForce):
    def force(self, clock, state):
        out = super().force(clock, state)
        return out.astype(jnp.float32)


class HidesBoxFromDerivatives(AbstractPairForce):
    """The virial is right, but the box is hidden from derivatives."""

    def separations(self, state):
        p = self.particles(state)
        return AbstractPairForce.separations(self, p.replace(space=jax.lax.stop_gradient(p.space)))


@jax.custom_batching.custom_vmap
def _first_of_batch(x):
    return x


@_first_of_batch.def_vmap
def _(size, batched, x):
    return jnp.broadcast_to(x[:1], x.shape), True


class NearestFew(AbstractGrowable):
    """Indices of partners, at most `capacity` of them; a deliberately simple neighbor list."""

    index: Int[Array, "n k"] = data()
    origin: Float[Array, "n d"] = data()
    required: Int[Array, ""] = data()

    @property
    def capacity(self):
        return self.index.shape[-1]

    def grow_to(self, capacity):
        more = capacity - self.capacity
        pad = jnp.full((*self.index.shape[:-1], more), self.index.shape[-2], self.index.dtype)
        index = jnp.concatenate([self.index, pad], axis=-1)
        return NearestFew(index, self.origin, self.required)


class AbstractListedForce(AbstractPairForce):
    """The pair force through a list of the pairs within `cutoff`, NaN where the list is too short."""

    cutoff: Float[Array, ""] = data(1.3)
    skin: Float[Array, ""] = data(0.1)
    # Two partners are too few from the start: growth is part of what is tested.
    initial_capacity: int = static(default=2)

    def init(self, state):
        p = self.particles(state)
        index = jnp.full((p.num_particles, self.initial_capacity), p.num_particles, jnp.int32)
        return NearestFew(index, jnp.full_like(p.position, jnp.nan), jnp.int32(0))

    def rebuild(self, state, cache):
        p = self.particles(state)
        r2 = jnp.sum(jax.lax.stop_gradient(self.separations(state)) ** 2, axis=-1)
        n, k = p.num_particles, cache.capacity
        near = (r2 < (self.cutoff + self.skin) ** 2) & ~jnp.eye(n, dtype=bool)
        required = jnp.max(jnp.sum(near, axis=1)).astype(jnp.int32)
        order = jnp.argsort(jnp.where(near, r2, jnp.inf), axis=1)[:, :k].astype(jnp.int32)
        order = jnp.pad(order, ((0, 0), (0, max(k - n, 0))), constant_values=n)
        rank = jnp.arange(k)[None]
        index = jnp.where(rank < jnp.sum(near, axis=1)[:, None], order, n)
        return NearestFew(index, p.position, jnp.maximum(cache.required, required))

    def is_stale(self, state, cache):
        p = self.particles(state)
        # `~all(<)`, not `any(>)`: the first origin is NaN, which compares false and so asks for a build.
        distance2 = jnp.sum(p.space.displacement(p.position, cache.origin) ** 2, axis=-1)
        return ~jnp.all(distance2 < (self.skin / 2) ** 2)

    def __call__(self, clock, state, cache):
        cache = cond_for_batch(
            self.is_stale(state, cache), self.rebuild, lambda s, c: c, state, cache
        )
        p = self.particles(state)
        n = p.num_particles
        is_used = cache.index < n
        other = p.position[jnp.minimum(cache.index, n - 1)]  # (particles, partners, dim)
        own = jnp.broadcast_to(p.position[:, None, :], other.shape)
        r = p.space.displacement(own, other)
        r2 = jnp.sum(r**2, axis=-1)
        f = 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)
        f = jnp.where(is_used & (r2 < self.cutoff**2), f, 0)
        total = jnp.sum(f[..., None] * r, axis=1)
        return jnp.where(cache.required > cache.capacity, jnp.nan, total), cache

    def energy(self, clock, state, cache=None):
        r2 = jnp.sum(self.separations(state) ** 2, axis=-1)
        u = jnp.where(r2 < self.cutoff**2, self.height * jnp.exp(-r2 / self.width**2), 0)
        return 0.5 * (jnp.sum(u) - jnp.sum(jnp.diagonal(u)))

    def virial(self, clock, state, cache=None):
        r = self.separations(state)
        r2 = jnp.sum(r**2, axis=-1)
        f = 2 * self.height / self.width**2 * jnp.exp(-r2 / self.width**2)
        return 0.5 * jnp.einsum("ij,ija,ijb->ab", jnp.where(r2 < self.cutoff**2, f, 0), r, r)


class ListedForce(AbstractListedForce):
    """Good, with a cache that grows."""


class NeverRebuilds(AbstractListedForce):
    """Keeps its first list, however far particles move."""

    def is_stale(self, state, cache):
        return ~jnp.all(jnp.isfinite(cache.origin))


GOOD_FORCES = [
    (PairForce, Free),
    (PairForce, rectangular_box),
    (PairForce, tilted_box),
    (ListedForce, rectangular_box),
    (ParticleEnergies, Free),
]
BROKEN_FORCES = [
    (WrongSignForce, Free, r"the force against −∂energy/∂position"),
    (EnergyTwice, Free, r"the force against −∂energy/∂position"),
    (BreaksThirdLaw, Free, r"the sum of all forces"),
    (DependsOnOrigin, Free, r"after translating all particles"),
    (NoVirial, rectangular_box, r"virial against minus the derivative of energy by strain"),
    (KeepsFirstBox, rectangular_box, r"energy with a cache against without, in a box that grew"),
    (ShearStress, rectangular_box, r"derivative of energy by strain \(shear\)"),
    (VirialWithoutMomentum, Free, r"virial against minus the derivative of energy by strain"),
    (VirialFromOutside, Free, r"virial against 0, as of any force from outside"),
    (EnergiesOfAllPairsTwice, Free, r"the sum of particle_energies against the energy"),
    (HeatOfOneOfEachPair, Free, r"heat_flux against Σ x \(F·v \+ dE/dt\)"),
    (FirstIsSpecial, Free, r"particles in another order"),
    (NaNAtZeroDistance, Free, r"∂energy/∂position.* not finite"),
    (FrozenWidth, Free, r"derivative by \['term'\]\.width.* of \['value'\]"),
    (CutOffPosition, Free, r"derivative by \['state'\]\.position.* of \['value'\]"),
    (NarrowsCache, Free, r"cache after a call: the value is float32\[\], expected float64"),
    (NeverRecomputesForce, Free, r"with a carried cache, after a small move"),
    (BranchesOnPosition, Free, r"reads the numbers of an array in Python"),
    (WrongUnderVmap, Free, r"vmap"),
    (SingleConstant, Free, r"against −∂energy/∂position|value is float32"),
    (HidesBoxFromDerivatives, rectangular_box, r"virial|space\.lengths"),
    (NeverRebuilds, rectangular_box, r"with a carried cache, after a squeeze"),
]


# --- tendencies ----------------------------------------------------------------------------------


class Decay(AbstractTendency):
    """Good: two coupled components, da/dt = −k a, db/dt = k a − b."""

    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        flow = self.rate_constant * state["a"]
        return {"a": -flow, "b": flow - state["b"]}


class ReturnsUnknownComponent(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return {"c": -self.rate_constant * state["a"]}


class ReturnsBareArray(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return -self.rate_constant * state["a"]


class WrongShape(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return {"a": -self.rate_constant * state["a"][:, None]}


class ForgetsParameter(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return {"a": -state["a"]}


class StoppedTendency(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return {"a": -self.rate_constant * jax.lax.stop_gradient(state["a"])}


def two_components() -> dict:
    return {"a": jnp.array([1.0, 2.0, 0.5]), "b": jnp.array([0.3, -0.2, 1.1])}


BROKEN_TENDENCIES = [
    (ReturnsUnknownComponent, r"drives \['c'\], but the state has only \['a', 'b'\]"),
    (ReturnsBareArray, r"takes rates by their names"),
    (WrongShape, r"after adding|cannot be added"),
    (ForgetsParameter, r"rate_constant has no effect"),
    (StoppedTendency, r"\['a'\]'?\]?.* is exactly 0, but the finite difference is"),
]


# --- integrators ---------------------------------------------------------------------------------


class AbstractVerlet(AbstractIntegrator):
    """Velocity Verlet in separate methods, to be broken one at a time."""

    force: PairForce

    def prepare(self, state, dt):
        del state
        return 0.5 * dt

    def init(self, plan, clock, state):
        return self.force(clock, state, None)[0]

    def refresh(self, plan, clock, state, aux):
        return self.force(clock, state, None)[0]

    def step(self, plan, clock, state, aux):
        state = state.kick(aux, plan).drift(clock.dt)
        aux = self.force(clock, state, None)[0]
        return state.kick(aux, plan), aux


class Verlet(AbstractVerlet):
    """Good."""


class KicksOnce(AbstractVerlet):
    """Symplectic Euler, of order 1."""

    def step(self, plan, clock, state, aux):
        state = state.kick(aux, 2 * plan).drift(clock.dt)
        return state, self.force(clock, state, None)[0]


class KicksTooStrongly(AbstractVerlet):
    """Converges with order 2, to the motion in another force."""

    def step(self, plan, clock, state, aux):
        return super().step(1.1 * plan, clock, state, aux)


class PlansByPosition(AbstractVerlet):
    def prepare(self, state, dt):
        return 0.5 * dt * (1 + 1e-9 * jnp.mean(state.position))


class NeverRefreshes(AbstractVerlet):
    def refresh(self, plan, clock, state, aux):
        return aux


class CarriesStaleForce(AbstractVerlet):
    """Hands on the force from before the drift."""

    def step(self, plan, clock, state, aux):
        state = state.kick(aux, plan)
        state = state.drift(clock.dt)
        after = self.force(clock, state, None)[0]
        return state.kick(after, plan), aux


class RefreshScalesForce(AbstractVerlet):
    """Refreshing a state that nobody moved changes what comes next."""

    def refresh(self, plan, clock, state, aux):
        return 1.001 * super().refresh(plan, clock, state, aux)


class GrowsAux(AbstractVerlet):
    def step(self, plan, clock, state, aux):
        state, aux = super().step(plan, clock, state, aux)
        return state, (aux, aux)


class NarrowsAux(AbstractVerlet):
    def step(self, plan, clock, state, aux):
        state, aux = super().step(plan, clock, state, aux)
        return state, aux.astype(jnp.float32)


class StopsForce(AbstractVerlet):
    """Derivatives by the force's parameters are cut off."""

    def step(self, plan, clock, state, aux):
        stopped = jax.lax.stop_gradient(self.force)
        state = state.kick(jax.lax.stop_gradient(aux), plan).drift(clock.dt)
        aux = stopped(clock, state, None)[0]
        return state.kick(aux, plan), aux


class AddsFriction(AbstractVerlet):
    """A little friction: not symmetric, though it says so."""

    def step(self, plan, clock, state, aux):
        state, aux = super().step(plan, clock, state, aux)
        return state.replace(velocity=state.velocity * (1 - 1e-6 * jnp.abs(clock.dt))), aux


class GrowsBoxByNoOrder(AbstractVerlet):
    """Particles move as they should, in a box that grows with the root of dt."""

    @property
    def evolves_space(self):
        return True

    def step(self, plan, clock, state, aux):
        growth = 1 + 1e-3 * jnp.sqrt(jnp.abs(clock.dt))
        space = replace_fields(state.space, {"lengths": growth * state.space.lengths})
        return super().step(plan, clock, state.replace(space=space), aux)


class WrongInBatch(AbstractVerlet):
    def step(self, plan, clock, state, aux):
        state, aux = super().step(plan, clock, state, aux)
        return state.replace(velocity=_first_of_batch(state.velocity)), aux


BROKEN_INTEGRATORS = [
    (KicksOnce, r"the error falls with order (0\.[89]|1\.[01])\d?, expected 2 ± 0.2"),
    (KicksTooStrongly, r"the error falls with order -?0\.\d+, expected 2"),
    (PlansByPosition, r"prepare for a state that has evolved"),
    (NeverRefreshes, r"after refresh of a state that somebody moved"),
    (CarriesStaleForce, r"after refreshing a state that nobody moved"),
    (RefreshScalesForce, r"after refreshing a state that nobody moved"),
    (GrowsAux, r"what is carried, after a step: the structure differs"),
    (NarrowsAux, r"what is carried, after a step: the value is float32"),
    (StopsForce, r"force\.height is exactly 0, but the finite difference is"),
    (AddsFriction, r"steps forwards and as many with −dt"),
    (WrongInBatch, r"vmap"),
]


# --- simulations and observers -------------------------------------------------------------------


class ChangesWithEachTrace(AbstractIntegrator):
    """Not a function of its carry: every new program that is traced moves differently."""

    force: PairForce
    num_traces: Any = static(default=())

    def prepare(self, state, dt):
        self.num_traces[0] += 1
        return jnp.asarray(1.0 + 1e-3 * self.num_traces[0])

    def init(self, plan, clock, state):
        return None

    def refresh(self, plan, clock, state, aux):
        return None

    def step(self, plan, clock, state, aux):
        force = self.force(clock, state, None)[0]
        return state.kick(plan * force, clock.dt).drift(clock.dt), aux


class ChangesStateType(AbstractObserver):
    interval: int | None = static(default=1)

    def init(self, snapshot):
        return jnp.zeros((), jnp.float64)

    def __call__(self, snapshot, observer_state):
        x = jnp.sum(snapshot.state.velocity)
        return {"x": x}, (observer_state + x).astype(jnp.float32)


class RunningSum(AbstractObserver):
    """Good, with an observer state."""

    interval: int | None = static(default=1)

    def init(self, snapshot):
        return jnp.zeros((), snapshot.state.velocity.dtype)

    def __call__(self, snapshot, observer_state):
        observer_state = observer_state + jnp.sum(snapshot.state.velocity**2)
        return {"x": observer_state}, observer_state

    def summary(self, observer_state):
        return {"total": observer_state}


class HoldsForce(AbstractObserver):
    force: PairForce
    interval: int | None = static(default=1)

    def __call__(self, snapshot, observer_state):
        return {"energy": self.force.energy(snapshot.clock, snapshot.state)}, observer_state
