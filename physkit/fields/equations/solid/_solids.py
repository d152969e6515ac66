"""Solids in an incompressible flow: where they are, by a signed distance, and how they move."""

import abc
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    DeclarationError,
    Module,
    ParameterError,
    Rate,
    ShapeError,
    State,
    describe,
    param,
    require_positive,
    safe_sqrt,
)
from physkit.geometry import Grid, Location

from ..._field import Field
from ..._ghost_widths import ghost_widths
from ...states._flow_state import FlowState

Point = Sequence[Array]  # coordinates, one array per axis, ready to broadcast


class AbstractSolid(Module):
    """A body in a flow, at rest or moving: `IncompressibleFlow(…, solids=(body,))`.

    Write `distance`, and `velocity` for one that moves; parameters of both have derivatives.
    """

    @abc.abstractmethod
    def distance(self, t: Float[Array, ""], x: Point) -> Array:
        """The distance from its surface at time t, negative inside; right within two cells of the surface."""

    def velocity(self, t: Float[Array, ""], x: Point) -> Sequence[ArrayLike]:
        """The velocity of the body at a point of it, one entry per axis; at rest unless overridden."""
        del t
        return [0.0] * len(x)

    # --- for solids that the state moves: physkit.coupling.ImmersedBody -----------------------------

    def place(self, state: State, grid: Grid) -> "AbstractSolid":
        """This solid where `state` has it."""
        del state, grid
        return self

    def grip(self, t: Float[Array, ""], state: State, velocity: Sequence[Field]) -> "AbstractGrip":
        """How it holds a velocity like `velocity` at time t."""
        del state
        return GivenGrip(self, t, velocity)

    def check_start(self, state: State, flow: FlowState) -> None:
        """Compare its numbers with those of a state, where they can be seen; here nothing."""
        del state, flow

    @property
    def moved_component(self) -> str | None:
        """The component of the state that a flow moves it with; None for a solid that goes its own way."""
        return None


class Ball(AbstractSolid):
    """A sphere, in the plane a disk: at rest, in motion, spinning.

    **Arguments:**

    - `center`: at t = 0, `[d]`; length.
    - `radius`: > 0.
    - `speed`: constant velocity, `[d]`, or one number for all components; length / time.
    - `spin`: angular velocity about z, counterclockwise, 1 / time.
    """

    center: Float[Array, " d"] = param()
    radius: Float[Array, ""] = param()
    speed: Float[Array, "..."] = param(0.0)
    spin: Float[Array, ""] = param(0.0)

    def __check_init__(self):
        require_positive(self, "radius")

    def distance(self, t: Float[Array, ""], x: Point) -> Array:
        squares = [part**2 for part in self._from_center(t, x)]
        return safe_sqrt(sum(squares[1:], squares[0])) - self.radius

    def velocity(self, t: Float[Array, ""], x: Point) -> Sequence[ArrayLike]:
        along, across, *_ = self._from_center(t, x)
        speed = jnp.broadcast_to(self.speed, (len(x),))
        return [speed[0] - self.spin * across, speed[1] + self.spin * along, *speed[2:]]

    def _from_center(self, t: Float[Array, ""], x: Point) -> list[Array]:
        if self.center.shape != (len(x),):
            raise ShapeError(
                f"the center of a solid in {len(x)} dimensions is [{len(x)}]; got {list(self.center.shape)}"
            )
        center = self.center + self.speed * t
        return [part - c for part, c in zip(x, center, strict=True)]


def as_solids(given: object) -> tuple[AbstractSolid, ...]:
    """One solid or several as a tuple.

    **Errors:** `DeclarationError` for what is none.
    """
    solids = (given,) if isinstance(given, AbstractSolid) else given
    if not isinstance(solids, tuple | list) or not all(
        isinstance(s, AbstractSolid) for s in solids
    ):
        raise DeclarationError(
            "solids are Ball(…), ImmersedBody(…) or an AbstractSolid of yours, one or several; got "
            f"{describe(given)}"
        )
    return tuple(solids)


def surface_distance(solid: AbstractSolid, t: Float[Array, ""], x: Point) -> Array:
    """`solid.distance(t, x)`. **Errors:** `ParameterError` for a mask in its place."""
    return require_distance(solid.distance(t, x))


def require_distance(distance: ArrayLike) -> Array:
    """**Errors:** `ParameterError` for a mask, whose `True` would be a distance of 1, outside of the body."""
    distance = jnp.asarray(distance)
    if distance.dtype == bool:
        raise ParameterError(
            "a shape gives the distance from its surface, negative inside, not whether a point is inside: "
            "abs(x - 4) - 0.5 in place of abs(x - 4) < 0.5"
        )
    return distance


def forced_share(distance: Array, grid: Grid) -> Array:
    """How firmly a solid holds the flow: 1 where it is, 0 from a cell off its surface on, linear between."""
    size = grid.cell_volume ** (1 / grid.dimension)
    return jnp.clip(1 - distance / size, 0.0, 1.0)


