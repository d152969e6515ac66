"""Liquid water: density, structure, diffusion and dielectric constant of two rigid models."""

import math
from typing import Any

import jax
import numpy as np

from physkit.core import molecular
from physkit.observe import diffusion_coefficient
from physkit.simulate import run
from physkit.systems import finite_size_correction, melt_water, water_box

_TEMPERATURE, _MILLIPASCAL_SECOND = 298 * molecular.kelvin, 602.214


def spce() -> dict[str, Any]:
    """216 molecules at 298 K, 2 fs a step: 200 ps at 1 bar, 200 ps at 0.998 g/cm³ for all but the density."""
    return _liquid("SPC/E", density=0.998, viscosity=0.73)


def tip3p() -> dict[str, Any]:
    """216 molecules at 298 K, 2 fs a step: 200 ps at 1 bar, 200 ps at 0.985 g/cm³ for all but the density."""
    return _liquid("TIP3P", density=0.985, viscosity=0.32)


def _liquid(model: str, density: float, viscosity: float, steps: int = 100_000) -> dict[str, Any]:
    settings: dict[str, Any] = {"model": model, "density": density, "dtype": "float32"}
    at_volume, crystal = water_box(6, **settings)
    at_pressure, _ = water_box(6, pressure=molecular.bar, **settings)
    start, *keys = jax.random.split(jax.random.key(0), 3)
    liquid = melt_water(at_volume, crystal, key=start, progress=False)
    held, pressed = (
        run(sim, liquid, steps, key=key, progress=False)
        for sim, key in zip((at_volume, at_pressure), keys, strict=True)
    )
    edge = float(crystal.space.volume) ** (1 / 3)
    small = diffusion_coefficient(held["mean_square_displacement"], 3, 2.0, 8.0).value
    added = finite_size_correction(edge, _TEMPERATURE, viscosity * _MILLIPASCAL_SECOND)
    g = held["oxygen_oxygen"]
    # The first 10 ps are left out. ⟨M⟩ is 0: a mean over both runs.
    moments = np.concatenate([np.asarray(run["dipole"])[100:] for run in (held, pressed)])
    strength = 4 * math.pi * molecular.coulomb_constant / (3 * edge**3 * _TEMPERATURE)
    return {
        "density, g/cm³": np.mean(np.asarray(pressed["density"])[100:]),
        # From nm²/ps to 10⁻⁵ cm²/s
        "D in this box, 10⁻⁵ cm²/s": 1e3 * small,
        "D in a large box, 10⁻⁵ cm²/s": 1e3 * (small + added),
        "first peak of g(r), nm": g["r"][np.argmax(g["value"])],
        "height of the peak": np.max(g["value"]),
        "dielectric constant": 1 + strength * np.mean(np.sum(moments**2, axis=1)),
    }
