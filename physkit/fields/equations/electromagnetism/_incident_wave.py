"""Waves that come in through the faces of a region: total field inside, scattered field outside."""

import abc
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import Clock, ParameterError
from physkit.geometry import AXES, Grid, Location

from ...states._electromagnetic_field import place_of
from ..absorbing._convolutional_pml import ConvolutionalPML
from ._sources import AbstractSource


class Face(NamedTuple):
    """A face of the region: through the nodes number `node` along `axis`; the region lies above it or below."""

    axis: int
    node: int
    region_above: bool


class AbstractIncidentWave(AbstractSource):
    """A wave that is known in vacuum or in a medium, and enters a region through its faces.

    The field of the state is the whole field inside of the region (its faces included) and what is scattered
    outside: derivatives across a face are corrected by the wave on its other side.
    """

    @abc.abstractmethod
    def incident(self, clock: Clock, grid: Grid, name: str, x: Sequence[Array]) -> Array:
        """The component `name` of the wave at the points `x` and the time `clock.t`."""

    @abc.abstractmethod
    def faces(self, grid: Grid) -> list[Face]:
        """The faces through which it comes and goes."""

    @abc.abstractmethod
    def extent(self, grid: Grid, axis: int) -> tuple[int, int] | None:
        """The first and the last node of the region along an axis; None for all."""

    def check_layer(self, grid: Grid, layer: ConvolutionalPML | None) -> None:
        """**Errors:** `ParameterError` for a face within an absorbing layer, where the wave is another."""
        for side in () if layer is None else layer.sides_of(grid):
            axis = AXES.index(side[0])
            nodes = [face.node for face in self.faces(grid) if face.axis == axis]
            free = min(
                (n if side.endswith("low") else grid.shape[axis] - n for n in nodes), default=None
            )
            if free is not None and layer.cells >= free:
                raise ParameterError(
                    f"the wave comes in {free} cells before {side}, within the absorbing layer of "
                    f"{layer.cells} cells there: a margin of {layer.cells + 2} cells, or a thinner layer"
                )

    def add_to_curl(self, curl: Array, clock: Clock, grid: Grid, name: str) -> Array:
        i, other = AXES.index(name[1]), "H" if name[0] == "E" else "E"
        place = place_of(name, grid)
        for face in self.faces(grid):
            if face.axis == i:
                continue  # no derivative of this component's curl goes across the face
            j, h = face.axis, grid.spacing[face.axis]
            k = 3 - i - j
            sign = 1.0 if (i + 1) % 3 == j else -1.0
            # E sits on the face, H half a cell off it.
            outside = (-0.5 if face.region_above else 0.5) if other == "H" else 0.0
            index = face.node if name[0] == "E" else face.node - int(face.region_above)
            x = list(grid.coordinates(place))
            x[j] = ((face.node + outside) * h).reshape((1,) * grid.dimension)
            wave = self.incident(clock, grid, other + AXES[k], x)
            for axis in range(grid.dimension):
                if axis != j:
                    wave = wave * self._mask(grid, place, axis)
            step = -sign if face.region_above else sign
            curl = add_on_plane(curl, grid, j, index, (step * wave / h).astype(curl.dtype))
        return curl

    def _mask(self, grid: Grid, place: Location, axis: int) -> Array:
        """1 at the points of the region along `axis`, 0 outside."""
        extent = self.extent(grid, axis)
        x = grid.coordinates(place)[axis]
        if extent is None:
            return jnp.ones((), x.dtype)
        h = grid.spacing[axis]
        # Points are half a cell apart: a quarter on either side tells them from one another.
        inside = (x > (extent[0] - 0.25) * h) & (x < (extent[1] + 0.25) * h)
        return inside.astype(x.dtype)


def add_on_plane(x: Array, grid: Grid, axis: int, index: int, values: Array) -> Array:
    """`x` with `values` added to its points number `index`, of the whole domain, along an axis."""
    n = x.shape[axis]
    shape = tuple(1 if k == axis else m for k, m in enumerate(x.shape))
    values = jnp.broadcast_to(values, shape)
    if grid.space.comm.axis_size(axis) == 1:
        plane = jax.lax.slice_in_dim(x, index, index + 1, axis=axis)
        start: list = [0] * x.ndim
        start[axis] = index
        return jax.lax.dynamic_update_slice(x, plane + values, start)
    here = index - grid.space.comm.axis_index(axis) * grid.local_shape[axis]
    local = jnp.clip(here, 0, n - 1)
    plane = jax.lax.dynamic_slice_in_dim(x, local, 1, axis=axis)
    plane = plane + jnp.where(here == local, values, 0)
    return jax.lax.dynamic_update_slice_in_dim(x, plane, local, axis=axis)
