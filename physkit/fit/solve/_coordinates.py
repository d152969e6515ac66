"""The coordinates that a fit works in: free of bounds, each changing by order 1."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import Module, ParameterError, SelectionError, ShapeError, param, static

from .._select import Selection
from ._bounds import AbstractBounds, Unbounded


class Coordinates(Module):
    """Numbers of a model as one vector z, with value = bounds(center + scale · z).

    `names` and `bounds` go together, `shapes` are those of the free coordinates, `precision` that of the
    least precise parameter. z itself is as precise as JAX is set to be: solvers ask for that.
    """

    center: Float[Array, " p"] = param()
    scale: Float[Array, " p"] = param()
    bounds: tuple[AbstractBounds, ...]
    names: tuple[str, ...] = static()
    shapes: tuple[tuple[int, ...], ...] = static()
    precision: Any = static()

    def values(self, z: Float[Array, " p"]) -> dict[str, Array]:
        """The parameters by name at z."""
        free = self.center + self.scale * z
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        ends = np.cumsum([0, *sizes])
        return {
            name: bound.value(free[a:b].reshape(shape))
            for name, bound, shape, a, b in zip(
                self.names, self.bounds, self.shapes, ends[:-1], ends[1:], strict=True
            )
        }

    def vector(self, values: Mapping[str, Array]) -> Float[Array, " p"]:
        """z of parameters given by name; the inverse of `values`."""
        free = _joined([b.inverse(values[n]) for n, b in zip(self.names, self.bounds, strict=True)])
        return (free.astype(self.center.dtype) - self.center) / self.scale

    def flat(self, z: Float[Array, " p"]) -> Float[Array, " v"]:
        """All parameters at z, one after the other."""
        return _joined(list(self.values(z).values())).astype(self.center.dtype)

    def moved(self, z: Float[Array, " p"], scale: Float[Array, " p"]) -> "Coordinates":
        """The same with z as the new origin, in units of `scale`."""
        center = self.center + self.scale * z
        return Coordinates(center, scale, self.bounds, self.names, self.shapes, self.precision)

    @property
    def labels(self) -> tuple[str, ...]:
        """One name per coordinate: `mass`, `velocity[0, 2]`."""
        return element_labels(self.names, self.shapes)


def coordinates(selection: Selection, model: Any, bounds: Any) -> Coordinates:
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
    chosen = _by_name(bounds, selection.names)
    free, units = [], []
    for name, value in values.items():
        require_inside_bounds(name, value, chosen[name])
        try:
            free.append(chosen[name].inverse(value))
            units.append(chosen[name].unit(value))
        except (ValueError, TypeError) as error:
            raise ShapeError(
                f"bounds of {name} do not go with its shape {value.shape}: {error}"
            ) from error
    dtype = jnp.zeros(()).dtype
    return Coordinates(
        _joined(free).astype(dtype),
        _joined(units).astype(dtype),
        tuple(chosen.values()),
        selection.names,
        tuple(x.shape for x in free),
        min((np.dtype(x.dtype) for x in values.values()), key=lambda d: d.itemsize),
    )


def require_inside_bounds(name: str, value: Any, bound: AbstractBounds) -> None:
    """Whether a start is inside of its bounds.

    **Errors:** `ParameterError` says what it must be.
    """
    try:
        complaint = bound.why_invalid(np.asarray(value))
    except ValueError as error:
        raise ShapeError(
            f"bounds of {name} do not go with its shape {np.shape(value)}: {error}"
        ) from error
    if complaint:
        shown = np.array2string(np.asarray(value), threshold=8, precision=4)
        raise ParameterError(f"{type(bound).__name__} bounds: {name} = {shown} {complaint}")


def element_labels(names: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
    """A name for every number of arrays with these names and shapes."""
    found = []
    for name, shape in zip(names, shapes, strict=True):
        inner = [", ".join(map(str, i)) for i in np.ndindex(*shape)]
        found += [f"{name}[{i}]" if i else name for i in inner]
    return tuple(found)


def _by_name(bounds: Any, names: tuple[str, ...]) -> dict[str, AbstractBounds]:
    """A bound for every name, from one for all, one each in order, or some by name."""
    if bounds is None or isinstance(bounds, AbstractBounds):
        return {name: Unbounded() if bounds is None else bounds for name in names}
    if isinstance(bounds, Mapping):
        unknown = sorted(set(bounds) - set(names))
        if unknown:
            raise ParameterError(f"bounds for {unknown}, but where selects {list(names)}")
        chosen = {name: bounds.get(name, Unbounded()) for name in names}
    elif isinstance(bounds, tuple | list) and len(bounds) == len(names):
        chosen = dict(zip(names, bounds, strict=True))
    else:
        raise ParameterError(
            f"bounds are one object for all, a dict by name, or one for each of {list(names)}; got "
            f"{bounds!r}"
        )
    for name, bound in chosen.items():
        if not isinstance(bound, AbstractBounds):
            raise ParameterError(
                f"bounds of {name} must be Unbounded(), PositiveBound(), Interval(a, b) or Simplex(); got {bound!r}"
            )
    return chosen


def _joined(arrays: list[Any]) -> Array:
    dtype = _widest(arrays)
    return jnp.concatenate([x.reshape(-1).astype(dtype) for x in arrays])


def _widest(arrays: Any) -> Any:
    return np.result_type(*(x.dtype for x in arrays))
