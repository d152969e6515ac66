"""The Riemann solver of magnetohydrodynamics: fast waves, Alfvén waves and the contact."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ratio

from ._riemann_solvers import AbstractRiemannSolver, RiemannLaw, Variables


class HLLD(AbstractRiemannSolver):
    """Five waves of ideal magnetohydrodynamics: two fast shocks, two Alfvén waves and the contact.

    For laws with a magnetic field (`alfven_flux`). Exact at isolated contacts, rotational and tangential
    discontinuities; slow waves are smeared.

    **Reference:** Miyoshi & Kusano, J. Comput. Phys. 208, 315 (2005).
    """

    def flux(self, law: RiemannLaw, left: Variables, right: Variables, axis: int) -> Variables:
        return law.alfven_flux(left, right, axis)


class MeetingSide(NamedTuple):
    """What the solver must know of a state beside a face.

    - `primitive`: (ρ, u, v, w, p, B_x, B_y, B_z).
    - `conserved`, `flux`: of the same, and its flux along the axis.
    - `speed`: of the outer wave to this side.
    """

    primitive: Variables
    conserved: Variables
    flux: Variables
    speed: Array


class _Star(NamedTuple):
    """The state behind an outer wave: eqs. 43–48 of Miyoshi & Kusano."""

    density: Array
    velocity: list[Array]
    magnetic: list[Array]
    energy: Array

    def conserved(self) -> Variables:
        momentum = [self.density * v for v in self.velocity]
        return self.density, *momentum, self.energy, *self.magnetic


def hlld_flux(left: MeetingSide, right: MeetingSide, axis: int) -> Variables:
    """The flux at a face that stands still, between two states with one normal magnetic field."""
    sides = left, right
    normal = left.primitive[5 + axis]
    total = [s.primitive[4] + 0.5 * _dot(s.primitive[5:], s.primitive[5:]) for s in sides]
    velocity = [s.primitive[1 + axis] for s in sides]
    # Mass that each outer wave sweeps up: negative to the left, positive to the right.
    swept = [s.primitive[0] * (s.speed - u) for s, u in zip(sides, velocity, strict=True)]
    # eqs. 38 and 41: the contact's speed and the total pressure between the fast waves.
    pushed = [q * u - p for q, u, p in zip(swept, velocity, total, strict=True)]
    contact = ratio(pushed[1] - pushed[0], swept[1] - swept[0])
    pressure = 0.5 * (
        (total[0] + swept[0] * (contact - velocity[0]))
        + (total[1] + swept[1] * (contact - velocity[1]))
    )
    stars = [
        _behind_outer_wave(s, total[k], swept[k], contact, pressure, axis)
        for k, s in enumerate(sides)
    ]
    # eqs. 59–63: both sides of the contact share velocity and field.
    roots = [jnp.sqrt(s.density) for s in stars]
    weight = ratio(1.0, roots[0] + roots[1])
    sign = jnp.where(normal >= 0, jnp.ones_like(normal), -jnp.ones_like(normal))
    shared_velocity, shared_field = [], []
    for (u, v), (a, b) in zip(
        zip(stars[0].velocity, stars[1].velocity, strict=True),
        zip(stars[0].magnetic, stars[1].magnetic, strict=True),
        strict=True,
    ):
        shared_velocity.append(weight * ((roots[0] * u + roots[1] * v) + (b - a) * sign))
        turned = (v - u) * sign * (roots[0] * roots[1])
        shared_field.append(weight * ((roots[0] * b + roots[1] * a) + turned))
    # Components along the axis are the contact's speed and the normal field, exactly.
    shared_velocity[axis], shared_field[axis] = contact, normal
    poynting = _dot(shared_velocity, shared_field)
    inner = []
    for k, star in enumerate(stars):
        lost = roots[k] * (_dot(star.velocity, star.magnetic) - poynting) * sign
        energy = star.energy - lost if k == 0 else star.energy + lost
        inner.append(_Star(star.density, shared_velocity, shared_field, energy).conserved())
    alfven = (
        contact - ratio(jnp.abs(normal), roots[0]),
        contact + ratio(jnp.abs(normal), roots[1]),
    )
    chosen = []
    for k, side in enumerate(sides):
        outside = side.speed >= 0 if k == 0 else side.speed <= 0
        behind = alfven[0] >= 0 if k == 0 else alfven[1] <= 0
        fluxes = []
        for f, u, star, deep in zip(
            side.flux, side.conserved, stars[k].conserved(), inner[k], strict=True
        ):
            between = f + side.speed * (star - u)
            twice = between + alfven[k] * (deep - star)
            fluxes.append(jnp.where(outside, f, jnp.where(behind, between, twice)))
        chosen.append(fluxes)
    return tuple(jnp.where(contact >= 0, f, g) for f, g in zip(*chosen, strict=True))


def _behind_outer_wave(
    side: MeetingSide, total: Array, swept: Array, contact: Array, pressure: Array, axis: int
) -> _Star:
    density, *velocity, _ = side.primitive[:5]
    magnetic, normal = side.primitive[5:], side.primitive[5 + axis]
    gap = side.speed - contact
    # Where a wave is as fast as the contact nothing lies between; what is not taken must not be NaN.
    safe = jnp.where(gap == 0, 1, gap)
    # eqs. 44–47; where the fast wave is as slow as Alfvén's nothing turns.
    stiffness = swept * gap - normal * normal
    tiny = jnp.finfo(density.dtype).eps ** 0.5 * pressure
    is_regular = jnp.abs(stiffness) > tiny
    one = jnp.ones_like(stiffness)
    inverse = ratio(jnp.where(is_regular, one, 0), jnp.where(is_regular, stiffness, 1))
    u = velocity[axis]
    stretch = jnp.where(is_regular, (swept * (side.speed - u) - normal * normal) * inverse, 1)
    turn = normal * (contact - u) * inverse
    star_velocity = [v - b * turn for v, b in zip(velocity, magnetic, strict=True)]
    star_field = [b * stretch for b in magnetic]
    star_velocity[axis], star_field[axis] = contact, normal
    # eq. 48.
    work = normal * (_dot(velocity, magnetic) - _dot(star_velocity, star_field))
    energy = (side.speed - u) * side.conserved[4] - total * u + pressure * contact + work
    return _Star(ratio(swept, safe), star_velocity, star_field, ratio(energy, safe))


def _dot(a, b) -> Array:
    first, *rest = (x * y for x, y in zip(a, b, strict=True))
    return sum(rest, first)
