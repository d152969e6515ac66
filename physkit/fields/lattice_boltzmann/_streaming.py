"""Streaming: every population is read from the cell that it comes from, or from the side of the box."""

from collections.abc import Callable
from itertools import combinations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import ParameterError, barrier_on_the_way_back, concrete_value
from physkit.geometry import (
    Dirichlet,
    FixedPressure,
    Grid,
    Mirror,
    Neumann,
    NoSlip,
    Outflow,
    Wall,
    shape_for_wall,
)

from .._field import Field
from ._collisions import along_velocity
from ._lattice import Lattice
from ._moments import moments_of
from ._neighborhood import Neighborhood
from ._sides import Each, Entry, Side, put, sides_of


def stream_fluid(near: Neighborhood, field: Field, lattice: Lattice, speed: Array) -> Array:
    """The populations one step later, before they collide.

    - `near`: those of `field`.
    - `field`: f_i − w_i after the last collision, with its boundary at the end of the step.
    - `speed`: c, for velocities at sides.
    """
    sides = list(sides_of(field, lattice))
    inside = [side.next_layer() for side in sides if isinstance(side.boundary, FixedPressure)]
    # Not within what is chosen for a platform: sums for their cotangents could not wait until a loop has ended.
    prescribed = [_prescribed(side, field.grid, speed) for side in sides]

    def enter(out: Each, layers: list[Array]) -> Each:
        inner_layers = iter(layers[len(sides) :])
        at_sides = list(zip(sides, prescribed, layers[: len(sides)], strict=True))
        entries = [
            Entry(i, (side,), values)
            for side, given, layer in at_sides
            for i, values in _reflected(near, layer, lattice, side, given).items()
        ]
        entries += [
            Entry(i, (one, other), values)
            for (one, of_one, _), (other, of_other, layer) in combinations(at_sides, 2)
            for i, values in _through_edge(
                near, layer, lattice, (one, other), (of_one, of_other)
            ).items()
        ]
        out = put(out, entries)
        # Last, since they need all populations that do not come through them.
        for side, given, layer in at_sides:
            if isinstance(side.boundary, Dirichlet | FixedPressure):
                is_inlet = isinstance(side.boundary, Dirichlet)
                before = None if is_inlet else (layer, next(inner_layers))
                entering = _zou_he(out, lattice, side, given, before)
                out = put(out, [Entry(i, (side,), values) for i, values in entering.items()])
        return out

    return _stream(near, lattice, [*sides, *inside], enter)


def stream_heat(field: Field, lattice: Lattice, conductance: Array) -> Array:
    """The populations of a temperature one step later, before they collide.

    - `conductance`: diffusivity × dt / h, what a slope of 1 brings in.
    """
    w, grid = lattice.weights.tolist(), field.grid
    sides = list(sides_of(field, lattice))
    prescribed = []
    for side in sides:
        boundary, given = side.boundary, None
        if isinstance(boundary, Dirichlet):
            given = _wall_value(boundary.value, grid, side, 1)[0]
        elif isinstance(boundary, Neumann):
            given = conductance * _wall_value(boundary.slope, grid, side, 1)[0]
        prescribed.append(given)

    def enter(out: Each, layers: list[Array]) -> Each:
        entries = []
        for side, given, layer in zip(sides, prescribed, layers, strict=True):
            for i in side.incoming:
                back = layer[lattice.opposites[i]]
                if isinstance(side.boundary, Dirichlet):
                    value = 2 * w[i] * given - back
                elif isinstance(side.boundary, Neumann):
                    share = w[i] / sum(w[j] for j in side.incoming)
                    value = back + share * given
                else:
                    value = layer[i]
                entries.append(Entry(i, (side,), value.astype(back.dtype)))
        return put(out, entries)

    return _stream(Neighborhood(grid, field.data), lattice, sides, enter)


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
        if inwards is None:
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


def _stream(
    near: Neighborhood,
    lattice: Lattice,
    sides: list[Side],
    enter: Callable[[Each, list[Array]], Each],
) -> Array:
    """All populations at the cells that they move to.

    - `enter`: puts what comes in at sides among all populations, or among a list of them, given the layers at
      the sides before that.
    """

    def in_place() -> Each:
        return enter(*near.moved(lattice, sides))

    def at_once() -> Array:
        streamed = enter(near.moved_each(lattice), [side.layer(near.data) for side in sides])
        # What collisions give back is read by cells, sides and edges.
        return barrier_on_the_way_back(jnp.stack(streamed))

    # A CPU copies blocks into place fastest; on a GPU each of them would be a launch.
    return jax.lax.platform_dependent(cpu=in_place, default=at_once)


