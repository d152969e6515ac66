"""`Spins`: a whole number on each site of a lattice."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Int

from physkit.core import (
    AbstractComponent,
    ComponentError,
    DeclarationError,
    Fault,
    Rate,
    ShapeError,
    concrete_value,
    data as evolving,
    describe,
    replace_fields,
    replicate,
)
from physkit.geometry import Grid, shard_array, unshard_array

UNDEFINED = -128  # a spin that was drawn from numbers that are none: what NaN is among floats


class Spins(AbstractComponent):
    """A spin on each cell of a grid: +1 or −1 of the Ising model, 0 … q − 1 of the Potts model.

        Spins(1, Grid([64.0, 64.0], (64, 64)))    # all up

    Sites are neighbors along the axes of the grid, and over its periodic ends; walls are open ends.

    **Arguments:**

    - `data`: `[*sites]`, whole numbers, or one for all.
    - `grid`: the lattice, of one, two or three axes.

    **Errors:** `ShapeError` where both disagree; `ComponentError` for values that are no whole numbers from
    −127 to 127: they are stored as bytes.
    """

    grid: Grid
    data: Int[Array, "..."] = evolving()

    def __init__(self, data: ArrayLike, grid: Grid):
        array = jnp.asarray(data)
        if not jnp.issubdtype(array.dtype, jnp.integer):
            raise ComponentError(f"spins are whole numbers; got {describe(data)}")
        numbers = concrete_value(array)
        if numbers is not None and (np.abs(numbers.astype(np.int64)) > 127).any():
            raise ComponentError(f"a spin is stored as a byte, −127 … 127; got {describe(data)}")
        if array.ndim == 0:
            array = jnp.broadcast_to(array, grid.local_shape)
        if array.shape != grid.local_shape:
            raise ShapeError(
                f"spins of shape {array.shape} on a lattice of {grid.local_shape} sites: give one for each"
            )
        self.data, self.grid = array.astype(jnp.int8), grid

    @property
    def num_sites(self) -> int:
        """Number of sites of the whole lattice."""
        return int(np.prod(self.grid.shape))

    def with_values(self, values: Int[Array, "..."]) -> "Spins":
        """Other spins on the same lattice, unchecked."""
        return replace_fields(self, {"data": values})

    def shift(self, delta: Rate) -> "Spins":
        """**Errors:** `DeclarationError`: spins have no rate of change."""
        raise DeclarationError(
            "spins jump from value to value and have no rate: SpinHeatBath, SpinMetropolis and SwendsenWang "
            "move them"
        )

    def shard(self, devices: tuple[int, ...]) -> "Spins":
        self.grid.require_shardable(devices)
        grid = jax.tree.map(lambda x: replicate(x, devices), self.grid)
        data = shard_array(self.data, devices, self._no_walls)
        return replace_fields(self, {"data": data, "grid": grid})

    def unshard(self, devices: tuple[int, ...]) -> "Spins":
        grid = jax.tree.map(lambda x: x[0], self.grid)
        data = unshard_array(self.data, devices, self._no_walls)
        return replace_fields(self, {"data": data, "grid": grid})

    def faults(self) -> Array:
        lost = self.grid.max((self.data == UNDEFINED).astype(jnp.int32)) > 0
        return jnp.where(lost, jnp.int32(Fault.NOT_FINITE), jnp.int32(0))

    @property
    def _no_walls(self) -> tuple[bool, ...]:
        return (False,) * self.grid.dimension
