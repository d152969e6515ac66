"""Streaming: every population is read from the cell that it comes from, or from the side of the box."""

from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import ParameterError, concrete_value
from physkit.geometry import (
    AbstractBoundary,
    Dirichlet,
    FixedPressure,
    Grid,
    Mirror,
    Neumann,
    NoSlip,
    Outflow,
    Periodic,
    Wall,
    shape_for_wall,
)

from .._field import Field
from ._collisions import along_velocity
from ._lattice import Lattice


class Neighborhood:
    """The populations of a field, and those of neighboring cells."""

    def __init__(self, grid: Grid, data: Array):
        self.grid, self.data, self.padded = grid, data, None
        if grid.space.comm.size > 1:
            self.padded = self._pad()

    def _pad(self) -> Array:
        # Around the box for every axis, which also exchanges halos: at sides the values are not used.
        return self.grid.pad(self.data, 1, ((Periodic(), Periodic()),) * self.grid.dimension)

    def at(self, i: int, offset: np.ndarray) -> Array:
        """Population number i at the cells x + offset, for all cells x."""
        if not any(offset):
            return self.data[i]
        if self.padded is None:
            return jnp.roll(self.data[i], [-int(n) for n in offset], range(len(offset)))
        return self._cut(self.padded, i, offset)

    def _cut(self, padded: Array, i: int, offset: np.ndarray) -> Array:
        first = [1 + int(n) for n in offset]
        last = [n + k for n, k in zip(self.data.shape[1:], first, strict=True)]
        return jax.lax.slice(padded[i], first, last)

    def stream(self, lattice: Lattice, enter: Callable[[Any, Callable[..., Any]], Any]) -> Array:
        """All populations at the cells that they move to.

        - `enter(out, put)`: `out` with what comes in at sides, by `put(out, i, side, value)`.
        """

        def in_place() -> Array:
            return enter(self._moved(lattice), _write)

        def at_once() -> Array:
            padded = self._pad() if self.padded is None else self.padded
            moved = [self._cut(padded, i, -e) for i, e in enumerate(lattice.velocities)]
            return jnp.stack(enter(moved, _select))

        # A CPU copies blocks into place fastest; on a GPU each of them would be a launch.
        return jax.lax.platform_dependent(cpu=in_place, default=at_once)

    def _moved(self, lattice: Lattice) -> Array:
        """Around the box, block by block."""
        out = jnp.zeros_like(self.data)
        for i, e in enumerate(lattice.velocities.tolist()):
            if self.padded is not None:
                out = jax.lax.dynamic_update_slice_in_dim(out, self.at(i, -np.array(e))[None], i, 0)
                continue
            blocks = (_blocks(n, shift) for n, shift in zip(self.data.shape[1:], e, strict=True))
            for block in product(*blocks):
                source = tuple(slice(start, start + n) for start, _, n in block)
                to = (i, *(to for _, to, _ in block))
                out = jax.lax.dynamic_update_slice(out, self.data[(slice(i, i + 1), *source)], to)
        return out


class Side(NamedTuple):
    """One side of the box, as populations meet it.

    - `touched`: whether this device's part of the box touches it.
    - `layer`: whether a cell touches it, ready to broadcast.
    - `index`: of that layer along the axis, on this device.
    - `incoming`, `parallel`, `outgoing`: indices of velocities.
    """

    axis: int
    inward: int
    boundary: AbstractBoundary
    touched: Array | bool
    layer: Array
    index: int
    incoming: tuple[int, ...]
    parallel: tuple[int, ...]
    outgoing: tuple[int, ...]


def sides_of(field: Field, lattice: Lattice) -> Iterator[Side]:
    """The sides of the box that do not repeat."""
    grid = field.grid
    for axis in range(grid.dimension):
        if grid.periodic[axis]:
            continue
        n = grid.local_shape[axis]
        pair = field.boundary[axis] or ()
        for end, inward, boundary in zip((0, 1), (1, -1), pair, strict=True):
            index = (n - 1) * end
            mask = np.arange(n) == index
            touched = grid.touches_side(axis, end)
            layer = jnp.asarray(grid.along_axis(axis, mask)) & touched
            normal = lattice.velocities[:, axis] * inward
            yield Side(
                axis,
                inward,
                boundary,
                touched,
                layer,
                index,
                *(tuple(np.flatnonzero(normal == s).tolist()) for s in (1, 0, -1)),
            )


