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
    barrier_on_the_way_back,
    describe,
    param,
    recomputed,
    require_positive,
    safe_maximum,
    safe_sqrt,
)
from physkit.geometry import Grid, Location

from ..._field import Field
from ..._ghost_widths import ghost_widths
from ...states._flow_state import FlowState

Point = Sequence[Array]  # coordinates, one array per axis, ready to broadcast


class AbstractSolid(Module):
    """A body in a flow, at rest or moving: `IncompressibleFlow(…, solids=(body,))`.

    Write `distance`, and `velocity` for one that moves; parameters of both have derivatives. At least two
    cells thick: through a thinner one the flow leaks.
    """

    @abc.abstractmethod
    def distance(self, t: Float[Array, ""], x: Point) -> Array:
        """The distance from its surface at time t, negative inside; right within two cells of the surface."""

    def velocity(self, t: Float[Array, ""], x: Point) -> Sequence[ArrayLike]:
        """The velocity of the body at a point of it, one entry per axis; at rest unless overridden."""
        del t
        return [0.0] * len(x)

    def near_image(self, t: Float[Array, ""], x: Point, grid: Grid) -> Point:
        """The points `x`, in a box that repeats, by their images nearest to the body; else as they are.

        A body that crosses a side that repeats comes in on the other one.
        """
        del t, grid
        return x

    # --- for solids that the state moves: physkit.coupling.ImmersedBody -----------------------------

    def place(self, state: State, grid: Grid) -> "AbstractSolid":
        """This solid where `state` has it."""
        del state, grid
        return self

    def grip(
        self,
        t: Float[Array, ""],
        state: State,
        velocity: Sequence[Field],
        friction: ArrayLike,
    ) -> "AbstractGrip":
        """How it holds a velocity like `velocity` at time t; `friction`: as of `SolidHold`."""
        del state
        return GivenGrip(self, t, velocity, friction)

    def check_start(self, state: State, flow: FlowState) -> None:
        """Compare its numbers with those of a state, where they can be seen; here nothing."""
        del state, flow

    @property
    def moved_component(self) -> str | None:
        """The component of the state that a flow moves it with; None for a solid that goes its own way."""
        return None


class Ball(AbstractSolid):
    """A sphere, in the plane a disk: at rest, in motion, spinning; with its images in a box that repeats.

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

    def near_image(self, t: Float[Array, ""], x: Point, grid: Grid) -> Point:
        image = []
        for k, (part, away) in enumerate(zip(x, self._from_center(t, x), strict=True)):
            length = grid.space.lengths[k]
            image.append(part - length * jnp.round(away / length) if grid.periodic[k] else part)
        return image

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

    def __init__(
        self,
        solid: AbstractSolid,
        t: Float[Array, ""],
        velocity: Sequence[Field],
        friction: ArrayLike,
    ):
        self.holds = [SolidHold(solid, t, u, friction) for u in velocity]
        self._own = []
        for k, (u, hold) in enumerate(zip(velocity, self.holds, strict=True)):
            x = solid.near_image(t, ghosted_coordinates(u.grid, u.location), u.grid)
            self._own.append(jnp.broadcast_to(solid.velocity(t, x)[k], hold.shape))

    def own(self, component: int) -> Array:
        return self._own[component]

    def moved_by(self, velocity: Sequence[Field]) -> tuple[AbstractGrip, dict[str, Rate]]:
        del velocity
        return self, {}


class SolidHold:
    """What a solid makes of one component of a velocity, where it is and at the points beside it.

        w ← 0 inside,   w ← (w + Σ_j μ_j w_j) / (1 + λ) beside it,   w = u − own

    Inside the flow takes its velocity. Points beside it feel its friction alone: the second difference along an
    axis that the surface cuts reaches to the cut, a part θ of a cell off, and not to the next point,

        ∂²w/∂x² = 2/h² [(w₊ − w)/θ₊ + (w₋ − w)/θ₋] / (θ₊ + θ₋),   w± = 0 at a cut

    λ and μ are what this adds to the usual difference, times `friction`, solved for at the point itself: the
    nearer the surface, the more firmly it holds.

    - `friction`: viscosity times the time that it acts, length².
    - `distance`: from the surface, with one more point at both ends of every axis.
    - `kept`: the share 1 / (1 + λ) of its own velocity that the flow keeps, 0 inside.

    **Reference:** Shortley & Weller, J. Appl. Phys. 9, 334 (1938); Fadlun et al., J. Comput. Phys. 161, 35
    (2000).
    """

    def __init__(self, solid: AbstractSolid, t: Float[Array, ""], u: Field, friction: ArrayLike):
        x = solid.near_image(t, ghosted_coordinates(u.grid, u.location), u.grid)
        self.shape = tuple(n + 2 for n in u.data.shape)
        self.middle = _middle(u.grid.dimension)
        self.distance, self.weights, self.kept = recomputed(_hold)(
            solid, t, x, self.shape, u.grid.spacing, friction
        )

    def of(self, own: Array, u: Field | None = None) -> Array:
        """The held values of `u`, 0 if left out; `own`: the velocity of the body, `[*points + 2]`."""
        mine = own[self.middle]
        excess = -mine if u is None else u.data - mine
        for k, weights in enumerate(self.weights):
            sides = _beside(own.ndim, k)
            beside = [-own[side] for side in sides]
            if u is not None:
                padded = u.padded(ghost_widths(k, u.grid.dimension, 1))
                n = u.data.shape[k]
                beside = [
                    jax.lax.slice_in_dim(padded, j, n + j, axis=k) + x
                    for j, x in zip((0, 2), beside, strict=True)
                ]
            for weight, x in zip(weights, beside, strict=True):
                excess = excess + weight * x
        return mine + self.kept * excess


def _hold(
    solid: AbstractSolid,
    t: Float[Array, ""],
    x: Sequence[Array],
    shape: tuple[int, ...],
    spacing: Float[Array, " d"],
    friction: ArrayLike,
) -> tuple[Array, list[list[Array]], Array]:
    """The distance; μ of the points before and after, along each axis; 1 / (1 + λ)."""
    distance = jnp.broadcast_to(surface_distance(solid, t, x), shape)
    here = distance[_middle(len(shape))]
    outside = here > 0
    least, added, weights = jnp.finfo(here.dtype).eps, jnp.zeros_like(here), []
    for k in range(len(shape)):
        off = barrier_on_the_way_back([distance[side] for side in _beside(len(shape), k)])
        cuts = [outside & (x <= 0) for x in off]
        parts = [
            jnp.where(cut, safe_maximum(here / jnp.where(cut, here - x, 1), least), 1)
            for cut, x in zip(cuts, off, strict=True)
        ]
        scale = friction / spacing[k] ** 2
        added = added + scale * (2 / (parts[0] * parts[1]) - 2)
        both = parts[0] + parts[1]
        weights.append(
            [
                jnp.where(cut, 0, scale * (2 / (both * part) - 1))
                for cut, part in zip(cuts, parts, strict=True)
            ]
        )
    return distance, weights, jnp.where(outside, 1 / (1 + added), 0)


def _middle(ndim: int) -> tuple[slice, ...]:
    """All points but those at both ends of every axis."""
    return (slice(1, -1),) * ndim


def _beside(ndim: int, k: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The points before and after along axis k."""
    middle = _middle(ndim)
    before, after = (
        (*middle[:k], part, *middle[k + 1 :]) for part in (slice(None, -2), slice(2, None))
    )
    return before, after
