"""The optimal influence function of a particle mesh: Green's function that makes forces most accurate."""

import functools
import itertools
import operator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.fields.operators import AbstractScheme
from physkit.geometry import Grid

from ._kernels import AbstractKernel
from ._mesh_interactions import AbstractMeshInteraction

# How many images of a wave on either side are summed, by the order of the kernel: its window falls as k^−order.
_IMAGES = {1: 3, 2: 2, 3: 1, 4: 1}
# Σ W²(k + 2πn/h) over all images n, as polynomials in sin²(kh/2), by the order of the kernel.
# Hockney & Eastwood, section 8-3.
_SUMS = {1: (1.0,), 2: (1.0, -2 / 3), 3: (1.0, -1.0, 2 / 15), 4: (1.0, -4 / 3, 2 / 5, -4 / 315)}


def optimal_influence(
    grid: Grid,
    interaction: AbstractMeshInteraction,
    kernel: AbstractKernel,
    scheme: AbstractScheme,
    *,
    from_energy: bool,
    interlaced: bool,
    strain: Float[Array, "d d"],
) -> Float[Array, "..."]:
    """φ over ρ per mode, with the least mean square error of the force between two particles anywhere.

        momentum:  G = Σₙ D·kₙ g(kₙ²) W²(kₙ) / (|D|² (Σₙ W²(kₙ))²)
        energy:    G = Σₙ kₙ² g(kₙ²) W²(kₙ) / (Σₙ W²(kₙ) · Σₙ kₙ² W²(kₙ))

    kₙ are the waves that look alike on the grid, W is the kernel's window, iD what the scheme makes of ik,
    g Green's function of the interaction. 0 where all of them are waves that forces do not see.

    **Arguments:**

    - `from_energy`: forces are the gradient of the interpolated potential.
    - `interlaced`: the mean of two meshes, which see only every second image.
    - `strain`: ε of the box and everything in it, for derivatives at 0: waves are k − ε·k.

    **Reference:** Hockney & Eastwood, Computer Simulation Using Particles (1988), eq. 8-22; for gradients
    Ballenegger, Cerdà & Holm, J. Chem. Theory Comput. 8, 936 (2012), eq. 22.
    """
    d, lengths = grid.dimension, grid.space.lengths
    phases = _per_axis(grid, lambda k, n: 2 * np.pi * n / grid.shape[k])
    spacing = [grid.spacing[k] for k in range(d)]
    reach = _IMAGES.get(kernel.order, 1)
    images = list(itertools.product(range(-reach, reach + 1), repeat=d))
    if interlaced:
        images = [n for n in images if sum(n) % 2 == 0]
    gradient = [jnp.imag(scheme.symbol(grid, k, 1)) for k in range(d)]
    gradient = strained(gradient, strain)
    numerator = jnp.zeros((), lengths.dtype)
    window_sum, wave_sum = numerator, numerator
    for image in images:
        theta = [phase + 2 * np.pi * n for phase, n in zip(phases, image, strict=True)]
        waves = strained([t / h for t, h in zip(theta, spacing, strict=True)], strain)
        window = _product([kernel.window(t) ** 2 for t in theta])
        k2 = _dot(waves, waves)
        is_wave = k2 > 0
        green = interaction.green_function(jnp.where(is_wave, k2, 1))
        along = k2 if from_energy else _dot(gradient, waves)
        numerator = numerator + jnp.where(is_wave, along * green * window, 0)
        if interlaced or from_energy or kernel.order not in _SUMS:
            window_sum, wave_sum = window_sum + window, wave_sum + k2 * window
    if not interlaced and kernel.order in _SUMS:
        window_sum = _product([_window_sum(kernel.order, phase) for phase in phases])
    denominator = window_sum * wave_sum
    if not from_energy:
        denominator = _dot(gradient, gradient) * window_sum**2
    # The longest wave has D² and k² of (2π/L)²: what is far below is 0 but for rounding.
    seen = wave_sum if from_energy else _dot(gradient, gradient)
    is_seen = seen > 1e-3 / jnp.max(lengths) ** 2
    return jnp.where(is_seen, numerator / jnp.where(is_seen, denominator, 1), 0)


def _window_sum(order: int, phase: Float[Array, "..."]) -> Float[Array, "..."]:
    """Σ W² over all images along an axis."""
    square = jnp.sin(phase / 2) ** 2
    return functools.reduce(
        lambda total, c: total * square + c, reversed(_SUMS[order]), 0.0 * square
    )


def _per_axis(grid: Grid, function) -> list[Float[Array, "..."]]:
    dtype = grid.space.lengths.dtype
    return [
        jnp.asarray(grid.map_modes(k, lambda n, k=k: function(k, n)), dtype)
        for k in range(grid.dimension)
    ]


def strained(vector: list[Array], strain: Float[Array, "d d"]) -> list[Array]:
    """v − ε·v: a wave in a strained box."""
    d = range(len(vector))
    return [vector[a] - sum(strain[a, b] * vector[b] for b in d) for a in d]


def squared_length(v: list[Array]) -> Array:
    """|v|²."""
    return _dot(v, v)


def _dot(a: list[Array], b: list[Array]) -> Array:
    return functools.reduce(operator.add, (x * y for x, y in zip(a, b, strict=True)))


def _product(factors: list[Array]) -> Array:
    return functools.reduce(operator.mul, factors)