def stream_fluid(near: Neighborhood, field: Field, lattice: Lattice, speed: Array) -> Array:
    """The populations one step later, before they collide.

    - `near`: those of `field`.
    - `field`: f_i − w_i after the last collision, with its boundary at the end of the step.
    - `speed`: c, for velocities at sides.
    """
    sides = list(sides_of(field, lattice))

    def enter(out: Any, put: Callable[..., Any]) -> Any:
        for side in sides:
            for i, value in _reflected(near, lattice, side, field.grid, speed).items():
                out = put(out, i, side, value)
        for one, other in combinations(sides, 2):
            for i, value in _through_edge(near, lattice, one, other, field.grid, speed).items():
                there = jnp.where(one.layer, value, _layer(out[i], other))
                out = put(out, i, other, there)
        # Last, since they need all populations that do not come through them.
        for side in sides:
            if isinstance(side.boundary, Dirichlet | FixedPressure):
                for i, value in _zou_he(out, lattice, side, field.grid, speed).items():
                    out = put(out, i, side, value)
        return out

    return near.stream(lattice, enter)


def stream_heat(field: Field, lattice: Lattice, conductance: Array) -> Array:
    """The populations of a temperature one step later, before they collide.

    - `conductance`: diffusivity × dt / h, what a slope of 1 brings in.
    """
    w = lattice.weights.tolist()

    def enter(out: Any, put: Callable[..., Any]) -> Any:
        for side in sides_of(field, lattice):
            layer = _layer(field.data, side)
            for i in side.incoming:
                back = layer[lattice.opposites[i]]
                if isinstance(side.boundary, Dirichlet):
                    wall = _wall_value(side.boundary.value, field.grid, side, 1)[0]
                    value = 2 * w[i] * wall - back
                elif isinstance(side.boundary, Neumann):
                    slope = _wall_value(side.boundary.slope, field.grid, side, 1)[0]
                    share = w[i] / sum(w[j] for j in side.incoming)
                    value = back + share * conductance * slope
                else:
                    value = layer[i]
                out = put(out, i, side, value.astype(back.dtype))
        return out

    return Neighborhood(field.grid, field.data).stream(lattice, enter)


def require_balanced(field: Field, lattice: Lattice) -> None:
    """**Errors:** `ParameterError` where all sides have velocities that let more in than out at t = 0."""
    sides = [side for pair in field.boundary for side in pair or ()]
    if any(isinstance(side, Outflow | FixedPressure) for side in sides):
        return
    if not any(isinstance(side, Dirichlet) for side in sides):
        return
    net, gross = 0.0, 0.0
    for value in _inward_velocities(field, lattice):
        inwards = concrete_value(value)
        if inwards is None or inwards.dtype == object:
            return
        # Cells are cubes: all sides have one area for each.
        net += float(np.sum(inwards))
        gross += float(np.sum(np.abs(inwards)))
    if abs(net) > 1e-3 * gross:
        raise ParameterError(
            f"{'more' if net > 0 else 'less'} fluid enters through the sides than leaves, by "
            f"{abs(net) / gross:.0%}, so that its density would {'rise' if net > 0 else 'fall'} without end: "
            "balance the velocities, or let a side be Outflow() or FixedPressure(p)"
        )


@eqx.filter_jit
def _inward_velocities(field: Field, lattice: Lattice) -> list[Array]:
    # One program: operation by operation each would be compiled by itself.
    return [
        side.inward
        * _wall_value(side.boundary.value, field.grid, side, field.grid.dimension)[side.axis]
        for side in sides_of(field.at_time(0.0), lattice)
        if isinstance(side.boundary, Dirichlet)
    ]


