"""Uniform grids: ghost cells, transforms and sums over a domain, on one device or many."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float

from physkit.core import ParameterError, ShapeError, describe, static

from ..boundaries._boundary import AbstractBoundary, Periodic
from ..boundaries._parse_boundaries import Boundaries
from ..spaces._abstract_grid import AbstractGrid
from ..spaces._box import Box
from ..spaces._location import Location
from ..spaces._space import AbstractSpace
from ..transforms._cosine_sine import Parities, inverse_transform_values, transform_values
from ..transforms._distributed_transform import (
    forward_transform,
    hermitian_symmetrize,
    inverse_transform,
    is_sharded,
    local_modes,
    mode_multiplicity,
    mode_numbers,
)
from ._ghosts import with_ghosts

Width = int | tuple[tuple[int, int], ...]  # number of ghosts: on all sides, or (low, high) per axis


def _identity(x: np.ndarray) -> np.ndarray:
    return x


def _as_counts(shape: Any) -> tuple[int, ...]:
    """Numbers of cells, whole ones."""
    numbers = np.atleast_1d(shape)
    if numbers.dtype.kind not in "iuf" or np.any(numbers != np.round(numbers)):
        raise ParameterError(
            f"shape counts cells, e.g. Grid([1.0, 1.0], (64, 64)): whole numbers; got {describe(shape)}"
        )
    if numbers.dtype.kind == "f" and np.all(numbers == 1):
        raise ParameterError(
            f"Grid(lengths, shape): lengths come first, numbers of cells second; got {describe(shape)} as shape"
        )
    return tuple(int(n) for n in numbers)


class Grid(AbstractGrid):
    """Uniform cells that fill a box.

        Grid(Box([L, L]), (256, 256))

    Arrays on a grid have the axes of space last, in order x, y, z: `[*components, *points]`.
    Periodic axes have as many faces as cells, the first at x = 0; axes with walls one more, the
    first and last on the walls.

    **Arguments:**

    - `space`: a `Box`; or lengths, for a box that is periodic along every axis.
    - `shape`: number of cells per axis, of the whole domain.

    **Errors:** `ShapeError` when the two have different numbers of axes, or for an axis without cells.
    """

    space: Box
    shape: tuple[int, ...] = static()

    def __init__(self, space: Box | ArrayLike | Sequence[Any], shape: ArrayLike | Sequence[int]):
        if isinstance(space, AbstractSpace) and not isinstance(space, Box):
            raise ParameterError(
                f"a grid fills a Box, e.g. Grid(Box([1, 1]), (64, 64)); got {describe(space)}"
            )
        if isinstance(space, int | float):
            space = [space]
        self.space = space if isinstance(space, Box) else Box(space)
        self.shape = _as_counts(shape)
        if len(self.shape) != len(self.space.periodic):
            raise ShapeError(
                f"a box with {len(self.space.periodic)} axes needs one number of cells for each; got "
                f"shape {self.shape}"
            )
        if min(self.shape) < 1:
            raise ShapeError(f"a grid has at least one cell along every axis; got {self.shape}")

    # --- neighbors -----------------------------------------------------------------------------

    def pad(
        self,
        x: Array,
        width: Width,
        boundary: Boundaries,
        location: Location | None = None,
        *,
        vector: bool = False,
    ) -> Array:
        """`x` with ghost layers around it, filled axis by axis so that corners are right, too.

        **Arguments:**

        - `x`: `[*components, *points]` at `location` (cell centers if left out).
        - `width`: how many layers on every side, or `((low, high), …)` per axis.
        - `boundary`: one pair of boundaries per axis.
        - `vector`: whether the components are those of a vector, whose normal component mirrors reverse.

        **Errors:** `ParameterError` where an axis has no boundary, `ShapeError` for more ghosts than
        there are cells.
        """
        location = self.cell if location is None else location
        if isinstance(width, int):
            width = ((width, width),) * self.dimension
        return with_ghosts(self, x, width, boundary, location, vector)

    def boundaries_at(
        self, t: ArrayLike, boundary: Boundaries, location: Location, parts: int = 0
    ) -> Boundaries:
        """`boundary` at time `t`: values that are functions of time and place are evaluated on the walls.

        - `location`: where the field's values sit.
        - `parts`: number of component axes of the field.
        """
        out: list[Any] = []
        for axis, sides in enumerate(boundary):
            if sides is None or isinstance(sides[0], Periodic):
                out.append(sides)
                continue
            pair: list[AbstractBoundary] = []
            for side, position in zip(sides, (0 * self.space.lengths, self.space.lengths)):
                # The coordinates of the field's points, moved to the wall along its axis.
                x = list(self.coordinates(location))
                x[axis] = position[axis].reshape((1,) * self.dimension)
                pair.append(side.at_time(t, x, parts))
            out.append(tuple(pair))
        return tuple(out)

    # --- Fourier --------------------------------------------------------------------------------

    def fft(self, x: Array) -> Array:
        """Fourier coefficients `[*components, *modes]` of an array `[*components, *points]`.

        Of real arrays, only modes with k ≥ 0 along one axis are kept: the last axis on one device. Over several
        devices these are the coefficients of this device, transposed; `modes` tells which they are.

        **Errors:** `ParameterError` when an axis is not periodic.
        """
        self.require_periodic("Fourier transforms")
        if self.space.comm.size > 1:
            return forward_transform(self, x, self._all_periodic)
        axes = tuple(range(-self.dimension, 0))
        return jnp.fft.fftn(x, axes=axes) if jnp.iscomplexobj(x) else jnp.fft.rfftn(x, axes=axes)

    def ifft(self, coefficients: Array, *, real: bool = True) -> Array:
        """The array with these Fourier coefficients; `real` must be what it was for `fft`."""
        if self.space.comm.size > 1:
            return inverse_transform(self, coefficients, self._all_periodic, real)
        axes = tuple(range(-self.dimension, 0))
        if real:
            return jnp.fft.irfftn(coefficients, s=self.shape, axes=axes)
        return jnp.fft.ifftn(coefficients, axes=axes)

    def modes(self, *, real: bool = True) -> tuple[Any, ...]:
        """Mode numbers n (integers) of this device's Fourier modes, one array per axis, ready to broadcast."""
        return tuple(self.map_modes(k, _identity, real=real) for k in range(self.dimension))

    def map_modes(self, axis: int, function: Callable[[np.ndarray], Any], *, real: bool = True):
        """`function` of the mode numbers along an axis, for this device's modes, ready to broadcast.

        It is evaluated for all modes on the host, in double precision, and then rounded to that of the grid.
        """
        n = mode_numbers(self, axis, self._all_periodic, real).astype(np.int32)
        return self.along_axis(axis, local_modes(self, axis, function(n), self._all_periodic, real))

    def wavenumbers(self, *, real: bool = True) -> tuple[Float[Array, "..."], ...]:
        """Wavenumbers k = 2πn/L of the Fourier modes, 1 / length, one array per axis, ready to broadcast."""
        lengths = self.space.lengths
        return tuple(
            n.astype(lengths.dtype) * (2 * np.pi / lengths[k])
            for k, n in enumerate(self.modes(real=real))
        )

    def square_wavenumber(self, *, real: bool = True) -> Float[Array, "..."]:
        """k² = Σ kᵢ² of every mode: what −∇² makes of it."""
        first, *rest = (k**2 for k in self.wavenumbers(real=real))
        return sum(rest, first)

    def dealias_mask(self, *, real: bool = True) -> Bool[Array, "..."]:
        """Whether products of two fields are free of aliasing in a mode: |n| < N/3 along every axis.

        **Reference:** Orszag, J. Atmos. Sci. 28, 1074 (1971).
        """
        low = [3 * abs(n) < N for n, N in zip(self.modes(real=real), self.shape, strict=True)]
        keep = jnp.asarray(low[0])
        for mask in low[1:]:
            keep = keep & jnp.asarray(mask)
        return keep

    def mode_multiplicity(self, *, real: bool = True) -> Any:
        """How many modes each coefficient stands for, ready to broadcast.

        Two where the coefficient of −k, the conjugate of that of k, is not stored; 0 for padding.
        """
        return math.prod(mode_multiplicity(self, self._all_periodic, real))

    def psum_modes(self, x: Array) -> Array:
        """Σ over devices of `x`, which each has summed over its modes."""
        # Modes that are not sharded are on every device: they must not count once per device.
        return self.space.comm.psum(x) if is_sharded(self) else x

    def hermitian_symmetrize(self, coefficients: Array) -> Array:
        """Project coefficients onto those of real values, whose modes come in conjugate pairs."""
        return hermitian_symmetrize(self, coefficients)

    # --- waves between walls --------------------------------------------------------------------

    def transform(self, x: Array, parities: Parities) -> Array:
        """Coefficients `[*components, *modes]` of real values at cell centers.

        Fourier modes along periodic axes, cosines or sines between walls.

        **Arguments:**

        - `parities`: per axis `None` where it is periodic, or the parity of the waves at the two walls:
          `"even"` (a mirror, zero slope) or `"odd"` (zero).
        """
        is_distributed = self.space.comm.size > 1
        return (
            forward_transform(self, x, parities)
            if is_distributed
            else transform_values(x, parities)
        )

    def inverse_transform(self, coefficients: Array, parities: Parities) -> Array:
        """The values whose coefficients `transform` gives as these."""
        if self.space.comm.size > 1:
            return inverse_transform(self, coefficients, parities, True)
        return inverse_transform_values(coefficients, parities, self.shape)

    def mode_phases(
        self, parities: Parities, function: Callable[[np.ndarray], Any] = _identity
    ) -> tuple[Any, ...]:
        """Phases θ = kh from one cell to the next of the modes of `transform`, or a `function` of them.

        One array per axis, ready to broadcast, evaluated for all modes on the host, in double precision, and
        then rounded to that of the grid.
        """
        out = []
        for k, n in enumerate(self.shape):
            # Waves between walls are periodic over twice the length.
            phase = np.pi / n if parities[k] is not None else 2 * np.pi / n
            theta = phase * mode_numbers(self, k, parities, True)
            out.append(self.along_axis(k, local_modes(self, k, function(theta), parities, True)))
        return tuple(out)

    # --- inside ---------------------------------------------------------------------------------

    @property
    def _all_periodic(self) -> Parities:
        return (None,) * self.dimension
