"""Rectangular boxes, periodic along some or all axes."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from physkit.core import ParameterError, ShapeError, as_parameter, concrete_value, param, static
from physkit.parallel import AbstractComm, SerialComm

from ._space import AbstractSpace, Components


class Box(AbstractSpace):
    """Rectangular box [0, L₁) × … × [0, L_d), periodic along the axes that `periodic` names.

    **Arguments:**

    - `lengths`: edge lengths, `[d]`, length unit; differentiable (pressure is a derivative by them).
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
        periodic: bool | tuple[bool, ...] = True,
        comm=None,
    ):
        self.lengths = as_parameter(lengths)
        self.comm = SerialComm() if comm is None else comm
        shape = np.shape(lengths)
        if len(shape) != 1 or not 1 <= shape[0] <= 3:
            raise ShapeError(
                f"Box needs one length per axis, e.g. Box([10, 10, 10]); got {lengths!r}"
            )
        self.periodic = (periodic,) * shape[0] if isinstance(periodic, bool) else tuple(periodic)
        if len(self.periodic) != shape[0]:
            raise ShapeError(
                f"Box has {shape[0]} lengths but periodicity for {len(self.periodic)} axes"
            )
        # Traced lengths cannot be checked here; `is_degenerate` finds them. Lists of tracers become objects.
        numbers = concrete_value(lengths)
        if numbers is not None and numbers.dtype != object and not np.all(numbers > 0):
            raise ParameterError(f"box lengths must be positive; got {numbers.tolist()}")

    @staticmethod
    def cube(length: ArrayLike, dimension: int = 3) -> "Box":
        """The periodic box with `dimension` equal edges."""
        return Box(jnp.full(dimension, jnp.asarray(length, float)))

    def periodic_axes(self, dimension: int) -> tuple[bool, ...]:
        self._check(dimension)
        return self.periodic

    def cell(self, dimension: int):
        self._check(dimension)
        return jnp.diag(self.lengths)

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
