"""Advection upstream splitting: what flows and what pushes, apart."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, ratio, require_positive, safe_maximum, safe_minimum

from ._riemann_solvers import AbstractRiemannSolver, RiemannLaw, Variables

_BETA, _ALPHA = 1 / 8, 3 / 16
_PRESSURE_DIFFUSION, _VELOCITY_DIFFUSION = 0.25, 0.75  # K_p and K_u of Liou (2006), after eq. 77


class AdvectionParts(NamedTuple):
    """A flux as F = ρu ψ + p n, of one side of a face.

    - `density`, `velocity`, `pressure`: ρ, u along the axis, p.
    - `critical_speed`: a*, the speed of sound where the flow, brought to it, would have it.
    - `carried`: ψ, what a unit of mass carries of every conserved variable: (1, u, H).
    """

    density: Float[Array, "..."]
    velocity: Float[Array, "..."]
    pressure: Float[Array, "..."]
    critical_speed: Float[Array, "..."]
    carried: Variables


class AUSMPlus(AbstractRiemannSolver):
    """The mass flux, what it carries from upstream, and the pressure: AUSM⁺, and AUSM⁺-up for all speeds.

        F = ṁ ψ_{upstream} + p_½ n

    For laws with one pressure and one velocity (`advection_parts`): gas dynamics. Exact at contacts that stand,
    cheap, and free of the carbuncle.

    **Arguments:**

    - `reference_mach`: M∞ of a slow flow, 0 < M∞ ≤ 1: then it is AUSM⁺-up, whose dissipation scales with the
      flow instead of the sound. None for AUSM⁺.

    **Errors:** `ParameterError` for a Mach number that is not positive.

    **Reference:** Liou, J. Comput. Phys. 129, 364 (1996); AUSM⁺-up: Liou, J. Comput. Phys. 214, 137 (2006),
    eqs. 19–30 and 69–77.
    """

    reference_mach: Float[Array, ""] | None = param(None)

    def __check_init__(self):
        require_positive(self, "reference_mach")

    def flux(self, law: RiemannLaw, left: Variables, right: Variables, axis: int) -> Variables:
        a, b = law.advection_parts(left, axis), law.advection_parts(right, axis)
        # The speed of sound at the face: with it standing shocks are exact (eq. 30).
        speed = safe_minimum(
            a.critical_speed**2 / safe_maximum(a.critical_speed, a.velocity),
            b.critical_speed**2 / safe_maximum(b.critical_speed, -b.velocity),
        )
        m, n = a.velocity / speed, b.velocity / speed
        mach = _split_mach(m, 1) + _split_mach(n, -1)
        alpha = _ALPHA
        if self.reference_mach is not None:
            # eqs. 70–73: below M∞ all speeds count as M∞.
            square = 0.5 * (m * m + n * n)
            least = safe_maximum(square, self.reference_mach**2)
            size = jnp.sqrt(safe_minimum(least, 1))
            scale = size * (2 - size)
            alpha = _ALPHA * (5 * scale * scale - 4)
            mean = 0.5 * (a.density + b.density)
            rise = ratio(b.pressure - a.pressure, mean * speed * speed)
            mach = mach - _PRESSURE_DIFFUSION / scale * safe_maximum(1 - square, 0) * rise
        below, above = _split_pressure(m, alpha, 1), _split_pressure(n, alpha, -1)
        pressure = below * a.pressure + above * b.pressure
        if self.reference_mach is not None:
            push = (a.density + b.density) * scale * speed * (b.velocity - a.velocity)
            pressure = pressure - _VELOCITY_DIFFUSION * below * above * push
        from_left = mach > 0
        mass = speed * mach * jnp.where(from_left, a.density, b.density)
        fluxes = [
            mass * jnp.where(from_left, x, y) for x, y in zip(a.carried, b.carried, strict=True)
        ]
        fluxes[1 + axis] = fluxes[1 + axis] + pressure
        return tuple(fluxes)


def _split_mach(mach: Array, sign: int) -> Array:
    """ℳ₄±, eq. 20 of Liou (2006)."""
    forward, backward = 0.25 * sign * (mach + sign) ** 2, -0.25 * sign * (mach - sign) ** 2
    inside = forward * (1 - sign * 16 * _BETA * backward)
    return jnp.where(jnp.abs(mach) >= 1, 0.5 * (mach + sign * jnp.abs(mach)), inside)


def _split_pressure(mach: Array, alpha: Array | float, sign: int) -> Array:
    """𝒫₅±, eq. 24."""
    forward, backward = 0.25 * sign * (mach + sign) ** 2, -0.25 * sign * (mach - sign) ** 2
    inside = forward * ((sign * 2 - mach) - sign * 16 * alpha * mach * backward)
    return jnp.where(jnp.abs(mach) >= 1, 0.5 * (1 + sign * jnp.sign(mach)), inside)