def _reflected(
    near: Neighborhood, layer: Array, lattice: Lattice, side: Side, given: Array | None
) -> dict[int, Array]:
    """What comes in to the cells at a side: a wall, a mirror or open; a wall at inlets, until Zou and He.

    - `given`: what the side prescribes, in lattice units.
    """
    boundary, out = side.boundary, {}
    w = lattice.weights.tolist()
    if isinstance(boundary, Mirror):
        image = lattice.mirrored(side.axis)
        for i in side.incoming:
            along = -lattice.velocities[i]
            along[side.axis] = 0
            out[i] = near.layer_at(side, layer, int(image[i]), along)
        return out
    bounced = {i: layer[lattice.opposites[i]] for i in side.incoming}
    if isinstance(boundary, NoSlip) and given is not None:
        rho = 1 + sum(layer[1:], layer[0])
        return {
            i: back + (6 * w[i]) * rho * along_velocity(lattice, i, list(given))
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
    near: Neighborhood,
    layer: Array,
    lattice: Lattice,
    sides: tuple[Side, Side],
    prescribed: tuple[Array | None, Array | None],
) -> dict[int, Array]:
    """What comes in where two sides meet, through both.

    - `layer`: the cells at the second side.

    Two mirrors turn it twice; a wall sends back what went out, with the mean velocity of the walls that meet.
    The share of the wall that is left out is taken from fluid of the density of reference, so that what the two
    ends of a lid let through cancels.
    """
    one, other = sides
    closed = [isinstance(side.boundary, NoSlip | Mirror) for side in sides]
    walls = [side for side in sides if isinstance(side.boundary, NoSlip)]
    is_moving = any(u is not None for u in prescribed)  # no mirror prescribes anything
    if one.axis == other.axis or not all(closed) or (len(walls) == 2 and not is_moving):
        return {}
    # Of each wall, what it prescribes at the cells of the other.
    velocities = [
        side.layer(u) for u, side in zip(prescribed, (other, one), strict=True) if u is not None
    ]
    w, out = lattice.weights.tolist(), {}
    edge = one.layer(layer)
    pushed = sum(edge[1:], edge[0]) + 1 / max(len(walls), 1)
    for i in set(one.incoming) & set(other.incoming):
        if not walls:
            image = lattice.mirrored(one.axis)[lattice.mirrored(other.axis)[i]]
            along = -lattice.velocities[i]
            along[[one.axis, other.axis]] = 0
            out[i] = one.layer(near.layer_at(other, layer, int(image), along))
            continue
        out[i] = edge[lattice.opposites[i]]
        for u in velocities:
            out[i] = out[i] + (6 * w[i]) * pushed * along_velocity(lattice, i, list(u))
    return out


def _zou_he(
    populations: Each,
    lattice: Lattice,
    side: Side,
    given: Array,
    before: tuple[Array, Array] | None,
) -> dict[int, Array]:
    """What comes in, such that the cells at the side have the given velocity or pressure, in lattice units.

    - `before`: of a given pressure, the populations before they moved, at the side and one cell inside of it.

    The share of every velocity beside equilibrium is that of the opposite one, but for what the momentum along
    the side asks for.
    """
    f = [side.layer(populations[i]) for i in range(lattice.size)]
    w, e = lattice.weights.tolist(), lattice.velocities

    def total(indices: tuple[int, ...], f: Each = f) -> Array:
        return sum([f[i] for i in indices[1:]], f[indices[0]])

    def inward_momentum(f: Each) -> Array:
        return total(side.incoming, f) - total(side.outgoing, f)

    known = 1 + total(side.parallel) + 2 * total(side.outgoing)  # ρ less what moves inwards
    if isinstance(side.boundary, FixedPressure):
        rho = 1 + 3 * given[0]
        momentum = [jnp.zeros_like(known)] * lattice.dimension
        normal = rho - known
        # Momentum that alternates from cell to cell and from step to step has no density, so that between given
        # pressures it would stay for ever. Of such a wave the mixed difference is four times the momentum; of
        # what is smooth it is h dt ∂²/∂x∂t, second order. A quarter would take all of it out at once, but with
        # that BGK is unstable near τ = ½.
        inner = side.next_layer()
        now = [inner.layer(populations[i]) for i in range(lattice.size)]
        here, inside = (inward_momentum(x) for x in before)
        wave = (normal - here) - (inward_momentum(now) - inside)
        momentum[side.axis] = (normal - wave / 16) * side.inward
    else:
        u = list(given)
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


def _prescribed(side: Side, grid: Grid, speed: Array) -> Array | None:
    """The velocity or the pressure of a side, lattice units, at each of its cells; None if it has neither."""
    boundary, d = side.boundary, grid.dimension
    if isinstance(boundary, FixedPressure):
        return _wall_value(boundary.value, grid, side, 1) / speed**2
    if isinstance(boundary, Dirichlet):
        return _wall_value(boundary.value, grid, side, d) / speed
    if isinstance(boundary, NoSlip) and not _is_zero(boundary.velocity):
        return _wall_value(boundary.velocity, grid, side, d) / speed
    return None


def _wall_value(value: object, grid: Grid, side: Side, parts: int) -> Array:
    """A prescribed value at each of the cells at the side, `[parts, *cells]`."""
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
    return jnp.broadcast_to(shaped, (parts, *points))


def _is_zero(value: object) -> bool:
    number = concrete_value(value) if hasattr(value, "dtype") else None
    return number is not None and not np.any(number)
