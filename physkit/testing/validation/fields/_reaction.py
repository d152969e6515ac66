"""Reactions and diffusion: a front, Turing's instability, spots."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.fields import Field
from physkit.simulate import simulate
from physkit.systems import brusselator, fisher_front, gray_scott

from .._case import Case, Published


def invading_front() -> dict[str, Any]:
    """Fisher's equation, r = 1.3 and D = 0.8: the speed of the front over t = 60 … 90, and the same
    with Bramson's correction, which the front still lacks then, taken off."""
    r, diffusivity = 1.3, 0.8
    sim, start = fisher_front(r, diffusivity, every=1500)
    result = simulate(sim, start, 4500)
    t, front = np.asarray(result.times["invaded"]), np.asarray(result.frames["invaded"])
    speed = (front[3] - front[2]) / (t[3] - t[2])
    late = 1.5 * np.sqrt(diffusivity / r) * np.log(t[3] / t[2]) / (t[3] - t[2])
    return {"speed": speed, "speed, corrected": speed + late}


def turing_threshold() -> dict[str, Any]:
    """The Brusselator with a = 4.5 and D = (2, 16): growth rates of cosines on rest, measured by
    stepping one wavelength; b where the fastest grows by nothing, and its wavenumber there."""
    b = np.array([6.65, 6.72])
    k = np.array([0.84, 0.89, 0.94])
    rates = jax.jit(jax.vmap(jax.vmap(_growth_rate, (None, 0)), (0, None)))(b, k)
    tops = [_top(k, np.asarray(row)) for row in rates]
    share = -tops[0][1] / (tops[1][1] - tops[0][1])
    at_zero = lambda pair: pair[0] + share * (pair[1] - pair[0])
    return {"b_T": at_zero(b), "k_c": at_zero([place for place, _ in tops])}


def _growth_rate(b: ArrayLike, k: ArrayLike) -> Any:
    length = 2 * jnp.pi / k
    sim, still = brusselator(4.5, b, length=length, cells=(8,), dt=0.02, every=100)
    (x,) = still.coordinates
    rest = jnp.stack([jnp.full(8, 4.5), jnp.full(8, 1 / 4.5) * b])
    wave = jnp.cos(k * x)
    start = Field(rest + 1e-6 * jnp.stack([wave, -wave]), still.grid)
    frames = simulate(sim, start, 400).frames["u"]
    size = still.grid.sum((frames[:, 0] - 4.5) * wave[None])
    return jnp.log(size[4] / size[2]) / 4.0


def _top(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Place and height of the parabola through three points."""
    a, b, c = np.polyfit(x - x[1], y, 2)
    return x[1] - b / (2 * a), c - b * b / (4 * a)


def splitting_spots() -> dict[str, Any]:
    """Gray and Scott's reaction, F = 0.0367 and k = 0.0649, from one spot: spots after 3000 steps."""
    sim, start = gray_scott(cells=(96, 96), every=3000)
    end = simulate(sim, start, 3000).state
    return {"spots at first": _spots(start), "spots": _spots(end)}


def _spots(state: Field) -> int:
    """Places where v is above 0.2 and above its eight neighbors."""
    v = np.asarray(state.data[1])
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    # Of neighbors that are equal (the start is even about the middle) the last counts.
    above = [
        v > np.roll(v, s, (0, 1)) if s > (0, 0) else v >= np.roll(v, s, (0, 1)) for s in shifts
    ]
    return int(np.sum(np.all(above, axis=0) & (v > 0.2)))


CASES = (
    Case(
        "fisher",
        invading_front,
        (
            Published("speed", 2 * math.sqrt(1.3 * 0.8), 0.02, "relative"),
            Published("speed, corrected", 2 * math.sqrt(1.3 * 0.8), 0.002, "relative"),
        ),
        "Fisher 1937; Murray 2002, §13.2; Bramson 1983",
    ),
    Case(
        "brusselator",
        turing_threshold,
        (
            Published("b_T", 6.71323, 0.01, "relative"),
            Published("k_c", 0.89191, 0.01, "relative"),
        ),
        "Nicolis & Prigogine 1977, §7.4: b_T = (1 + a√(D_u/D_v))², k_c² = a/√(D_u D_v)",
    ),
    Case(
        "gray-scott",
        splitting_spots,
        (Published("spots at first", 1, 0), Published("spots", 4, 0, "at least")),
        "Pearson 1993",
    ),
)
