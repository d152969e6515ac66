"""Wave functions: a coherent state, a ground state, a barrier."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from physkit.fields import Field
from physkit.fields.equations import Schroedinger
from physkit.geometry import Grid
from physkit.integrators import ground_state
from physkit.simulate import simulate
from physkit.systems import coherent_state, transmission, tunneling

from .._case import Case, Published


def swinging_packet() -> dict[str, Any]:
    """A displaced ground state of the harmonic oscillator over 2π in 1000 steps of order 4: the largest
    difference from minus itself, and how far the norm is from 1."""
    sim, start = coherent_state(steps=1000)
    end = simulate(sim, start, 1000).state
    return {
        "difference after 2π": jnp.max(abs(end.data + start.data)),
        "norm − 1": abs(_probability(end, slice(None)) - 1),
    }


def quartic_oscillator() -> dict[str, Any]:
    """The ground state of p² + x⁴ (m = ½) in imaginary time, 96 points on 12 units."""
    grid = Grid([12.0], (96,))
    guess = Field.from_function(grid, lambda x: jnp.exp(-((x - 6) ** 2)), dtype=complex)
    equation = Schroedinger((grid.coordinates()[0] - 6) ** 4, mass=0.5)
    return {"energy": ground_state(equation, guess, 0.05, 200)[1]}


def barrier() -> dict[str, Any]:
    """A packet of E = 0.5 and σ_x = 20 at a barrier V = 1, L = 2: the fraction of it that comes out
    behind, and the average of plane waves over its spectrum."""
    sim, start = tunneling(every=9600)
    # t = 240 at speed 1: the packet, which began 120 before the barrier, is 120 behind it.
    end = simulate(sim, start, 9600).state
    passed = _probability(end, slice(end.data.size // 2, None))
    # |ψ̂|² of the packet, ten standard deviations 1/(2σ_x) to either side of k = 1.
    k, width = np.linspace(1 - 0.25, 1 + 0.25, 2001), 20.0
    weight = np.exp(-2 * (width * (k - 1)) ** 2)
    average = np.sum(weight * np.asarray(transmission(0.5 * k**2, 1.0, 2.0))) / np.sum(weight)
    return {
        "plane wave": transmission(0.5, 1.0, 2.0),
        "packet": passed,
        "packet / its spectral average": passed / average,
        "norm − 1": abs(_probability(end, slice(None)) - 1),
    }


def _probability(psi: Field, part: slice) -> Any:
    density = psi.data.real**2 + psi.data.imag**2
    return jnp.sum(density[part]) * psi.grid.cell_volume


CASES = (
    Case(
        "coherent-state",
        swinging_packet,
        # Order 4 with 1000 steps a period: an error of some (2π/1000)⁴ = 1.6·10⁻⁹.
        (Published("difference after 2π", 0.0, 1e-8), Published("norm − 1", 0.0, 1e-11)),
        "Schrödinger 1926",
    ),
    Case(
        "quartic-oscillator",
        quartic_oscillator,
        (Published("energy", 1.0603620904842, 1e-8),),
        "Bender & Orszag 1978",
    ),
    Case(
        "tunneling",
        barrier,
        (
            Published("plane wave", 0.0706508248, 1e-9),
            # A packet of σ_k = 1/40 averages T over its spectrum, and so is off by its curvature.
            Published("packet", 0.0706508248, 0.01, "relative"),
            Published("packet / its spectral average", 1.0, 0.005),
            Published("norm − 1", 0.0, 1e-10),
        ),
        "Landau & Lifshitz, Quantum Mechanics, §25",
    ),
)
