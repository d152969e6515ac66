"""Positions and velocities as integers, so that every move can be taken back to the last bit."""

from collections.abc import Callable

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


class FixedPointParticles(Module):
    """Exact positions, as fractions of the cell (of a range, along open axes), and exact velocities.

        x = (y + o) · cell,   −½ ≤ y < ½,   o = ½ along axes that repeat, 0 along open ones

    Wrapping is the overflow of the integers: exact for every box, also a triclinic one.

    **Arguments:**

    - `position`, `velocity`: the integers.
    - `cell`: lengths `[d]`, or lattice vectors as rows `[d d]`; `inverse`: its inverse.
    - `offset`: o per axis, `[d]`.
    - `faults`: whether something left its range.
    """

    position: FixedPoint
    velocity: ScaledFixedPoint
    cell: Float[Array, "d *d"] = data()
    inverse: Float[Array, "d *d"] = data()
    offset: Float[Array, " d"] = data()
    faults: Faults

    @staticmethod
    def of(
        position: Float[Array, "n d"],
        velocity: Float[Array, "n d"],
        space: AbstractSpace,
        dt: Float[Array, ""],
        room: float,
        largest: Callable,
    ) -> "FixedPointParticles":
        """The lattice's points next to these particles; `largest` number of an array of all of them."""
        position, velocity, space, dt = jax.tree.map(
            jax.lax.stop_gradient, (position, velocity, space, dt)
        )
        d = position.shape[1]
        repeats = jnp.array(space.periodic_axes(d))
        # Without any extent there is the path of many steps.
        far, fast = largest(jnp.abs(position)), largest(jnp.abs(velocity))
        extent = power_of_two_above(jnp.maximum(far, 64 * fast * dt))
        open_range = 2 * room * extent
        if isinstance(space, Triclinic):
            cell, inverse = space.vectors, inverse_matrix(space.vectors)
            extent = jnp.sqrt(jnp.max(jnp.sum(cell * cell, axis=1)))
        else:
            vectors = space.cell(d)
            if vectors is None:
                cell = jnp.full(d, open_range, position.dtype)
            else:
                cell = jnp.where(repeats, jnp.diag(vectors), open_range)
                extent = jnp.maximum(
                    jnp.max(jnp.where(repeats, cell, 0)),
                    jnp.where(jnp.all(repeats), 0, extent),
                )
            inverse = 1 / cell
        offset = jnp.where(repeats, 0.5, 0).astype(position.dtype)
        y = _product(position, inverse) - offset[None]
        outside = jnp.any((jnp.abs(y) >= 0.5) & ~repeats[None])
        # Who crosses the box in one step has no meaning any more: that is room enough for velocities.
        speed = jnp.maximum(power_of_two_above(extent / dt), 64 * power_of_two_above(fast))
        return FixedPointParticles(
            FixedPoint.of(y),
            ScaledFixedPoint.of(velocity, speed),
            cell,
            inverse,
            offset,
            Faults.none().set_if(Fault.FIXED_POINT_RANGE, outside),
        )

    @property
    def positions(self) -> Float[Array, "n d"]:
        """Positions as floats, inside the cell; NaN after a fault."""
        y = jax.lax.optimization_barrier(self.position.value + self.offset[None])
        below_one = 1 - float(jnp.finfo(y.dtype).eps) / 2
        y = jnp.where(self.offset[None] > 0, jnp.minimum(y, below_one), y)
        x = _product(y, self.cell)
        return jnp.where(self.faults.bits == 0, x, jnp.nan)

    @property
    def velocities(self) -> Float[Array, "n d"]:
        """Velocities as floats; NaN after a fault."""
        return self.velocity.value

    @property
    def rows(self) -> tuple[FixedPoint, FixedPoint]:
        """What there is for each particle: the integers."""
        return self.position, self.velocity.fixed_point

    def with_rows(self, rows: tuple[FixedPoint, FixedPoint]) -> "FixedPointParticles":
        """The same lattice with other particles on it."""
        velocity = replace_fields(self.velocity, {"fixed_point": rows[1]})
        return replace_fields(self, {"position": rows[0], "velocity": velocity})

    def poison_where(self, fault: Fault, where: Bool[Array, ""]) -> "FixedPointParticles":
        """The same, NaN and with `fault` if `where`."""
        return replace_fields(self, {"faults": self.faults.set_if(fault, where)})

    def share_faults(self) -> "FixedPointParticles":
        """A lattice in device layout with the faults of all devices on each."""
        every = lambda faults: Faults(jnp.broadcast_to(_any_bits(faults.bits), faults.bits.shape))
        velocity = replace_fields(self.velocity, {"faults": every(self.velocity.faults)})
        return replace_fields(self, {"velocity": velocity, "faults": every(self.faults)})

    def drift(self, step: Float[Array, "n d"]) -> tuple["FixedPointParticles", Int[Array, "n d"]]:
        """Particles moved by `step`, and how many cells each crossed along every axis."""
        dy, faults = zero_out_of_range(_product(step, self.inverse), self.faults)
        position, wrapped = self.position.plus(dy)
        repeats = (self.offset > 0)[None]
        faults = faults.set_if(Fault.FIXED_POINT_RANGE, jnp.any((wrapped != 0) & ~repeats))
        made = FixedPointParticles(
            position, self.velocity, self.cell, self.inverse, self.offset, faults
        )
        return made, jnp.where(repeats, wrapped, 0)

    def kick(self, change: Float[Array, "n d"]) -> "FixedPointParticles":
        """Velocities changed by `change`."""
        velocity = self.velocity.plus(change)
        return FixedPointParticles(
            self.position, velocity, self.cell, self.inverse, self.offset, self.faults
        )


def _product(x: Float[Array, "n d"], cell: Float[Array, "d *d"]) -> Float[Array, "n d"]:
    """x times lengths, or times a matrix of rows; every product is rounded, in any program."""
    if cell.ndim == 1:
        return round_before_add(x * cell[None])
    rows = [round_before_add(x[:, k, None] * cell[k][None]) for k in range(cell.shape[0])]
    return sum(rows[1:], rows[0])


def _any_bits(bits: Int[Array, " devices"]) -> Int[Array, ""]:
    """All bits that are set in any of these. (Not every platform reduces `or` over devices.)"""
    place = jnp.arange(31, dtype=jnp.int32)
    held = jnp.max((bits[:, None] >> place[None]) & 1, axis=0)
    return jnp.sum(held << place, dtype=jnp.int32)
