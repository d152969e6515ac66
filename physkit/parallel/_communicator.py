"""Communicators: the only words in which a program speaks to other devices."""

import abc
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import Module, static


class AbstractComm(Module):
    """What geometry may ask of the devices that a domain is cut over.

    The devices form a grid, one number of them per axis of space. Physics never sees a communicator:
    it asks its space or grid, which asks this one.

    - `shape`: devices per axis; axes beyond are not cut.
    """

    shape: eqx.AbstractVar[tuple[int, ...]]

    @property
    def size(self) -> int:
        """How many devices there are."""
        return math.prod(self.shape)

    def axis_size(self, axis: int) -> int:
        """How many devices there are along an axis of space."""
        return self.shape[axis] if axis < len(self.shape) else 1

    @abc.abstractmethod
    def axis_index(self, axis: int) -> Any:
        """This device's place along an axis, from 0."""

    @abc.abstractmethod
    def ring_shift(self, x: Any, axis: int, by: int) -> Any:
        """`x` of the device `by` places before this one; the last is followed by the first."""

    @abc.abstractmethod
    def psum(self, x: Any, axis: int | None = None) -> Any:
        """The sum of `x` over all devices, or over those in line along one axis, known to each."""

    @abc.abstractmethod
    def pmax(self, x: Any, axis: int | None = None) -> Any:
        """The largest `x` of all devices, or of those in line along one axis, known to each."""

    @abc.abstractmethod
    def all_to_all(self, x: Any, axis: int, split: int, join: int) -> Any:
        """Among the devices in line along `axis`: each cuts its `x` along the array axis `split`, sends
        part i to device i, and joins what it gets along the array axis `join`."""


class SerialComm(AbstractComm):
    """One device: every question answers itself."""

    shape: tuple[int, ...] = static(default=())

    def axis_index(self, axis: int) -> int:
        del axis
        return 0

    def ring_shift(self, x: Any, axis: int, by: int) -> Any:
        del axis, by
        return x

    def psum(self, x: Any, axis: int | None = None) -> Any:
        del axis
        return x

    def pmax(self, x: Any, axis: int | None = None) -> Any:
        del axis
        return x

    def all_to_all(self, x: Any, axis: int, split: int, join: int) -> Any:
        del axis, split, join
        return x


class CartesianComm(AbstractComm):
    """A grid of devices on one mapped axis, which is what `pmap` offers.

    Row-major: the last axis of space counts fastest. (Mapped axes inside one another would say the
    same, but JAX no longer nests `pmap`.)
    """

    shape: tuple[int, ...] = static()
    name: str = static(default="devices")

    def axis_index(self, axis: int) -> Any:
        if self.axis_size(axis) == 1:
            return 0
        after = math.prod(self.shape[axis + 1 :])
        return (jax.lax.axis_index(self.name) // after) % self.shape[axis]

    def ring_shift(self, x: Any, axis: int, by: int) -> Any:
        if self.axis_size(axis) == 1:
            return x
        numbers = np.arange(self.size).reshape(self.shape)
        to = np.roll(numbers, -by, axis)
        pairs = list(zip(numbers.ravel().tolist(), to.ravel().tolist(), strict=True))
        return jax.tree.map(lambda leaf: jax.lax.ppermute(leaf, self.name, pairs), x)

    def psum(self, x: Any, axis: int | None = None) -> Any:
        if axis is not None and self.axis_size(axis) == 1:
            return x
        return jax.lax.psum(x, self.name, axis_index_groups=self._groups(axis))

    def pmax(self, x: Any, axis: int | None = None) -> Any:
        if axis is not None and self.axis_size(axis) == 1:
            return x
        return _largest(x, self.name, self._groups(axis))

    def all_to_all(self, x: Any, axis: int, split: int, join: int) -> Any:
        if self.axis_size(axis) == 1:
            return x
        groups = self._groups(axis)
        return jax.lax.all_to_all(x, self.name, split, join, axis_index_groups=groups, tiled=True)

    def _groups(self, axis: int | None) -> list[list[int]] | None:
        """The numbers of the devices in line along `axis`; None: all are."""
        if axis is None or self.axis_size(axis) == self.size:
            return None
        numbers = np.moveaxis(np.arange(self.size).reshape(self.shape), axis, -1)
        return numbers.reshape(-1, self.shape[axis]).tolist()


class MeshComm(AbstractComm):
    """One named axis per axis of space, which is what `shard_map` offers, and `vmap`s inside one another."""

    shape: tuple[int, ...] = static()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the mesh axes."""
        return tuple("xyz"[: len(self.shape)])

    def axis_index(self, axis: int) -> Any:
        return 0 if self.axis_size(axis) == 1 else jax.lax.axis_index(self.names[axis])

    def ring_shift(self, x: Any, axis: int, by: int) -> Any:
        n = self.axis_size(axis)
        if n == 1:
            return x
        pairs = [(i, (i + by) % n) for i in range(n)]
        return jax.tree.map(lambda leaf: jax.lax.ppermute(leaf, self.names[axis], pairs), x)

    def psum(self, x: Any, axis: int | None = None) -> Any:
        return jax.lax.psum(x, self.names if axis is None else self.names[axis])

    def pmax(self, x: Any, axis: int | None = None) -> Any:
        return _largest(x, self.names if axis is None else self.names[axis], None)

    def all_to_all(self, x: Any, axis: int, split: int, join: int) -> Any:
        if self.axis_size(axis) == 1:
            return x
        return jax.lax.all_to_all(x, self.names[axis], split, join, tiled=True)


def _largest(x: Any, names: Any, groups: Any) -> Any:
    fixed = None if groups is None else tuple(map(tuple, groups))
    return jax.tree.map(lambda leaf: _pmax(names, fixed, jnp.asarray(leaf)), x)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _pmax(names: Any, groups: Any, x: Any) -> Any:
    """`lax.pmax` with a derivative: that of the largest, shared evenly among equals."""
    listed = None if groups is None else [list(group) for group in groups]
    if x.dtype == bool:  # of which not every platform takes the maximum
        return jax.lax.pmax(x.astype(jnp.int32), names, axis_index_groups=listed).astype(bool)
    return jax.lax.pmax(x, names, axis_index_groups=listed)


@_pmax.defjvp
def _(names, groups, primals, tangents):
    (x,), (x_dot,) = primals, tangents
    top = _pmax(names, groups, x)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return top, jnp.zeros(top.shape, jax.dtypes.float0)
    listed = None if groups is None else [list(group) for group in groups]
    total = functools.partial(jax.lax.psum, axis_name=names, axis_index_groups=listed)
    holds = (x == top).astype(x.dtype)
    return top, total(holds / total(holds) * x_dot)
