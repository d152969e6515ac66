"""Rectangular boxes, periodic along some or all axes."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from physkit.core import (
    ParameterError,
    ShapeError,
    as_parameter,
    concrete_value,
    describe,
    explain_call,
    is_concrete,
    param,
    replace_fields,
    show_numbers,
    static,
)
from physkit.parallel import AbstractComm, SerialComm

from ._space import AbstractSpace, Components


class Box(AbstractSpace):
    """Rectangular box [0, L₁) × … × [0, L_d), periodic along the axes that `periodic` names.

    **Arguments:**

    - `lengths`: edge lengths, `[d]`, length unit; differentiable (pressure is a derivative by them). Or the
      cell of another code, `[d d]`, if it is rectangular.
    - `periodic`: whether each axis is periodic; one bool per axis, or one for all. The length of an open
      axis is the extent that grids, slabs, lattices and plots use: particles may leave it.

    **Errors:** `ParameterError` for a length that is not positive, `ShapeError` for other than one to three
    lengths, or another number of bools.

    **Notes:** the nearest image is unique for cutoffs up to half the shortest periodic edge.
    """

    lengths: Float[Array, " d"] = param()
    periodic: tuple[bool, ...] = static()
    comm: AbstractComm = static(default=SerialComm())

    def __init__(
        self,
        lengths: ArrayLike | Sequence[Any],
        periodic: bool | Sequence[Any] = True,
        comm=None,
    ):
        lengths = _as_lengths(lengths)
        self.lengths = as_parameter(lengths)
        self.comm = SerialComm() if comm is None else comm
        shape = np.shape(self.lengths)
        if len(shape) != 1 or not 1 <= shape[0] <= 3:
            raise ShapeError(
                f"Box needs one length per axis, e.g. Box([10, 10, 10]); got {describe(lengths)}"
            )
        self.periodic = _as_bools(periodic, shape[0])
        if len(self.periodic) != shape[0]:
            raise ShapeError(
                f"Box has {shape[0]} lengths but periodicity for {len(self.periodic)} axes"
            )
        # Traced lengths cannot be checked here; `is_degenerate` finds them.
        numbers = concrete_value(lengths) if is_concrete(lengths) else None
        if numbers is not None and not np.all(numbers > 0):
            raise ParameterError(f"box lengths must be positive; got {show_numbers(numbers)}")

    @staticmethod
    @explain_call
    def cube(length: ArrayLike, dimension: int = 3) -> "Box":
        """The periodic box with `dimension` equal edges."""
        return Box(jnp.full(dimension, as_parameter(length)))

    def periodic_axes(self, dimension: int) -> tuple[bool, ...]:
        self._check(dimension)
        return self.periodic

    def cell(self, dimension: int):
        self._check(dimension)
        return jnp.diag(self.lengths)

    def edge_lengths(self, dimension: int):
        self._check(dimension)
        return self.lengths

    def minimum_image(self, difference: Components) -> Components:
        self._check(len(difference))
        # Times the reciprocal: it is computed once, where a division would be made for every pair.
        return tuple(
            d - self.lengths[k] * jnp.round(d * (1 / self.lengths[k])) if self.periodic[k] else d
            for k, d in enumerate(difference)
        )

    def wrap_with_image(self, x):
        self._check(x.shape[-1])
        lengths = self.lengths[None]
        cells = jnp.where(jnp.array(self.periodic)[None], jnp.floor(x / lengths), 0)
        return x - cells * lengths, cells.astype(jnp.int32)

    def stretch(self, matrix):
        return replace_fields(self, {"lengths": self.lengths * jnp.diagonal(matrix)})

    @property
    def volume(self):
        return jnp.prod(self.lengths)

    def max_cutoff(self, dimension: int):
        self._check(dimension)
        return jnp.min(jnp.where(jnp.array(self.periodic), self.lengths / 2, jnp.inf))

    def is_degenerate(self):
        return ~jnp.all(self.lengths > 0)  # True for NaN, too

    def _check(self, dimension: int) -> None:
        if dimension != len(self.periodic):
            raise ShapeError(f"positions have {dimension} axes, the box has {len(self.periodic)}")


def _as_bools(periodic: Any, count: int) -> tuple[bool, ...]:
    """One bool per axis."""
    if isinstance(periodic, bool | np.bool_):
        return (bool(periodic),) * count
    is_sequence = isinstance(periodic, list | tuple | np.ndarray)
    if not is_sequence or not all(isinstance(one, bool | np.bool_) for one in periodic):
        raise ParameterError(
            f"periodic is True, False, or one of these per axis, e.g. (True, False); got {describe(periodic)}"
        )
    return tuple(bool(one) for one in periodic)


def _as_lengths(lengths: Any) -> Any:
    """Edge lengths: of a rectangular cell `[d d]`, as other codes have it, its diagonal.

    **Errors:** `ShapeError` for a cell that is not rectangular.
    """
    # Cells of ASE are no arrays, but say what they are.
    if hasattr(lengths, "array") and np.shape(lengths.array) == (3, 3):
        lengths = np.asarray(lengths.array)
    shape = np.shape(lengths) if is_concrete(lengths) else ()
    if len(shape) != 2 or shape[0] != shape[1] or not 2 <= shape[0] <= 3:
        return lengths
    numbers = concrete_value(lengths)
    if numbers is None:
        return lengths
    if np.any(numbers != np.diag(np.diag(numbers))):
        raise ShapeError(
            f"a Box is rectangular, and this cell is tilted: Triclinic(vectors) takes it; got "
            f"{show_numbers(numbers)}"
        )
    return np.diag(numbers)
