"""Bodies in creeping flows: arrays of spheres and of disks, at rest and free; a flow through a square duct."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.coupling import ImmersedBody, ImmersedMotion
from physkit.fields import FlowState
from physkit.fields.equations import Ball, BodyForce, IncompressibleFlow
from physkit.geometry import Box, Grid, NoSlip
from physkit.integrators import ARS222, BackwardEuler
from physkit.particles import RigidBodies
from physkit.particles.forces import ExternalWrench
from physkit.simulate import Simulation, simulate

from .._case import Case, Published


def square_duct() -> dict[str, Any]:
    """A flow through a square duct, driven by a body force, on 12² and 24² cells in space: the flux against its
    series, and the order."""

    def error(cells: int) -> tuple[Any, Any]:
        grid = Grid(Box([2 / cells, 1.0, 1.0], periodic=(True, False, False)), (2, cells, cells))
        flow = FlowState.of(grid, boundary=NoSlip())
        terms = IncompressibleFlow(1.0), BodyForce((1.0, 0.0, 0.0))
        sim = Simulation(BackwardEuler(*terms), dt=0.5)
        end = jax.jit(lambda u: simulate(sim, u, 12).state)(flow)
        return jnp.mean(end.velocity_x.data), jnp.max(jnp.abs(end.divergence().data))

    odd = np.arange(1, 60, 2)
    exact = 1 / 12 - 16 / math.pi**5 * float(np.sum(np.tanh(odd * math.pi / 2) / odd**5))
    (coarse, _), (fine, divergence) = error(12), error(24)
    return {
        "flux": fine,
        "order": jnp.log2(jnp.abs(coarse - exact) / jnp.abs(fine - exact)),
        "divergence": divergence,
    }


def cubic_array() -> dict[str, Any]:
    """Spheres on a cubic lattice, an eighth of space, 20 cells across: drag over Stokes' of one alone."""
    cells, share, force = 32, 0.125, 1.0
    radius = (3 * share / (4 * math.pi)) ** (1 / 3)
    sphere = Ball([0.5, 0.5, 0.5], radius)
    terms = (
        IncompressibleFlow(1.0, implicit=False, solids=(sphere,)),
        BodyForce((force, 0.0, 0.0)),
    )
    sim = Simulation(ARS222(*terms), dt=0.15 / cells**2)
    start = FlowState.of(Grid([1.0, 1.0, 1.0], (cells,) * 3))
    end = jax.jit(lambda u: simulate(sim, u, 2400).state)(start)
    speed = jnp.mean(end.velocity_x.data)
    return {"drag": force / (6 * math.pi * radius * speed)}


def free_disks() -> dict[str, Any]:
    """Disks on a square lattice, a tenth of the plane, 17 cells across, drawn through the fluid at Re = 0.002:
    the pull over viscosity times their speed relative to the mean flow, for disks half and twice as heavy as
    the fluid; and by how much a pull and its reaction on the fluid change the momentum."""
    cells, share, pull = 48, 0.1, 0.05
    radius = math.sqrt(share / math.pi)
    grid = Grid([1.0, 1.0], (cells, cells))
    body = ImmersedBody(Ball([0.0, 0.0], radius), "disk")

    def push(t: Any, bodies: RigidBodies) -> tuple[Any, Any]:
        del t
        return jnp.asarray([[pull, 0.0, 0.0]]) + 0 * bodies.position, 0 * bodies.position

    out = {}
    for ratio in (0.5, 2.0):
        mass = ratio * share
        inertia = jnp.asarray([0.25, 0.25, 0.5]) * mass * radius**2
        disk = RigidBodies([[0.5, 0.5, 0.0]], inertia, mass)
        terms = (
            IncompressibleFlow(1.0, "flow", implicit=False, solids=(body,)),
            ImmersedMotion((body,), "flow", ExternalWrench(push, component="disk")),
            BodyForce((-pull, 0.0), component="flow"),
        )
        sim = Simulation(ARS222(*terms), dt=0.2 / cells**2)
        state = {"flow": FlowState.of(grid), "disk": disk}
        end = jax.jit(lambda s, sim=sim: simulate(sim, s, 3000).state)(state)
        flux, speed = jnp.mean(end["flow"].velocity_x.data), end["disk"].velocity[0, 0]
        out[f"drag, {ratio} times as heavy"] = pull / (speed - flux)
        out[f"momentum, {ratio} times as heavy"] = (flux + (mass - share) * speed) / (share * speed)
    return out


CASES = (
    Case(
        "square-duct",
        square_duct,
        (
            Published("flux", 0.0351443, 0.01, "relative"),
            Published("order", 2.0, 0.1),
            Published("divergence", 0.0, 1e-12),
        ),
        "Boussinesq 1868; White, Viscous Fluid Flow (2006), eq. 3-48",
    ),
    Case(
        "cubic-array-of-spheres",
        cubic_array,
        (Published("drag", 4.292, 0.03, "relative"),),
        "Zick & Homsy, J. Fluid Mech. 115, 13 (1982), table 2",
        slow=True,
    ),
    Case(
        "free-disks",
        free_disks,
        tuple(
            number
            for ratio in (0.5, 2.0)
            for number in (
                Published(f"drag, {ratio} times as heavy", 24.83, 0.03, "relative"),
                Published(f"momentum, {ratio} times as heavy", 0.0, 0.01),
            )
        ),
        "Sangani & Acrivos, Int. J. Multiphase Flow 8, 193 (1982)",
        slow=True,
    ),
)