# --- inside ---------------------------------------------------------------------------------------


def _blocks(n: int, shift: int) -> list[tuple[int, int, int]]:
    """Where blocks of a periodic line of n start, where they move to, and how long they are."""
    if shift == 0:
        return [(0, 0, n)]
    both = [(0, 1, n - 1), (n - 1, 0, 1)] if shift > 0 else [(1, 0, n - 1), (0, n - 1, 1)]
    return [block for block in both if block[2]]


def _write(out: Array, i: int, side: Side, value: Array) -> Array:
    """`out` with `value` for population i of the cells at a side."""
    before = _layer(out[i], side)
    value = jnp.where(side.touched, jnp.broadcast_to(value, before.shape), before)
    start = [i] + [0] * before.ndim
    start[1 + side.axis] = side.index
    return jax.lax.dynamic_update_slice(out, value[None], start)


def _select(out: list[Array], i: int, side: Side, value: Array) -> list[Array]:
    """The same for a list of populations."""
    return [*out[:i], jnp.where(side.layer, value, out[i]), *out[i + 1 :]]


def _reflected(
    near: Neighborhood, lattice: Lattice, side: Side, grid: Grid, speed: Array
) -> dict[int, Array]:
    """What comes in to the cells at a side: a wall, a mirror or open; a wall at inlets, until Zou and He."""
    boundary, out = side.boundary, {}
    w = lattice.weights.tolist()
    if isinstance(boundary, Mirror):
        image = lattice.mirrored(side.axis)
        for i in side.incoming:
            along = -lattice.velocities[i]
            along[side.axis] = 0
            out[i] = _layer(near.at(int(image[i]), along), side)
        return out
    layer = _layer(near.data, side)
    bounced = {i: layer[lattice.opposites[i]] for i in side.incoming}
    if isinstance(boundary, NoSlip) and not _is_zero(boundary.velocity):
        rho = 1 + jnp.sum(layer, axis=0)
        u = list(_wall_value(boundary.velocity, grid, side, grid.dimension) / speed)
        return {
            i: back + (6 * w[i]) * rho * along_velocity(lattice, i, u)
            for i, back in bounced.items()
        }
    if isinstance(boundary, Outflow):
        excess, momentum = moments_of(lattice, layer)
        u = [m / (1 + excess) for m in momentum]
        squares = [part * part for part in u]
        square = 1.5 * sum(squares[1:], squares[0])
        for i, back in bounced.items():
            along = along_velocity(lattice, i, u)
            out[i] = (2 * w[i]) * (4.5 * along * along - square) - back
        return out
    return bounced


def _through_edge(
    near: Neighborhood, lattice: Lattice, one: Side, other: Side, grid: Grid, speed: Array
) -> dict[int, Array]:
    """What comes in where two sides meet, through both, for the layer at `other`.

    Two mirrors turn it twice; a wall sends back what went out, with the mean velocity of the walls that meet.
    The share of the wall that is left out is taken from fluid of the density of reference, so that what the two
    ends of a lid let through cancels.
    """
    closed = [isinstance(side.boundary, NoSlip | Mirror) for side in (one, other)]
    walls = [side for side in (one, other) if isinstance(side.boundary, NoSlip)]
    moving = [side for side in walls if not _is_zero(side.boundary.velocity)]
    if one.axis == other.axis or not all(closed) or (len(walls) == 2 and not moving):
        return {}
    w, out = lattice.weights.tolist(), {}
    rho = 1 + jnp.sum(_layer(near.data, other), axis=0)
    for i in set(one.incoming) & set(other.incoming):
        if not walls:
            image = lattice.mirrored(one.axis)[lattice.mirrored(other.axis)[i]]
            along = -lattice.velocities[i]
            along[[one.axis, other.axis]] = 0
            out[i] = _layer(near.at(int(image), along), other)
            continue
        out[i] = _layer(near.data[lattice.opposites[i]], other)
        for side in moving:
            u = _wall_value(side.boundary.velocity, grid, side, grid.dimension) / speed
            if u.shape[1 + other.axis] > 1:
                u = _layer(u, other)
            pushed = rho - (1 - 1 / len(walls))
            out[i] = out[i] + (6 * w[i]) * pushed * along_velocity(lattice, i, list(u))
    return out


