"""The coordinates that a fit works in: without bounds, each changing by about 1."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ParameterError,
    PyTree,
    SelectionError,
    ShapeError,
    as_device_array,
    jit_once,
    param,
    static,
)

from .._select import Selection
from .._split_flat import split_flat
from ._bounds import AbstractBounds, BoundsLike, Unbounded


class Coordinates(Module):
    """Numbers of a model as one vector z, with value = bounds(center + scale · z).

    `names` and `bounds` go together, `shapes` are those of the coordinates u, `precision` is that of the
    least precise parameter. z itself has JAX's default precision: solvers ask for that.
    """

    center: Float[Array, " p"] = param()
    scale: Float[Array, " p"] = param()
    bounds: tuple[AbstractBounds, ...]
    names: tuple[str, ...] = static()
    shapes: tuple[tuple[int, ...], ...] = static()
    precision: np.dtype = static()

    def values(self, z: Float[Array, " p"]) -> dict[str, Array]:
        """The parameters by name at z."""
        # Two maps: z of order 1 → u, any real numbers → the parameter within its bounds.
        u = self.center + self.scale * z
        parts = split_flat(u, self.shapes)
        return {
            name: bound.value(part)
            for name, bound, part in zip(self.names, self.bounds, parts, strict=True)
        }

    def log_volume(self, z: Float[Array, " p"]) -> Float[Array, ""]:
        """ln |det ∂values/∂z|, by which densities of the parameters become densities of z."""
        u = self.center + self.scale * z
        pairs = zip(self.bounds, split_flat(u, self.shapes), strict=True)
        volumes = [bound.log_volume(part) for bound, part in pairs]
        return jnp.sum(jnp.log(jnp.abs(self.scale))) + sum(volumes, jnp.zeros((), u.dtype))

    def vector(self, values: Mapping[str, Array]) -> Float[Array, " p"]:
        """z of parameters given by name; the inverse of `values`."""
        u = _concatenate(
            [b.inverse(values[n]) for n, b in zip(self.names, self.bounds, strict=True)]
        )
        return (u.astype(self.center.dtype) - self.center) / self.scale

    def flat_values(self, z: Float[Array, " p"]) -> Float[Array, " v"]:
        """All parameters at z, one after the other."""
        return _concatenate(list(self.values(z).values())).astype(self.center.dtype)

    @property
    def origin(self) -> Float[Array, " p"]:
        """z of the values that the coordinates were made at."""
        return as_device_array(np.zeros(self.center.shape, self.center.dtype))

    def recenter(self, z: Float[Array, " p"], scale: Float[Array, " p"]) -> "Coordinates":
        """The same with z as the new origin, in units of `scale`."""
        center = self.center + self.scale * z
        return Coordinates(center, scale, self.bounds, self.names, self.shapes, self.precision)

    @property
    def labels(self) -> tuple[str, ...]:
        """One name per coordinate: `mass`, `velocity[0, 2]`."""
        return element_labels(self.names, self.shapes)


def make_coordinates(selection: Selection, model: PyTree, bounds: BoundsLike) -> Coordinates:
    """Coordinates for what is selected of `model`, with z = 0 where it is now.

    **Errors:** `ParameterError` for bounds that exclude the start or name nothing, `SelectionError` for
    complex numbers.
    """
    values = selection.get(model)
    for name, value in values.items():
        if not jnp.issubdtype(value.dtype, jnp.floating):
            raise SelectionError(
                f"{name} is {value.dtype}: fit its real and imaginary part as two parameters"
            )
    by_name = _bounds_by_name(bounds, selection.names)
    shapes = []
    for name, value in values.items():
        require_inside_bounds(name, value, by_name[name])
        try:
            shapes.append(jax.eval_shape(by_name[name].inverse, value).shape)
            jax.eval_shape(by_name[name].natural_scale, value)
        except (ValueError, TypeError) as error:
            raise ShapeError(
                f"bounds of {name} do not go with its shape {value.shape}: {error}"
            ) from error
    # Not that of the parameters: solvers mix z with their own constants of the default precision.
    dtype = jax.dtypes.canonicalize_dtype(float)
    allowed = tuple(by_name[name] for name in values)
    center, scale = _center_and_scale(allowed, tuple(values.values()), dtype)
    return Coordinates(
        center,
        scale,
        tuple(by_name.values()),
        selection.names,
        tuple(shapes),
        min((np.dtype(x.dtype) for x in values.values()), key=lambda d: d.itemsize),
    )


@jit_once
def _center_and_scale(
    bounds: tuple[AbstractBounds, ...], values: tuple[Array, ...], dtype: np.dtype
) -> tuple[Array, Array]:
    pairs = list(zip(bounds, values, strict=True))
    center = _concatenate([bound.inverse(value) for bound, value in pairs])
    scale = _concatenate([bound.natural_scale(value) for bound, value in pairs])
    return center.astype(dtype), scale.astype(dtype)


def values_at(coordinates: Coordinates, z: Float[Array, " p"]) -> dict[str, Array]:
    """`coordinates.values(z)` by one program, the same for all coordinates of a fit."""
    return _by_name(coordinates, _values(coordinates, z))


def values_and_slopes(
    coordinates: Coordinates, z: Float[Array, " p"]
) -> tuple[dict[str, Array], Float[Array, "v p"]]:
    """The parameters at z, and the derivatives of all of them, one after the other, by z."""
    values, slopes = _values_and_slopes(coordinates, z)
    return _by_name(coordinates, values), slopes


# A dict that comes out of a program is sorted by its keys; labels and slopes follow the selection.
@jit_once
def _values(coordinates: Coordinates, z: Array) -> tuple[Array, ...]:
    return tuple(coordinates.values(z).values())


@jit_once
def _values_and_slopes(coordinates: Coordinates, z: Array) -> tuple[tuple[Array, ...], Array]:
    return tuple(coordinates.values(z).values()), jax.jacfwd(coordinates.flat_values)(z)


def _by_name(coordinates: Coordinates, values: tuple[Array, ...]) -> dict[str, Array]:
    return dict(zip(coordinates.names, values, strict=True))


@jit_once
def natural_coordinates(
    coordinates: Coordinates, z: Float[Array, " p"], at_start: Float[Array, " p"]
) -> Coordinates:
    """The same coordinates with z as origin, in units of the parameters' own size: there or at the start,
    whichever is larger, so that a value that comes out as about 0 still has one."""
    values = coordinates.values(z)
    scales = [
        bound.natural_scale(values[name]).reshape(-1)
        for name, bound in zip(coordinates.names, coordinates.bounds, strict=True)
    ]
    return coordinates.recenter(z, jnp.maximum(jnp.concatenate(scales).astype(z.dtype), at_start))


def require_inside_bounds(name: str, value: Any, bound: AbstractBounds) -> None:
    """Raise where a start is outside of its bounds.

    **Errors:** `ParameterError` says what it must be; `ShapeError` for bounds of another shape.
    """
    try:
        why_invalid = bound.why_invalid(np.asarray(value))
    except ValueError as error:
        raise ShapeError(
            f"bounds of {name} do not go with its shape {np.shape(value)}: {error}"
        ) from error
    if why_invalid:
        shown = np.array2string(np.asarray(value), threshold=8, precision=4)
        raise ParameterError(f"{type(bound).__name__} bounds: {name} = {shown} {why_invalid}")


def element_labels(names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
    """A name for every number of arrays with these names and shapes."""
    labels = []
    for name, shape in zip(names, shapes, strict=True):
        # A scalar has one empty index.
        indices = [", ".join(map(str, index)) for index in np.ndindex(*shape)]
        labels += [f"{name}[{index}]" if index else name for index in indices]
    return tuple(labels)


def _bounds_by_name(bounds: BoundsLike, names: tuple[str, ...]) -> dict[str, AbstractBounds]:
    """A bound for every name, from one for all, one each in order, or some by name."""
    if bounds is None or isinstance(bounds, AbstractBounds):
        return {name: Unbounded() if bounds is None else bounds for name in names}
    if isinstance(bounds, Mapping):
        unknown = sorted(set(bounds) - set(names))
        if unknown:
            raise ParameterError(f"bounds for {unknown}, but where selects {list(names)}")
        by_name = {name: bounds.get(name, Unbounded()) for name in names}
    elif isinstance(bounds, tuple | list) and len(bounds) == len(names):
        by_name = dict(zip(names, bounds, strict=True))
    else:
        raise ParameterError(
            f"bounds are one object for all, a dict by name, or one for each of {list(names)}; got "
            f"{bounds!r}"
        )
    for name, bound in by_name.items():
        if not isinstance(bound, AbstractBounds):
            raise ParameterError(
                f"bounds of {name} must be Unbounded(), PositiveBound(), Interval(a, b) or Simplex(); "
                f"got {bound!r}"
            )
    return by_name


def _concatenate(arrays: list[Array]) -> Float[Array, " p"]:
    """All numbers one after the other, in the widest precision among them."""
    dtype = np.result_type(*(x.dtype for x in arrays))
    return jnp.concatenate([x.reshape(-1).astype(dtype) for x in arrays])
