"""Waves: solitons, a front that steepens, a string."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from physkit.fields import Field
from physkit.fields.equations import Burgers, Wave
from physkit.geometry import Grid
from physkit.integrators import ETDRK4, RK4
from physkit.simulate import Simulation, simulate
from physkit.systems import (
    burgers_wave,
    cole_hopf_wave,
    kdv_solitons,
    plucked_string,
    soliton,
)

from .._case import Case, Published


def one_soliton() -> dict[str, Any]:
    """A soliton of speed 4 for 5 time units, against ½c sech²(½√c (x − ct)): the largest difference."""
    sim, start = kdv_solitons((4.0,), (10.0,), length=40.0, cells=256, dt=0.00125, every=4000)
    end = simulate(sim, start, 4000).state
    # From x = 10 with speed 4 for 5 time units.
    exact = soliton(end.coordinates[0] - 30.0, 4.0, 40.0)
    return {"difference": jnp.max(abs(end.data - exact))}


def two_solitons() -> dict[str, Any]:
    """Solitons of speeds 4 and 1 meet; where they are at the end, against where each alone would be."""
    sim, start = kdv_solitons((4.0, 1.0), (15.0, 35.0), dt=0.0025, every=5200)
    end = simulate(sim, start, 5200).state
    # At t = 13, as if they had not met.
    fast, slow = 15.0 + 4.0 * 13.0, 35.0 + 13.0
    return {
        "shift of the faster": _peak(end, fast, 4.0) - fast,
        "shift of the slower": _peak(end, slow, 6.0) - slow,
    }


def _peak(u: Field, near: float, within: float) -> float:
    """Where within some distance the Fourier series through the points is highest."""
    fine, n = 64, u.data.size
    modes = np.fft.rfft(np.asarray(u.data))
    # Zero padding in k is exact interpolation; its scale does not matter for where the maximum is.
    values = np.fft.irfft(modes, n * fine)
    length = float(u.grid.space.lengths[0])
    x = (np.arange(n * fine) / fine + 0.5) * length / n
    i = int(np.argmax(np.where(abs(x - near) < within, values, -np.inf)))
    a, b, c = values[i - 1 : i + 2]
    return float(x[i] + 0.5 * (a - c) / (a - 2 * b + c) * length / (n * fine))


def steepening_front() -> dict[str, Any]:
    """Burgers' equation, ν = 0.05, until t = 1, against Cole and Hopf's solution: the largest
    difference over the largest velocity."""
    sim, start = burgers_wave(0.05, every=200)
    end = simulate(sim, start, 200).state
    exact = cole_hopf_wave(x=end.coordinates[0], t=1.0, viscosity=0.05)
    return {"difference": jnp.max(abs(end.data - exact)) / jnp.max(abs(exact))}


def steepest_slope() -> dict[str, Any]:
    """Burgers' equation, ν = 0.01/π, from −sin πx on −1 … 1: the slope at t = 1.6037/π, when it is
    steepest. 2048 points, one of them on the front."""
    grid = Grid([2.0], (2048,))
    # Values on faces: one of them is at x = 1, the middle of the front.
    start = Field.from_function(grid, lambda x: jnp.sin(jnp.pi * x), grid.face("x"))
    flow = ETDRK4(Burgers(0.01 / jnp.pi))
    end = simulate(Simulation(flow, dt=1.6037 / math.pi / 1500), start, 1500).state
    return {"|∂u/∂x|": (-end.spectrum().derivative(0).field()).max()}


def traveling_humps() -> dict[str, Any]:
    """A hump at rest on a line that repeats, t = 0.3, against ½[u₀(x − ct) + u₀(x + ct)]; and one on
    a string held at its ends (256 cells, symplectic steps of c dt = h, which are exact)."""

    def hump(x):
        return jnp.exp(-(((x - jnp.floor(x) - 0.5) / 0.06) ** 2))

    grid = Grid([1.0], (128,))
    start = {"displacement": Field.from_function(grid, hump), "velocity": Field(0.0, grid)}
    end = simulate(Simulation(RK4(Wave(1.0)), dt=0.001), start, 300).state["displacement"]
    (x,) = end.coordinates
    exact = 0.5 * (hump(x - 0.3) + hump(x + 0.3))

    sim, string = plucked_string(cells=256, courant=1.0, every=256)
    reflected = simulate(sim, string, 256).state["displacement"].data
    return {
        "on a line that repeats": jnp.max(abs(end.data - exact)),
        "upside down in the mirror": jnp.max(abs(reflected + string["displacement"].data[::-1])),
    }


CASES = (
    Case(
        "soliton",
        one_soliton,
        # 1.5·10⁻⁷ at this dt; see the good values of `kdv_solitons`.
        (Published("difference", 0.0, 1e-6),),
        "Korteweg & de Vries 1895: ½c sech²(½√c (x − ct))",
    ),
    Case(
        "two-solitons",
        two_solitons,
        (
            Published("shift of the faster", math.log(3.0), 1e-3),
            Published("shift of the slower", -2 * math.log(3.0), 1e-3),
        ),
        "Zabusky & Kruskal 1965; Drazin & Johnson 1989, §4.3",
    ),
    Case(
        "burgers",
        steepening_front,
        (Published("difference", 0.0, 1e-6),),
        "Hopf 1950; Cole 1951; Wood 2006",
    ),
    Case(
        "burgers-front",
        steepest_slope,
        (Published("|∂u/∂x|", 152.00516, 1e-5),),
        "Basdevant et al., Comput. Fluids 14, 23 (1986)",
    ),
    Case(
        "string",
        traveling_humps,
        (
            Published("on a line that repeats", 0.0, 1e-6),
            Published("upside down in the mirror", 0.0, 1e-6),
        ),
        "d'Alembert 1747",
    ),
)
