"""The numbers of a register while gates are applied to it."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import DeviceError

from .._register import Register
from ._gate_fusion import Axes


@dataclass(frozen=True)
class OrderedArray:
    """The numbers of a register with the axes in another order, which changes from block to block.

    A product leaves its axes last; nothing is moved back before it has to be. Of a register over devices,
    subsystems change places with others, on which nothing acted for longest.

    - `order`: the subsystems of the axes of `data`, which has any shape.
    - `cut`: those along the axes of devices.
    """

    data: Array
    order: Axes
    cut: Axes
    register: Register

    @staticmethod
    def of(x: Array, register: Register) -> "OrderedArray":
        """Numbers with the axes as they are numbered."""
        first, n = register.num_cut, len(register.dims)
        return OrderedArray(x, tuple(range(first, n)), tuple(range(first)), register)

    def array(self) -> Array:
        """The numbers with the axes as they are numbered."""
        whole = self
        for k in range(len(self.cut)):
            if whole.cut[k] == k:
                continue
            if k in whole.cut:  # along another axis of devices
                whole = whole._exchange(whole.cut.index(k), ())
            whole = whole._exchange(k, tuple(a for a in whole.order if a != k))
        return whole._padded()

    def contract(self, matrix: Array, axes: Axes) -> "OrderedArray":
        """Σⱼ mᵢⱼ xⱼ over the joint index of `axes`."""
        here = self._with_local(axes)
        table, contracted = here._table(axes)
        product = _dot(table, matrix, contracted, 1)
        return here._replaced(product, here._others(axes) + axes)

    def apply(self, gate: Any) -> "OrderedArray":
        """A gate by itself, of any size."""
        here = self._with_local(gate.sites)
        # Chains of gates that are fused compile for minutes.
        x = jax.lax.optimization_barrier(gate.apply(here._padded()))
        return here._replaced(x, tuple(sorted(here.order)))

    def undo(self, operand: Any, axes: Axes) -> "OrderedArray":
        """The inverse of a unitary matrix or gate."""
        if isinstance(operand, jax.Array):
            return self.contract(jnp.conj(operand.T), axes)
        return self.apply(operand.inverse())

    def outer(self, other: "OrderedArray", axes: Axes) -> Array:
        """Σ xᵢ yⱼ over all but the joint indices of `axes`."""
        (a, i), (b, j) = self._table(axes), other._table(axes)
        return _dot(a, b, 1 - i, 1 - j)

    # --- inside ---------------------------------------------------------------------------------

    def _with_local(self, axes: Axes) -> "OrderedArray":
        """With all of `axes` on this device."""
        here = self
        for axis in axes:
            if axis in here.cut:
                here = here._exchange(here.cut.index(axis), axes)
        return here

    def _exchange(self, device_axis: int, kept: Axes) -> "OrderedArray":
        """What lies along an axis of devices, for the first subsystem here that is not to be `kept`."""
        comes, dims = self.cut[device_axis], self.register.dims
        goes = next((a for a in self.order if a not in kept and dims[a] == dims[comes]), None)
        if goes is None:
            raise DeviceError(
                f"over {self.register.comm.shape} devices each has {len(self.order)} subsystems whole, too few "
                f"for a gate on {len(kept)}"
            )
        others = self._others((goes,))
        table = self._ordered_by((goes, *others)).reshape(dims[goes], -1)
        table = self.register.exchange(table, device_axis)
        cut = tuple(goes if k == device_axis else a for k, a in enumerate(self.cut))
        return OrderedArray(table, (comes, *others), cut, self.register)

    def _padded(self) -> Array:
        """The numbers with axes as they are numbered, of length 1 for what is not here."""
        dims = self.register.dims
        shape = [dims[a] if a in self.order else 1 for a in range(len(dims))]
        return self._ordered_by(tuple(sorted(self.order))).reshape(shape)

    def _table(self, axes: Axes) -> tuple[Array, int]:
        """The numbers as a matrix with `axes` on one side, and which side that is."""
        rows, others = math.prod(self.register.dims[a] for a in axes), self._others(axes)
        if self.order[-1] in axes:  # what is contiguous stays so
            return self._ordered_by(others + axes).reshape(-1, rows), 1
        return self._ordered_by(axes + others).reshape(rows, -1), 0

    def _others(self, axes: Axes) -> Axes:
        return tuple(a for a in self.order if a not in axes)

    def _ordered_by(self, order: Axes) -> Array:
        shape = tuple(self.register.dims[a] for a in self.order)
        return _transpose(self.data, shape, tuple(self.order.index(a) for a in order))

    def _replaced(self, data: Array, order: Axes) -> "OrderedArray":
        return OrderedArray(data, order, self.cut, self.register)


def _transpose(x: Array, shape: Axes, order: tuple[int, ...]) -> Array:
    """`x`, of `shape`, with its axes in another order: neighbors that stay together move as one axis."""
    runs: list[list[int]] = []
    for axis in order:
        if runs and runs[-1][-1] + 1 == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    if len(runs) == 1:
        return x
    by_place = sorted(runs)
    merged = x.reshape([math.prod(shape[a] for a in run) for run in by_place])
    return jnp.transpose(merged, [by_place.index(run) for run in runs])


def _dot(a: Array, b: Array, i: int, j: int) -> Array:
    """The product of two matrices over axis i of the one and j of the other."""
    numbers = (((i,), (j,)), ((), ()))
    return jax.lax.dot_general(a, b, numbers, precision=jax.lax.Precision.HIGHEST)
