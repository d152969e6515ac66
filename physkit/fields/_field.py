"""Fields on grids: the component that partial differential equations move."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Inexact

from physkit.core import (
    AbstractExactComponent,
    Fault,
    NotReversible,
    PyTree,
    Rate,
    ScaledFixedPoint,
    ShapeError,
    call_user_function,
    cast_floats,
    data as evolving,
    describe,
    explain_call,
    replace_fields,
    replicate,
    static,
    with_tangent_of,
)
from physkit.geometry import (
    AXES,
    AbstractBoundary,
    AnyGrid,
    Boundaries,
    Coordinates,
    Location,
    parse_boundaries,
    shard_array,
    unknown_boundaries,
    unshard_array,
)
from physkit.html import field_picture, read

from ._field_increment import FieldIncrement
from ._field_reductions import AbstractFieldReductions
from ._field_values import as_replacement, as_values
from ._spectrum import Spectrum
from ._wall_values import has_prescribed_walls, wall_values_imposed, zero_on_walls

# One boundary for all sides, or a dict by axis and side; None where every axis repeats.
BoundaryLike: TypeAlias = AbstractBoundary | dict | None


class Field(AbstractFieldReductions, AbstractExactComponent):
    """Values on a grid, which know where in the cells they sit and what lies beyond the walls.

        Field.from_function(grid, lambda x, y: jnp.sin(x) * jnp.cos(y))

    Fields add, subtract, multiply and divide like arrays, with one another only where they sit in the
    same place of the same grid. The result has no boundary of its own: `with_boundary` gives it one.

    **Arguments:**

    - `data`: `[*components, *points]`, or one number for all; real or complex.
    - `grid`: the `Grid`.
    - `location`: where in the cells; their middles if left out (`grid.face("x")`, `grid.node`, …).
    - `boundary`: what is beyond the walls: one boundary for all, or a dict by axis and side. Axes
      along which the box repeats have none.
    - `vector`: the first axis of `data` holds the components of a vector (mirrors and walls must
      know).

    Data, boundary values and the lengths of the box are differentiable. Points that sit on walls (of
    faces, edges and nodes) hold what the boundary prescribes there, whatever `data` says.

    Other values come by `map`, `with_values` or `replace(data=…)`. Inside of a step of a spectral integrator a
    field may hold its Fourier coefficients as well, which these drop; `eqx.tree_at` and `jax.tree.map` do not
    know that they belong together, and `spectrum()` would be that of the old values.

    **Errors:** `ShapeError` when data and grid disagree, or locations are mixed; `ParameterError` for
    a boundary that is missing or given twice.
    """

    grid: AnyGrid
    boundary: Boundaries
    location: Location = static()
    vector: bool = static(default=False)
    coefficients: Array | None = evolving(None)  # of the data, where an integrator has them already
    data: Inexact[Array, "..."] = evolving()
    fixed_point: ScaledFixedPoint | None = None  # the exact data, for Reversible
    evolving_leaves: ClassVar[tuple[str, ...]] = ("data",)
    needs_trial_step: ClassVar[bool] = True

    def __init__(
        self,
        data: ArrayLike | Sequence,
        grid: AnyGrid,
        location: Location | None = None,
        boundary: BoundaryLike = None,
        *,
        vector: bool = False,
    ):
        location = grid.cell if location is None else location
        array, points = as_values(data, grid, location), grid.local_shape_at(location)
        if array.ndim == 0:
            array = jnp.broadcast_to(array, ((grid.dimension,) if vector else ()) + points)
        if vector and array.shape[: array.ndim - grid.dimension] != (grid.dimension,):
            raise ShapeError(
                f"a vector on this grid is [{grid.dimension}, *{points}]; got {array.shape}"
            )
        self.data, self.location, self.vector = array, location, vector
        # One precision throughout: box lengths and boundary values take that of the data.
        self.grid, self.boundary = cast_floats(
            (grid, parse_boundaries(grid.periodic, boundary)), jnp.finfo(array.dtype).dtype
        )
        self.coefficients = None
        self.fixed_point = None
        self.data = wall_values_imposed(self)

    @staticmethod
    @explain_call
    def from_function(
        grid: AnyGrid,
        function: Callable[..., ArrayLike | Sequence[ArrayLike]],
        location: Location | None = None,
        boundary: BoundaryLike = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> "Field":
        """`function(*x)` at every point; a tuple of `d` values makes a vector field."""
        location = grid.cell if location is None else location
        signature = f"({', '.join(AXES[: grid.dimension])})"
        coordinates = tuple(grid.coordinates(location))
        values = call_user_function(
            function, coordinates, "a function of the grid's axes", signature
        )
        points = grid.local_shape_at(location)
        vector = isinstance(values, tuple | list)
        if vector and len(values) != grid.dimension:
            raise ShapeError(
                f"a vector on this grid has {grid.dimension} components; the function gave "
                f"{len(values)}"
            )

        def at_every_point(value: ArrayLike) -> Array:
            return jnp.broadcast_to(jnp.asarray(value), points)

        array = jnp.stack([at_every_point(v) for v in values]) if vector else at_every_point(values)
        if dtype is not None:
            array = array.astype(dtype)
        return Field(array, grid, location, boundary, vector=vector)

    # --- what it is -----------------------------------------------------------------------------

    @property
    def components(self) -> tuple[int, ...]:
        """Shape of the value at one point: () of a scalar, (d,) of a vector."""
        return self.data.shape[: self.data.ndim - self.grid.dimension]

    @property
    def coordinates(self) -> Coordinates:
        """Coordinates of the points, one array per axis, ready to broadcast; a call changes nothing."""
        return Coordinates(self.grid.coordinates(self.location))

    def __getitem__(self, component: int) -> "Field":
        """One component, with the boundary that it has as part of the whole."""
        if not self.components:
            raise ShapeError("this field has no components; its values are field.data")
        if not isinstance(component, int | np.integer) or not -len(self) <= component < len(self):
            raise IndexError(f"no component {component!r}: there are {len(self)}, counted from 0")
        component = int(component) % len(self)
        # Walls know components: of a vector a mirror turns one, of a scalar none.
        sides = tuple(
            pair and tuple(s.for_component(component, k if self.vector else None) for s in pair)
            for k, pair in enumerate(self.boundary)
        )
        sides = cast_floats(sides, self.real_dtype)
        return self.replace(data=self.data[component], boundary=sides, vector=False)

    def __len__(self) -> int:
        if not self.components:
            raise ShapeError("this field has no components; its values are field.data")
        return self.components[0]

    # --- boundaries -----------------------------------------------------------------------------

    def at_time(self, t: ArrayLike) -> "Field":
        """This field with the boundary that it has at time `t`; values on walls are set to theirs."""
        parts = len(self.components)
        boundary = self.grid.boundaries_at(t, self.boundary, self.location, parts)
        return _with_wall_values(self.replace(boundary=boundary))

    def with_prescribed_values(self, t: ArrayLike) -> "Field":
        """This field with the values that its boundary has on walls at time `t`; the boundary stays."""
        if not has_prescribed_walls(self):
            return self
        # Exact data, if there are any, stay: terms and frames read the wall from its boundary.
        return self.replace(data=self.at_time(t).data, fixed_point=self.fixed_point)

    def with_boundary(self, boundary: "Field | BoundaryLike") -> "Field":
        """This field with another boundary: a field's, or whatever `Field(boundary=…)` takes."""
        if isinstance(boundary, Field):
            return _with_wall_values(self.replace(boundary=boundary.boundary))
        boundaries = parse_boundaries(self.grid.periodic, boundary)
        return _with_wall_values(self.replace(boundary=cast_floats(boundaries, self.real_dtype)))

    def padded(self, width: int | tuple[tuple[int, int], ...]) -> Array:
        """The data with ghost layers: `width` on every side, or `((low, high), …)` per axis."""
        return self.grid.pad(self.data, width, self.boundary, self.location, vector=self.vector)

    # --- other forms ----------------------------------------------------------------------------

    def spectrum(self) -> Spectrum:
        """Fourier coefficients, on a grid that repeats along every axis."""
        coefficients = self.coefficients
        coefficients = self.grid.fft(self.data) if coefficients is None else coefficients
        return Spectrum(coefficients, self.grid, self.location, Field, self.vector, self.is_real)

    @property
    def is_real(self) -> bool:
        """Whether the values are real numbers."""
        return not jnp.iscomplexobj(self.data)

    def map(self, function: Callable[[Array], Array]) -> "Field":
        """`function` of the values, point by point."""
        return self.with_values(function(self.data))

    def with_values(
        self, values: Array, *, vector: bool | None = None, location: Location | None = None
    ) -> "Field":
        """Other values, at the same points if `location` is left out, without a boundary of their own."""
        return self.replace(
            data=values,
            boundary=unknown_boundaries(self.grid.periodic),
            vector=self.vector if vector is None else vector,
            location=self.location if location is None else location,
        )

    def normalized(self) -> "Field":
        """This field times a number, such that ∫ |u|² dV = 1 over all components; with its boundary."""
        return (self / (self.norm() * jnp.sqrt(self.grid.space.volume))).with_boundary(self)

    def _html_picture_(self) -> str:
        """The values as small maps, one for each of the first components."""
        values = read(self.data)
        if values is None or values.ndim < self.grid.dimension:
            return ""
        values = values.reshape(-1, *values.shape[values.ndim - self.grid.dimension :])
        return "".join(
            field_picture(v, caption=f"component {k}" if len(values) > 1 else "")
            for k, v in enumerate(values[:3])
        )

    # --- as a component of a state --------------------------------------------------------------

    def shift(self, delta: FieldIncrement | Array) -> "Field":
        """u + δu; values on walls where a boundary says what they are stay as they are."""
        delta = self.as_own_increment(delta)
        # Coefficients exist on grids that repeat, where no boundary gives values.
        if delta.coefficients is None:
            values = zero_on_walls(self, delta.values)
        else:
            values = self.grid.ifft(delta.coefficients, real=self.is_real)
            values = values if delta.values is None else values + delta.values
        if self.fixed_point is None:
            return self.replace(data=self.data + values)
        # The integers are the field; floats are derived from them, with the derivative of a plain sum.
        fixed_point = self.fixed_point.add(values)
        data = with_tangent_of(fixed_point.to_float(), self.data + values)
        return self.replace(data=data, fixed_point=fixed_point)

    def as_own_increment(self, delta: Rate) -> FieldIncrement:
        """`delta` as an increment of this field.

        **Errors:** `ShapeError` unless it sits where this field does and has as many components.
        """
        if not isinstance(delta, FieldIncrement):
            if not eqx.is_array_like(delta):
                raise ShapeError(
                    f"the rate of a field is an array of its shape, or a field; got {describe(delta)}"
                )
            delta = FieldIncrement(jnp.asarray(delta), self.location)
        if delta.location != self.location:
            raise ShapeError(
                f"a rate at {delta.location!r} for a field at {self.location!r}: move it first, with "
                "average(…) or difference(…)"
            )
        d = self.grid.dimension
        for part, points in ((delta.values, self.data.shape), (delta.coefficients, None)):
            if part is None:
                continue
            components = part.shape[: max(part.ndim - d, 0)]
            if components != self.components or points not in (None, part.shape):
                raise ShapeError(
                    f"a rate of shape {part.shape} for a field of shape {self.data.shape}: a rate has "
                    "one number per component and point, and none is spread over others"
                )
        return delta

    def to_fixed_point(
        self,
        dt: Any,
        range_factor: float,
        after: "Field | None" = None,
        smallest_range: float = 0.0,
    ) -> "Field":
        """This field rounded to fixed-point numbers, to which `shift` adds exactly; derivatives pass through.

        The range is `range_factor` times the largest value now, or 64 times what a step changes, up to the
        field `after` it; at least `smallest_range`, for fields that are driven from rest.
        """
        del dt
        if not self.is_real:
            raise NotReversible(
                "a complex field has no fixed-point form: Reversible() needs real fields"
            )
        # The range is no part of the physics: no derivative passes through it.
        change = jnp.zeros_like(self.data) if after is None else after.data - self.data
        data, change = jax.tree.map(jax.lax.stop_gradient, (self.data, change))

        def largest(x: Array) -> Array:
            return jnp.max(self.grid.max(jnp.abs(x)))

        # A field that starts at zero takes its size from what a step changes.
        size = jnp.maximum(largest(data), 64 * largest(change))
        exact = ScaledFixedPoint.from_float(data, jnp.maximum(range_factor * size, smallest_range))
        return self.replace(data=with_tangent_of(exact.to_float(), self.data), fixed_point=exact)

    def exact_bits(self) -> list[Any]:
        if self.fixed_point is None:
            raise NotReversible("this field holds no fixed-point numbers")
        return [self.fixed_point.fixed_point]

    def increment(self) -> FieldIncrement:
        return FieldIncrement(self.data, self.location)

    def replace(self, **leaves: PyTree) -> "Field":
        """A copy with some parts replaced; numbers and lists become arrays, as at the start.

        **Errors:** `ShapeError` for data of other points than the grid's. Values are not checked.
        """
        if "data" in leaves:
            where = leaves.get("grid", self.grid), leaves.get("location", self.location)
            data = as_replacement(leaves["data"], *where, self.data)
            # What was computed from the old data, or stood for it, does not fit the new.
            leaves = {"coefficients": None, "fixed_point": None, **leaves, "data": data}
        return replace_fields(self, leaves)

    def shard(self, devices: tuple[int, ...]) -> "Field":
        self.grid.require_shardable(devices)
        return self._map_arrays(devices, shard_array, lambda x: replicate(x, devices))

    def unshard(self, devices: tuple[int, ...]) -> "Field":
        return self._map_arrays(devices, unshard_array, lambda x: x[0])

    def faults(self) -> Array:
        return jnp.where(self.grid.space.is_degenerate(), jnp.int32(Fault.SPACE), jnp.int32(0))

    # --- inside ---------------------------------------------------------------------------------

    @property
    def real_dtype(self) -> jnp.dtype:
        """The floating precision of the data."""
        return jnp.finfo(self.data.dtype).dtype

    def _map_arrays(
        self,
        devices: tuple[int, ...],
        map_points: Callable[[Array, tuple[int, ...], tuple[bool, ...]], Array],
        map_other: Callable[[Array], Array],
    ) -> "Field":
        """To devices and back: `map_points` of arrays over the points, `map_other` of all others."""
        includes_walls = self.grid.includes_walls(self.location)

        def points(x: Array) -> Array:
            return map_points(x, devices, includes_walls)

        def others(tree: PyTree) -> PyTree:
            return jax.tree.map(map_other, tree)

        # Integers over the points are cut as the data; the scale and the faults are replicated.
        fixed_point = self.fixed_point
        if fixed_point is not None:
            integers = jax.tree.map(points, fixed_point.fixed_point)
            fixed_point = replace_fields(others(fixed_point), {"fixed_point": integers})
        return replace_fields(
            self,
            {
                "data": points(self.data),
                "grid": others(self.grid),
                "boundary": others(self.boundary),
                "coefficients": None,
                "fixed_point": fixed_point,
            },
        )


def _with_wall_values(field: Field) -> Field:
    data = wall_values_imposed(field)
    return field if data is field.data else field.replace(data=data)
