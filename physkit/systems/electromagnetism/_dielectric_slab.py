"""Light on a slab of glass."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Complex

from physkit.core import explain_call
from physkit.fields import ElectromagneticField
from physkit.fields.equations import (
    Ball,
    ConvolutionalPML,
    Dielectric,
    Drude,
    Lorentz,
    Maxwell,
    PlaneWave,
    WavePulse,
)
from physkit.geometry import Box, Grid
from physkit.integrators import Yee
from physkit.observe import FluxSpectrum
from physkit.simulate import Simulation

from .._arguments import explain_system

_LAYER, _MARGIN = 10, 15  # cells of the absorbing layer, and before the region of the whole field


@explain_system
def dielectric_slab(
    permittivity: ArrayLike = 4.0,
    thickness: float = 0.25,
    *,
    cells: int = 40,
    media: Sequence[Drude | Lorentz] = (),
    frequencies: ArrayLike | None = None,
    bandwidth: float = 0.5,
    courant: float = 0.99,
) -> tuple[Simulation, ElectromagneticField]:
    """A pulse of light falls on a slab of glass; some comes back and interferes with what the rear reflects.

    Wavelength in vacuum and c are 1. Results `reflected` and `transmitted`, both of `FluxSpectrum`; those of
    `permittivity=1.0` give the pulse itself. `slab_coefficients` is the closed form.

    **Arguments:**

    - `permittivity`: ε of the slab.
    - `thickness`: of the slab; λ/2n makes a half-wave layer, λ/4n a quarter-wave layer.
    - `cells`: of the grid, per wavelength in vacuum.
    - `media`: others in the slab, `Drude` or `Lorentz`, which get its shape.
    - `frequencies`: at which light is counted, radians / time; 21 from 0.5 to 1.5 times 2π if left out.
    - `bandwidth`: of the pulse about 2π, relative.
    - `courant`: dt over the longest stable step.

    **Good values:** until t = 12 + 20 · thickness all has passed: `steps = ceil(t / dt)`.

    **Reference:** Born & Wolf, Principles of Optics (1999), §1.6.4.
    """
    before = 1.0
    length = 2 * (_MARGIN / cells + before) + thickness
    number = math.ceil(length * cells)
    length = number / cells
    grid = Grid(Box([length], periodic=False), (number,))
    # A surface lies on a node, where the whole field begins.
    low = (_MARGIN + round(before * cells)) / cells

    slab = Ball([low + 0.5 * thickness], 0.5 * thickness)  # on a line, an interval

    width = 1 / (bandwidth * 2 * math.pi)
    pulse = WavePulse(2 * math.pi, width, 6 * width)
    wave = PlaneWave([1.0], [0.0, 0.0, 1.0], pulse, margin=_MARGIN, frequency=2 * math.pi)
    filled = tuple(_with_shape(medium, slab) for medium in media)
    maxwell = Maxwell(
        (Dielectric(permittivity, shape=slab), *filled), wave, ConvolutionalPML(_LAYER)
    )
    if frequencies is None:
        frequencies = 2 * jnp.pi * jnp.linspace(0.5, 1.5, 21)
    observers = [
        FluxSpectrum(1, "x", (_MARGIN - 2) / cells, frequencies, name="reflected"),
        FluxSpectrum(1, "x", low + thickness + 0.5 * before, frequencies, name="transmitted"),
    ]
    state = maxwell.add_memory(ElectromagneticField.of(grid))
    dt = courant * maxwell.longest_step(grid)
    return Simulation(Yee(maxwell), dt=dt, observers=observers), state


def _with_shape(medium: Drude | Lorentz, shape: Ball) -> Drude | Lorentz:
    if isinstance(medium, Drude):
        return Drude(medium.plasma_frequency, medium.damping, shape)
    return Lorentz(medium.strength, medium.frequency, medium.damping, shape)


@explain_call
def slab_coefficients(
    frequency: ArrayLike, permittivity: ArrayLike, thickness: ArrayLike, speed: ArrayLike = 1.0
) -> tuple[Complex[Array, "..."], Complex[Array, "..."]]:
    """Airy's amplitudes (r, t) of a slab in vacuum, for light across it; |r|² and |t|² are the powers.

        r = r₁ (1 − e^{2iφ})/(1 − r₁² e^{2iφ}),   t = (1 − r₁²) e^{iφ}/(1 − r₁² e^{2iφ})
        r₁ = (1 − n)/(1 + n),   φ = nωd/c,   n² = ε(ω)

    **Arguments:** `frequency`: ω. `permittivity`: ε at each frequency, complex where it absorbs.

    **Reference:** Born & Wolf, Principles of Optics (1999), §1.6.4, eqs. 58–60.
    """
    omega, epsilon = (jnp.asarray(x, complex) for x in (frequency, permittivity))
    n = jnp.sqrt(epsilon)
    first = (1 - n) / (1 + n)
    turn = jnp.exp(1j * n * omega * thickness / speed)
    bottom = 1 - first**2 * turn**2
    return first * (1 - turn**2) / bottom, (1 - first**2) * turn / bottom
