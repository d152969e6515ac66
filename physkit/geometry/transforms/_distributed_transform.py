"""Fourier, cosine and sine transforms of a domain that is sharded over devices.

The steps are those of a `TransformPlan`, which shards another axis in exchange for the one to transform. On a
line there is no other axis: every device gathers the whole line, and holds all modes.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.parallel import AbstractComm

from ..spaces._abstract_grid import AbstractGrid, ArrayLike
from ._cosine_sine import (
    Parities,
    Parity,
    cosine_sine_transform,
    inverse_cosine_sine_transform,
    wave_phases,
)
from ._transform_plan import TransformPlan, plan_transform


def forward_transform(grid: AbstractGrid, x: Array, kinds: Parities) -> Array:
    """This device's coefficients of values of which `x` is its block.

    **Arguments:**

    - `x`: `[*components, *points of the block]`, real or complex.
    - `kinds`: None for each periodic axis, parities for each axis between walls.

    **Returns:** `[*components, *modes]`; `local_modes` tells which modes they are.
    """
    comm, d, real = grid.space.comm, grid.dimension, not jnp.iscomplexobj(x)
    if d == 1:
        return _transform_axis(_gather_line(comm, x), -1, kinds[0], real)
    plan = transform_plan(grid, kinds, real)
    for step in plan.steps:
        if isinstance(step, int):
            x = _transform_barrier(
                _transform_axis(x, step - d, kinds[step], step == plan.half), step - d
            )
        else:
            x = resize(x, step.split - d, step.padded)
            split, join = (x.ndim - d + k for k in (step.split, step.join))
            x = comm.all_to_all(x, step.devices, split, join)
            x = resize(x, step.join - d, step.kept)
    return x


def inverse_transform(grid: AbstractGrid, c: Array, kinds: Parities, real: bool) -> Array:
    """The inverse of `forward_transform`: this device's block of values; `real` if they are real."""
    comm, d = grid.space.comm, grid.dimension
    if d == 1:
        x = _inverse_transform_axis(c, -1, kinds[0], real, grid.shape[0])
        return grid.local(x)
    plan = transform_plan(grid, kinds, real)
    # The steps of the forward transform in reverse, each undone: an exchange with `split` and `join` swapped.
    for step in reversed(plan.steps):
        if isinstance(step, int):
            c = _transform_barrier(c, step - d)
            c = _inverse_transform_axis(
                c, step - d, kinds[step], step == plan.half, grid.shape[step]
            )
        else:
            c = resize(c, step.join - d, step.whole)
            split, join = (c.ndim - d + k for k in (step.split, step.join))
            c = comm.all_to_all(c, step.devices, join, split)
            c = resize(c, step.split - d, step.before)
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
    """The axis along which only modes with k ≥ 0 are kept (on one device the last periodic one), if any."""
    if is_sharded(grid):
        return transform_plan(grid, kinds, real).half
    return max((k for k, kind in enumerate(kinds) if kind is None), default=None) if real else None


