"""Gas dynamics: the Riemann problem, shock tubes, sound, a blast."""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from physkit.fields.finite_volume import WENO5, exact_riemann
from physkit.simulate import run
from physkit.systems import (
    SEDOV_ALPHA,
    SOD,
    SOD_END,
    averaged_density,
    sedov,
    shock_radius,
    shock_tube,
    sod,
    sound_wave,
)

from .._case import Case, Published

# Left and right states (ρ, u, p), jump, end; p* and u* as printed. Toro (2009), tables 4.1 and 4.2.
TORO = {
    "1": (((1.0, 0.0, 1.0), (0.125, 0.0, 0.1)), 0.30313, 0.92745),
    "2": (((1.0, -2.0, 0.4), (1.0, 2.0, 0.4)), 0.00189, 0.0),
    "3": (((1.0, 0.0, 1000.0), (1.0, 0.0, 0.01)), 460.894, 19.5975),
    "4": (((1.0, 0.0, 0.01), (1.0, 0.0, 100.0)), 46.0950, -6.19633),
    "5": (((5.99924, 19.5975, 460.894), (5.99242, -6.19633, 46.0950)), 1691.64, 8.68975),
}


def exact_sod() -> dict[str, Any]:
    """The exact solution of Sod's problem, between the waves."""
    fan = exact_riemann(*SOD, 1.4)
    return {
        "p*": fan.pressure,
        "u*": fan.velocity,
        "rho* left": fan.density_left,
        "rho* right": fan.density_right,
        "shock speed": fan.right_speeds[1],
    }


def toro_star_values() -> dict[str, Any]:
    """Pressure and velocity between the waves in Toro's five tests."""
    fans = {name: exact_riemann(*states, 1.4) for name, (states, _, _) in TORO.items()}
    pressures = {f"p* {name}": fan.pressure for name, fan in fans.items()}
    return {**pressures, **{f"u* {name}": fan.velocity for name, fan in fans.items()}}


def sod_shock_tube() -> dict[str, Any]:
    """Sod's problem on 256 cells, HLLC and MUSCL with van Leer's limiter, against exact averages."""
    sim, gas = sod(256)
    end = run(sim, gas, 320, progress=False).state
    exact = averaged_density(*SOD, end.density, SOD_END)
    return {"L1(rho)": jnp.mean(jnp.abs(end.density.data - exact))}


def lax_shock_tube() -> dict[str, Any]:
    """Lax's problem on 256 cells with WENO5: the density between contact and shock, 1.3041."""
    states = ((0.445, 0.698, 3.528), (0.5, 0.0, 0.571))
    sim, gas = shock_tube(*states, dt=0.14 / 500, reconstruction=WENO5())
    end = run(sim, gas, 500, progress=False).state
    fan = exact_riemann(*states, 1.4)
    # Halfway between the contact and the shock at t = 0.14.
    middle = 0.5 + 0.5 * 0.14 * (fan.velocity + fan.right_speeds[1])
    exact = averaged_density(*states, end.density, 0.14)
    return {
        "rho* right": end.density.data[int(float(middle) * 256)],
        "L1(rho)": jnp.mean(jnp.abs(end.density.data - exact)),
    }


def sound() -> dict[str, Any]:
    """A sound wave of amplitude 1e-6 after one period on 32 … 128 cells, to both sides."""
    errors = [_return_error(n, 1) for n in (32, 64, 128)]
    ratios = [fine / coarse for coarse, fine in itertools.pairwise(errors)]
    return {
        "error ratio": max(ratios),
        "left against right": abs(_return_error(64, -1) - errors[1]),
    }


def _return_error(cells: int, direction: int) -> float:
    sim, gas = sound_wave(cells, direction=direction)
    end = run(sim, gas, 5 * cells // 2, progress=False).state
    return float(np.mean(np.abs(np.asarray(end.density.data - gas.density.data))))


def sedov_blast() -> dict[str, Any]:
    """The spherical blast on 480 shells: α = E t² / (ρ R⁵) from the shock's radius at t = 1."""
    sim, gas = sedov(480)
    return {"alpha": 1 / shock_radius(run(sim, gas, 480, progress=False).state) ** 5}


CASES = (
    Case(
        "riemann",
        exact_sod,
        (
            Published("p*", 0.303130178050646, 1e-10),
            Published("u*", 0.927452620048949, 1e-10),
            Published("rho* left", 0.426319428178495, 1e-10),
            Published("rho* right", 0.265573711705307, 1e-10),
            Published("shock speed", 1.752155732030178, 1e-10),
        ),
        "Toro 2009, ch. 4",
    ),
    Case(
        "riemann-toro",
        toro_star_values,
        tuple(
            published
            for name, (_, p, u) in TORO.items()
            for published in (
                # Printed with five or six digits.
                Published(f"p* {name}", p, 5e-6 * max(p, 1)),
                Published(f"u* {name}", u, 5e-6 * max(abs(u), 1)),
            )
        ),
        "Toro 2009, table 4.3",
    ),
    Case(
        "sod",
        sod_shock_tube,
        (Published("L1(rho)", 0.0, 4e-3, "at most"),),
        "Sod 1978; Toro 2009",
    ),
    Case(
        "lax",
        lax_shock_tube,
        (
            Published("rho* right", 1.3041, 5e-3, "relative"),
            Published("L1(rho)", 0.0, 1e-2, "at most"),
        ),
        "Lax 1954; exact solution",
    ),
    Case(
        "sound-wave",
        sound,
        (
            # As in Athena++: 1/4 of a second-order scheme, which limiters at the extrema do not reach.
            Published("error ratio", 0.0, 0.325, "at most"),
            Published("left against right", 0.0, 1e-15, "at most"),
        ),
        "Stone et al. 2008; Athena++ tests",
    ),
    Case(
        "sedov",
        sedov_blast,
        # α ∝ R⁻⁵: an error of one shell, 1/400 of the radius, is 1.25 % of α.
        (Published("alpha", SEDOV_ALPHA[3], 0.02, "relative"),),
        "Sedov 1959; Kamm & Timmes 2007",
    ),
)
