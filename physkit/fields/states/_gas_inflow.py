"""The side of a box through which gas comes in."""

from collections.abc import Callable, Sequence
from typing import cast

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import Module, PyTree, ShapeError, static
from physkit.geometry import Grid, Inflow, as_space_time_value

PARTS = ("density", "momentum", "energy")


class GasInflow(Module):
    """A side through which gas of a given state comes in, or beyond which it lies.

        Gas.from_primitive(grid, …, boundary={"x_low": GasInflow(1.0, (3.0, 0.0), 1.0), …})

    **Arguments:**

    - `density`, `velocity`, `pressure`: numbers, or functions `(t, *x)`; the velocity is a tuple of them,
      one per axis, or one alone on a line.

    **Errors:** `ShapeError`, from the gas, for a velocity with another number of components.
    """

    density: PyTree
    velocity: tuple[PyTree, ...]
    pressure: PyTree

    def __init__(
        self,
        density: ArrayLike | Callable,
        velocity: ArrayLike | Callable | Sequence[ArrayLike | Callable],
        pressure: ArrayLike | Callable,
    ):
        self.density, self.pressure = as_space_time_value(density), as_space_time_value(pressure)
        per_axis = velocity if isinstance(velocity, tuple | list) else (velocity,)
        self.velocity = tuple(as_space_time_value(v) for v in per_axis)

    def require_velocity(self, grid: Grid) -> None:
        """**Errors:** `ShapeError` unless the velocity has a component for each axis of `grid`: one number
        would be taken for every component, and flow in aslant."""
        if len(self.velocity) != grid.dimension:
            raise ShapeError(
                f"the velocity of a GasInflow on this grid has {grid.dimension} components, a tuple "
                f"({', '.join('uvw'[: grid.dimension])}); got {len(self.velocity)}"
            )

    def boundaries(self, gamma: ArrayLike) -> dict[str, Inflow]:
        """What it means for each field of a `Gas`."""
        # Functions are evaluated when the boundary is needed; numbers are converted now.
        if any(isinstance(v, Module) for v in (self.density, *self.velocity, self.pressure)):
            return {
                name: Inflow(_ConservedInflow(self, jnp.asarray(gamma), name)) for name in PARTS
            }
        values = conserved_variables(self.density, self.velocity, self.pressure, gamma)
        return {name: Inflow(value) for name, value in zip(PARTS, values, strict=True)}


class _ConservedInflow(Module):
    """One conserved field of an inflow that depends on time or place."""

    inflow: GasInflow
    gamma: Array
    part: str = static()

    def __call__(self, t: ArrayLike, *x: Array) -> Array:
        def at(value: PyTree) -> ArrayLike:
            return cast(Callable, value)(t, *x) if isinstance(value, Module) else value

        velocity = tuple(at(v) for v in self.inflow.velocity)
        values = conserved_variables(
            at(self.inflow.density), velocity, at(self.inflow.pressure), self.gamma
        )
        return values[PARTS.index(self.part)]


def conserved_variables(
    density: ArrayLike, velocity: tuple[ArrayLike, ...], pressure: ArrayLike, gamma: ArrayLike
) -> tuple[Array, ...]:
    """ρ, m = ρu and E = p/(γ − 1) + ½ρu²."""
    ρ, p, *u = jnp.broadcast_arrays(density, pressure, *velocity)
    first, *rest = (v * v for v in u)
    energy = p / (gamma - 1) + 0.5 * ρ * sum(rest, first)
    return ρ, jnp.stack([ρ * v for v in u]), energy
