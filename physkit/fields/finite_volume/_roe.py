"""Roe's Riemann solver: every wave of the linearized problem, by itself."""

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ratio, safe_maximum

from ._riemann_solvers import AbstractRiemannSolver, RiemannLaw, Variables, fluxes_and_conserved


class Roe(AbstractRiemannSolver):
    """The exact solution of a linear problem between the two states: every wave keeps its own speed.

        F = ½ (F_L + F_R) − ½ |A| (U_R − U_L),   A (U_R − U_L) = F_R − F_L

    For laws that know their waves (`roe_dissipation`). Contacts, shear and isolated shocks stay sharp. Harten
    and Hyman's entropy fix keeps sonic rarefactions smooth.

    **Notes:** fails next to a vacuum and may ripple behind strong shocks along the grid (carbuncle); take
    `HLL()` there.

    **Reference:** Roe, J. Comput. Phys. 43, 357 (1981); entropy fix: Harten & Hyman, J. Comput. Phys. 50, 235
    (1983); Toro (2009), ch. 11.
    """

    def flux(self, law: RiemannLaw, left: Variables, right: Variables, axis: int) -> Variables:
        dissipation = law.roe_dissipation(left, right, axis)
        pairs = fluxes_and_conserved(law, left, right, axis)
        return tuple(
            0.5 * (f + g) - 0.5 * d for (f, g, _, _), d in zip(pairs, dissipation, strict=True)
        )


def ideal_gas_roe_dissipation(
    left: Variables, right: Variables, gamma: Array, axis: int
) -> Variables:
    """|A| (U_R − U_L) of an ideal gas: primitive variables (ρ, u…, p) on both sides.

    **Reference:** Toro (2009), eqs. 11.58–11.70.
    """
    (rho, *u, p), (sigma, *v, q) = left, right
    # Averages weighted by √ρ, as the mean plus half a weighted difference.
    roots = jnp.sqrt(rho), jnp.sqrt(sigma)
    tilt = 0.5 * ratio(roots[1] - roots[0], roots[0] + roots[1])

    def average(a: Array, b: Array) -> Array:
        return 0.5 * (a + b) + tilt * (b - a)

    velocity = [average(a, b) for a, b in zip(u, v, strict=True)]
    density, normal = roots[0] * roots[1], velocity[axis]
    squares = ratio(gamma * p, rho), ratio(gamma * q, sigma)
    rises = [b - a for a, b in zip(u, v, strict=True)]
    # c² = (γ − 1)(H − ½u²), written so that it cannot cancel.
    jump = (0.25 - tilt * tilt) * 0.5 * (gamma - 1) * sum(d * d for d in rises)
    square = average(*squares) + jump
    c = jnp.sqrt(square)
    kinetic = 0.5 * sum(w * w for w in velocity)
    enthalpy = square / (gamma - 1) + kinetic
    # Strengths of the two sound waves and of the contact.
    pressure_rise, normal_rise = q - p, rises[axis]
    slow = 0.5 * (pressure_rise - density * c * normal_rise) / square
    fast = 0.5 * (pressure_rise + density * c * normal_rise) / square
    contact = (sigma - rho) - pressure_rise / square
    a, b = jnp.sqrt(squares[0]), jnp.sqrt(squares[1])
    slow = slow * _spread_speed(normal - c, u[axis] - a, v[axis] - b)
    fast = fast * _spread_speed(normal + c, u[axis] + a, v[axis] + b)
    contact, shear = contact * jnp.abs(normal), density * jnp.abs(normal)
    momentum = [
        (slow + fast + contact) * w + shear * d for w, d in zip(velocity, rises, strict=True)
    ]
    momentum[axis] = (slow + fast + contact) * normal + (fast - slow) * c
    carried = sum(w * d for w, d in zip(velocity, rises, strict=True)) - normal * normal_rise
    energy = (slow + fast) * enthalpy + (fast - slow) * normal * c + contact * kinetic
    return slow + fast + contact, *momentum, energy + shear * carried


def _spread_speed(speed: Array, below: Array, above: Array) -> Array:
    """|λ|, and at least half the width of a rarefaction that the wave may be."""
    width = safe_maximum(0, safe_maximum(speed - below, above - speed))
    size = jnp.abs(speed)
    safe = jnp.where(width > 0, width, 1)
    return jnp.where(size < width, 0.5 * (speed * speed / safe + width), size)
