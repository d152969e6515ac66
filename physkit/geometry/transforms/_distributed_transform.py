"""Fourier and wave series of a domain that is cut over devices.

A transform along an axis needs the whole of that axis. So the axes that are not cut are transformed
first; then, for each cut axis, the devices in line along it exchange parts (one all-to-all): every one
gets the whole of that axis and gives away a part of an axis that is done. Nothing is sent back
afterwards: the coefficients stay where they are, *transposed*, and everyone asks the grid which
modes it holds. A slab takes one all-to-all each way, a pencil two.

On a line there is no other axis to give away parts of: there, every device gets the whole line, and
each has all modes.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._cosine_sine import Parities, backward, forward, wave_phases


@dataclasses.dataclass(frozen=True)
class AllToAll:
    """One all-to-all among the devices in line along an axis of space.

    `split` is an axis in parts from now on, `join` one that had been. What does not divide is padded:
    `before` and `padded` are lengths of `split`; `whole` and `kept` those of `join` afterwards.
    """

    devices: int
    split: int
    join: int
    before: int
    padded: int
    whole: int
    kept: int


@dataclasses.dataclass(frozen=True)
class TransformPlan:
    """Steps from values to coefficients: exchanges, and transforms (by the number of their axis).

    - `half`: the axis of which only modes with k ≥ 0 are kept; None for complex values, or no axis
      that repeats.
    - `owners`: per axis of space, the axes of the devices that its modes are cut over, outer first.
    - `stored`: modes per axis, all devices' together, with padding.
    """

    steps: tuple[AllToAll | int, ...]
    half: int | None
    owners: tuple[tuple[int, ...], ...]
    stored: tuple[int, ...]


@functools.lru_cache(maxsize=256)
def plan_transform(
    shape: tuple[int, ...], devices: tuple[int, ...], kinds: Parities, real: bool
) -> TransformPlan:
    """The way of a transform: `devices` along every axis, on a grid with two axes or three."""
    d = len(shape)
    repeats = [k for k in range(d) if kinds[k] is None]
    half = min(repeats, key=lambda k: (devices[k] > 1, -k)) if real and repeats else None
    order = sorted(range(d), key=lambda k: (devices[k] > 1, k != half, -k))
    modes = [n // 2 + 1 if k == half else n for k, n in enumerate(shape)]
    owners: list[list[int]] = [[k] if p > 1 else [] for k, p in enumerate(devices)]
    lengths = [n // p for n, p in zip(shape, devices, strict=True)]
    done: list[int] = []
    moves: list[Any] = []
    lent: dict[
        tuple[int, int], int
    ] = {}  # lengths of axes that are not done when a part is given away
    for axis in order:
        while owners[axis]:
            k = owners[axis].pop()
            ready = done or [t for t in range(d) if t != axis]
            # Parts of the half axis first: modes and their mirror images then stay on one device.
            split = min(ready, key=lambda t: (len(owners[t]), t != half, -lengths[t]))
            whole = lengths[axis] * devices[k]
            lengths[axis] = lent.pop((axis, k), whole)
            if split not in done:
                lent[split, k] = lengths[split]
            moves.append([k, split, axis, lengths[split], whole, lengths[axis], split in done])
            lengths[split] = -(-lengths[split] // devices[k])
            owners[split].append(k)
        moves.append(axis)
        lengths[axis] = modes[axis]
        done.append(axis)
    over = [math.prod(devices[k] for k in owner) for owner in owners]
    stored = tuple(-(-m // p) * p for m, p in zip(modes, over, strict=True))
    return TransformPlan(
        tuple(_exchanges(moves, devices, modes, stored)),
        half,
        tuple(tuple(owner) for owner in owners),
        stored,
    )


def _exchanges(moves, devices, modes, stored):
    """Exchanges with their lengths: an axis of modes is padded once, for all that it is cut over."""
    here = list(modes)
    for move in moves:
        if isinstance(move, int):
            yield move
            continue
        k, split, join, before, whole, kept, final = move
        padded = -(-before // devices[k]) * devices[k]
        if final:
            before = here[split]
            padded = stored[split] if before == modes[split] else before
            here[split] = padded // devices[k]
        yield AllToAll(k, split, join, before, padded, whole, kept)


def forward_transform(grid: Any, x: Array, kinds: Parities) -> Array:
    """Coefficients of the block of values `x`: this device's part of them."""
    comm, d, real = grid.space.comm, grid.dimension, not jnp.iscomplexobj(x)
    if d == 1:
        return _along(_whole_line(comm, x), -1, kinds[0], real)
    way = transform_plan(grid, kinds, real)
    for step in way.steps:
        if isinstance(step, int):
            x = _apart(_along(x, step - d, kinds[step], step == way.half), step - d)
        else:
            x = _length(x, step.split - d, step.padded)
            split, join = (x.ndim - d + k for k in (step.split, step.join))
            x = comm.all_to_all(x, step.devices, split, join)
            x = _length(x, step.join - d, step.kept)
    return x


