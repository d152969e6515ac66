"""Pairs, triples, … of bonded particles: tables that gather and sum without a scatter."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    Module,
    ParameterError,
    ShapeError,
    as_device_array,
    barrier_on_the_way_back,
    concrete_value,
    data,
    linear_call,
)

from ..._arguments import Numbers
from ..._particles import Particles

Tables = tuple[Int[Array, "m k"], Int[Array, "n s"]]


class Tuples(Module):
    """Which particles are bonded to one another, and for every particle the entries that name it.

        y_{km} = x_{p(m,k)},   x̄_i = Σ_{p(m,k) = i} ȳ_{km}

    Each of the two maps is the other's transpose, and both are gathers: forces that are made of `gather` and
    `sum_by_particle` have no scatter, nor have their gradients and Hessians.

    **Arguments:**

    - `places`: `[m k]` whole numbers, indices into the particle arrays.
    - `slots`: `[n s]`, for every particle the entries that name it. Entries are counted through the first
      members of all tuples, then the second, …: member k of tuple m is entry k·m_total + m. Where there are
      no more, the number of all entries.

    **Errors:** `ShapeError`, `ParameterError` for places that are no such numbers.

    **Notes:** all rows of `slots` are as long as the particle that is named most often needs.
    """

    places: Int[Array, "m k"] = data()
    slots: Int[Array, "n s"] = data()

    @staticmethod
    def of(places: Numbers, width: int, name: str) -> "Tuples":
        """Tuples of `width` places each; `name` is what messages call them."""
        numbers = as_places(places, width, name)
        return Tuples(as_device_array(numbers), as_device_array(_entries_by_particle(numbers)))

    def gather(self, x: Float[Array, "n d"]) -> Float[Array, "k m d"]:
        """x of the first, second, … members of all tuples."""
        members = linear_call(_Gather(), _Sum(x.shape[0]), (self.places, self.slots), x)
        # Their cotangents, long formulas, once for each entry and not wherever a particle adds it up.
        return barrier_on_the_way_back(members)

    def sum_by_particle(self, y: Float[Array, "k m d"], count: int) -> Float[Array, "n d"]:
        """For each of `count` particles the sum over the entries that name it."""
        return linear_call(_Sum(count), _Gather(), (self.places, self.slots), y)

    def require_inside(self, particles: Particles, name: str) -> None:
        """**Errors:** `ParameterError` where places beyond the last particle are named."""
        needed = self.slots.shape[0]
        if needed > particles.num_particles:
            raise ParameterError(
                f"{name} name particle {needed - 1}, but there are only {particles.num_particles} "
                "(from 0)"
            )

    # --- the interface that `ShardedTuples` has over devices ---------------------------------------

    def members(self, x: Float[Array, "n d"], particles: Particles) -> Float[Array, "k m d"]:
        """x of the first, second, … members of these tuples, from x of all particles."""
        del particles
        return self.gather(x)

    def member_integers(self, x: Int[Array, " n"], particles: Particles) -> Int[Array, "k m"]:
        """The same for whole numbers, which have no derivative."""
        del particles
        return x[self.places.T]

    def sum_forces(self, y: Float[Array, "k m d"], particles: Particles) -> Float[Array, "n d"]:
        """The force on each particle, from the forces on the members of tuples."""
        return self.sum_by_particle(y, particles.num_slots)

    def local_parameters(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """The parameters of these tuples, from one for all tuples or one for each."""
        return x

    def local_integers(self, x: Int[Array, " m"]) -> Int[Array, " m"]:
        """The same for whole numbers, which have no derivative."""
        return x

    @property
    def is_used(self) -> Bool[Array, " m"]:
        """Which of these are tuples at all; the rest fills arrays."""
        return jnp.ones(self.places.shape[0], bool)

    def weight_by_ownership(self, x: Float[Array, "m ..."]) -> Float[Array, "m ..."]:
        """`x` by tuple, weighted so that a sum over all devices counts every tuple once."""
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
        # A last row of zeros, which unused entries of the table read.
        rows = jnp.concatenate([y.reshape(k * m, d), jnp.zeros((1, d), y.dtype)])
        total = jnp.sum(rows.at[tables[1]].get(mode="promise_in_bounds"), axis=1)
        # The table ends with the last particle that is named.
        return jnp.pad(total, ((0, self.count - total.shape[0]), (0, 0)))


def _entries_by_particle(places: np.ndarray) -> np.ndarray:
    """The entries that name each particle, in rows as long as needed. Host only."""
    particle_of_entry = places.T.ravel()
    count = int(particle_of_entry.max(initial=-1)) + 1
    order = np.argsort(particle_of_entry, kind="stable")
    # Sorted by particle, its entries are in a run; their places within the run are the columns.
    starts = np.searchsorted(particle_of_entry[order], np.arange(count))
    column = np.arange(particle_of_entry.size) - starts[particle_of_entry[order]]
    slots = np.full((count, int(column.max(initial=-1)) + 1), particle_of_entry.size, np.int32)
    slots[particle_of_entry[order], column] = order
    return slots


def as_places(value: Numbers, width: int, name: str) -> np.ndarray:
    """`value` as a host array `[m width]` of distinct places per row."""
    numbers = concrete_value(value)
    if numbers is None:
        raise ParameterError(f"{name} must be known numbers, not traced: build them outside of jit")
    # No tuples at all, `[]`: without a second axis to check.
    if numbers.size == 0:
        numbers = np.zeros((0, width), np.int32)
    if numbers.ndim != 2 or numbers.shape[1] != width:
        raise ShapeError(f"{name} must be [m {width}]; got shape {numbers.shape}")
    if not np.issubdtype(numbers.dtype, np.integer) or numbers.min(initial=0) < 0:
        raise ParameterError(f"{name} are places in the particle arrays: whole numbers from 0")
    ordered = np.sort(numbers, axis=1)
    has_repeat = np.any(ordered[:, 1:] == ordered[:, :-1], axis=1)
    if np.any(has_repeat):
        worst = int(np.argmax(has_repeat))
        raise ParameterError(
            f"{name}[{worst}] = {numbers[worst].tolist()} joins a particle to itself"
        )
    return numbers.astype(np.int32)
