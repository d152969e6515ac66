"""A growable cache of one array, for tests of growth and health."""

import jax
import jax.numpy as jnp

from physkit.core import AbstractGrowable, data


class Row(AbstractGrowable):
    entries: jax.Array = data()
    required: jax.Array = data()

    @property
    def capacity(self):
        return self.entries.shape[-1]

    def grow_to(self, capacity):
        width = [(0, 0)] * (self.entries.ndim - 1) + [(0, capacity - self.capacity)]
        return Row(jnp.pad(self.entries, width, constant_values=-1), self.required)


def row(capacity, required):
    return Row(jnp.arange(capacity), jnp.asarray(required))
