"""Basins of water: Stommel's wind-driven gyre, and Thacker's parabolic bowl."""

import math

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import safe_maximum
from physkit.fields import CGridShallowWaterState, Field, ShallowWaterState
from physkit.fields.equations import ShallowWater, ShallowWaterFV
from physkit.geometry import Box, Grid, Mirror
from physkit.integrators import RK4, SSPRK2
from physkit.observe import Every, Snapshot
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def stommel_gyre(
    cells: int = 48,
    *,
    length: float = 1e6,
    width: float = 1e6,
    depth: float = 200.0,
    wind: ArrayLike = 1e-6,
    drag: ArrayLike = 2e-6,
    beta: ArrayLike = 2e-11,
    gravity: float = 0.1,
    courant: float = 0.5,
    record: int = 0,
) -> tuple[Simulation, CGridShallowWaterState]:
    """A basin under trade winds and westerlies: a gyre with its strong current in the west.

        τ/ρ = −F cos(πy/b) x̂,   r∇²ψ + βψₓ = −(Fπ/(Db)) sin(πy/b)

    Spins up from rest in a few 1/r; the western boundary current is r/β wide (100 km).

    **Arguments:**

    - `cells`: along each axis.
    - `length`, `width`: of the basin along x and y, m; `depth` D, m.
    - `wind`: F, stress over density, m²/s². Weak, so that the flow is linear as in the paper.
    - `drag`: r, 1/s; `beta`: β, 1/(m s).
    - `gravity`: g, m/s²; reduced, which lets the time step be long and leaves the steady flow alone.
    - `courant`: of gravity waves: sets the time step.
    - `record`: steps between frames of the depth; 0 for none.

    **Reference:** Stommel, Trans. Am. Geophys. Union 29, 202 (1948).
    """
    grid = Grid(Box([length, width], False), (cells, cells))
    # Middles of cells: there, in y, lies velocity_x of a C grid, which the wind drives.
    y = (jnp.arange(cells, dtype=float) + 0.5) * (width / cells)
    flow = ShallowWater(
        gravity,
        coriolis=0.0,
        beta=beta,
        drag=drag,
        wind_x=-jnp.asarray(wind, float) * jnp.cos(math.pi * y / width),
        origin=0.0,
    )
    speed = math.sqrt(gravity * depth)  # of gravity waves, the fastest there are
    dt = courant * min(length, width) / cells / speed / 2
    frames = Every(record, depth=_depth_of) if record else ()
    return Simulation(RK4(flow), dt=dt, observers=frames), CGridShallowWaterState.of(grid, depth)


def _depth_of(now: Snapshot) -> Array:
    return now.state.depth.data


def stommel_streamfunction(
    x: ArrayLike,
    y: ArrayLike,
    *,
    length: float = 1e6,
    width: float = 1e6,
    depth: float = 200.0,
    wind: float = 1e-6,
    drag: float = 2e-6,
    beta: float = 2e-11,
) -> np.ndarray:
    """ψ of the steady gyre, u = −∂ψ/∂y and v = ∂ψ/∂x, in closed form.

    **Reference:** Stommel (1948), eq. 17.
    """
    k = math.pi / width
    alpha = beta / drag
    # ψ ∝ e^{λx} sin ky without wind solves r∇²ψ + βψₓ = 0 for λ² + (β/r) λ − k² = 0.
    roots = [-alpha / 2 + s * math.sqrt(alpha**2 / 4 + k**2) for s in (1, -1)]
    # The share of either root such that ψ = 0 on both walls, x = 0 and x = `length`.
    p = (1 - math.exp(roots[1] * length)) / (
        math.exp(roots[0] * length) - math.exp(roots[1] * length)
    )
    shape = p * np.exp(roots[0] * np.asarray(x)) + (1 - p) * np.exp(roots[1] * np.asarray(x)) - 1
    strength = wind * k / (depth * drag) / k**2
    return -strength * np.sin(k * np.asarray(y)) * shape


def streamfunction(water: CGridShallowWaterState) -> Field:
    """ψ at the corners of cells from the flow across y, ψ = 0 on the western wall: v = ∂ψ/∂x."""
    v = water.velocity_y
    # v lies on the faces across y, so its running integral along x lies on the corners.
    increments = v.data * v.grid.spacing[0]
    wall = jnp.zeros((1, increments.shape[1]), increments.dtype)
    psi = jnp.concatenate([wall, jnp.cumsum(increments, axis=0)])
    return v.with_values(psi, location=v.grid.node)


@explain_system
def thacker_bowl(
    cells: int = 40, *, gravity: float = 1.0, dt: float | None = None
) -> tuple[Simulation, ShallowWaterState]:
    """Water that swings round in a parabolic bowl, its surface a plane and its shore a circle.

        b = r²/2 − ½,   ω² = g,   shore (x − ¼ cos ωt)² + (y − ¼ sin ωt)² = 1

    **Arguments:**

    - `cells`: along each axis of the square box of length 3 around the bowl.
    - `gravity`: g.
    - `dt`: a Courant number of about a fifth if left out.

    **Reference:** Thacker, J. Fluid Mech. 107, 499 (1981), section 4.
    """
    grid = Grid(Box([_BOWL, _BOWL], False), (cells, cells))
    x, y = (k - _BOWL / 2 for k in grid.coordinates())
    bed = 0.5 * (x**2 + y**2) - 0.5
    depth, velocity = thacker_solution(grid, 0.0, gravity)
    start = ShallowWaterState.of(grid, depth, velocity, Mirror())
    flow = ShallowWaterFV(gravity, bed=bed, dry=1e-5)  # 2·10⁻⁵ of the depth in the middle
    dt = 0.2 * _BOWL / cells / (2 * math.sqrt(gravity)) * 1.2 if dt is None else dt
    return Simulation(SSPRK2(flow), dt=dt), start


_BOWL = 3.0  # edge of the box: the shore reaches out to 1.25, and a dry margin must be left
_TILT = 0.25  # distance of the shore's center from the bowl's


def thacker_solution(
    grid: Grid, t: ArrayLike, gravity: float = 1.0
) -> tuple[Array, tuple[Array, Array]]:
    """Depth and velocity in the bowl at time `t`."""
    x, y = (k - _BOWL / 2 for k in grid.coordinates())
    omega = math.sqrt(gravity)
    c, s = jnp.cos(omega * t), jnp.sin(omega * t)
    # A plane minus the bed's paraboloid is a paraboloid again, about the shore's center, with which
    # all of the water moves.
    depth = safe_maximum(0.5 - 0.5 * ((x - _TILT * c) ** 2 + (y - _TILT * s) ** 2), 0.0)
    velocity = (-_TILT * omega * s, _TILT * omega * c)
    return depth, tuple(jnp.broadcast_to(u, grid.shape) for u in velocity)
