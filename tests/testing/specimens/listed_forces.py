"""A force through a list of pairs whose cache grows, and mistakes about that."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import (
    AbstractGrowable,
    cond_for_batch,
    data,
    replace_fields,
    static,
)

from .forces import AbstractPairForce


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


class NeverFits(AbstractListedForce):
    """Wants one partner more than there is space for, whenever the list is made again."""

    def rebuild(self, state, cache):
        made = super().rebuild(state, cache)
        is_first = ~jnp.all(jnp.isfinite(cache.origin))
        required = jnp.where(is_first, made.required, cache.capacity + 1)
        return replace_fields(made, {"required": required.astype(jnp.int32)})