def inverse_transform(grid: Any, c: Array, kinds: Parities, real: bool) -> Array:
    """The block of values whose coefficients these are."""
    comm, d = grid.space.comm, grid.dimension
    if d == 1:
        x = _back(c, -1, kinds[0], real, grid.shape[0])
        return grid.local(x)
    way = transform_plan(grid, kinds, real)
    for step in reversed(way.steps):
        if isinstance(step, int):
            c = _apart(c, step - d)
            c = _back(c, step - d, kinds[step], step == way.half, grid.shape[step])
        else:
            c = _length(c, step.join - d, step.whole)
            split, join = (c.ndim - d + k for k in (step.split, step.join))
            c = comm.all_to_all(c, step.devices, join, split)
            c = _length(c, step.split - d, step.before)
    return c


def transform_plan(grid: Any, kinds: Parities, real: bool) -> TransformPlan:
    """The way of a transform on this grid."""
    comm = grid.space.comm
    return plan_transform(
        grid.shape, tuple(map(comm.axis_size, range(grid.dimension))), kinds, real
    )


def is_sharded(grid: Any) -> bool:
    """Whether the modes are cut over devices."""
    return grid.space.comm.size > 1 and grid.dimension > 1


def half_axis(grid: Any, kinds: Parities, real: bool) -> int | None:
    """The axis of which only modes with k ≥ 0 are kept: the last that repeats, on one device."""
    if is_sharded(grid):
        return transform_plan(grid, kinds, real).half
    return max((k for k, kind in enumerate(kinds) if kind is None), default=None) if real else None


