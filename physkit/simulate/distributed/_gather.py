"""Gathering: the parts that devices hold, put together to the arrays that one device would have.

How an array is sharded is not declared but told from shapes, and where shapes leave several ways, from numbers:
so any array that an observer returns can be recorded over devices.
"""

import itertools
from collections.abc import Iterator
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from physkit.core import (
    AbstractComponent,
    DeclarationError,
    ObserverError,
    PyTree,
    State,
    concrete_value,
    is_random_key,
    poison_where,
)
from physkit.geometry import AXES, concatenate_blocks
from physkit.parallel import addressable_rows, gather_to_host

from ._part_results import SUMS_OVER_THE_DOMAIN

# For each array axis that is sharded: (array axis, axis of space, whether neighbors share a layer).
Layout: TypeAlias = tuple[tuple[int, int, bool], ...]
AnyArray: TypeAlias = Array | np.ndarray
Shaped: TypeAlias = jax.ShapeDtypeStruct | Array | np.ndarray  # anything with a shape and a dtype
# Of the largest number: replicated results of reductions may differ by their last bits from device to device.
_REPLICATION_TOLERANCE = 1e-6


def gather(parts: PyTree, whole: PyTree, devices: tuple[int, ...], time_axes: int) -> PyTree:
    """Put `parts`, in device layout, together to the shapes of `whole`.

    A part with the shape of the whole is replicated. A part that is shorter, by a factor of the number of
    devices along an axis, is a block.

    **Arguments:**

    - `parts`: arrays `[devices, time …, …]`.
    - `whole`: shapes of one instant on one device, without axes of devices and time.
    - `time_axes`: how many axes of time the parts have.

    **Errors:** `ObserverError` for replicated arrays that differ from device to device, and for shapes that
    fit neither. Inside a trace, where nothing can raise, the former become NaN; `differs_across_devices` is
    their fault bit.
    """

    def gather_one(path: tuple, part: AnyArray, shape: Shaped) -> AnyArray:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        return _gather_leaf(part, tuple(shape.shape), devices, time_axes, name)

    return jax.tree_util.tree_map_with_path(gather_one, parts, whole)


def _gather_leaf(
    x: AnyArray, whole: tuple[int, ...], devices: tuple[int, ...], time_axes: int, name: str
) -> AnyArray:
    part = x.shape[1 + time_axes :]  # without the axes of devices and time
    if part == whole:
        # Random keys cannot be compared as numbers.
        numbers = None if is_random_key(x) else concrete_value(x)
        if numbers is None:
            return _poison_unless_replicated(x)
        if not _is_replicated(numbers):
            raise ObserverError(f"{name!r} differs from device to device: {SUMS_OVER_THE_DOMAIN}")
        return x[0]
    layouts = list(_layouts(part, whole, devices))
    if not layouts:
        raise ObserverError(
            f"{name!r} has shape {part} on each of {devices} devices and {whole} on one: record "
            "fields, particles (Positions(), Velocities(), particles.all_rows(x)), or sums over the domain"
        )
    if len(layouts) > 1:
        layouts = _consistent_layouts(x, layouts, devices, name)
    return _assemble(x, layouts[0], devices, time_axes)


def find_layout(
    x: AnyArray, whole: tuple[int, ...], devices: tuple[int, ...], time_axes: int, name: str
) -> Layout:
    """How the blocks of `x` make up `whole`; () where it is not sharded."""
    part = x.shape[1 + time_axes :]
    layouts = [] if part == whole else list(_layouts(part, whole, devices))
    if len(layouts) > 1:
        layouts = _consistent_layouts(gather_to_host(x), layouts, devices, name)
    return layouts[0] if layouts else ()


def is_part_shape(part: tuple[int, ...], whole: tuple[int, ...], devices: tuple[int, ...]) -> bool:
    """Whether `part` may be the shape of a device's part of an array that has shape `whole` on one device."""
    return part == whole or any(True for _ in _layouts(part, whole, devices))


def unique_layout(
    part: tuple[int, ...], whole: tuple[int, ...], devices: tuple[int, ...]
) -> Layout:
    """How blocks of shape `part` make up `whole`, told from the shapes alone.

    **Errors:** `ObserverError` where they do not, or could do so in several ways.
    """
    layouts = list(_layouts(part, whole, devices))
    if len(layouts) != 1:
        raise ObserverError(
            f"shape {whole} on one device, {part} on each of {devices}"
            + (", which could be sharded in several ways" if layouts else "")
        )
    return layouts[0]


def differs_across_devices(parts: PyTree, whole: PyTree, time_axes: int) -> Bool[Array, ""]:
    """Whether any replicated array differs from device to device (traceable)."""
    pairs = zip(jax.tree.leaves(parts), jax.tree.leaves(whole), strict=True)
    replicated = [
        _is_replicated_traced(x)
        for x, shape in pairs
        if x.shape[1 + time_axes :] == tuple(shape.shape)
    ]
    return ~jnp.all(jnp.stack(replicated)) if replicated else jnp.array(False)


def _poison_unless_replicated(x: AnyArray) -> AnyArray:
    """The row of the first device; NaN where another device has other numbers."""
    return poison_where(x[0], ~_is_replicated_traced(x))


