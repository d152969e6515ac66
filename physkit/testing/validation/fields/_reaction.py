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
    with Bramson's correction, 3/2 √(D/r) ln t behind 2√(rD) t, added."""
    r, diffusivity = 1.3, 0.8
    sim, start = fisher_front(r, diffusivity, every=1500)
    result = simulate(sim, start, 4500)
    t, front = np.asarray(result.times["invaded"]), np.asarray(result.frames["invaded"])
    speed = (front[3] - front[2]) / (t[3] - t[2])
    lag = 1.5 * np.sqrt(diffusivity / r) * np.log(t[3] / t[2]) / (t[3] - t[2])
    return {"speed": speed, "speed, corrected": speed + lag}


def turing_threshold() -> dict[str, Any]:
    """The Brusselator with a = 4.5 and D = (2, 16): growth rates of cosines on rest, measured by
    stepping one wavelength; b where the fastest grows by nothing, and its wavenumber there."""
    b = np.array([6.65, 6.72])
    k = np.array([0.84, 0.89, 0.94])
    rates = jax.jit(jax.vmap(jax.vmap(_growth_rate, (None, 0)), (0, None)))(b, k)
    (k_below, rate_below), (k_above, rate_above) = (_vertex(k, np.asarray(row)) for row in rates)
    # Linear in b, from just below the threshold to just above: where the largest rate is 0.
    fraction = -rate_below / (rate_above - rate_below)
    return {
        "b_T": b[0] + fraction * (b[1] - b[0]),
        "k_c": k_below + fraction * (k_above - k_below),
    }


def _growth_rate(b: ArrayLike, k: ArrayLike) -> Any:
    length = 2 * jnp.pi / k
    sim, template = brusselator(4.5, b, length=length, cells=(8,), dt=0.02, every=100)
    (x,) = template.coordinates
    rest = jnp.stack([jnp.full(8, 4.5), jnp.full(8, 1 / 4.5) * b])
    wave = jnp.cos(k * x)
    start = Field(rest + 1e-6 * jnp.stack([wave, -wave]), template.grid)
    frames = simulate(sim, start, 400).frames["u"]
    # From t = 4 to 8: until then the mode that decays has gone.
    amplitude = template.grid.sum((frames[:, 0] - 4.5) * wave[None])
    return jnp.log(amplitude[4] / amplitude[2]) / 4.0


def _vertex(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Position and height of the vertex of the parabola through three points."""
    a, b, c = np.polyfit(x - x[1], y, 2)
    return x[1] - b / (2 * a), c - b * b / (4 * a)


def splitting_spots() -> dict[str, Any]:
    """Gray and Scott's reaction, F = 0.0367 and k = 0.0649, from one spot: spots after 3000 steps."""
    sim, start = gray_scott(cells=(96, 96), every=3000)
    end = simulate(sim, start, 3000).state
    return {"spots at first": _count_spots(start), "spots": _count_spots(end)}


def _count_spots(state: Field) -> int:
    """Places where v is above 0.2 and above its eight neighbors."""
    v = np.asarray(state.data[1])
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    # Of neighbors that are equal (the start is even about the middle) the last counts.
    is_above = [
        v > np.roll(v, s, (0, 1)) if s > (0, 0) else v >= np.roll(v, s, (0, 1)) for s in shifts
    ]
    return int(np.sum(np.all(is_above, axis=0) & (v > 0.2)))


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
