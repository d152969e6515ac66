"""Light: slabs, absorbing layers, and waves on Yee's grid."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.fields import ElectromagneticField
from physkit.fields.equations import ConvolutionalPML, Maxwell, PointDipole, WavePulse
from physkit.geometry import Box, Grid
from physkit.integrators import Yee
from physkit.observe import Every
from physkit.simulate import Simulation, simulate
from physkit.systems import dielectric_slab, electromagnetic_cavity

from .._case import Case, Published


def slab() -> dict[str, Any]:
    """A pulse on a slab of index 2, a quarter of a wavelength thick at one frequency and half of one at
    the other, where 20 cells are a wavelength in the slab: the power that comes back and goes through, over
    that of the pulse."""
    frequencies = 2 * np.pi * np.array([0.5, 1.0])

    def spectra(permittivity):
        sim, state = dielectric_slab(permittivity, 0.25, cells=40, frequencies=frequencies)
        steps = math.ceil(17 / float(sim.dt))
        found = jax.jit(lambda s: simulate(sim, s, steps).summary)(state)
        return [np.asarray(found[name]["flux"]) for name in ("reflected", "transmitted")]

    (_, pulse), (back, through) = spectra(1.0), spectra(4.0)
    reflected = -back / pulse
    return {
        "R of a quarter wave": reflected[0],
        "R of half a wave": reflected[1],
        "largest |R + T − 1|": np.max(np.abs(reflected + through / pulse - 1)),
    }


def absorbing_layer() -> dict[str, Any]:
    """A line of current in the middle of 40 × 40 cells with ten of an absorbing layer around: what differs
    from a box so wide that nothing comes back, two cells from a side and from a corner, over the largest
    field there. dB are 20 log₁₀ of amplitudes."""
    h, layer, steps = 1.0, 10, 280
    dt = 0.99 * h / math.sqrt(2)
    pulse = WavePulse(2 * math.pi / 15, 5.0, 30.0)

    def probe(cells, absorber):
        middle = cells // 2
        grid = Grid(Box([h * cells, h * cells], periodic=False), (cells, cells))
        maxwell = Maxwell(sources=PointDipole([h * middle] * 2, "Ez", pulse), layer=absorber)
        places = (jnp.array([middle, middle + 18]), jnp.full(2, middle + 18))
        watch = Every(1, field=lambda now: now.state.Ez.data[places])
        sim = Simulation(Yee(maxwell), dt=dt, observers=watch)
        start = maxwell.add_memory(ElectromagneticField.of(grid, mode="TM"))
        return np.asarray(jax.jit(lambda s: simulate(sim, s, steps).frames["field"])(start))

    # The wide box's walls are too far for an echo to reach the points in time.
    wide = 2 * math.ceil((steps * dt + 30) / 2)
    exact, found = probe(wide, None), probe(40 + 2 * layer, ConvolutionalPML(layer))
    error = np.max(np.abs(found - exact), axis=0) / np.max(np.abs(exact), axis=0)
    side, corner = 20 * np.log10(error)
    return {"reflection at a side, dB": side, "reflection at a corner, dB": corner}


def cavity() -> dict[str, Any]:
    """The wave (1, 2) of a metal box on 20 × 16 and 40 × 32 cells: its frequency over that of Yee's
    dispersion relation, and the order at which it comes to that of the box."""
    k = np.array([math.pi, 2 * math.pi / 0.8])
    off, errors = [], []
    for cells in ((20, 16, 4), (40, 32, 4)):
        sim, start = electromagnetic_cavity(cells=cells)
        field = jax.jit(lambda s, sim=sim: simulate(sim, s, 400).frames["field"])(start)
        e, dt, h = np.asarray(field), float(sim.dt), 1 / cells[0]
        # Of one frequency: e₊ + e₋ = 2 cos(ω dt) e.
        cosine = np.sum((e[2:] + e[:-2]) * e[1:-1]) / (2 * np.sum(e[1:-1] ** 2))
        omega = math.acos(cosine) / dt
        of_grid = 2 / dt * math.asin(dt / h * math.sqrt(np.sum(np.sin(0.5 * k * h) ** 2)))
        off.append(abs(omega / of_grid - 1))
        errors.append(1 - omega / math.hypot(*k))
    return {"|ω / ω(Yee) − 1|": max(off), "order": math.log2(errors[0] / errors[1])}


CASES = (
    Case(
        "slab",
        slab,
        (
            Published("R of a quarter wave", 0.36, 0.01, "relative"),  # ((n² − 1)/(n² + 1))²
            Published("R of half a wave", 0.0, 1e-3, "at most"),
            Published("largest |R + T − 1|", 0.0, 1e-3, "at most"),
        ),
        "Airy 1833; Born & Wolf 1999, §1.6.4",
    ),
    Case(
        "absorbing-layer",
        absorbing_layer,
        (
            Published("reflection at a side, dB", -60.0, 0.0, "at most"),
            Published("reflection at a corner, dB", -60.0, 0.0, "at most"),
        ),
        "Roden & Gedney 2000; Taflove & Hagness 2005, §7",
    ),
    Case(
        "yee-dispersion",
        cavity,
        (Published("|ω / ω(Yee) − 1|", 0.0, 1e-6, "at most"), Published("order", 2.0, 0.1)),
        "Yee 1966; Taflove & Hagness 2005, eq. 4.12",
    ),
)