def mode_numbers(grid: AbstractGrid, axis: int, kinds: Parities, real: bool) -> np.ndarray:
    """Mode numbers n (integers, or halves between unlike walls) of all modes along an axis, with padding.

    Padding has the number of the shortest wave: functions of it stay finite there.
    """
    n, kind = grid.shape[axis], kinds[axis]
    if kind is not None:
        out = wave_phases(n, kind) * (n / np.pi)
        # Rounding errors of π / n · n / π removed: exact integers and halves.
        out = np.rint(2 * out) / 2
    elif axis == half_axis(grid, kinds, real):
        out = np.arange(n // 2 + 1)
    else:
        out = np.rint(np.fft.fftfreq(n, 1 / n)).astype(np.int32)
    return pad_modes(grid, axis, out, kinds, real, n if kind is not None else n // 2)


def mode_multiplicity(grid: AbstractGrid, kinds: Parities, real: bool) -> list[ArrayLike]:
    """Per axis, the number of modes a coefficient stands for: 2 with that of −k, 0 for padding, else 1."""
    out = []
    for k, n in enumerate(grid.shape):
        count = np.ones(n)
        if k == half_axis(grid, kinds, real):
            count = np.full(n // 2 + 1, 2.0)
            # k = 0, and for even n the shortest wave, are their own mirror images.
            count[[0, -1] if n % 2 == 0 else [0]] = 1.0
        count = local_modes(grid, k, pad_modes(grid, k, count, kinds, real, 0.0), kinds, real)
        out.append(grid.along_axis(k, count))
    return out


def pad_modes(
    grid: AbstractGrid, axis: int, x: np.ndarray, kinds: Parities, real: bool, fill: int | float
) -> np.ndarray:
    """`x`, one number for each mode along an axis, extended by `fill` for padding."""
    padding = transform_plan(grid, kinds, real).stored[axis] - len(x) if is_sharded(grid) else 0
    return np.concatenate([x, np.full(padding, fill, x.dtype)]) if padding else x


def local_modes(
    grid: AbstractGrid, axis: int, x: np.ndarray, kinds: Parities, real: bool
) -> ArrayLike:
    """This device's part of `x`, one number for each mode along `axis`, padding included.

    In the precision of the grid: a program in single precision cuts no table of doubles.
    """
    if x.dtype.kind == "f":
        x = x.astype(grid.spacing.dtype)
    if not is_sharded(grid):
        return x
    owners, comm = transform_plan(grid, kinds, real).owners[axis], grid.space.comm
    if not owners:
        return x
    # Number of this device among those that share the axis, outer axes of devices first.
    owner = 0
    for k in owners:
        owner = owner * comm.axis_size(k) + comm.axis_index(k)
    length = len(x) // math.prod(map(comm.axis_size, owners))
    return jax.lax.dynamic_slice_in_dim(jnp.asarray(x), owner * length, length)


def hermitian_symmetrize(grid: AbstractGrid, c: Array) -> Array:
    """Project coefficients onto those of real values: modes at k and −k conjugate.

    Where only half of the modes are stored, both of a pair are stored in two planes: k = 0 along the half axis,
    and its shortest wave.
    """
    # On a line both planes are single modes, of which the inverse transform ignores the imaginary part.
    if grid.dimension == 1:
        return c
    kinds, d = (None,) * grid.dimension, grid.dimension
    if not is_sharded(grid):
        n, half = grid.shape[-1], d - 1
        length, local_owner = n // 2 + 1, None
    else:
        plan, comm = transform_plan(grid, kinds, True), grid.space.comm
        half = plan.half
        if any(owner for k, owner in enumerate(plan.owners) if k != half):
            # The modes of a pair are on different devices. The values are real after an inverse transform, and
            # so have the coefficients wanted.
            return forward_transform(grid, inverse_transform(grid, c, kinds, True), kinds)
        n, local_owner = grid.shape[half], 0
        for k in plan.owners[half]:
            local_owner = local_owner * comm.axis_size(k) + comm.axis_index(k)
        length = plan.stored[half] // math.prod(map(comm.axis_size, plan.owners[half]))
    assert half is not None  # coefficients of real values have an axis of half the modes
    axis, new = half - d, {}
    for j in (0, n // 2) if n % 2 == 0 else (0,):
        owner, place = divmod(j, length)
        plane = jax.lax.index_in_dim(c, place, axis, keepdims=True)
        mirror = plane
        for other in range(-d, 0):
            mirror = mirror if other == axis else _mirror(mirror, other)
        pair = (plane + jnp.conj(mirror)) / 2
        # Only the device that holds the plane changes it.
        if local_owner is not None:
            pair = jnp.where(local_owner == owner, pair, new.get(place, plane))
        new[place] = pair
    # A CPU writes into the array; on a GPU that would be a kernel of its own.
    written = functools.partial(_write_planes, axis)
    return jax.lax.platform_dependent(
        c, new, cpu=written, default=functools.partial(_select_planes, axis)
    )


def _mirror(x: Array, axis: int) -> Array:
    """x(−k) along an axis of wave numbers, of which that of k = 0 comes first."""
    shift = [(0, 0, 0)] * x.ndim
    shift[axis] = (1, -1, 0)
    reverse = jax.lax.pad(jnp.flip(x, axis), jnp.zeros((), x.dtype), shift)
    return jnp.where(_along(x, axis) == 0, x, reverse)


def _along(x: Array, axis: int) -> Array:
    """The place of each number along an axis."""
    return jax.lax.broadcasted_iota(jnp.int32, x.shape, x.ndim + axis)


def _write_planes(axis: int, x: Array, planes: dict[int, Array]) -> Array:
    for place, plane in planes.items():
        x = jax.lax.dynamic_update_slice_in_dim(x, plane, place, axis)
    return x


def _select_planes(axis: int, x: Array, planes: dict[int, Array]) -> Array:
    for place, plane in planes.items():
        x = jnp.where(_along(x, axis) == place, plane, x)
    return x


def _gather_line(comm: AbstractComm, x: Array) -> Array:
    """All-gather a sharded line, by an all-to-all of as many copies as there are devices."""
    # Communicators have no all-gather, which would serve only here.
    copies = jnp.concatenate([x] * comm.axis_size(0), axis=-1)
    return comm.all_to_all(copies, 0, x.ndim - 1, x.ndim - 1)


def _transform_axis(x: Array, axis: int, kind: tuple[Parity, Parity] | None, half: bool) -> Array:
    """Transform along one axis; `half` to keep modes with k ≥ 0 of real values only."""
    if kind is not None:
        return _map_real_and_imaginary(
            functools.partial(cosine_sine_transform, axis=axis, parity=kind), x
        )
    return jnp.fft.rfft(x, axis=axis) if half else jnp.fft.fft(x, axis=axis)


def _inverse_transform_axis(
    c: Array, axis: int, kind: tuple[Parity, Parity] | None, half: bool, n: int
) -> Array:
    if kind is not None:
        return _map_real_and_imaginary(
            functools.partial(inverse_cosine_sine_transform, axis=axis, parity=kind), c
        )
    return jnp.fft.irfft(c, n, axis=axis) if half else jnp.fft.ifft(c, axis=axis)


def _transform_barrier(c: Array, axis: int) -> Array:
    """An optimization barrier between a transform along `axis` and the operations before or after it.

    Transforms run along the last axis; other axes are transposed there and back. Without a barrier XLA computes
    what comes before or after in the memory order of the transposed array, and reads all other arrays across
    their rows.
    """
    if axis == -1:
        return c
    # As one long line, which has one memory order only: XLA would keep an array of several axes in the order
    # of the transform, also behind a barrier.
    return jax.lax.optimization_barrier(c.reshape(-1)).reshape(c.shape)


def _map_real_and_imaginary(transform: Callable[[Array], Array], x: Array) -> Array:
    """Apply a real linear transform to an array that may be complex."""
    if not jnp.iscomplexobj(x):
        return transform(x)
    both = transform(jnp.stack([x.real, x.imag]))  # one transform of two arrays, not two
    return jax.lax.complex(both[0], both[1])


def resize(x: Array, axis: int, length: int) -> Array:
    """`x` with `length` entries along `axis`: truncated, or padded with zeros."""
    n = x.shape[axis]
    if n >= length:
        return x if n == length else jax.lax.slice_in_dim(x, 0, length, axis=axis % x.ndim)
    return jnp.pad(x, [(0, length - n if k == axis % x.ndim else 0) for k in range(x.ndim)])
