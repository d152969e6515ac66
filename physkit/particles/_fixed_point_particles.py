"""Positions and velocities as fixed-point numbers, so that every drift and kick is reversed to the last bit."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    Fault,
    Faults,
    FixedPoint,
    Module,
    ScaledFixedPoint,
    data,
    power_of_two_above,
    replace_fields,
    round_before_add,
    zero_out_of_range,
)
from physkit.geometry import AbstractSpace, Triclinic, inverse_matrix

M = TypeVar("M", bound=Any)  # fixed-point numbers that hold faults


class FixedPointParticles(Module):
    """Exact positions, as fractions of the cell (or of a range, along open axes), and exact velocities.

        x = (y + o) · cell,   −½ ≤ y < ½,   o = ½ along periodic axes, 0 along open ones

    Drift and kick are shears of these integers; the opposite increment reverses each exactly:

        y ← y + round(Δx · cell⁻¹),     v ← v + round(Δv)

    Wrapping is the overflow of the integers: exact for every box, also a triclinic one.

    **Arguments:**

    - `position`, `velocity`: the integers.
    - `cell`: lengths `[d]`, or lattice vectors as rows `[d d]`; `inverse`: its inverse.
    - `offset`: o per axis, `[d]`.
    - `faults`: whether something left its range.
    """

    position: FixedPoint
    velocity: ScaledFixedPoint
    cell: Float[Array, "d ..."] = data()
    inverse: Float[Array, "d ..."] = data()
    offset: Float[Array, " d"] = data()
    faults: Faults

    @staticmethod
    def from_floats(
        position: Float[Array, "n d"],
        velocity: Float[Array, "n d"],
        space: AbstractSpace,
        dt: Float[Array, ""],
        range_factor: float,
        largest: Callable[[Array], Array],
    ) -> "FixedPointParticles":
        """The fixed-point numbers nearest to these particles.

        - `largest`: a function that returns the largest number in an array, over the whole domain.
        """
        # Only the integers: derivatives go around them, see `with_tangent_of`.
        position, velocity, space, dt = jax.tree.map(
            jax.lax.stop_gradient, (position, velocity, space, dt)
        )
        d = position.shape[1]
        is_periodic = jnp.array(space.periodic_axes(d))
        # Powers of two, so that scaling rounds nothing. Where all particles are at one point, take the path
        # of many steps as the extent.
        farthest, fastest = largest(jnp.abs(position)), largest(jnp.abs(velocity))
        extent = power_of_two_above(jnp.maximum(farthest, 64 * fastest * dt))
        open_range = 2 * range_factor * extent
        if isinstance(space, Triclinic):
            cell, inverse = space.vectors, inverse_matrix(space.vectors)
            extent = jnp.sqrt(jnp.max(jnp.sum(cell * cell, axis=1)))
        else:
            vectors = space.cell(d)
            if vectors is None:
                cell = jnp.full(d, open_range, position.dtype)
            else:
                cell = jnp.where(is_periodic, jnp.diag(vectors), open_range)
                extent = jnp.maximum(
                    jnp.max(jnp.where(is_periodic, cell, 0)),
                    jnp.where(jnp.all(is_periodic), 0, extent),
                )
            inverse = 1 / cell
        offset = jnp.where(is_periodic, jnp.asarray(0.5, position.dtype), 0)
        y = _multiply_rows(position, inverse) - offset[None]
        outside = jnp.any((jnp.abs(y) >= 0.5) & ~is_periodic[None])
        # A particle that crosses the box in one step has left all physics: velocities need no larger range
        # than that, nor much more than 64 times the fastest now.
        speed = jnp.maximum(power_of_two_above(extent / dt), 64 * power_of_two_above(fastest))
        return FixedPointParticles(
            FixedPoint.from_float(y),
            ScaledFixedPoint.from_float(velocity, speed),
            cell,
            inverse,
            offset,
            Faults.none().set_if(Fault.FIXED_POINT_RANGE, outside),
        )

    @property
    def positions(self) -> Float[Array, "n d"]:
        """Positions as floats, inside the cell; NaN after a fault."""
        # Optimization barrier: the sum rounds by itself, in the forward and in the backward program alike.
        y = jax.lax.optimization_barrier(self.position.to_float() + self.offset[None])
        # The nearest float to the largest fraction is 1, which is outside of a half-open cell.
        below_one = 1 - float(jnp.finfo(y.dtype).eps) / 2
        y = jnp.where(self.offset[None] > 0, jnp.minimum(y, below_one), y)
        x = _multiply_rows(y, self.cell)
        return jnp.where(self.faults.bits == 0, x, jnp.nan)

    @property
    def velocities(self) -> Float[Array, "n d"]:
        """Velocities as floats; NaN after a fault."""
        return self.velocity.to_float()

    @property
    def rows(self) -> tuple[FixedPoint, FixedPoint]:
        """The arrays with a row for each particle: the integers."""
        return self.position, self.velocity.fixed_point

    def with_rows(self, rows: tuple[FixedPoint, FixedPoint]) -> "FixedPointParticles":
        """The same cell and ranges, other particles."""
        velocity = replace_fields(self.velocity, {"fixed_point": rows[1]})
        return replace_fields(self, {"position": rows[0], "velocity": velocity})

    def poison_where(self, fault: Fault, where: Bool[Array, ""]) -> "FixedPointParticles":
        """These numbers, with `fault` if `where`: positions are then NaN."""
        return replace_fields(self, {"faults": self.faults.set_if(fault, where)})

    def share_faults(self) -> "FixedPointParticles":
        """These numbers, in device layout, with the faults of all devices on each."""

        return share_faults(replace_fields(self, {"velocity": share_faults(self.velocity)}))

    def drift(self, dx: Float[Array, "n d"]) -> tuple["FixedPointParticles", Int[Array, "n d"]]:
        """Positions shifted by `dx`, and how many cells each particle crossed along every axis."""
        # Increments too large for an integer, or NaN, become 0 and a fault.
        dy, faults = zero_out_of_range(_multiply_rows(dx, self.inverse), self.faults)
        position, wrapped = self.position.add(dy)
        # The integers wrap along all axes; along open ones, to wrap is to leave the range.
        is_periodic = (self.offset > 0)[None]
        left = jnp.any((wrapped != 0) & ~is_periodic)
        faults = faults.set_if(Fault.FIXED_POINT_RANGE, left)
        moved = replace_fields(self, {"position": position, "faults": faults})
        return moved, jnp.where(is_periodic, wrapped, 0)

    def kick(self, dv: Float[Array, "n d"]) -> "FixedPointParticles":
        """Velocities shifted by `dv`."""
        return replace_fields(self, {"velocity": self.velocity.add(dv)})


def share_faults(numbers: M) -> M:
    """Fixed-point numbers in device layout, with the faults of all devices on each."""
    bits = numbers.faults.bits
    shared = Faults(jnp.broadcast_to(_any_bits(bits), bits.shape))
    return replace_fields(numbers, {"faults": shared})


def _multiply_rows(x: Float[Array, "n d"], cell: Float[Array, "d ..."]) -> Float[Array, "n d"]:
    """x times lengths, or times a matrix of rows. Each product is rounded, so that no program fuses it."""
    if cell.ndim == 1:
        return round_before_add(x * cell[None])
    rows = [round_before_add(x[:, k, None] * cell[k][None]) for k in range(cell.shape[0])]
    return sum(rows[1:], rows[0])


def _any_bits(bits: Int[Array, " devices"]) -> Int[Array, ""]:
    """All bits that are set in any of these."""
    # Bit by bit with a maximum: not every platform can reduce with `or` over devices.
    place = jnp.arange(31, dtype=jnp.int32)
    is_set = jnp.max((bits[:, None] >> place[None]) & 1, axis=0)
    return jnp.sum(is_set << place, dtype=jnp.int32)
