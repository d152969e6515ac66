"""Blocks: how arrays on a grid are cut over devices, and put together again.

Where points sit on the faces of cells along an axis with walls, there is one more of them than of
cells; then every block has the faces at both its ends, and neighbors hold the one between them both.
"""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ShapeError

from ..spaces._location import AXES

Shared = tuple[bool, ...]  # per axis of space: whether neighbors share a layer of points


def require_divisible(shape: tuple[int, ...], devices: tuple[int, ...]) -> None:
    """**Errors:** `ShapeError` where a grid of devices does not divide the grid of cells."""
    if len(devices) > len(shape):
        raise ShapeError(
            f"devices={devices} cuts {len(devices)} axes; the grid of {shape} cells has {len(shape)}"
        )
    for k, (n, p) in enumerate(zip(shape, devices)):
        if n % p:
            near = [q for q in range(1, n + 1) if n % q == 0 and q <= 2 * p]
            raise ShapeError(
                f"{n} cells along {AXES[k]} cannot be cut into {p} equal blocks; there, take "
                f"{', '.join(map(str, near))} devices, or another number of cells"
            )


def shard_array(x: Array, devices: tuple[int, ...], shared: Shared) -> Array:
    """`[..., *points]` → `[device, ..., *points of a block]`, devices row-major."""
    d = len(shared)
    counts = (*devices, *(1,) * (d - len(devices)))
    for k in reversed(range(d)):  # each cut adds a leading axis: the last cut comes out first
        x = _cut_axis(x, x.ndim - d + k, counts[k], shared[k])
    return x.reshape(math.prod(devices), *x.shape[d:])


def unshard_array(x: Array, devices: tuple[int, ...], shared: Shared) -> Array:
    """`[device, ..., *points of a block]` → `[..., *points]`."""
    d = len(shared)
    counts = (*devices, *(1,) * (d - len(devices)))
    x = x.reshape(*counts, *x.shape[1:])
    for k in range(d):  # the first leading axis is that of the first axis of space left
        x = concatenate_blocks(x, x.ndim - d + k, shared[k])
    return x


def _cut_axis(x: Array, axis: int, count: int, shared: bool) -> Array:
    n = (x.shape[axis] - shared) // count
    if not shared:
        x = x.reshape(*x.shape[:axis], count, n, *x.shape[axis + 1 :])
        return jnp.moveaxis(x, axis, 0)
    ends = [slice(i * n, (i + 1) * n + 1) for i in range(count)]
    return jnp.stack([x[(*(slice(None),) * axis, part)] for part in ends])


def concatenate_blocks(x: Array, axis: int, shared: bool) -> Array:
    """The blocks along the first axis of `x` put together along `axis`."""
    if not shared:
        x = jnp.moveaxis(x, 0, axis - 1)
        return x.reshape(*x.shape[: axis - 1], -1, *x.shape[axis + 1 :])
    whole: list[Any] = [
        block[(*(slice(None),) * (axis - 1), slice(None if i == len(x) - 1 else -1))]
        for i, block in enumerate(x)
    ]
    return jnp.concatenate(whole, axis=axis - 1)
