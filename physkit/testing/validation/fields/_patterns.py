"""Patterns: phases that part and coarsen, a spot in a porous medium, a rough surface."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.fields import Field
from physkit.fields.equations import (
    AllenCahn,
    Diffusion,
    NonlinearDiffusion,
    PowerLaw,
    WhiteNoise,
)
from physkit.geometry import Box, Grid, Neumann
from physkit.integrators import ETDRK2, SSPRK2
from physkit.observe import Every, Expression, FieldValues, Integral
from physkit.simulate import Simulation, simulate
from physkit.systems import spinodal_decomposition

from .._case import Case, Published


def coarsening() -> dict[str, Any]:
    """The Cahn-Hilliard equation on 256² from noise, three samples: domains grow as t^⅓. Their size is the
    volume over the area of interfaces, σV/F, from t = 500 to 5000; the mean of φ and the free energy."""
    sim, _ = spinodal_decomposition(cells=(256, 256), every=200)

    @jax.jit
    def run(key: Any) -> Any:
        start = spinodal_decomposition(cells=(256, 256), key=key)[1]
        start = start.replace(data=start.data - jnp.mean(start.data))
        result = simulate(sim, start, 10_000)
        return result["free_energy"], result.state.mean()

    runs = [run(key) for key in jax.random.split(jax.random.key(1), 3)]
    energy = np.asarray([e for e, _ in runs])
    t = 100.0 * np.arange(energy.shape[1])
    late = t >= 500
    return {
        "exponent": np.polyfit(np.log(t[late]), -np.log(energy[:, late]).mean(0), 1)[0],
        "drift of the mean": max(abs(float(mean)) for _, mean in runs),
        "largest rise of F": np.max(np.diff(energy)),
    }


def shrinking_disk() -> dict[str, Any]:
    """Allen and Cahn's equation: the area of a disk of radius 4, interfaces of 0.32, falls at 2πMκ."""
    grid = Grid([12.0, 12.0], (96, 96))
    law = AllenCahn(mobility=0.5, gradient_energy=0.3, barrier=6.0)
    width = math.sqrt(2 * 0.3 / 6.0)

    def disk(x: Any, y: Any) -> Any:
        return jnp.tanh((jnp.sqrt((x - 6) ** 2 + (y - 6) ** 2) - 4.0) / width)

    area = Expression(lambda s: 0.5 * (144.0 - s.state.integral()))
    sim = Simulation(ETDRK2(law), dt=0.02, observers=Every(100, area=area))
    areas = np.asarray(simulate(sim, Field.from_function(grid, disk), 800)["area"])
    return {"rate": (areas[2] - areas[8]) / 12.0}


def porous_spot() -> dict[str, Any]:
    """∂u/∂t = ∇·(u∇u) on a line: from Barenblatt's spot at t = 1 to the one at t = 8, of twice its width."""
    grid = Grid(Box([16.0], (False,)), (256,))

    def spot(t: float) -> Field:
        def shape(x: Any) -> Any:
            return t ** (-1 / 3) * jnp.maximum(1 - (x - 8) ** 2 / 6 * t ** (-2 / 3), 0)

        return Field.from_function(grid, shape, boundary=Neumann(0.0))

    sim = Simulation(SSPRK2(NonlinearDiffusion(PowerLaw(1.0, 1.0))), dt=0.0014)
    end = simulate(sim, spot(1.0), 5000).state
    edge = grid.coordinates()[0][int(np.max(np.nonzero(np.asarray(end.data) > 1e-4)))] - 8.0
    return {
        "distance from Barenblatt's": (end - spot(8.0)).norm(1),
        "edge": edge,
        "mass": end.integral() / spot(1.0).integral(),
    }


def rough_surface() -> dict[str, Any]:
    """Edwards and Wilkinson's surface, ν = 0.5, σ² = 0.09: 40 samples of S(k) against σ²/2νk²."""
    nu, sigma, size, n = 0.5, 0.3, 8.0, 32
    grid = Grid([size], (n,))
    watch = Every(100, h=FieldValues(), mean=Integral())
    sim = Simulation(ETDRK2(Diffusion(nu), WhiteNoise(sigma)), dt=0.04, observers=watch)
    many = jax.jit(jax.vmap(lambda key: simulate(sim, Field(0.0, grid), 20_000, key=key)["h"]))
    h = np.asarray(many(jax.random.split(jax.random.key(2), 40)))[:, 20:]
    k = 2 * np.pi / size * np.arange(1, 5)
    spectrum = np.mean(abs(np.fft.rfft(h)) ** 2, (0, 1))[1:5] * size / n**2
    return {"S(k) 2νk²/σ²": np.mean(spectrum * 2 * nu * k**2 / sigma**2)}


CASES = (
    Case(
        "coarsening",
        coarsening,
        (
            Published("exponent", 1 / 3, 0.03),
            Published("drift of the mean", 0, 1e-14, "at most"),
            Published("largest rise of F", 0, 0, "at most"),
        ),
        "Lifshitz & Slyozov 1961; Cahn & Hilliard 1958",
        slow=True,
    ),
    Case(
        "allen-cahn",
        shrinking_disk,
        (Published("rate", 2 * math.pi * 0.5 * 0.3, 0.01, "relative"),),
        "Allen & Cahn 1979: v = Mκ/R",
    ),
    Case(
        "porous-medium",
        porous_spot,
        (
            Published("distance from Barenblatt's", 0, 2e-4, "at most"),
            Published("edge", 2 * math.sqrt(6), 0.02, "relative"),
            Published("mass", 1, 1e-13),
        ),
        "Barenblatt 1952; Vázquez 2007, §4.4",
    ),
    Case(
        "edwards-wilkinson",
        rough_surface,
        (Published("S(k) 2νk²/σ²", 1, 0.03),),
        "Edwards & Wilkinson, Proc. R. Soc. A 381, 17 (1982)",
    ),
)
