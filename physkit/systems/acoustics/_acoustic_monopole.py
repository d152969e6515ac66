"""The sound of a small pulsating source in open space."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import explain_call
from physkit.fields import AcousticField
from physkit.fields.equations import KSpaceAcoustics, PointSource, WavePulse
from physkit.geometry import Grid
from physkit.integrators import StaggeredLeapfrog
from physkit.observe import Every, Sensors
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def acoustic_monopole(
    speed: float = 1.0,
    density: ArrayLike = 1.0,
    *,
    cells: int = 48,
    distances: Sequence[float] = (1 / 6, 0.2, 0.25),
    courant: float = 0.5,
) -> tuple[Simulation, AcousticField]:
    """A pulse of fluid comes in at a point, between the grid points of a cube of length 1.

    Frames `pressure`, `[sensors]`, at `distances` from it along x. `monopole_pressure` is the closed form; the
    pulse lasts as sound takes for some ten cells. Until t = 0.78/c nothing comes in from the other side of the
    box, which repeats.

    **Arguments:**

    - `speed`: c. `density`: ρ₀.
    - `cells`: of the grid, along each edge.
    - `distances`: of the sensors from the source, up to 0.25.
    - `courant`: c dt/h, below 1/√3.

    **Reference:** Pierce, Acoustics (2019), §4.3.
    """
    h = 1 / cells
    time = h / speed
    pulse = WavePulse(0.0, 3 * time, 15 * time)  # a Gaussian
    source = [0.5 + 0.3 * h, 0.5 + 0.1 * h, 0.5 - 0.2 * h]
    sensors = [[source[0] + r, *source[1:]] for r in distances]
    acoustics = KSpaceAcoustics(speed, density, sources=PointSource(source, pulse))
    sim = Simulation(
        StaggeredLeapfrog(acoustics),
        dt=courant * time,
        observers=Every(1, pressure=Sensors(sensors, "pressure")),
    )
    return sim, AcousticField.of(Grid([1.0, 1.0, 1.0], (cells,) * 3))


@explain_call
def monopole_pressure(
    distance: ArrayLike, time: ArrayLike, waveform: Callable, speed: ArrayLike = 1.0
) -> Float[Array, "..."]:
    """The pressure around a point where fluid comes in.

        p(r, t) = q'(t − r/c) / 4πr

    **Arguments:** `distance`: r. `time`: t, of a shape that broadcasts with it. `waveform`: q(t), mass / time.
    `speed`: c.

    **Reference:** Pierce, Acoustics (2019), §4.3.
    """
    r, t = jnp.broadcast_arrays(jnp.asarray(distance, float), jnp.asarray(time, float))
    late = (t - r / speed).reshape(-1)
    slope = jax.vmap(jax.grad(lambda x: jnp.sum(waveform(x))))(late).reshape(r.shape)
    return slope / (4 * jnp.pi * r)
