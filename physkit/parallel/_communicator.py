"""Communicators: the collectives by which an SPMD program exchanges arrays with other devices."""

import abc
import functools
import math
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from physkit.core import Module, PyTree, custom_jvp, static, with_tangent_of

Groups: TypeAlias = tuple[tuple[int, ...], ...]


class AbstractComm(Module):
    """The collectives of a grid of devices over which a domain is sharded.

    Physics never sees a communicator: it asks its space or grid, which asks the communicator.

    - `shape`: devices per axis of space; axes beyond its length are not sharded.
    """

    shape: eqx.AbstractVar[tuple[int, ...]]

    @property
    def size(self) -> int:
        """How many devices there are."""
        return math.prod(self.shape)

    def axis_size(self, axis: int) -> int:
        """Number of devices along an axis of space."""
        return self.shape[axis] if axis < len(self.shape) else 1

    @abc.abstractmethod
    def axis_index(self, axis: int) -> int | Int[Array, ""]:
        """Index of this device along an axis of space, from 0."""

    @abc.abstractmethod
    def ring_shift(self, x: PyTree, axis: int, by: int) -> PyTree:
        """The `x` of the device `by` places before this one along `axis`, on a ring: first follows last."""

    @abc.abstractmethod
    def psum(self, x: PyTree, axis: int | None = None) -> PyTree:
        """The sum of `x` over all devices, or over those in line along one axis, on each of them."""

    @abc.abstractmethod
    def pmax(self, x: PyTree, axis: int | None = None) -> PyTree:
        """The largest `x` of all devices, or of those in line along one axis, on each of them."""

    @abc.abstractmethod
    def all_to_all(self, x: PyTree, axis: int, split: int, join: int) -> PyTree:
        """Transpose among the devices in line along `axis`.

        Each device splits its `x` along the array axis `split`, sends part i to device i, and concatenates
        what it receives along the array axis `join`.
        """


class SerialComm(AbstractComm):
    """One device: every collective is the identity."""

    shape: tuple[int, ...] = static(default=())

    def axis_index(self, axis: int) -> int:
        del axis
        return 0

    def ring_shift(self, x: PyTree, axis: int, by: int) -> PyTree:
        del axis, by
        return x

    def psum(self, x: PyTree, axis: int | None = None) -> PyTree:
        del axis
        return x

    def pmax(self, x: PyTree, axis: int | None = None) -> PyTree:
        del axis
        return x

    def all_to_all(self, x: PyTree, axis: int, split: int, join: int) -> PyTree:
        del axis, split, join
        return x


