"""The contract of caches that refer to rows of one device's particles."""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from physkit.core import GROWTH_FACTOR, AbstractGrowable, replace_fields

from .._capacity_rules import capacity_for, round_up_to_eight


class AbstractShardedCache(AbstractGrowable):
    """A cache of one device's particles: a neighbor list, a table of bonds.

    It has several parts, each with a capacity of its own; all grow by the same rule. It refers to rows of
    this device's arrays, and so it is rebuilt whenever particles have changed devices or the arrays have been
    resized.

    - `peak_counts`: for each part the largest count so far.
    - `stale`: whether it must be rebuilt before it is used.
    - `row_blocks`: as of `Ownership`, whose rows it refers to.
    - `part_names`: what messages call the parts, in the order of `peak_counts`.
    - `holds_parameters`: whether it was made of what a term was given, which another one may give otherwise:
      bonds.
    """

    holds_parameters: ClassVar[bool] = False

    peak_counts: eqx.AbstractVar[Int[Array, "*b parts"]]
    stale: eqx.AbstractVar[Bool[Array, "*b"]]
    row_blocks: eqx.AbstractVar[tuple[tuple[int, int], ...]]
    part_names: eqx.AbstractClassVar[tuple[str, ...]]

    @property
    @abc.abstractmethod
    def num_slots(self) -> int:
        """Number of rows of this device's arrays."""

    @property
    @abc.abstractmethod
    def capacities(self) -> tuple[int, ...]:
        """How much fits into each part, in the order of `peak_counts`."""

    @abc.abstractmethod
    def resize(
        self, num_slots: int | None = None, capacities: tuple[int, ...] | None = None
    ) -> "AbstractShardedCache":
        """An empty, stale cache of these sizes; None for the present ones. Host only."""

    def resize_slots(self, num_slots: dict[int, int]) -> "AbstractShardedCache":
        """An empty, stale cache for components whose numbers of slots changed from the keys to the values.

        Host only.
        """
        blocks = tuple((num_slots.get(slots, slots), each) for slots, each in self.row_blocks)
        resized = self.resize(num_slots=sum(slots * each for slots, each in blocks))
        return replace_fields(resized, {"row_blocks": blocks})

    @property
    def required(self) -> Int[Array, "*b"]:
        """How much is missing in the part that lacks most; positive for an overflow."""
        capacities = np.asarray(self.capacities, np.int32)
        capacities = capacities.reshape((1,) * (self.peak_counts.ndim - 1) + (-1,))
        return jnp.max(self.peak_counts - capacities, axis=-1)

    @property
    def capacity(self) -> int:
        # `required` already counts what is missing, of several capacities at once: it is compared to 0.
        return 0

    def grow_to_fit(self, measured: AbstractGrowable) -> tuple["AbstractShardedCache", list[str]]:
        assert isinstance(measured, type(self))
        # All devices run one program, with one capacity: that of the device that needs most.
        peaks = _max_over_devices(measured.peak_counts)
        grown = tuple(
            self.grown_capacity(part, peak) if peak > capacity else capacity
            for part, (peak, capacity) in enumerate(zip(peaks, self.capacities, strict=True))
        )
        events = [
            f"{name} {old} → {new}"
            for name, old, new in zip(self.part_names, self.capacities, grown, strict=True)
            if new != old
        ]
        return (self.resize(capacities=grown), events) if events else (self, [])

    def grown_capacity(self, part: int, peak: int) -> int:
        """The capacity to grow a part to that needed room for `peak`."""
        del part
        return round_up_to_eight(GROWTH_FACTOR * peak)

    def shrink_to_fit(self, measured: "AbstractShardedCache") -> "AbstractShardedCache":
        """This cache, in device layout, shrunk to what `measured`, the cache after a chunk, needed.

        Host only.
        """
        peaks = zip(_max_over_devices(measured.peak_counts), self.capacities, strict=True)
        return self.resize(capacities=tuple(min(capacity_for(peak), now) for peak, now in peaks))

    def invalidate(self) -> "AbstractShardedCache":
        return replace_fields(self, {"stale": jnp.ones_like(self.stale)})


def _max_over_devices(counts: Int[Array, "*b parts"]) -> list[int]:
    numbers = np.asarray(counts)
    return numbers.reshape(-1, numbers.shape[-1]).max(axis=0).tolist()
