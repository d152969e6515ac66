"""A hammer on the ground."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import explain_call
from physkit.fields import ElasticField
from physkit.fields.equations import ConvolutionalPML, ElasticWaves, PointForce, WavePulse
from physkit.geometry import Box, Dirichlet, FreeSurface, Grid
from physkit.integrators import StaggeredLeapfrog
from physkit.observe import Every, Sensors
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def elastic_half_space(
    p_speed: float = 3**0.5,
    s_speed: float = 1.0,
    density: ArrayLike = 1.0,
    *,
    cells: int = 160,
    distances: Sequence[float] = (0.4, 0.8, 1.2),
    order: int = 4,
    courant: float = 0.9,
    every: int = 1,
) -> tuple[Simulation, ElasticField]:
    """A blow on the surface of a solid, in the plane: Lamb's problem. Waves in the solid run ahead of a
    Rayleigh wave, which stays at the surface and hardly decays.

    The ground is 2 wide and 1 deep; absorbing layers line all sides but the surface. The force acts 0.4 from
    the left. Frames `velocity`, `[sensors]`, of the ground upwards at `distances` from it. `rayleigh_speed` is
    the speed of the surface wave.

    **Arguments:**

    - `p_speed`, `s_speed`: c_p and c_s.
    - `cells`: across, at least 50; 16 of 160 are the length of an S wave in the middle of the pulse's spectrum.
    - `distances`: of the sensors from the force, below 1.4.
    - `order`: of the differences, 4 or 2.
    - `courant`: dt over the longest stable step.
    - `every`: steps between frames.

    **Good values:** after t = 0.4 + 1.2 · distance / c_s the Rayleigh wave has passed: `steps = ceil(t / dt)`.

    **Reference:** Lamb, Phil. Trans. R. Soc. A 203, 1 (1904); Aki & Richards, Quantitative Seismology (2002),
    §5.2.
    """
    h = 2 / cells
    grid = Grid(Box([2.0, 1.0], periodic=False), (cells, cells // 2))
    period = 16 * h / s_speed
    pulse = WavePulse(2 * jnp.pi / period, 0.4 * period, 2 * period, phase=-0.5 * jnp.pi)
    waves = ElasticWaves.from_speeds(
        p_speed,
        s_speed,
        density,
        sources=PointForce([0.4, 1.0], [0.0, -1.0], pulse),
        layer=ConvolutionalPML(sides=("x_low", "x_high", "y_low")),
        order=order,
    )
    sensors = [[0.4 + r, 1.0] for r in distances]
    sim = Simulation(
        StaggeredLeapfrog(waves),
        dt=courant * waves.longest_step(grid),
        observers=Every(every, velocity=Sensors(sensors, "velocity_y")),
    )
    hold = Dirichlet(0.0)
    start = ElasticField.of(grid, None, {"x": hold, "y_low": hold, "y_high": FreeSurface()})
    return sim, waves.add_memory(start)


@explain_call
def rayleigh_speed(p_speed: float, s_speed: float) -> float:
    """The speed c of waves along the free surface of a half space.

        (2 − c²/c_s²)² = 4 √(1 − c²/c_p²) √(1 − c²/c_s²)

    0.9194 c_s where λ = μ.

    **Reference:** Rayleigh, Proc. Lond. Math. Soc. 17, 4 (1885).
    """
    ratio = (s_speed / p_speed) ** 2
    # With ξ = c²/c_s²: ξ³ − 8ξ² + (24 − 16r)ξ − 16(1 − r) = 0 has one root between 0 and 1.
    roots = np.roots([1, -8, 24 - 16 * ratio, -16 * (1 - ratio)])
    real = roots[np.abs(roots.imag) < 1e-9].real
    return float(s_speed * np.sqrt(real[(real > 0) & (real < 1)].min()))