class CartesianComm(AbstractComm):
    """A grid of devices on a single mapped axis, which is all that `pmap` has.

    Devices are numbered row-major: the last axis of space varies fastest. (JAX no longer nests `pmap`, so
    that there cannot be one mapped axis per axis of space.)
    """

    shape: tuple[int, ...] = static()
    name: str = static(default="devices")

    def axis_index(self, axis: int) -> int | Int[Array, ""]:
        if self.axis_size(axis) == 1:
            return 0
        stride = math.prod(self.shape[axis + 1 :])
        return (jax.lax.axis_index(self.name) // stride) % self.shape[axis]

    def ring_shift(self, x: PyTree, axis: int, by: int) -> PyTree:
        if self.axis_size(axis) == 1:
            return x
        # Numbers of the devices, and of those that each sends to, on the grid of devices.
        sources = np.arange(self.size).reshape(self.shape)
        targets = np.roll(sources, -by, axis)
        pairs = list(zip(sources.ravel().tolist(), targets.ravel().tolist(), strict=True))
        return _ppermute_tree(x, self.name, pairs)

    def psum(self, x: PyTree, axis: int | None = None) -> PyTree:
        if axis is not None and self.axis_size(axis) == 1:
            return x
        return jax.lax.psum(x, self.name, axis_index_groups=self._groups(axis))

    def pmax(self, x: PyTree, axis: int | None = None) -> PyTree:
        if axis is not None and self.axis_size(axis) == 1:
            return x
        return _pmax_tree(x, self.name, self._groups(axis))

    def all_to_all(self, x: PyTree, axis: int, split: int, join: int) -> PyTree:
        if self.axis_size(axis) == 1:
            return x
        groups = self._groups(axis)
        # Tiled: no axis is added or removed, lengths along `split` and `join` change.
        return jax.lax.all_to_all(x, self.name, split, join, axis_index_groups=groups, tiled=True)

    def _groups(self, axis: int | None) -> list[list[int]] | None:
        """Numbers of the devices in line along `axis`, line by line; None if all are in one line."""
        if axis is None or self.axis_size(axis) == self.size:
            return None
        # (lines, devices in line)
        indices = np.moveaxis(np.arange(self.size).reshape(self.shape), axis, -1)
        return indices.reshape(-1, self.shape[axis]).tolist()


class MeshComm(AbstractComm):
    """One named axis per axis of space, which is what `shard_map` and nested `vmap`s offer.

    - `emulated`: whether the axes are those of `vmap`s.
    """

    shape: tuple[int, ...] = static()
    emulated: bool = static(default=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the mesh axes."""
        return tuple("xyz"[: len(self.shape)])

    def axis_index(self, axis: int) -> int | Int[Array, ""]:
        return 0 if self.axis_size(axis) == 1 else jax.lax.axis_index(self.names[axis])

    def ring_shift(self, x: PyTree, axis: int, by: int) -> PyTree:
        n = self.axis_size(axis)
        if n == 1:
            return x
        return _ppermute_tree(x, self.names[axis], [(i, (i + by) % n) for i in range(n)])

    def psum(self, x: PyTree, axis: int | None = None) -> PyTree:
        if axis is not None and self.axis_size(axis) == 1:
            return x
        return jax.lax.psum(x, self.names if axis is None else self.names[axis])

    def pmax(self, x: PyTree, axis: int | None = None) -> PyTree:
        if axis is not None and self.axis_size(axis) == 1:
            return x
        names = self.names if axis is None else self.names[axis]
        if self.emulated:
            return jax.tree.map(lambda leaf: _emulated_pmax(names, jnp.asarray(leaf)), x)
        return _pmax_tree(x, names, None)

    def all_to_all(self, x: PyTree, axis: int, split: int, join: int) -> PyTree:
        if self.axis_size(axis) == 1:
            return x
        return jax.lax.all_to_all(x, self.names[axis], split, join, tiled=True)


def _ppermute_tree(x: PyTree, name: str, pairs: list[tuple[int, int]]) -> PyTree:
    """Send every leaf of `x` by (source, target) `pairs` of devices."""
    return jax.tree.map(functools.partial(jax.lax.ppermute, axis_name=name, perm=pairs), x)


def _pmax_tree(x: PyTree, names: str | tuple[str, ...], groups: list[list[int]] | None) -> PyTree:
    # Tuples, since static arguments of a function with its own derivative must be hashable.
    hashable_groups = None if groups is None else tuple(map(tuple, groups))
    return jax.tree.map(lambda leaf: _pmax(names, hashable_groups, jnp.asarray(leaf)), x)


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _pmax(names: str | tuple[str, ...], groups: Groups | None, x: Array) -> Array:
    """`lax.pmax` with a derivative, which JAX's has not: that of the largest value, split among equals."""
    index_groups = None if groups is None else [list(group) for group in groups]
    # Not every platform reduces booleans by their maximum.
    if x.dtype == bool:
        return jax.lax.pmax(x.astype(jnp.int32), names, axis_index_groups=index_groups).astype(bool)
    return jax.lax.pmax(x, names, axis_index_groups=index_groups)


@_pmax.defjvp
def _pmax_jvp(names, groups, primals, tangents):
    (x,), (x_dot,) = primals, tangents
    largest = _pmax(names, groups, x)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return largest, jnp.zeros(largest.shape, jax.dtypes.float0)
    return largest, _mean_of_largest(names, groups, x, largest, x_dot)


def _emulated_pmax(names: str | tuple[str, ...], x: Array) -> Array:
    """`_pmax` over axes of `vmap`s."""
    largest = _pmax(names, None, jax.lax.stop_gradient(x))
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return largest
    # JAX calls the rule of a function within a loop only after the `vmap`s, where their axes have no names any
    # more. So no rule here may hold a collective: the sum is part of the program, and dropped with what nothing
    # reads where it is not differentiated.
    return with_tangent_of(largest, _mean_of_largest(names, None, x, largest, x))


def _mean_of_largest(
    names: str | tuple[str, ...], groups: Groups | None, x: Array, largest: Array, of: Array
) -> Array:
    """The mean of `of` over the devices where `x` is the largest.

    Σᵢ wᵢ ẋᵢ with equal weights there: as `jnp.max` differentiates over an array's axis.
    """
    index_groups = None if groups is None else [list(group) for group in groups]
    psum = functools.partial(jax.lax.psum, axis_name=names, axis_index_groups=index_groups)
    # To a few roundings: compilers may compute `x` once more than that of which the largest was found.
    rounding = 4 * jnp.finfo(x.dtype).eps * jnp.abs(largest)
    is_largest = (x == largest) | (x >= largest - rounding)
    is_largest = jax.lax.stop_gradient(is_largest).astype(x.dtype)
    return psum(is_largest / psum(is_largest) * of)
