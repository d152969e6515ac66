"""The state of a gas: density, momentum and energy, each a field with its own boundary."""

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from physkit.core import (
    Module,
    ParameterError,
    PyTree,
    ShapeError,
    cast_floats,
    concrete_value,
    data,
    ratio,
)
from physkit.geometry import AbstractBoundary, Grid, Inflow, Mirror, NoSlip, Outflow, Periodic

from .._field import Field
from ._field_group import AbstractFieldGroup, iterate_boundaries, require_one_grid
from ._gas_inflow import PARTS, GasInflow, conserved_variables
from ._point_values import PointValues, evaluate_at_points

# One for all sides, or a dict by axis and side; None where every axis repeats.
GasBoundary: TypeAlias = AbstractBoundary | GasInflow | dict | None


class Gas(AbstractFieldGroup):
    """Averages of density, momentum and energy over cells: the conserved variables of gas dynamics.

        Gas.from_primitive(grid, 1.0, (0.0, 0.0), lambda x, y: jnp.exp(-x**2 - y**2), gamma=1.4)

    **Arguments:**

    - `density`: ρ, mass / volume.
    - `momentum`: m = ρu, a vector field.
    - `energy`: E = p/(γ − 1) + ½ρu², internal and kinetic, energy / volume.
    - `scalars`: ρc of substances that flow with the gas, `[s, *points]`, each c the amount of one in a unit of
      mass; None for none.
    - `gamma`: γ, with which the energy was computed from a pressure (`from_primitive` notes it): an equation
      of another γ is refused.

    **Errors:** `ShapeError` unless all three are cell-centered fields on one grid. Fault `POSITIVITY` where
    density or internal energy is not positive.
    """

    density: Field
    momentum: Field
    energy: Field
    gamma: Array | None = data(None)
    scalars: Field | None = None

    carried: ClassVar[tuple[str, ...]] = ("scalars",)

    def __check_init__(self):
        require_one_grid(self)
        if not self.momentum.vector or self.density.components or self.energy.components:
            raise ShapeError(
                "a gas has a scalar density, a vector momentum and a scalar energy; got components "
                f"{self.density.components}, {self.momentum.components}, {self.energy.components}"
            )

    @staticmethod
    def from_primitive(
        grid: Grid,
        density: PointValues,
        velocity: PointValues | Sequence[PointValues],
        pressure: PointValues,
        gamma: ArrayLike,
        boundary: GasBoundary = None,
        *,
        scalars: Sequence[PointValues] = (),
        dtype: DTypeLike | None = None,
    ) -> "Gas":
        """A gas from density, velocity and pressure.

        **Arguments:**

        - `density`, `pressure`: a number, an array, a field, or a function of the coordinates.
        - `velocity`: a tuple of those, one per axis; on a line the value alone; a vector field; or an
          array `[d, *points]`.
        - `gamma`: ratio of specific heats, the one that the flow is given. Where a fit changes it, make
          the gas from it as well: a gas keeps its energy, and its pressure would follow γ.
        - `boundary`: one for all sides that do not repeat, or a dict by axis and side: `Outflow()`,
          `Mirror()` (a wall), `NoSlip()` (one that holds a viscous gas back), `GasInflow(density, velocity,
          pressure)`.
        - `scalars`: c of each substance that flows along, amount / mass. What comes in through a `GasInflow`
          has none.

        **Errors:** `ParameterError` for a density or pressure that is not positive in some cell, and for other
        boundaries, which cannot hold for three fields at once; `ShapeError` for a velocity, inside or of a
        `GasInflow`, without one component per axis.
        """
        for side in iterate_boundaries(boundary):
            if isinstance(side, GasInflow):
                side.require_velocity(grid)

        def values(given: PointValues) -> Array:
            return _values_in_cells(grid, given, dtype)

        ρ, p = values(density), values(pressure)
        if isinstance(velocity, Field):
            velocity = velocity.data
        if not isinstance(velocity, tuple | list):
            is_stacked = not callable(velocity) and jnp.ndim(velocity) > grid.dimension
            velocity = tuple(velocity) if is_stacked else (velocity,)
        if len(velocity) != grid.dimension:
            raise ShapeError(
                f"a velocity on this grid has {grid.dimension} components; got {len(velocity)}"
            )
        u = [values(v) for v in velocity]
        for name, x in (("density", ρ), ("pressure", p)):
            require_positive_values(name, x)
        # One precision for all parts: the widest that was given.
        dtype = jnp.result_type(ρ.dtype, p.dtype, *(v.dtype for v in u))
        ρ, p, *u = (x.astype(dtype) for x in (ρ, p, *u))
        gamma = jnp.asarray(gamma, dtype)
        # Boundaries in the state's precision: their values are computed from the gas's γ.
        sides = cast_floats(
            {name: _boundary_of_part(boundary, name, gamma) for name in PARTS}, dtype
        )
        parts = zip(PARTS, conserved_variables(ρ, tuple(u), p, gamma), strict=True)
        fields = {
            name: Field(x, grid, None, sides[name], vector=name == "momentum") for name, x in parts
        }
        if scalars:
            amounts = jnp.stack([ρ * values(c).astype(dtype) for c in scalars])
            fields["scalars"] = Field(amounts, grid, None, _boundary_of_scalars(boundary))
        return Gas(**fields, gamma=gamma)

    @property
    def velocity(self) -> Field:
        """u = m/ρ."""
        return self.momentum.with_values(ratio(self.momentum.data, self.density.data[None]))

    @property
    def concentrations(self) -> Field:
        """c of the substances that flow along, `[s, *points]`."""
        return concentrations(self.scalars, self.density)

    def accelerated(self, acceleration: Sequence[Array]) -> dict[str, Array]:
        """Rates of momentum and energy under a force on every mass, by component."""
        rate = jnp.stack([self.density.data * a for a in acceleration])
        work = [m * a for m, a in zip(self.momentum.data, acceleration, strict=True)]
        return {"momentum": rate, "energy": sum(work[1:], work[0])}

    def pressure(self, gamma: ArrayLike | None = None) -> Field:
        """p = (γ − 1)(E − m²/2ρ), with the γ that the gas was made with, or `gamma`.

        **Errors:** `ParameterError` where the two differ, or there is none.
        """
        gamma = self._known_gamma(gamma)
        return self.energy.with_values((gamma - 1) * self._internal_energy())

    def sound_speed(self, gamma: ArrayLike | None = None) -> Field:
        """c = √(γp/ρ), with a γ as for `pressure`."""
        gamma = self._known_gamma(gamma)
        return self.energy.with_values(
            jnp.sqrt(ratio(gamma * self.pressure(gamma).data, self.density.data))
        )

    def require_gamma(self, gamma: ArrayLike, owner: str) -> None:
        """**Errors:** `ParameterError` where `gamma` of an `owner` is not the γ that the gas was made with.

        Only where both can be seen: outside of `jit`, `grad` and `vmap`.
        """
        require_same_gamma(self.gamma, gamma, owner)

    def _known_gamma(self, gamma: ArrayLike | None) -> ArrayLike:
        if gamma is not None:
            self.require_gamma(gamma, "the call")
            return gamma
        if self.gamma is None:
            raise ParameterError("this gas was made without a γ; give one, gas.pressure(1.4)")
        return self.gamma

    def positive_quantities(self) -> dict[str, Array]:
        return {"density": self.density.data, "internal energy": self._internal_energy()}

    def _internal_energy(self) -> Array:
        m = self.momentum.data
        return self.energy.data - 0.5 * ratio(jnp.sum(m * m, axis=0), self.density.data)