def mode_numbers(grid: Any, axis: int, kinds: Parities, real: bool) -> np.ndarray:
    """Whole (or half) numbers n of all modes along an axis, those of padding as of the shortest wave."""
    n, kind = grid.shape[axis], kinds[axis]
    if kind is not None:
        out = wave_phases(n, kind) * (n / np.pi)
        out = np.rint(2 * out) / 2
    elif axis == half_axis(grid, kinds, real):
        out = np.arange(n // 2 + 1)
    else:
        out = np.rint(np.fft.fftfreq(n, 1 / n)).astype(np.int32)
    return pad_modes(grid, axis, out, kinds, real, n if kind is not None else n // 2)


def mode_multiplicity(grid: Any, kinds: Parities, real: bool) -> list[Any]:
    """Per axis, how many modes a coefficient stands for: 2 with its mirror image, 0 for padding."""
    out = []
    for k, n in enumerate(grid.shape):
        share = np.ones(n)
        if k == half_axis(grid, kinds, real):
            share = np.full(n // 2 + 1, 2.0)
            share[[0, -1] if n % 2 == 0 else [0]] = 1.0
        share = local_modes(grid, k, pad_modes(grid, k, share, kinds, real, 0.0), kinds, real)
        out.append(grid._along(k, share))
    return out


def pad_modes(grid: Any, axis: int, x: np.ndarray, kinds: Parities, real: bool, fill: Any):
    """`x`, one number for every mode along an axis, and `fill` for padding."""
    more = transform_plan(grid, kinds, real).stored[axis] - len(x) if is_sharded(grid) else 0
    return np.concatenate([x, np.full(more, fill, x.dtype)]) if more else x


def local_modes(grid: Any, axis: int, x: np.ndarray, kinds: Parities, real: bool) -> Any:
    """This device's part of `x`, one number for every mode along `axis` and for its padding."""
    if not is_sharded(grid):
        return x
    owners, comm = transform_plan(grid, kinds, real).owners[axis], grid.space.comm
    if not owners:
        return x
    at: Any = 0
    for k in owners:
        at = at * comm.axis_size(k) + comm.axis_index(k)
    length = len(x) // math.prod(map(comm.axis_size, owners))
    return jax.lax.dynamic_slice_in_dim(jnp.asarray(x), at * length, length)


def hermitian_symmetrize(grid: Any, c: Array) -> Array:
    """Coefficients `c` made those of real values again: modes in conjugate pairs.

    Those with k = 0 along the half axis come in such pairs, and so do the shortest waves'.
    """
    if grid.dimension == 1:
        return c  # on a line both are single modes, whose transforms are real
    kinds, d = (None,) * grid.dimension, grid.dimension
    if not is_sharded(grid):
        n, half = grid.shape[-1], d - 1
        length, coord = n // 2 + 1, None
    else:
        way, comm = transform_plan(grid, kinds, True), grid.space.comm
        half = way.half
        if any(owner for k, owner in enumerate(way.owners) if k != half):
            return grid.fft(grid.ifft(c))  # pairs live on different devices
        n, coord = grid.shape[half], 0
        for k in way.owners[half]:
            coord = coord * comm.axis_size(k) + comm.axis_index(k)
        length = way.stored[half] // math.prod(map(comm.axis_size, way.owners[half]))
    others = tuple(range(1 - d, 0))
    for j in (0, n // 2) if n % 2 == 0 else (0,):
        owner, at = divmod(j, length)
        index = (..., at, *(slice(None),) * (d - 1 - half))
        plane = c[index]
        mirror = jnp.roll(jnp.flip(plane, others), (1,) * len(others), others)
        pair = (plane + jnp.conj(mirror)) / 2
        c = c.at[index].set(pair if coord is None else jnp.where(coord == owner, pair, plane))
    return c


def _whole_line(comm: Any, x: Array) -> Array:
    """The whole of a cut line, on every device: each sends its part to all."""
    copies = jnp.concatenate([x] * comm.axis_size(0), axis=-1)
    return comm.all_to_all(copies, 0, x.ndim - 1, x.ndim - 1)


def _along(x: Array, axis: int, kind: Any, half: bool) -> Array:
    if kind is not None:
        return _of_parts(lambda part: forward(part, axis, kind), x)
    return jnp.fft.rfft(x, axis=axis) if half else jnp.fft.fft(x, axis=axis)


def _back(c: Array, axis: int, kind: Any, half: bool, n: int) -> Array:
    if kind is not None:
        return _of_parts(lambda part: backward(part, axis, kind), c)
    return jnp.fft.irfft(c, n, axis=axis) if half else jnp.fft.ifft(c, axis=axis)


def _apart(c: Array, axis: int) -> Array:
    """`c` before or after its transform along `axis`, made by itself.

    Transforms are along the last axis, others are brought there. XLA would compute whatever comes before
    or after in the order of the transposed array, and so read all of its arrays across their rows.
    """
    if axis == -1:
        return c
    # A line has one order only: XLA would leave an array of several axes in that of the transform.
    return jax.lax.optimization_barrier(c.reshape(-1)).reshape(c.shape)


def _of_parts(transform: Any, x: Array) -> Array:
    """A real transform of what may be complex."""
    if not jnp.iscomplexobj(x):
        return transform(x)
    both = transform(jnp.stack([x.real, x.imag]))
    return jax.lax.complex(both[0], both[1])


def _length(x: Array, axis: int, length: int) -> Array:
    """`x` with so many entries along `axis`: cut off, or filled up with zeros."""
    n = x.shape[axis]
    if n >= length:
        return x if n == length else jax.lax.slice_in_dim(x, 0, length, axis=axis % x.ndim)
    return jnp.pad(x, [(0, length - n if k == axis % x.ndim else 0) for k in range(x.ndim)])
