"""Fourier, cosine and sine transforms of a domain that is sharded over devices.

The steps are those of a `TransformPlan`. On a line there is no other axis to give away parts of: there,
every device gets the whole line, and each has all modes.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.parallel import AbstractComm

from ..spaces._abstract_grid import AbstractGrid, ArrayLike
from ._cosine_sine import Parities, Parity, backward, forward, wave_phases
from ._transform_plan import TransformPlan, plan_transform


def forward_transform(grid: AbstractGrid, x: Array, kinds: Parities) -> Array:
    """This device's part of the coefficients of the values `x`, its block of them."""
    comm, d, real = grid.space.comm, grid.dimension, not jnp.iscomplexobj(x)
    if d == 1:
        return _transform_axis(_gather_line(comm, x), -1, kinds[0], real)
    plan = transform_plan(grid, kinds, real)
    for step in plan.steps:
        if isinstance(step, int):
            x = _separate(_transform_axis(x, step - d, kinds[step], step == plan.half), step - d)
        else:
            x = _resize(x, step.split - d, step.padded)
            split, join = (x.ndim - d + k for k in (step.split, step.join))
            x = comm.all_to_all(x, step.devices, split, join)
            x = _resize(x, step.join - d, step.kept)
    return x


def inverse_transform(grid: AbstractGrid, c: Array, kinds: Parities, real: bool) -> Array:
    """This device's block of the values whose coefficients are `c`."""
    comm, d = grid.space.comm, grid.dimension
    if d == 1:
        x = _inverse_transform_axis(c, -1, kinds[0], real, grid.shape[0])
        return grid.local(x)
    plan = transform_plan(grid, kinds, real)
    for step in reversed(plan.steps):
        if isinstance(step, int):
            c = _separate(c, step - d)
            c = _inverse_transform_axis(
                c, step - d, kinds[step], step == plan.half, grid.shape[step]
            )
        else:
            c = _resize(c, step.join - d, step.whole)
            split, join = (c.ndim - d + k for k in (step.split, step.join))
            c = comm.all_to_all(c, step.devices, join, split)
            c = _resize(c, step.split - d, step.before)
    return c


def transform_plan(grid: AbstractGrid, kinds: Parities, real: bool) -> TransformPlan:
    """The plan of a transform on this grid."""
    comm = grid.space.comm
    return plan_transform(
        grid.shape, tuple(map(comm.axis_size, range(grid.dimension))), kinds, real
    )


def is_sharded(grid: AbstractGrid) -> bool:
    """Whether the modes are sharded over devices."""
    return grid.space.comm.size > 1 and grid.dimension > 1


def half_axis(grid: AbstractGrid, kinds: Parities, real: bool) -> int | None:
    """The axis of which only modes with k ≥ 0 are kept: the last that repeats, on one device."""
    if is_sharded(grid):
        return transform_plan(grid, kinds, real).half
    return max((k for k, kind in enumerate(kinds) if kind is None), default=None) if real else None


def mode_numbers(grid: AbstractGrid, axis: int, kinds: Parities, real: bool) -> np.ndarray:
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