def _is_replicated_traced(x: AnyArray) -> Bool[Array, ""]:
    """`_is_replicated` inside a trace."""
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
        return jnp.array(True)
    x = jax.lax.stop_gradient(x)  # a comparison has no derivative, and its maximum must not get one
    first = x[:1]
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.all(x == first)
    size = jnp.max(jnp.where(jnp.isfinite(x), jnp.abs(x), 0), initial=0)
    same = (x == first) | (jnp.isnan(x) & jnp.isnan(first))
    return jnp.all(same | (jnp.abs(x - first) <= _REPLICATION_TOLERANCE * size))


def replicated_leaves(state: State, whole: State) -> dict[str, tuple[AnyArray, Shaped]]:
    """The replicated arrays of a state in device layout, and their shapes, by name.

    Those are the arrays that have the same shape on each device as in the whole domain.
    """

    # Particles are left out: a device's slots may by chance be as many as all particles.
    def is_of_device(x: PyTree) -> bool:
        return isinstance(x, AbstractComponent) and x.is_of_device

    flat, _ = jax.tree_util.tree_flatten_with_path(state, is_leaf=is_of_device)
    replicated = {}
    for (path, x), shape in zip(flat, jax.tree.leaves(whole, is_leaf=is_of_device), strict=True):
        is_numbers = eqx.is_array(x) and not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended)
        if is_numbers and x.shape[1:] == shape.shape:
            replicated[jax.tree_util.keystr(path, simple=True, separator=".")] = x, shape
    return replicated


def require_replicated(state: State, whole: State) -> None:
    """Check that `replicated_leaves` are equal on all devices; each process compares those of its own.

    **Errors:** `DeclarationError` names what differs.
    """
    for name, (x, _) in replicated_leaves(state, whole).items():
        if not _is_replicated(addressable_rows(x)[1]):
            raise DeclarationError(
                f"{name or 'a number'} of the state differs from device to device, where it should be one for "
                "the whole domain: what moves it must be sums over the domain (field.mean(), grid.sum(x), "
                "particles.sum(x)), not over a device's part"
            )


def _is_replicated(x: AnyArray) -> bool:
    """Whether all devices have the same numbers, up to rounding."""
    if not np.issubdtype(x.dtype, np.inexact):
        return bool((x == x[:1]).all())
    # NaN counts as equal to NaN: a diverged run is reported as such, not as one that is not replicated.
    size = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
    return bool(np.allclose(x, x[:1], rtol=0, atol=_REPLICATION_TOLERANCE * size, equal_nan=True))


def _layouts(
    part: tuple[int, ...], whole: tuple[int, ...], devices: tuple[int, ...]
) -> Iterator[Layout]:
    """The ways in which blocks of shape `part` can make up `whole`.

    Array axes are matched with axes of space in increasing order: no layout transposes.
    """
    if len(part) != len(whole):
        return
    sharded = [k for k, (a, b) in enumerate(zip(part, whole)) if a != b]
    several = [k for k, p in enumerate(devices) if p > 1]
    for chosen in itertools.combinations(several, len(sharded)):
        layout = []
        for axis, k in zip(sharded, chosen):
            a, b, p = part[axis], whole[axis], devices[k]
            # Points that include the walls: neighboring blocks overlap in one layer, (a − 1)·p + 1 in all.
            shares_layer = a != 1 and (a - 1) * p + 1 == b
            if a * p == b or shares_layer:
                layout.append((axis, k, a * p != b))
        if len(layout) == len(sharded):
            yield tuple(layout)


def _consistent_layouts(
    x: AnyArray, layouts: list[Layout], devices: tuple[int, ...], name: str
) -> list[Layout]:
    """Of several layouts, those with equal numbers on all devices along each axis that is not sharded."""
    numbers = concrete_value(x)
    if numbers is not None:
        grid = numbers.reshape(*devices, *numbers.shape[1:])  # one axis for each axis of space
        consistent = []
        for layout in layouts:
            first = grid
            for k in set(range(len(devices))) - {k for _, k, _ in layout}:
                first = np.take(first, [0], axis=k)
            if np.allclose(grid, first, rtol=1e-6, atol=0, equal_nan=True):
                consistent.append(layout)
        if consistent:
            return consistent
    raise ObserverError(
        f"which of the axes {', '.join(AXES[: len(devices)])} the blocks of {name!r} lie along cannot be "
        "told from their shapes: record the field itself, or take another grid of devices"
    )


def _assemble(x: AnyArray, layout: Layout, devices: tuple[int, ...], time_axes: int) -> AnyArray:
    """One array from blocks; along axes of space that are not sharded, the first device's block."""
    x = x.reshape(*devices, *x.shape[1:])
    sharded_axes = {k for _, k, _ in layout}
    for k in reversed(
        range(len(devices))
    ):  # from the last, so that earlier axes keep their numbers
        if k not in sharded_axes:
            x = x.take(0, axis=k)
    for number, (axis, _, shares_layer) in enumerate(layout):
        # (axes of devices left …, time …, array axes …): merge the first into its array axis.
        axes_left = len(layout) - number
        x = concatenate_blocks(x, axes_left + time_axes + axis, shares_layer)
    return x
