"""Where bodies are: how much of the cell about a point they cover, and where their surface faces."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    DeclarationError,
    Module,
    call_user_function,
    describe,
    jit_once,
    safe_clip,
    safe_sqrt,
    static,
)
from physkit.geometry import AXES, Grid, Location

from ..solid._solids import AbstractSolid, require_distance, surface_distance

# A solid, or a function of the coordinates: the distance from the surface, negative inside.
Shape: TypeAlias = AbstractSolid | Callable[..., Array]

_SAMPLES = 4  # of a cell along every axis, between which its surface counts as a plane


class FunctionShape(Module):
    """A plain function of the coordinates as a shape."""

    function: Callable = static()

    def __call__(self, *x: Array) -> Array:
        return call_user_function(
            self.function, x, "a shape", f"({', '.join(AXES[: len(x)])}) → distance"
        )


class Coverage(NamedTuple):
    """What a body does to the cells about the points of one component.

    - `fraction`: of the cell that it covers.
    - `normal_squared`: cos² of the angle between its surface and the component's plane: 1 where the component
      is normal to the surface; 0 for one out of the grid's plane.
    """

    fraction: Array
    normal_squared: Array


def as_shape(shape: Shape | None) -> Module | None:
    """**Errors:** `DeclarationError` for what is no solid and no function."""
    if shape is None or isinstance(shape, Module):
        return shape
    if not callable(shape):
        raise DeclarationError(
            "a shape is a solid, e.g. Ball([0, 0], 1.0), or a function of the coordinates that gives the "
            f"distance from its surface, negative inside; got {describe(shape)}"
        )
    return FunctionShape(shape)


def signed_distance(shape: Module, x: Sequence[Array], grid: Grid) -> Array:
    """The distance of the points `x` from the surface of a shape, negative inside."""
    if isinstance(shape, AbstractSolid):
        t = jnp.zeros_like(x[0], shape=())
        return surface_distance(shape, t, shape.near_image(t, tuple(x), grid))
    return require_distance(shape(*x))


class NodePlane(NamedTuple):
    """The nodes of a plane across `axis`, from `low` to `high` along the other axes."""

    axis: int
    node: int
    low: tuple[int, ...]
    high: tuple[int, ...]

    def coordinates(self, grid: Grid) -> list[Array]:
        x = []
        for k, points in enumerate(grid.coordinates(grid.node)):
            nodes = np.arange(self.low[k], self.high[k] + 1) % points.shape[k]
            x.append(jnp.take(points, nodes, axis=k))
        x[self.axis] = (self.node * grid.spacing[self.axis]).reshape((1,) * grid.dimension)
        return x


@jit_once
def distances_from_nodes(
    shapes: tuple[Module, ...], grid: Grid, planes: tuple[NodePlane, ...]
) -> tuple[Array, list[list[Array]]]:
    """How near the surfaces come to the nodes of a grid, negative where one is inside, and their distances
    from the nodes of each plane."""
    # One program: operation by operation each would be compiled by itself.
    x = tuple(grid.coordinates(grid.node))
    smallest = jnp.stack([jnp.min(signed_distance(shape, x, grid)) for shape in shapes])
    on_planes = [
        [signed_distance(s, plane.coordinates(grid), grid) for s in shapes] for plane in planes
    ]
    return smallest, on_planes


def coverage(shape: Module, grid: Grid, location: Location, component: int) -> Coverage:
    """How a body covers the cells about the points of the component along axis `component`."""
    x, h = tuple(grid.coordinates(location)), grid.spacing
    points = grid.local_shape_at(location)

    def distance(*x: Array) -> Array:
        return jnp.broadcast_to(jnp.asarray(signed_distance(shape, x, grid), h.dtype), points)

    here = distance(*x)
    slopes = []
    for k in range(grid.dimension):
        ones = tuple(jnp.full_like(part, float(j == k)) for j, part in enumerate(x))
        slopes.append(jax.jvp(distance, x, ones)[1])
    square = sum(s**2 for s in slopes)
    # A plane through the cell, averaged over parts of it that are so small that a ramp stands for their share.
    width = safe_sqrt(sum((s * h[k]) ** 2 for k, s in enumerate(slopes))) / _SAMPLES
    # A distance has a slope of 1, and none at a center.
    width = jnp.where(width > 0, width, jnp.min(h) / _SAMPLES)
    middles = (np.arange(_SAMPLES) + 0.5) / _SAMPLES - 0.5
    offsets = np.array(list(product(middles, repeat=grid.dimension)))

    def add_part(total: Array, offset: Array) -> tuple[Array, None]:
        there = here + sum(s * (h[k] * offset[k]) for k, s in enumerate(slopes))
        return total + safe_clip(0.5 - there / width, 0.0, 1.0), None

    parts = jnp.asarray(offsets, h.dtype)
    total, _ = jax.lax.scan(add_part, jnp.zeros_like(here), parts)
    normal = jnp.zeros_like(here)
    if component < grid.dimension:
        normal = slopes[component] ** 2 / jnp.where(square > 0, square, 1)
    return Coverage(total / _SAMPLES**grid.dimension, normal)