def _zou_he(
    populations: Array | list[Array], lattice: Lattice, side: Side, grid: Grid, speed: Array
) -> dict[int, Array]:
    """What comes in, such that the cells at the side have a given velocity or pressure.

    The share of every velocity beside equilibrium is that of the opposite one, but for what the momentum along
    the side asks for.
    """
    f = [_layer(populations[i], side) for i in range(lattice.size)]
    w, e = lattice.weights.tolist(), lattice.velocities

    def total(indices: tuple[int, ...]) -> Array:
        return sum([f[i] for i in indices[1:]], f[indices[0]])

    known = 1 + total(side.parallel) + 2 * total(side.outgoing)  # ρ less what moves inwards
    if isinstance(side.boundary, FixedPressure):
        pressure = _wall_value(side.boundary.value, grid, side, 1)[0]
        rho = 1 + 3 * pressure / speed**2
        momentum = [jnp.zeros_like(known)] * lattice.dimension
        momentum[side.axis] = (rho - known) * side.inward
    else:
        u = list(_wall_value(side.boundary.value, grid, side, grid.dimension) / speed)
        rho = known / (1 - side.inward * u[side.axis])
        momentum = [rho * part for part in u]
    missing = [
        2 * momentum[k] / 3 - sum(int(e[i, k]) * f[i] for i in side.parallel if e[i, k])
        if k != side.axis
        else None
        for k in range(lattice.dimension)
    ]
    out = {}
    for i in side.incoming:
        value = f[lattice.opposites[i]] + 6 * w[i] * along_velocity(lattice, i, momentum)
        for k, part in enumerate(missing):
            if part is not None and e[i, k]:
                value = value + (18 * w[i] * int(e[i, k])) * part
        out[i] = value
    return out


def moments_of(lattice: Lattice, populations: Array) -> tuple[Array, list[Array]]:
    """Σ (f − w) and Σ f e, by axis."""
    excess, momentum = populations[lattice.rest], [None] * lattice.dimension
    for i, j in lattice.pairs:
        excess = excess + (populations[i] + populations[j])
        flux = populations[i] - populations[j]
        for k, n in enumerate(lattice.velocities[i].tolist()):
            if n:
                signed = flux if n > 0 else -flux
                momentum[k] = signed if momentum[k] is None else momentum[k] + signed
    return excess, momentum


def _layer(x: Array, side: Side) -> Array:
    """The cells at the side: `[…, *cells]`, thin along its axis."""
    lead = x.ndim - side.layer.ndim
    return jax.lax.slice_in_dim(x, side.index, side.index + 1, axis=lead + side.axis)


def _wall_value(value: object, grid: Grid, side: Side, parts: int) -> Array:
    """A prescribed value `[parts, *cells]`, ready to broadcast over the cells at the side."""
    points = [1 if k == side.axis else n for k, n in enumerate(grid.local_shape)]
    like = jnp.zeros((parts, *points), grid.spacing.dtype)
    wall = Wall(
        axis=side.axis,
        dimension=grid.dimension,
        on_wall=False,
        vector=False,
        spacing=grid.spacing[side.axis],
        ghost_widths=tuple((0, 0, wraps) for wraps in grid.periodic),
        comm=grid.space.comm,
        includes_walls=(False,) * grid.dimension,
    )
    shaped = shape_for_wall(value, like, wall)
    points = shaped.shape[1:] if shaped.ndim else (1,) * grid.dimension
    return jnp.broadcast_to(shaped, (parts, *points))


def _is_zero(value: object) -> bool:
    number = concrete_value(value) if hasattr(value, "dtype") else None
    return number is not None and number.dtype != object and not np.any(number)
