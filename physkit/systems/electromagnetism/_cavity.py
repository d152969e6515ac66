"""A box of perfectly conducting walls."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Clock, StepCount, explain_call, static
from physkit.fields import ElectromagneticField
from physkit.fields.equations import Dielectric, Maxwell
from physkit.geometry import Box, Grid
from physkit.integrators import Yee
from physkit.observe import AbstractQuantity, ElectromagneticEnergy, Every, Snapshot
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def electromagnetic_cavity(
    lengths: tuple[float, float, float] = (1.0, 0.8, 0.6),
    modes: tuple[int, int] = (1, 2),
    permittivity: ArrayLike = 1.0,
    *,
    cells: tuple[int, int, int] = (20, 16, 12),
    courant: float = 0.9,
    every: int = 1,
) -> tuple[Simulation, ElectromagneticField]:
    """A standing wave in a closed metal box, which rings for ever.

        E_z = sin(mπx/a) sin(nπy/b) cos ωt,   ω² = (c²/ε) π² (m²/a² + n²/b²)

    On the grid the wave is one, too, with the frequency `yee_frequency`: the energy is constant to rounding.
    Frames: `energy`, and `field`, E_z at the node nearest to its first maximum.

    **Arguments:**

    - `lengths`: a, b and the height; c = 1.
    - `modes`: m and n.
    - `permittivity`: ε of what fills the box.
    - `courant`: dt over the longest stable step.
    - `every`: steps between frames.

    **Reference:** Jackson, Classical Electrodynamics (1999), §8.7.
    """
    grid = Grid(Box(list(lengths), periodic=False), tuple(cells))
    waves = [math.pi * m / L for m, L in zip(modes, lengths)]
    maxwell = Maxwell(Dielectric(permittivity))
    dt = courant * maxwell.longest_step(grid)

    def mode(x, y, z):
        return jnp.sin(waves[0] * x) * jnp.sin(waves[1] * y) + 0 * z

    start = ElectromagneticField.of(grid, {"Ez": mode})
    peak = tuple(max(1, round(n / (2 * m))) for n, m in zip(cells, modes))
    # H half a step before a maximum of E: what Faraday's law adds in half a step, backward.
    plan, clock = maxwell.prepare(start, jnp.asarray(dt)), _half_step_back(dt, start)
    start = start.shift(maxwell.magnetic_increments(plan, clock, start)[0])
    observers = Every(
        every,
        energy=ElectromagneticEnergy(),
        field=_FieldAt((*peak, 0)),
    )
    return Simulation(Yee(maxwell), dt=dt, observers=observers), start


class _FieldAt(AbstractQuantity):
    """E_z at one point of its grid."""

    index: tuple[int, ...] = static()

    def __call__(self, snapshot: Snapshot) -> Array:
        return snapshot.state.Ez.data[self.index]


def _half_step_back(dt: float, field: ElectromagneticField) -> Clock:
    kind = field.grid.spacing.dtype
    return Clock.at(StepCount.of(0), jnp.zeros((), kind), jnp.asarray(-0.5 * dt, kind))


@explain_call
def yee_frequency(
    wavevector: ArrayLike | Sequence[float],
    spacing: ArrayLike | Sequence[float],
    dt: ArrayLike,
    speed: ArrayLike = 1.0,
) -> Float[Array, ""]:
    """The frequency of a plane wave on Yee's grid, radians / time.

        sin²(ω dt/2)/(c dt)² = Σ sin²(k h/2)/h²

    **Arguments:** `wavevector`: k `[d]`. `spacing`: h `[d]`, or one number. `dt`: the step. `speed`: c.

    **Reference:** Taflove & Hagness, Computational Electrodynamics (2005), eq. 4.12.
    """
    k, h = jnp.asarray(wavevector, float), jnp.asarray(spacing, float)
    total = jnp.sum((jnp.sin(0.5 * k * h) / h) ** 2)
    return 2 / dt * jnp.arcsin(speed * dt * jnp.sqrt(total))
