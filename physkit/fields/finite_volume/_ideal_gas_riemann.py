"""The exact solution of the Riemann problem of an ideal gas."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ParameterError,
    as_parameter,
    concrete_value,
    data,
    explain_call,
    param,
    safe_maximum,
    safe_minimum,
)

from ..states._gas import require_heat_ratio

_NEWTON_STEPS = 10  # reach the last digit for densities and pressures that differ by 10⁸ (γ ≥ 1.1)

Values = Float[Array, "..."]
Side = tuple[Values, Values, Values]


class RiemannFan(Module):
    """What two uniform states of gas that meet at x = 0 have become: functions of x/t alone.

    Left wave, contact, right wave; waves are shocks or rarefactions. Made by `exact_riemann`.

    - `pressure`, `velocity`: between the waves.
    - `density_left`, `density_right`: on both sides of the contact.
    - `left_speeds`, `right_speeds`: of the first and the last characteristic of each wave, from left to
      right; equal for a shock.

    Calling it with speeds x/t gives density, velocity and pressure there.
    """

    gamma: Values = param()
    left: Side = data()
    right: Side = data()
    pressure: Values = data()
    velocity: Values = data()
    density_left: Values = data()
    density_right: Values = data()
    left_speeds: tuple[Values, Values] = data()
    right_speeds: tuple[Values, Values] = data()

    def __call__(self, speed: ArrayLike) -> Side:
        """Density, velocity and pressure at x/t = `speed`."""
        speed = jnp.asarray(speed, self.pressure.dtype)
        (ρ, u, p), (σ, v, q) = self.left, self.right
        star, contact = self.pressure, self.velocity
        head, tail = self.left_speeds
        low = _sample_left_side(
            ρ, u, p, star, contact, self.density_left, head, tail, speed, self.gamma
        )
        # The right wave is the mirror image of a left one.
        tail, head = self.right_speeds
        r, w, s = _sample_left_side(
            σ, -v, q, star, -contact, self.density_right, -head, -tail, -speed, self.gamma
        )
        is_left = speed <= contact
        return tuple(jnp.where(is_left, a, b) for a, b in zip(low, (r, -w, s), strict=True))


@explain_call
def exact_riemann(
    left: Array | Sequence[ArrayLike], right: Array | Sequence[ArrayLike], gamma: ArrayLike
) -> RiemannFan:
    """The exact solution for (density, velocity, pressure) on the left and on the right.

    Newton's method for the pressure between the waves, differentiable by the implicit-function rule.
    Where the states move apart so fast that vacuum opens between them, or where one of them is vacuum,
    pressure and densities between the waves are zero.

    **Arguments:**

    - `left`, `right`: three numbers or arrays each, which broadcast.
    - `gamma`: ratio of specific heats, > 1.

    **Errors:** `ParameterError` for γ ≤ 1, a negative density or pressure, and a gas without pressure, which
    is no vacuum: give it a small one, 10⁻¹² ρu², say.

    **Reference:** Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, 3rd ed. (2009), ch. 4.
    """
    left, right = (tuple(as_parameter(x) for x in side) for side in (left, right))
    require_heat_ratio(gamma)
    for name, (density, _, pressure) in (("left", left), ("right", right)):
        _require_gas_or_vacuum(name, density, pressure)
    return solve_riemann(left, right, jnp.asarray(gamma, left[0].dtype))


def solve_riemann(left: Side, right: Side, gamma: Values) -> RiemannFan:
    """`exact_riemann` of any numbers: what has no pressure is vacuum."""
    (ρ, u, p), (σ, v, q) = left, right
    a, b = sound_speed(ρ, p, gamma), sound_speed(σ, q, gamma)
    escape_left, escape_right = u + 2 * a / (gamma - 1), v - 2 * b / (gamma - 1)
    vacuum = (escape_left <= escape_right) | (ρ <= 0) | (σ <= 0) | (p <= 0) | (q <= 0)

    # Where there is vacuum Newton's method gets a harmless gas instead: its result is not used, but a NaN
    # would reach the derivatives of all the others.
    def replace_vacuum(x: Values) -> Values:
        return jnp.where(vacuum, 1, x)

    sides = tuple(tuple(map(replace_vacuum, side)) for side in ((ρ, p, a), (σ, q, b)))
    velocity_jump = jnp.where(vacuum, 0, v - u)
    star = _star_pressure(*sides, velocity_jump, gamma)
    unit = _pressure_unit(*sides)
    log = jnp.log(star / unit)
    f, g = (_velocity_change(star, log, unit, *side, gamma)[0] for side in sides)
    # Toro, eq. 4.9.
    contact = 0.5 * (u + v) + 0.5 * (g - f)

    # The contact in vacuum means nothing: it is put where the gas ends, or in the middle of the gap.
    between = jnp.where(ρ <= 0, escape_right, jnp.where(σ <= 0, escape_left, 0.0))
    between = jnp.where((ρ > 0) & (σ > 0), 0.5 * (escape_left + escape_right), between)
    contact = jnp.where(vacuum, between, contact)
    star = jnp.where(vacuum, 0, star)
    density_left, head_left, tail_left = _left_wave(ρ, u, p, a, star, contact, escape_left, gamma)
    density_right, head_right, tail_right = _left_wave(
        σ, -v, q, b, star, -contact, -escape_right, gamma
    )
    return RiemannFan(
        gamma, left, right, star, contact, density_left, density_right,
        (head_left, tail_left), (-tail_right, -head_right),
    )  # fmt: skip


def _require_gas_or_vacuum(name: str, density: Values, pressure: Values) -> None:
    """**Errors:** `ParameterError`; a trace hides it."""
    values = [concrete_value(x) for x in (density, pressure)]
    for what, x in zip(("density", "pressure"), values, strict=True):
        if x is not None and np.any(x < 0):
            raise ParameterError(f"the {what} on the {name} cannot be negative; got {np.min(x)}")
    ρ, p = values
    if ρ is not None and p is not None and np.any((ρ > 0) & (p == 0)):
        raise ParameterError(
            f"the gas on the {name} has no pressure, of which the exact solution takes logarithms: give it a "
            "small one, 1e-12 ρu². A vacuum has no density either"
        )


def sound_speed(density: Values, pressure: Values, gamma: Values) -> Values:
    """c = √(γp/ρ); 0 in vacuum."""
    is_gas = (density > 0) & (pressure > 0)
    ratio = gamma * jnp.where(is_gas, pressure, 1) / jnp.where(is_gas, density, 1)
    return jnp.where(is_gas, jnp.sqrt(ratio), 0)


def _star_pressure(left: Side, right: Side, velocity_jump: Values, gamma: Values) -> Values:
    """The root p of f_L(p) + f_R(p) + u_R − u_L."""
    # The iteration itself has no derivative; see the last line.
    frozen = jax.lax.stop_gradient((left, right, velocity_jump, gamma))
    unit = _pressure_unit(*frozen[:2])

    # In ln p: the pressure itself then cannot become negative.
    def newton(log, left, right, velocity_jump, gamma):
        p = unit * jnp.exp(log)
        (f, df), (g, dg) = (_velocity_change(p, log, unit, *side, gamma) for side in (left, right))
        return log - (f + g + velocity_jump) / (p * (df + dg))

    # As a function of ln p the sum is convex: from above the iteration falls straight to the root.
    def step(_: Array | int, log: Values) -> Values:
        return newton(log, *frozen)

    root = jax.lax.fori_loop(0, _NEWTON_STEPS, step, jnp.log(_from_above(*frozen) / unit))
    # At the root one more step has the derivatives of the root itself.
    return unit * jnp.exp(newton(jax.lax.stop_gradient(root), left, right, velocity_jump, gamma))


def _pressure_unit(left: Side, right: Side) -> Values:
    """What logarithms and powers of pressures are relative to: their digits are then those of any units."""
    return jax.lax.stop_gradient(jnp.maximum(left[1], right[1]))


def _from_above(left: Side, right: Side, velocity_jump: Values, gamma: Values) -> Values:
    """A pressure that is not below the root: that of two rarefactions (eq. 4.46), or of strong shocks."""
    z = (gamma - 1) / (2 * gamma)
    (ρ, p, a), (σ, q, b) = left, right
    numerator = (a + b) - 0.5 * (gamma - 1) * velocity_jump
    unit = _pressure_unit(left, right)
    weights = a / (p / unit) ** z + b / (q / unit) ** z
    # Close to vacuum the numerator vanishes by rounding: a small positive number keeps the root real.
    two_fans = unit * (safe_maximum(numerator, 1e-6 * (a + b)) / weights) ** (1 / z)
    # Two shocks: with x = p* − max(p, q) each branch of eq. 4.6 is at least √(2/((γ + 1)ρ)) x/√(x + 2 max),
    # so that the root of their sum, x² = d (x + 2 max), lies above the true one.
    higher = safe_maximum(p, q)
    factor = jnp.sqrt(2 / (gamma + 1)) * (1 / jnp.sqrt(ρ) + 1 / jnp.sqrt(σ))
    d = (safe_maximum(-velocity_jump, 0) / factor) ** 2
    return safe_minimum(two_fans, higher + 0.5 * d + jnp.sqrt(d * (0.25 * d + 2 * higher)))


def _velocity_change(
    star: Values,
    log: Values,
    unit: Values,
    density: Values,
    pressure: Values,
    sound: Values,
    gamma: Values,
) -> tuple[Values, Values]:
    """f_K(p) and its derivative: the velocity across a wave that changes the pressure to p (eq. 4.6).

    - `log`: ln p/unit.
    """
    # Both branches are evaluated; they meet at star = pressure with equal slope.
    shock = star > pressure
    a, b = 2 / ((gamma + 1) * density), (gamma - 1) / (gamma + 1) * pressure
    # Root by root: the quotient of small numbers is too large for single precision, its root is not.
    root = jnp.sqrt(a) / jnp.sqrt(star + b)
    f_shock = (star - pressure) * root
    df_shock = root * (1 - 0.5 * (star - pressure) / (star + b))
    z = (gamma - 1) / (2 * gamma)
    power = jnp.exp(z * (log - jnp.log(pressure / unit)))
    f_fan = 2 * sound / (gamma - 1) * (power - 1)
    df_fan = sound / gamma * power / star
    return jnp.where(shock, f_shock, f_fan), jnp.where(shock, df_shock, df_fan)


def _left_wave(
    ρ: Values,
    u: Values,
    p: Values,
    c: Values,
    star: Values,
    contact: Values,
    escape: Values,
    gamma: Values,
) -> tuple[Values, Values, Values]:
    """Density behind a left wave, and the speeds of its first and last characteristic."""
    # Toro, eqs. 4.50 to 4.55 for a left shock and a left rarefaction.
    is_gas = (ρ > 0) & (p > 0)
    ratio = star / jnp.where(is_gas, p, 1)
    shock, empty = ratio > 1, ratio <= 0
    k = (gamma - 1) / (gamma + 1)
    behind_shock = ρ * (ratio + k) / (k * ratio + 1)
    safe = jnp.where(empty, 1, ratio)
    behind_fan = ρ * safe ** (1 / gamma)
    speed = u - c * jnp.sqrt(((gamma + 1) * safe_maximum(ratio, 1) + (gamma - 1)) / (2 * gamma))
    tail = contact - c * safe ** ((gamma - 1) / (2 * gamma))
    density = jnp.where(shock, behind_shock, jnp.where(empty, 0, behind_fan))
    tail = jnp.where(shock, speed, jnp.where(empty, escape, tail))
    head = jnp.where(shock, speed, u - c)
    # Beside vacuum that was there from the start nothing moves.
    return density, jnp.where(is_gas, head, contact), jnp.where(is_gas, tail, contact)


def _sample_left_side(
    ρ: Values,
    u: Values,
    p: Values,
    star: Values,
    contact: Values,
    density: Values,
    head: Values,
    tail: Values,
    speed: Values,
    gamma: Values,
) -> Side:
    """The solution to the left of the contact."""
    c = sound_speed(ρ, p, gamma)
    ahead, behind = speed <= head, speed >= tail
    inside = ~(ahead | behind)
    # Inside the fan, eq. 4.56.
    flow = 2 / (gamma + 1) * (c + 0.5 * (gamma - 1) * u + speed)
    relative = 2 / (gamma + 1) + (gamma - 1) / (gamma + 1) * (u - speed) / jnp.where(c > 0, c, 1)
    # Outside, where the base may be negative, the power would be NaN, and reach derivatives.
    relative = jnp.where(inside, relative, 1)
    fan = ρ * relative ** (2 / (gamma - 1)), flow, p * relative ** (2 * gamma / (gamma - 1))
    return tuple(
        jnp.where(ahead, x, jnp.where(behind, y, z))
        for x, y, z in zip((ρ, u, p), (density, contact, star), fan, strict=True)
    )
