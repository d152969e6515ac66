"""`AbstractGrid`: the points of uniform cells, and those of them that this device holds."""

from collections.abc import Callable
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    Module,
    ParameterError,
    ShapeError,
    as_device_array,
    concrete_value,
    is_tracing,
    safe_max,
)

from ._box import Box
from ._coordinates import CoordinatesAt
from ._location import AXES, Location, axis_number

ArrayLike: TypeAlias = Array | np.ndarray


class AbstractGrid(Module):
    """The points of a grid, and those on this device: what ghost layers and transforms need of it.

    - `space`: the box that the cells fill.
    - `shape`: number of cells per axis, of the whole domain.
    """

    space: eqx.AbstractVar[Box]
    shape: eqx.AbstractVar[tuple[int, ...]]

    @property
    def dimension(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Whether each axis is periodic."""
        return self.space.periodic

    @property
    def spacing(self) -> Float[Array, " d"]:
        """Edge lengths of a cell, length unit."""
        lengths, known = self.space.lengths, _visible(self.space.lengths)
        if known is not None:
            return as_device_array(known / np.asarray(self.shape, known.dtype))
        return lengths / jnp.asarray(self.shape, lengths.dtype)

    @property
    def cell_volume(self) -> Float[Array, ""]:
        """Length, area or volume of a cell."""
        return jnp.prod(self.spacing)

    def image_spacing(self) -> np.ndarray:
        """Edge lengths of a cell, on the host, as images of the grid have them."""
        return np.asarray(self.spacing)

    # --- where values sit -----------------------------------------------------------------------

    def axis(self, axis: int | str) -> int:
        """The number of the axis "x", "y" or "z" (or of itself)."""
        return axis_number(axis, self.dimension)

    @property
    def cell(self) -> Location:
        """The centers of cells."""
        return Location((False,) * self.dimension)

    @property
    def node(self) -> Location:
        """The corners of cells."""
        return Location((True,) * self.dimension)

    def face(self, axis: int | str) -> Location:
        """The centers of the faces normal to `axis`, through which fluxes along it pass."""
        return self.cell.staggered_along(self.axis(axis))

    def edge(self, axis: int | str) -> Location:
        """The centers of the edges along `axis`."""
        return self.node.staggered_along(self.axis(axis))

    def local_shape_at(self, location: Location) -> tuple[int, ...]:
        """Number of points per axis at `location`, on this device."""
        return tuple(
            n + shared
            for n, shared in zip(self.local_shape, self.includes_walls(location), strict=True)
        )

    @property
    def local_shape(self) -> tuple[int, ...]:
        """Number of cells per axis on this device.

        **Errors:** `ShapeError` where devices do not divide the grid.
        """
        devices = tuple(self.space.comm.axis_size(k) for k in range(self.dimension))
        _require_divisible(self.shape, devices)
        return tuple(n // p for n, p in zip(self.shape, devices, strict=True))

    def require_shardable(self, devices: tuple[int, ...]) -> None:
        """Check that the grid can be cut over `devices[k]` devices along axis k.

        **Errors:** `ShapeError` where they do not divide it.
        """
        _require_divisible(self.shape, devices)

    def includes_walls(self, location: Location) -> tuple[bool, ...]:
        """Per axis, whether points sit on walls.

        Then there is one more of them than of cells, and neighboring devices both hold the layer between them.
        """
        self._require_same_dimension(location)
        return tuple(
            staggered and not wraps
            for staggered, wraps in zip(location.staggered, self.periodic, strict=True)
        )

    def local(self, x: Array, location: Location | None = None) -> Array:
        """This device's part of `x`, whose last axes are the points of the whole domain (or have length 1).

        - `location`: where the points sit; cell centers if left out.
        """
        comm, location = self.space.comm, self.cell if location is None else location
        lead = x.ndim - self.dimension
        for k, (n, shared) in enumerate(
            zip(self.local_shape, self.includes_walls(location), strict=True)
        ):
            # Axes of length 1, which broadcast, are the same on every device.
            if (
                comm.axis_size(k) > 1
                and lead + k >= 0
                and x.shape[lead + k] == self.shape[k] + shared
            ):
                first = comm.axis_index(k) * n
                x = jax.lax.dynamic_slice_in_dim(x, first, n + shared, axis=lead + k)
        return x

    def touches_side(self, axis: int, side: int) -> bool | Bool[Array, ""]:
        """Whether this device's block touches that side (0: low, 1: high) of the domain."""
        comm = self.space.comm
        if comm.axis_size(axis) == 1:
            return True
        return comm.axis_index(axis) == (comm.axis_size(axis) - 1 if side else 0)

    @property
    def coordinates(self) -> CoordinatesAt:
        """Coordinates of the points at `location` (cell centers if left out), one array per axis.

        `grid.coordinates(grid.node)`, `grid.coordinates()`. They are ready to broadcast: x is `[nx 1 1]`, y
        `[1 ny 1]`, z `[1 1 nz]`.
        """
        return CoordinatesAt(self._coordinates_at)

    def cell_edges(self, axis: int) -> Float[Array, " corners"]:
        """Coordinates along `axis` of the edges of this device's cells, `[cells + 1]`.

        On a periodic axis the end of the box is its beginning, at 0.
        """
        index = self._first_cell(axis) + np.arange(self.local_shape[axis] + 1, dtype=np.int32)
        if self.periodic[axis]:
            index = index % self.shape[axis]
        return index.astype(self.spacing.dtype) * self.spacing[axis]

    def global_index(self, location: Location | None = None) -> Int[Array, "..."]:
        """`[*points]`: the index in the whole domain of each of this device's points, row-major.

        Random numbers that are drawn from it do not depend on devices.
        """
        location = self.cell if location is None else location
        out = jnp.zeros((1,) * self.dimension, jnp.int32)
        for k, (n, shared) in enumerate(
            zip(self.local_shape_at(location), self.includes_walls(location))
        ):
            index = jnp.asarray(self._first_cell(k), jnp.int32) + np.arange(n, dtype=np.int32)
            # Horner's scheme, with as many points along axis k as the whole domain has.
            out = out * (self.shape[k] + shared) + self.along_axis(k, index)
        return out

    def along_axis(self, axis: int, x: ArrayLike) -> ArrayLike:
        """`x`, with one number for each point along `axis`, ready to broadcast over the others."""
        return x.reshape([-1 if k == axis else 1 for k in range(self.dimension)])

    def random_normal(
        self, key: Array | None, parts: tuple[int, ...] = (), location: Location | None = None
    ) -> Float[Array, "..."]:
        """Standard normal noise `[*parts, *points]`, drawn point by point from (key, index of the point).

        It does not depend on devices. For white noise in space and time divide it by √(V dt), with V the
        volume of a cell.

        **Arguments:**

        - `key`: a JAX random key; in a term `clock.key`, which differs from step to step.
        - `parts`: shape of the components, which are drawn independently.
        - `location`: where the points sit; cell centers if left out.

        **Errors:** `ParameterError` without a key.
        """
        return self._draw(jax.random.normal, key, parts, location)

    def random_uniform(
        self, key: Array | None, parts: tuple[int, ...] = (), location: Location | None = None
    ) -> Float[Array, "..."]:
        """Noise between 0 and 1 `[*parts, *points]`; otherwise as `random_normal`."""
        return self._draw(jax.random.uniform, key, parts, location)

    def _draw(
        self,
        distribution: Callable[..., Array],
        key: Array | None,
        parts: tuple[int, ...],
        location: Location | None,
    ) -> Array:
        """Numbers of a distribution `(key, shape, dtype)`, drawn point by point."""
        if key is None:
            raise ParameterError(
                "noise needs a key: give the simulation one, e.g. key=jax.random.key(0)"
            )
        index = self.global_index(location)

        def draw(i: Array) -> Array:
            return distribution(jax.random.fold_in(key, i), parts, self.space.lengths.dtype)

        # (points, *parts) → (*points, *parts) → (*parts, *points)
        noise = jax.vmap(draw)(index.reshape(-1)).reshape(*index.shape, *parts)
        return jnp.moveaxis(noise, range(self.dimension), range(-self.dimension, 0))

    # --- the whole domain -----------------------------------------------------------------------

    def sum(self, x: Array) -> Array:
        """Σ over all points, per component."""
        return self.space.comm.psum(jnp.sum(x, axis=self._point_axes()))

    def max(self, x: Array) -> Array:
        """The largest value over all points, per component."""
        return self.space.comm.pmax(safe_max(x, self._point_axes()))

    def integrate(self, x: Array) -> Array:
        """∫ x dV, per component, of values at cell centers or weighted by `quadrature_weights`."""
        return self.sum(x) * self.cell_volume

    def quadrature_weights(self, location: Location) -> tuple[np.ndarray, ...]:
        """Weights of the trapezoidal rule per axis, in cells, ready to broadcast: ½ on walls, else 1."""
        out = []
        for k, (n, staggered) in enumerate(
            zip(self.local_shape_at(location), location.staggered, strict=True)
        ):
            weights = np.ones(n)
            if staggered and not self.periodic[k]:
                # On a sharded axis, too, where the ends may lie inside the domain: both neighbors hold that
                # layer, and each counts half of it.
                weights[[0, -1]] = 0.5
            out.append(self.along_axis(k, weights))
        return tuple(out)

    def require_periodic(self, what: str) -> None:
        """Check that every axis is periodic, for `what`, a plural.

        **Errors:** `ParameterError` when one is not.
        """
        walls = [AXES[k] for k, wraps in enumerate(self.periodic) if not wraps]
        if walls:
            raise ParameterError(
                f"{what} need periodic axes; the box has walls along {', '.join(walls)}"
            )

    # --- inside ---------------------------------------------------------------------------------

    def _coordinates_at(self, location: Location | None) -> tuple[Float[Array, "..."], ...]:
        location = self.cell if location is None else location
        out, spacing = [], self.spacing
        known = _visible(spacing)
        for k, (n, staggered) in enumerate(
            zip(self.local_shape_at(location), location.staggered, strict=True)
        ):
            x = (np.arange(n) + (0.0 if staggered else 0.5)).astype(spacing.dtype)
            if self.space.comm.axis_size(k) > 1:
                # Integers and halves add up exactly: coordinates have the same bits on any number of devices.
                x = x + self._first_cell(k).astype(x.dtype)
            x = self.along_axis(k, x)
            out.append(x * spacing[k] if known is None else as_device_array(x * known[k]))
        return tuple(out)

    def _point_axes(self) -> tuple[int, ...]:
        """The array axes of the points."""
        return tuple(range(-self.dimension, 0))

    def _first_cell(self, axis: int) -> Int[Array, ""]:
        """Index of this device's first cell along `axis`."""
        return jnp.asarray(self.space.comm.axis_index(axis) * self.local_shape[axis])

    def _require_same_dimension(self, location: Location) -> None:
        if len(location.staggered) != self.dimension:
            raise ShapeError(
                f"the location {location!r} has {len(location.staggered)} axes, the grid "
                f"{self.dimension}"
            )


def _visible(x: Array) -> np.ndarray | None:
    """The numbers of `x` where no trace is under way: what follows from them needs no program."""
    return None if is_tracing() else concrete_value(x)


def _require_divisible(shape: tuple[int, ...], devices: tuple[int, ...]) -> None:
    """Check that a grid of devices divides the grid of cells into equal blocks.

    **Errors:** `ShapeError` where it does not; it names numbers of devices that would.
    """
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
