"""Uniform grids: the one place that ghost cells, transforms and sums over a domain come from."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import ParameterError, ShapeError, static

from ..boundaries._boundary import AbstractBoundary, Periodic
from ..boundaries._sides import Boundaries
from ..spaces._abstract_grid import AbstractGrid
from ..spaces._box import Box
from ..spaces._location import AXES, Location
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

Width = int | tuple[tuple[int, int], ...]  # of ghosts: for all sides, or (low, high) per axis


class Grid(AbstractGrid):
    """Uniform cells that fill a box.

        Grid(Box([L, L]), (256, 256))

    Arrays on a grid have the axes of space last, in order x, y, z: `[*components, *points]`.
    Periodic axes have as many faces as cells, the first at x = 0; axes with walls one more, the
    first and last on the walls.

    **Arguments:**

    - `space`: a `Box`, or its lengths, for one that repeats along every axis.
    - `shape`: number of cells per axis.

    **Errors:** `ShapeError` when the two do not agree.
    """

    space: Box
    shape: tuple[int, ...] = static()

    def __init__(self, space: Any, shape: Any):
        self.space = space if isinstance(space, Box) else Box(space)
        self.shape = tuple(int(n) for n in np.atleast_1d(shape))
        if len(self.shape) != len(self.space.periodic):
            raise ShapeError(
                f"a box with {len(self.space.periodic)} axes needs one number of cells for each; got "
                f"shape {self.shape}"
            )
        if min(self.shape) < 1:
            raise ShapeError(f"a grid has at least one cell along every axis; got {self.shape}")

    def random_normal(
        self, key: Array | None, parts: tuple[int, ...] = (), location: Location | None = None
    ) -> Float[Array, "..."]:
        """Standard normal noise `[*parts, *points]`, drawn point by point from (key, number of the point).

        It depends neither on devices nor on how a domain is cut; of white noise in space and time take
        it over √(V dt), V the volume of a cell.

        **Arguments:**

        - `key`: a JAX random key; in a term `clock.key`, which is another in every step.
        - `parts`: axes of components, drawn independently.

        **Errors:** `ParameterError` without a key.
        """
        if key is None:
            raise ParameterError(
                "noise needs a key: give the simulation one, e.g. key=jax.random.key(0)"
            )
        numbers = self.global_index(location)
        draw = lambda i: jax.random.normal(jax.random.fold_in(key, i), parts, self.spacing.dtype)
        drawn = jax.vmap(draw)(numbers.reshape(-1)).reshape(*numbers.shape, *parts)
        return jnp.moveaxis(drawn, range(self.dimension), range(-self.dimension, 0))

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
        - `vector`: whether the components are those of a vector, which mirrors turn around.

        **Errors:** `ParameterError` where an axis has no boundary, `ShapeError` for more ghosts than
        there are cells.
        """
        location = self.cell if location is None else location
        if isinstance(width, int):
            width = ((width, width),) * self.dimension
        return with_ghosts(self, x, width, boundary, location, vector)

    def boundaries_at(
        self, t: Any, boundary: Boundaries, location: Location, parts: int = 0
    ) -> Boundaries:
        """`boundary` at time `t`: values that are functions of time and place as arrays.

        `parts`: how many axes of components the field has.
        """
        out: list[Any] = []
        for axis, sides in enumerate(boundary):
            if sides is None or isinstance(sides[0], Periodic):
                out.append(sides)
                continue
            pair: list[AbstractBoundary] = []
            for side, position in zip(sides, (0 * self.space.lengths, self.space.lengths)):
                x = list(self.coordinates(location))
                x[axis] = position[axis].reshape((1,) * self.dimension)
                pair.append(side.at_time(t, x, parts))
            out.append(tuple(pair))
        return tuple(out)

    # --- Fourier --------------------------------------------------------------------------------

    def fft(self, x: Array) -> Array:
        """Fourier coefficients `[*components, *modes]`; of real arrays those with k ≥ 0 along the last
        axis. Of a domain cut over devices this device's part: `modes` says which.

        **Errors:** `ParameterError` when an axis does not repeat.
        """
        self.require_periodic("Fourier transforms")
        if self.space.comm.size > 1:
            return forward_transform(self, x, self._all_periodic)
        axes = tuple(range(-self.dimension, 0))
        return jnp.fft.fftn(x, axes=axes) if jnp.iscomplexobj(x) else jnp.fft.rfftn(x, axes=axes)

    def ifft(self, coefficients: Array, *, real: bool = True) -> Array:
        """The array that these are the coefficients of."""
        if self.space.comm.size > 1:
            return inverse_transform(self, coefficients, self._all_periodic, real)
        axes = tuple(range(-self.dimension, 0))
        if real:
            return jnp.fft.irfftn(coefficients, s=self.shape, axes=axes)
        return jnp.fft.ifftn(coefficients, axes=axes)

    def modes(self, *, real: bool = True) -> tuple[Any, ...]:
        """Whole numbers n of the Fourier modes per axis, ready to broadcast."""
        return tuple(self.map_modes(k, lambda n: n, real=real) for k in range(self.dimension))

    def map_modes(self, axis: int, function: Callable[[np.ndarray], Any], *, real: bool = True):
        """`function` of the whole numbers of the modes along an axis, ready to broadcast: evaluated for
        all of them on the host, in double precision."""
        n = mode_numbers(self, axis, self._all_periodic, real).astype(np.int32)
        return self.along_axis(axis, local_modes(self, axis, function(n), self._all_periodic, real))

    def wavenumbers(self, *, real: bool = True) -> tuple[Float[Array, "..."], ...]:
        """k = 2πn/L of the Fourier modes, one array per axis, ready to broadcast."""
        lengths = self.space.lengths
        return tuple(
            n.astype(lengths.dtype) * (2 * np.pi / lengths[k])
            for k, n in enumerate(self.modes(real=real))
        )

    def dealias_mask(self, *, real: bool = True) -> Bool[Array, "..."]:
        """Which modes products of two fields leave free of aliasing: |n| < N/3 along every axis.

        **Reference:** Orszag, J. Atmos. Sci. 28, 1074 (1971).
        """
        low = [3 * abs(n) < N for n, N in zip(self.modes(real=real), self.shape, strict=True)]
        keep = jnp.asarray(low[0])
        for mask in low[1:]:
            keep = keep & jnp.asarray(mask)
        return keep

    def mode_multiplicity(self, *, real: bool = True) -> Any:
        """How many modes each coefficient stands for: two where that of −k is left out, as the conjugate of
        that of k, and none for padding; ready to broadcast."""
        return math.prod(mode_multiplicity(self, self._all_periodic, real))

    def psum_modes(self, x: Array) -> Array:
        """Σ over all devices of what each has summed over its modes."""
        return self.space.comm.psum(x) if is_sharded(self) else x

    def hermitian_symmetrize(self, coefficients: Array) -> Array:
        """Coefficients made those of real values again, whose modes come in conjugate pairs."""
        return hermitian_symmetrize(self, coefficients)

    # --- waves between walls --------------------------------------------------------------------

    def transform(self, x: Array, parities: Parities) -> Array:
        """Coefficients `[*components, *waves]` of real values at cell centers: Fourier's along axes that
        repeat, of cosines or sines between walls.

        **Arguments:**

        - `parities`: per axis `None` where it repeats, or what the waves are at the two walls:
          `"even"` (a mirror, zero slope) or `"odd"` (zero).
        """
        cut = self.space.comm.size > 1
        return forward_transform(self, x, parities) if cut else transform_values(x, parities)

    def inverse_transform(self, coefficients: Array, parities: Parities) -> Array:
        """The values that these are the coefficients of."""
        if self.space.comm.size > 1:
            return inverse_transform(self, coefficients, parities, True)
        return inverse_transform_values(coefficients, parities, self.shape)

    def mode_phases(
        self, parities: Parities, function: Callable[[np.ndarray], Any] = lambda theta: theta
    ) -> tuple[Any, ...]:
        """How far the waves of `series` turn from one cell to the next, kh, one array per axis, ready to
        broadcast; or a `function` of that, evaluated for all on the host, in double precision."""
        out = []
        for k, n in enumerate(self.shape):
            turn = np.pi / n if parities[k] is not None else 2 * np.pi / n
            theta = turn * mode_numbers(self, k, parities, True)
            out.append(self.along_axis(k, local_modes(self, k, function(theta), parities, True)))
        return tuple(out)

    def require_periodic(self, what: str) -> None:
        """**Errors:** `ParameterError` when an axis does not repeat."""
        walls = [AXES[k] for k, wraps in enumerate(self.periodic) if not wraps]
        if walls:
            raise ParameterError(
                f"{what} need axes that repeat; the box has walls along {', '.join(walls)}"
            )

    # --- the whole domain -----------------------------------------------------------------------

    def sum(self, x: Array) -> Array:
        """Σ over all points, per component."""
        return self.space.comm.psum(jnp.sum(x, axis=self._point_axes()))

    def max(self, x: Array) -> Array:
        """The largest value over all points, per component."""
        return self.space.comm.pmax(jnp.max(x, axis=self._point_axes()))

    def quadrature_weights(self, location: Location) -> tuple[np.ndarray, ...]:
        """Shares of a cell that the points stand for, per axis: ½ on walls, else 1."""
        out = []
        for k, (n, staggered) in enumerate(
            zip(self.local_shape_at(location), location.staggered, strict=True)
        ):
            share = np.ones(n)
            if staggered and not self.periodic[k]:
                share[[0, -1]] = 0.5
            out.append(self.along_axis(k, share))
        return tuple(out)

    # --- inside ---------------------------------------------------------------------------------

    @property
    def _all_periodic(self) -> Parities:
        return (None,) * self.dimension

    def _point_axes(self) -> tuple[int, ...]:
        """The array axes of the points."""
        return tuple(range(-self.dimension, 0))
