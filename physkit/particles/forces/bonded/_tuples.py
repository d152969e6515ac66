"""Pairs, triples, … of particles that are bonded: gathered and summed without a scatter."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import Module, ParameterError, ShapeError, concrete_value, data, linear_call

from ..._particles import Particles

Tables = tuple[Int[Array, "m k"], Int[Array, "n s"]]


class Tuples(Module):
    """Which particles are bonded to one another, and for every particle where it is named.

        y_{km} = x_{p(m,k)},   x̄_i = Σ_{p(m,k) = i} ȳ_{km}

    Each of the two maps is the other's transpose, and both are gathers: what is made of `gather` and
    `sum_by_particle` has forces, gradients and Hessians without a scatter.

    **Arguments:**

    - `places`: `[m k]` whole numbers, places in the particle arrays.
    - `slots`: `[n s]`, for every particle where it is named, counted through the first of all tuples, the
      second, …; m·k where it is named no more.

    **Errors:** `ShapeError`, `ParameterError` for places that are no such numbers.

    **Notes:** one row of the table per particle, as long as the particle most often named needs.
    """

    places: Int[Array, "m k"] = data()
    slots: Int[Array, "n s"] = data()

    @staticmethod
    def of(places: Any, width: int, name: str) -> "Tuples":
        """Tuples of `width` places each; `name` is what messages call them."""
        numbers = _as_places(places, width, name)
        return Tuples(jnp.asarray(numbers), jnp.asarray(_slots(numbers)))

    def gather(self, x: Float[Array, "n d"]) -> Float[Array, "k m d"]:
        """x of the first, second, … of all tuples."""
        return linear_call(_Gather(), _Sum(x.shape[0]), (self.places, self.slots), x)

    def sum_by_particle(self, y: Float[Array, "k m d"], count: int) -> Float[Array, "n d"]:
        """For each of `count` particles the sum of what its tuples hold for it."""
        return linear_call(_Sum(count), _Gather(), (self.places, self.slots), y)

    def require_inside(self, particles: Particles, name: str) -> None:
        """**Errors:** `ParameterError` where places beyond the last particle are named."""
        needed = self.slots.shape[0]
        if needed > particles.num_particles:
            raise ParameterError(
                f"{name} name particle {needed - 1}, but there are only {particles.num_particles} "
                "(from 0)"
            )

    # --- as `ShardedTuples` over devices -----------------------------------------------------------

    def positions(self, particles: Particles) -> Float[Array, "k m d"]:
        """Positions of the first, second, … of these tuples."""
        return self.gather(particles.position)

    def sum_forces(self, y: Float[Array, "k m d"], particles: Particles) -> Float[Array, "n d"]:
        """For each particle the sum of the forces that its tuples hold for it."""
        return self.sum_by_particle(y, particles.num_slots)

    def local_parameters(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The parameters of these tuples, from one for all or those of all."""
        return x

    def weight_by_ownership(self, x: Float[Array, "m ..."]) -> Float[Array, "m ..."]:
        """`x` by tuple, so that a sum over all devices counts every tuple once."""
        return x


@dataclass(frozen=True)
class _Gather:
    def __call__(self, tables: Tables, x: Float[Array, "rows d"]) -> Float[Array, "k m d"]:
        return x.at[tables[0].T].get(mode="promise_in_bounds")


@dataclass(frozen=True)
class _Sum:
    count: int

    def __call__(self, tables: Tables, y: Float[Array, "k m d"]) -> Float[Array, "rows d"]:
        k, m, d = y.shape
        rows = jnp.concatenate([y.reshape(k * m, d), jnp.zeros((1, d), y.dtype)])
        total = jnp.sum(rows.at[tables[1]].get(mode="promise_in_bounds"), axis=1)
        return jnp.pad(total, ((0, self.count - total.shape[0]), (0, 0)))


def _slots(places: np.ndarray) -> np.ndarray:
    """Per particle where it is named; as many slots as needed."""
    named = places.T.ravel()
    count = int(named.max(initial=-1)) + 1
    order = np.argsort(named, kind="stable")
    starts = np.searchsorted(named[order], np.arange(count))
    column = np.arange(named.size) - starts[named[order]]
    slots = np.full((count, int(column.max(initial=-1)) + 1), named.size, np.int32)
    slots[named[order], column] = order
    return slots


def _as_places(value: Any, width: int, name: str) -> np.ndarray:
    """`value` as a host array `[m width]` of distinct places per row."""
    numbers = concrete_value(value)
    if numbers is None:
        raise ParameterError(f"{name} must be known numbers, not traced: build them outside of jit")
    if numbers.size == 0:
        numbers = np.zeros((0, width), np.int32)
    if numbers.ndim != 2 or numbers.shape[1] != width:
        raise ShapeError(f"{name} must be [m {width}]; got shape {numbers.shape}")
    if not np.issubdtype(numbers.dtype, np.integer) or numbers.min(initial=0) < 0:
        raise ParameterError(f"{name} are places in the particle arrays: whole numbers from 0")
    ordered = np.sort(numbers, axis=1)
    doubled = np.any(ordered[:, 1:] == ordered[:, :-1], axis=1)
    if np.any(doubled):
        worst = int(np.argmax(doubled))
        raise ParameterError(
            f"{name}[{worst}] = {numbers[worst].tolist()} joins a particle to itself"
        )
    return numbers.astype(np.int32)
