"""Wave packets: one in a harmonic trap, one at a barrier."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.fields import Field
from physkit.fields.equations import Schroedinger
from physkit.geometry import Grid
from physkit.integrators import SplitStep
from physkit.observe import Every, FieldValues
from physkit.simulate import Simulation

from .._arguments import explain_system


def wave_packet(grid: Grid, position: ArrayLike, width: ArrayLike, wavenumber: ArrayLike) -> Field:
    """A Gaussian packet on a line: |ψ|² has standard deviation `width`, ∫|ψ|² dx = 1."""

    def function(x):
        size = (2 * jnp.pi * width**2) ** -0.25 * jnp.exp(-(((x - position) / (2 * width)) ** 2))
        phase = wavenumber * (x - position)
        # By its parts, so that the precision is that of the grid.
        return jax.lax.complex(size * jnp.cos(phase), size * jnp.sin(phase))

    return Field.from_function(grid, function)


@explain_system
def coherent_state(
    displacement: ArrayLike = 2.0, *, cells: int = 64, steps: int = 100, order: int = 4
) -> tuple[Simulation, Field]:
    """A displaced ground state of the harmonic oscillator, which swings without spreading.

        i ∂ψ/∂t = −½ ∂²ψ/∂x² + ½ (x − x₀)² ψ,   ħ = m = ω = 1

    Returns after t = 2π, in `steps` steps, with the opposite sign.

    **Reference:** Schrödinger, Naturwissenschaften 14, 664 (1926).
    """
    length = 20.0
    grid = Grid([length], (cells,))
    trap = Schroedinger(0.5 * (grid.coordinates()[0] - length / 2) ** 2)
    record = Every(1, psi=FieldValues())
    sim = Simulation(SplitStep(trap, order), dt=2 * math.pi / steps, observers=record)
    # The ground state's |ψ|² has variance ħ/(2mω) = ½.
    return sim, wave_packet(grid, length / 2 + displacement, math.sqrt(0.5), 0.0)


@explain_system
def tunneling(
    energy: ArrayLike = 0.5,
    height: ArrayLike = 1.0,
    width: float = 2.0,
    packet_width: ArrayLike = 20.0,
    *,
    length: float = 512.0,
    cells: int = 2048,
    dt: ArrayLike = 0.025,
    every: int = 400,
) -> tuple[Simulation, Field]:
    """A packet runs against a barrier that is higher than its energy; some of it comes out behind.

        i ∂ψ/∂t = −½ ∂²ψ/∂x² + V(x) ψ,   V = `height` over `width` in the middle of the line

    `transmission` is what a plane wave passes. Frames: `psi`.

    **Arguments:**

    - `energy`: ½k² of the packet's middle wave, which starts 6 of its widths before the barrier.
    - `height`, `width`: of the barrier; `width` a multiple of the cells' length, or the barrier on
      the grid has another.
    - `packet_width`: standard deviation of |ψ|².

    **Reference:** Landau & Lifshitz, Quantum Mechanics, §25, problem 2.
    """
    grid = Grid([length], (cells,))
    barrier = Field.from_function(
        grid, lambda x: jnp.where(abs(x - length / 2) < width / 2, height, 0.0)
    )
    sim = Simulation(
        SplitStep(Schroedinger(barrier)), dt=dt, observers=Every(every, psi=FieldValues())
    )
    k = jnp.sqrt(2 * jnp.asarray(energy, float))
    return sim, wave_packet(grid, length / 2 - 6 * packet_width, packet_width, k)


def transmission(energy: ArrayLike, height: ArrayLike, width: ArrayLike) -> Float[Array, "..."]:
    """Fraction of a plane wave that passes a rectangular barrier (ħ = m = 1).

        T = 1 / (1 + V² sinh²(κL) / (4E(V − E))),   κ² = 2(V − E)

    For E > V κ is imaginary and sinh² becomes −sin².
    """
    energy = jnp.asarray(energy, float)
    gap = height - energy
    # A gap of 1 stands in for 0, so that neither value nor derivative of the unused branch is NaN.
    kappa = jnp.sqrt(2 * jnp.where(gap == 0, 1, abs(gap)))
    wave = jnp.where(gap > 0, jnp.sinh(kappa * width), jnp.sin(kappa * width))
    # sinh²(κL)/(V − E) → 2L² at E = V
    ratio = jnp.where(gap == 0, 2 * width**2, wave**2 / jnp.where(gap == 0, 1, abs(gap)))
    return 1 / (1 + height**2 * ratio / (4 * energy))
