"""A front across a channel of the ocean, which breaks into eddies."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.core import Key, as_parameter
from physkit.fields import HydrostaticState
from physkit.fields.equations import HydrostaticFlow
from physkit.geometry import Box, Grid
from physkit.integrators import ARS343
from physkit.observe import Every
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def baroclinic_channel(
    cells: tuple[int, int, int] = (64, 64, 12),
    *,
    shear: ArrayLike = 1.0,
    stratification: ArrayLike = 10.0,
    coriolis: ArrayLike = 1.0,
    height: float = 1.0,
    length: float | None = None,
    key: Key | None = None,
    dt: ArrayLike | None = None,
    every: int = 50,
) -> tuple[Simulation, HydrostaticState]:
    """Eady's problem in a channel: a current that grows with height, and a slope of buoyancy that feeds eddies.

        u = Λ (z − H/2),   b = N² z − f Λ (y − L/2)

    Periodic along x, between walls at y = 0 and L, under a free surface. Starts from that balance and noise of
    a tenth of its current; waves some four deformation radii NH/f long grow with 0.31 f Λ/N, less between near
    walls. Frames: `buoyancy`, of the highest layer, and `kinetic`, the mean of ½(u² + v²) of what differs from
    the mean along x.

    **Arguments:**

    - `cells`: along x, across, and up.
    - `shear`: Λ, 1 / time. Below N, or the current overturns.
    - `stratification`: N, 1 / time.
    - `coriolis`: f, 1 / time.
    - `height`: H.
    - `length`: L, along x and y; six deformation radii if left out.
    - `key`: of the noise.
    - `dt`: what internal waves, rotation and the current allow, if left out.
    - `every`: steps between frames.

    **Reference:** Eady, Tellus 1 (3), 33 (1949); Vallis, Atmospheric and Oceanic Fluid Dynamics (2017), §9.5.
    """
    shear, stable, f = (as_parameter(x) for x in (shear, stratification, coriolis))
    radius = stable * height / f
    width = 6 * radius if length is None else as_parameter(length)
    grid = Grid(Box(jnp.stack([width, width, as_parameter(height)]), (True, False, False)), cells)
    # A surface whose waves are ten times as fast as internal ones: solved for, they limit nothing.
    gravity = 10 * stable**2 * height
    spacing = grid.spacing
    key = jax.random.key(0) if key is None else key

    start = HydrostaticState.of(
        grid,
        lambda x, y, z: stable**2 * z - f * shear * (y - width / 2) + 0 * x,
        (lambda x, y, z: shear * (z - height / 2) + 0 * x + 0 * y, 0.0),
        lambda x, y: -0.5 * f * shear * height * (y - width / 2) / gravity + 0 * x,
    )
    noise = 0.1 * shear * height * grid.random_normal(key, location=grid.face("y"))
    flow = start.velocity_y.replace(
        data=start.velocity_y.data + noise.astype(start.velocity_y.data.dtype)
    )
    start = start.replace({"velocity_y": flow.at_time(0.0)})
    fastest = stable * height / jnp.pi / spacing[0] + shear * height / spacing[0] + f
    law = HydrostaticFlow(
        gravity,
        coriolis=f,
        # Waves of two cells fade in some twenty times a cell's transit.
        viscosity=0.02 * shear * height * spacing[0],
        diffusivity=0.02 * shear * height * spacing[0],
    )
    frames = Every(every, buoyancy=_highest_buoyancy, kinetic=_kinetic_energy)
    step = 0.35 / fastest if dt is None else dt
    return Simulation(ARS343(law), dt=jnp.asarray(step), observers=frames), start


def _highest_buoyancy(snapshot):
    return snapshot.state.buoyancy.data[:, :, -1]


def _kinetic_energy(snapshot):
    total = 0.0
    for part in (snapshot.state.velocity_x, snapshot.state.velocity_y):
        grid = part.grid
        # Over devices along x the mean is over all of these.
        along = grid.space.comm.psum(jnp.sum(part.data, 0, keepdims=True), axis=0)
        others = part.data - along / grid.shape[0]
        total = total + 0.5 * part.replace(data=others**2).mean()
    return total
