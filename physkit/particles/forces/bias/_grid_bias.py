"""A bias of one or two collective variables that is given by its values on a grid."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import ParameterError, ShapeError, data, safe_clip, static, tensordot

from ._bias import AbstractBias
from ._variables import AbstractCollectiveVariable


class GridBias(AbstractBias):
    """An energy of one or two collective variables, by its values at the nodes of a grid.

        U(ξ) = Σ w((ξ − ξ_k)/h) U_k,   w of Keys: cubic, with a continuous slope

    `Metadynamics` fills it. Alone it is a bias that does not change, such as one that was found before.

    **Arguments:**

    - `variables`: one collective variable, or two.
    - `lower`, `upper`: the first and the last node, a number for each variable. Of a periodic variable `upper`
      is one period after `lower`, the same point, and may be left out.
    - `nodes`: how many nodes there are along each, at least 4.
    - `values`: U_k, energy, `[nodes]` or `[nodes nodes]`; 0 if left out.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ParameterError` for limits in the wrong order; `ShapeError` for other shapes.

    **Notes:** beyond the grid the energy is that at its edge, without a force: let the grid reach further than
    the variables do. Interpolation errors fall with the third power of the distance of nodes.

    **Reference:** Keys, IEEE Trans. Acoust. Speech Signal Process. 29, 1153 (1981).
    """

    variables: tuple[AbstractCollectiveVariable, ...]
    values: Float[Array, "..."] = data()
    lower: tuple[float, ...] = static()
    upper: tuple[float, ...] = static()
    component: str | None = static(default=None)

    def __init__(
        self,
        variables: AbstractCollectiveVariable | Sequence[AbstractCollectiveVariable],
        lower: float | Sequence[float],
        upper: float | Sequence[float] | None = None,
        *,
        nodes: int | Sequence[int] = 200,
        values: ArrayLike | None = None,
        component: str | None = None,
    ):
        single = isinstance(variables, AbstractCollectiveVariable)
        self.variables = (variables,) if single else tuple(variables)
        number = len(self.variables)
        if not 1 <= number <= 2:
            raise ParameterError(f"GridBias has one or two variables; got {number}")
        self.lower = _per_variable(lower, number, "lower")
        periods = [variable.period for variable in self.variables]
        if upper is None:
            if None in periods:
                raise ParameterError("upper= is missing: only periodic variables know their end")
            upper = [a + p for a, p in zip(self.lower, periods, strict=True)]
        self.upper = _per_variable(upper, number, "upper")
        for a, b, period in zip(self.lower, self.upper, periods, strict=True):
            if not b > a or (period is not None and not np.isclose(b - a, period)):
                what = (
                    "is periodic: upper − lower is its period" if period else "upper is above lower"
                )
                raise ParameterError(f"the limits of a grid: {what}; got {a} and {b}")
        shape = tuple(int(n) for n in np.broadcast_to(np.asarray(nodes), (number,)))
        if min(shape) < 4:
            raise ParameterError(f"a grid has at least 4 nodes along each variable; got {shape}")
        array = jnp.zeros(shape) if values is None else jnp.asarray(values)
        if values is not None and array.ndim != number:
            raise ShapeError(f"values must be [nodes] along {number} variables; got {array.shape}")
        self.values, self.component = array, component

    @property
    def collective_variables(self) -> tuple[AbstractCollectiveVariable, ...]:
        return self.variables

    @property
    def spacing(self) -> tuple[float, ...]:
        """The distance of nodes along each variable."""
        sizes = zip(self.variables, self.lower, self.upper, self.values.shape, strict=True)
        # The end of a periodic variable is its start: no node of its own.
        return tuple((b - a) / (n if v.period is not None else n - 1) for v, a, b, n in sizes)

    @property
    def nodes(self) -> tuple[Float[Array, " n"], ...]:
        """The values of each variable at the nodes."""
        rows = zip(self.lower, self.spacing, self.values.shape, strict=True)
        return tuple(a + h * jnp.arange(n, dtype=self.values.dtype) for a, h, n in rows)

    def energy_of(self, values: tuple[Float[Array, ""], ...]) -> Float[Array, ""]:
        total = self.values
        for axis, value in enumerate(values):
            # The first remaining axis is contracted; a second one then is the first.
            total = tensordot(self._weights(axis, value), total, axes=1)
        return total

    def _weights(self, axis: int, value: Float[Array, ""]) -> Float[Array, " n"]:
        """The weight of every node along one variable: 0 for all but the four around `value`."""
        count = self.values.shape[axis]
        is_periodic = self.variables[axis].period is not None
        place = (value - self.lower[axis]) / self.spacing[axis]
        if not is_periodic:
            place = safe_clip(place, 0, count - 1)
        cell = jnp.floor(place) if is_periodic else jnp.clip(jnp.floor(place), 0, count - 2)
        f = place - cell
        below, left, right, above = (
            f * (-0.5 + f * (1 - 0.5 * f)),
            1 + f * f * (-2.5 + 1.5 * f),
            f * (0.5 + f * (2 - 1.5 * f)),
            f * f * (-0.5 + 0.5 * f),
        )
        if not is_periodic:
            # The node beyond an end is that of the parabola through the three at the end (Keys).
            first, last = jnp.where(cell == 0, below, 0), jnp.where(cell == count - 2, above, 0)
            left = left + 3 * (first - last)
            right = right + 3 * (last - first)
            below, above = below - first + last, above - last + first
        weights = below, left, right, above
        nodes = cell.astype(jnp.int32) + jnp.arange(-1, 3, dtype=jnp.int32)
        nodes = nodes % count if is_periodic else jnp.clip(nodes, 0, count - 1)
        # By comparison instead of by indexing, whose derivative would scatter.
        number = jnp.arange(count, dtype=jnp.int32)
        rows = (jnp.where(number == k, w, 0) for k, w in zip(nodes, weights, strict=True))
        return sum(rows, jnp.zeros(count, value.dtype))


def _per_variable(value: float | Sequence[float], number: int, name: str) -> tuple[float, ...]:
    values = tuple(float(x) for x in np.atleast_1d(np.asarray(value, float)))
    if len(values) != number or not np.all(np.isfinite(values)):
        raise ShapeError(f"{name} is a number for each of {number} variables; got {value}")
    return values
