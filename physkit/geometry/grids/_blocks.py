"""Blocks: arrays on a grid are cut into equal blocks, one per device, and concatenated again.

Along an axis with walls there is one more face than there are cells. Arrays on those faces *share layers*:
every block has the faces at both of its ends, and two neighbors both hold the face between them.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array

SharedLayers = tuple[bool, ...]  # per axis of space: whether neighbors share a layer of points


def shard_array(x: Array, devices: tuple[int, ...], shared: SharedLayers) -> Array:
    """`[..., *points]` → `[device, ..., *points of a block]`, devices row-major."""
    d = len(shared)
    counts = (*devices, *(1,) * (d - len(devices)))
    # Each cut adds a leading axis. From the last axis of space to the first, so that those are row-major.
    for k in reversed(range(d)):
        x = _cut_axis(x, x.ndim - d + k, counts[k], shared[k])
    return x.reshape(math.prod(devices), *x.shape[d:])


def unshard_array(x: Array, devices: tuple[int, ...], shared: SharedLayers) -> Array:
    """`[device, ..., *points of a block]` → `[..., *points]`."""
    d = len(shared)
    counts = (*devices, *(1,) * (d - len(devices)))
    x = x.reshape(*counts, *x.shape[1:])
    # Each turn removes the leading axis: that of axis k of space is then the first.
    for k in range(d):
        x = concatenate_blocks(x, x.ndim - d + k, shared[k])
    return x


def _cut_axis(x: Array, axis: int, count: int, shared: bool) -> Array:
    """Cut `x` into `count` blocks along `axis`; the blocks are along a new first axis."""
    n = (x.shape[axis] - shared) // count
    if not shared:
        x = x.reshape(*x.shape[:axis], count, n, *x.shape[axis + 1 :])
        return jnp.moveaxis(x, axis, 0)
    # Blocks overlap by the layer that neighbors share, which a reshape cannot do.
    slices = [slice(i * n, (i + 1) * n + 1) for i in range(count)]
    return jnp.stack([x[(*(slice(None),) * axis, part)] for part in slices])


def concatenate_blocks(x: Array, axis: int, shared: bool) -> Array:
    """Concatenate the blocks along the first axis of `x`, which it loses, along `axis`.

    - `shared`: whether neighboring blocks both hold the layer between them; it is taken from the upper one.
    """
    if not shared:
        x = jnp.moveaxis(x, 0, axis - 1)
        return x.reshape(*x.shape[: axis - 1], -1, *x.shape[axis + 1 :])
    blocks = [
        block[(*(slice(None),) * (axis - 1), slice(None if i == len(x) - 1 else -1))]
        for i, block in enumerate(x)
    ]
    return jnp.concatenate(blocks, axis=axis - 1)