def require_heat_ratio(gamma: ArrayLike) -> None:
    """**Errors:** `ParameterError` unless γ > 1; a trace hides it."""
    number = concrete_value(gamma)
    if number is not None and not np.all(number > 1):
        raise ParameterError(f"the ratio of specific heats must exceed 1; got {number}")


def require_same_gamma(own: Array | None, gamma: ArrayLike, owner: str) -> None:
    """**Errors:** `ParameterError` where the γ of an `owner` is not the one that a gas was made with."""
    mine, other = concrete_value(own), concrete_value(gamma)
    if own is None or mine is None or other is None:
        return
    # One of them may have been rounded to single precision.
    if not np.allclose(mine, other, rtol=1e-5, atol=0):
        raise ParameterError(
            f"this gas was made with γ = {mine:.7g}, {owner} takes γ = {other:.7g}: its pressure would be "
            f"{(other - 1) / (mine - 1):.4g} times the one that was given. Make both with the same γ"
        )


def concentrations(scalars: Field | None, density: Field) -> Field:
    """Amounts in a unit of mass, of those in a unit of volume.

    **Errors:** `ParameterError` for a gas that carries none.
    """
    if scalars is None:
        raise ParameterError("this gas carries no scalars: from_primitive(…, scalars=(c, …))")
    return scalars.with_values(ratio(scalars.data, density.data[None]))


def _values_in_cells(grid: Grid, given: PointValues, dtype: DTypeLike | None) -> Array:
    value = evaluate_at_points(grid, given, grid.cell)
    if value.ndim and value.ndim != grid.dimension:
        raise ShapeError(f"values of shape {value.shape} on a grid of {grid.shape} cells")
    value = jnp.broadcast_to(value, grid.local_shape)
    return value if dtype is None else value.astype(dtype)


def require_positive_values(name: str, values: Array) -> None:
    """**Errors:** `ParameterError` that names the first cell where `values` are not positive."""
    numbers = concrete_value(values)
    if numbers is None or np.all(numbers > 0):
        return
    cell = tuple(int(i) for i in np.argwhere(~(numbers > 0))[0])
    raise ParameterError(
        f"the {name} of a gas must be positive; got {float(numbers[cell]):.6g} in cell {cell}"
    )


def _boundary_of_scalars(boundary: PyTree) -> PyTree:
    if isinstance(boundary, dict):
        return {side: _boundary_of_scalars(b) for side, b in boundary.items()}
    if isinstance(boundary, tuple):
        return tuple(_boundary_of_scalars(b) for b in boundary)
    return Inflow(0.0) if isinstance(boundary, GasInflow) else boundary


def _require_rest(wall: NoSlip) -> None:
    speed = None if isinstance(wall.velocity, Module) else concrete_value(wall.velocity)
    if speed is None or np.any(speed != 0):
        # Ghosts of the momentum would need the density there, which is another field.
        raise ParameterError(f"a NoSlip wall of a gas stands still; got {wall!r}")


def _boundary_of_part(boundary: PyTree, name: str, gamma: ArrayLike) -> PyTree:
    """What a boundary of a gas means for one of its fields."""
    if isinstance(boundary, dict):
        return {side: _boundary_of_part(b, name, gamma) for side, b in boundary.items()}
    if isinstance(boundary, tuple):
        return tuple(_boundary_of_part(b, name, gamma) for b in boundary)
    # A given state is a value of its own for each conserved field.
    if isinstance(boundary, GasInflow):
        return boundary.boundaries(gamma)[name]
    if isinstance(boundary, NoSlip):
        _require_rest(boundary)
    elif boundary is not None and not isinstance(boundary, Outflow | Mirror | Periodic):
        raise ParameterError(
            f"{boundary!r} cannot hold for density, momentum and energy at once; a given state outside is "
            "GasInflow(density, velocity, pressure), an open end Outflow(), a wall Mirror() or NoSlip()"
        )
    return boundary