def mode_multiplicity(grid: AbstractGrid, kinds: Parities, real: bool) -> list[ArrayLike]:
    """Per axis, how many modes a coefficient stands for: 2 with its mirror image, 0 for padding."""
    out = []
    for k, n in enumerate(grid.shape):
        count = np.ones(n)
        if k == half_axis(grid, kinds, real):
            count = np.full(n // 2 + 1, 2.0)
            count[[0, -1] if n % 2 == 0 else [0]] = 1.0
        count = local_modes(grid, k, pad_modes(grid, k, count, kinds, real, 0.0), kinds, real)
        out.append(grid.along_axis(k, count))
    return out


def pad_modes(
    grid: AbstractGrid, axis: int, x: np.ndarray, kinds: Parities, real: bool, fill: int | float
) -> np.ndarray:
    """`x`, one number for every mode along an axis, and `fill` for padding."""
    more = transform_plan(grid, kinds, real).stored[axis] - len(x) if is_sharded(grid) else 0
    return np.concatenate([x, np.full(more, fill, x.dtype)]) if more else x


def local_modes(
    grid: AbstractGrid, axis: int, x: np.ndarray, kinds: Parities, real: bool
) -> ArrayLike:
    """This device's part of `x`, one number for every mode along `axis` and for its padding."""
    if not is_sharded(grid):
        return x
    owners, comm = transform_plan(grid, kinds, real).owners[axis], grid.space.comm
    if not owners:
        return x
    owner = 0
    for k in owners:
        owner = owner * comm.axis_size(k) + comm.axis_index(k)
    length = len(x) // math.prod(map(comm.axis_size, owners))
    return jax.lax.dynamic_slice_in_dim(jnp.asarray(x), owner * length, length)


def hermitian_symmetrize(grid: AbstractGrid, c: Array) -> Array:
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
        plan, comm = transform_plan(grid, kinds, True), grid.space.comm
        half = plan.half
        if any(owner for k, owner in enumerate(plan.owners) if k != half):
            # Pairs live on different devices: a transform there and back restores them.
            return forward_transform(grid, inverse_transform(grid, c, kinds, True), kinds)
        n, coord = grid.shape[half], 0
        for k in plan.owners[half]:
            coord = coord * comm.axis_size(k) + comm.axis_index(k)
        length = plan.stored[half] // math.prod(map(comm.axis_size, plan.owners[half]))
    others = tuple(range(1 - d, 0))
    for j in (0, n // 2) if n % 2 == 0 else (0,):
        owner, at = divmod(j, length)
        index = (..., at, *(slice(None),) * (d - 1 - half))
        plane = c[index]
        mirror = jnp.roll(jnp.flip(plane, others), (1,) * len(others), others)
        pair = (plane + jnp.conj(mirror)) / 2
        c = c.at[index].set(pair if coord is None else jnp.where(coord == owner, pair, plane))
    return c


def _gather_line(comm: AbstractComm, x: Array) -> Array:
    """The whole of a sharded line, on every device: each sends its part to all."""
    copies = jnp.concatenate([x] * comm.axis_size(0), axis=-1)
    return comm.all_to_all(copies, 0, x.ndim - 1, x.ndim - 1)


def _transform_axis(x: Array, axis: int, kind: tuple[Parity, Parity] | None, half: bool) -> Array:
    if kind is not None:
        return _map_real_and_imaginary(lambda part: forward(part, axis, kind), x)
    return jnp.fft.rfft(x, axis=axis) if half else jnp.fft.fft(x, axis=axis)


def _inverse_transform_axis(
    c: Array, axis: int, kind: tuple[Parity, Parity] | None, half: bool, n: int
) -> Array:
    if kind is not None:
        return _map_real_and_imaginary(lambda part: backward(part, axis, kind), c)
    return jnp.fft.irfft(c, n, axis=axis) if half else jnp.fft.ifft(c, axis=axis)


def _separate(c: Array, axis: int) -> Array:
    """`c`, computed apart from its transform along `axis`: an optimization barrier.

    Transforms are along the last axis, others are brought there. XLA would compute whatever comes before
    or after in the order of the transposed array, and so read all of its arrays across their rows.
    """
    if axis == -1:
        return c
    # A line has one order only: XLA would leave an array of several axes in that of the transform.
    return jax.lax.optimization_barrier(c.reshape(-1)).reshape(c.shape)


def _map_real_and_imaginary(transform: Callable[[Array], Array], x: Array) -> Array:
    """A real transform of what may be complex."""
    if not jnp.iscomplexobj(x):
        return transform(x)
    both = transform(jnp.stack([x.real, x.imag]))
    return jax.lax.complex(both[0], both[1])


def _resize(x: Array, axis: int, length: int) -> Array:
    """`x` with `length` entries along `axis`: truncated, or padded with zeros."""
    n = x.shape[axis]
    if n >= length:
        return x if n == length else jax.lax.slice_in_dim(x, 0, length, axis=axis % x.ndim)
    return jnp.pad(x, [(0, length - n if k == axis % x.ndim else 0) for k in range(x.ndim)])