def ghosted_coordinates(grid: Grid, location: Location | None = None) -> list[Array]:
    """Coordinates with one more point at both ends of every axis; at cell centers if no location is given."""
    # Points and spacing are of one grid: those of several fields are equal, but each has a derivative, and over
    # devices more points are ghosts.
    out, spacing = [], grid.spacing
    for k, along in enumerate(grid.coordinates(location)):
        first, last = (
            jax.lax.slice_in_dim(along, n, n + 1, axis=k) for n in (0, along.shape[k] - 1)
        )
        out.append(jnp.concatenate([first - spacing[k], along, last + spacing[k]], axis=k))
    return out


def impose_solids(
    solids: Sequence[AbstractSolid], t: Float[Array, ""], velocity: Sequence[Field]
) -> list[Field]:
    """`velocity` with that of the solids where they are: the direct forcing of a step."""
    out = list(velocity)
    for solid in solids:
        out = GivenGrip(solid, t, out).hold(out)
    return out


class AbstractGrip(abc.ABC):
    """A solid among the points of a staggered velocity, at one time and in one place."""

    holds: "list[SolidHold]"

    @abc.abstractmethod
    def own(self, component: int) -> Array:
        """A component of its own velocity, at the points with one more at both ends of every axis."""

    @abc.abstractmethod
    def moved_by(self, velocity: Sequence[Field]) -> tuple["AbstractGrip", dict[str, Rate]]:
        """It as it moves beside `velocity`, which it does not hold yet, and what that changes, by component."""

    def hold(self, velocity: Sequence[Field]) -> list[Field]:
        """`velocity` with its own where it is."""
        out = []
        for k, (u, hold) in enumerate(zip(velocity, self.holds, strict=True)):
            held = hold.of(self.own(k), u)
            out.append(u.with_values(held.astype(u.data.dtype)).with_boundary(u))
        return out


class GivenGrip(AbstractGrip):
    """Of a solid that moves as it says."""

    def __init__(self, solid: AbstractSolid, t: Float[Array, ""], velocity: Sequence[Field]):
        self.holds = [SolidHold(solid, t, u) for u in velocity]
        self._own = []
        for k, (u, hold) in enumerate(zip(velocity, self.holds, strict=True)):
            x = ghosted_coordinates(u.grid, u.location)
            self._own.append(jnp.broadcast_to(solid.velocity(t, x)[k], hold.shape))

    def own(self, component: int) -> Array:
        return self._own[component]

    def moved_by(self, velocity: Sequence[Field]) -> tuple[AbstractGrip, dict[str, Rate]]:
        del velocity
        return self, {}


class SolidHold:
    """What a solid makes of one component of a velocity, where it is, and less than a cell off.

        u ← u + s (own + Σ_k a_k (u − own)_k − u)

    Off the surface the flow is held to a straight line from the surface to the next point outside along each
    axis k, weighted by the normal squared: the surface is where the distance vanishes, not where cells end.

    - `distance`: from the surface, with one more point at both ends of every axis.

    **Reference:** Fadlun et al., J. Comput. Phys. 161, 35 (2000).
    """

    def __init__(self, solid: AbstractSolid, t: Float[Array, ""], u: Field):
        grid = u.grid
        x = ghosted_coordinates(grid, u.location)
        self.shape = tuple(n + 2 for n in u.data.shape)
        self.distance = jnp.broadcast_to(surface_distance(solid, t, x), self.shape)
        self.middle = (slice(1, -1),) * grid.dimension
        here = self.distance[self.middle]
        self.share = forced_share(here, grid)
        self.rises, parts, weight = [], [], jnp.zeros_like(here)
        for k in range(grid.dimension):
            below, above = self._beside(k)
            rise = (self.distance[above] - self.distance[below]) / grid.spacing[k]
            off = jnp.where(rise > 0, self.distance[above], self.distance[below])
            self.rises.append(rise > 0)
            parts.append(rise * rise / jnp.where(off > 0, off, 1))
            weight = weight + rise * rise
        scale = jnp.maximum(here, 0) / jnp.where(weight > 0, weight, 1)
        self.weights = [scale * part for part in parts]

    def of(self, own: Array, u: Field | None = None) -> Array:
        """The held values of `u`, 0 if left out; `own`: the velocity of the body, `[*points + 2]`."""
        target = own[self.middle]
        for k, (rises, weight) in enumerate(zip(self.rises, self.weights, strict=True)):
            below, above = self._beside(k)
            excess = jnp.where(rises, -own[above], -own[below])
            if u is not None:
                padded = u.padded(ghost_widths(k, u.grid.dimension, 1))
                n = u.data.shape[k]
                low, high = (jax.lax.slice_in_dim(padded, j, n + j, axis=k) for j in (0, 2))
                excess = excess + jnp.where(rises, high, low)
            target = target + weight * excess
        if u is None:
            return self.share * target
        return u.data + self.share * (target - u.data)

    def _beside(self, k: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The points before and after along axis k."""
        before, after = (
            (*self.middle[:k], part, *self.middle[k + 1 :])
            for part in (slice(None, -2), slice(2, None))
        )
        return before, after
