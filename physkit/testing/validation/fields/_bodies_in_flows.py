"""Bodies in creeping flows: arrays of spheres and of disks, at rest and free; a flow through a square duct."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import param, safe_sqrt
from physkit.coupling import ImmersedBody, ImmersedMotion
from physkit.fields import FlowState
from physkit.fields.equations import AbstractSolid, Ball, BodyForce, IncompressibleFlow
from physkit.geometry import Box, Grid, NoSlip
from physkit.integrators import ARS222, BackwardEuler
from physkit.observe import Every, Velocities
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


class _Ring(AbstractSolid):
    """What lies outside of a circle about the middle of the unit square."""

    radius: Any = param()

    def distance(self, t: Any, x: Any) -> Any:
        del t
        return self.radius - safe_sqrt((x[0] - 0.5) ** 2 + (x[1] - 0.5) ** 2)


def oscillating_disk() -> dict[str, Any]:
    """A disk twice as heavy as the fluid in a ring 4.5 times as wide, shaken by a small force: the inertia and
    the friction of the fluid, over the mass of what the disk displaces, against Stokes' equations. With a
    layer of friction of 2.9 cells, 19 cells across; the inertia with one of a quarter of a cell, 26 across."""
    omega, inner, outer, push, ratio = 2 * math.pi, 0.1, 0.45, 1e-4, 2.0
    displaced = math.pi * inner**2
    ball = ImmersedBody(Ball([0.0, 0.0], inner), "disk")
    solids = (ball, _Ring(outer))

    def shake(t: Any, bodies: RigidBodies) -> tuple[Any, Any]:
        force = jnp.asarray([[push, 0.0, 0.0]]) * jnp.cos(omega * t)
        return force + 0 * bodies.position, 0 * bodies.position

    def found(cells: int, nu: float, periods: int) -> complex:
        steps = math.ceil(max(60, 20 * nu * cells**2 / omega * math.pi))
        mass = ratio * displaced
        inertia = jnp.asarray([0.25, 0.25, 0.5]) * mass * inner**2
        terms = (
            IncompressibleFlow(nu, "flow", implicit=False, solids=solids),
            ImmersedMotion((ball,), "flow", ExternalWrench(shake, component="disk")),
        )
        observer = Every(1, velocity=Velocities("disk"))
        sim = Simulation(ARS222(*terms), dt=1 / steps, observers=observer)
        start = {
            "flow": FlowState.of(Grid([1.0, 1.0], (cells, cells))),
            "disk": RigidBodies([[0.5, 0.5, 0.0]], inertia, mass),
        }
        frames = jax.jit(lambda s: simulate(sim, s, periods * steps).frames["velocity"])(start)
        last = np.asarray(frames)[-steps - 1 : -1, 0, 0]
        angle = omega * np.arange((periods - 1) * steps, periods * steps) / steps
        amplitude = 2 / steps * np.sum(last * np.exp(-1j * angle))
        return (push / (1j * omega * amplitude) - mass) / displaced

    thick, thin = 0.0028, 1e-5
    with_layer = found(96, thick, 3) / _added_mass(inner, outer, thick, omega)
    added = found(128, thin, 1).real / _added_mass(inner, outer, thin, omega).real
    return {
        "force": abs(with_layer),
        "its phase": math.atan2(with_layer.imag, with_layer.real),
        "added mass, nearly without friction": added,
    }


def _added_mass(inner: float, outer: float, nu: float, omega: float) -> complex:
    """Force of a fluid on a cylinder that oscillates within another, over −iω U and the mass that it displaces:
    of the stream function (A r + B/r + C I₁(kr) + D K₁(kr)) sin θ, k² = iω/ν."""
    from scipy.special import iv, ivp, kv, kvp

    k = np.sqrt(1j * omega / nu)
    # Both Bessel functions are 1 where they are largest.
    high, low = iv(1, k * outer), kv(1, k * inner)
    rows = []
    for r in (inner, outer):
        rows.append([r, 1 / r, iv(1, k * r) / high, kv(1, k * r) / low])
        rows.append([1, -1 / r**2, k * ivp(1, k * r) / high, k * kvp(1, k * r) / low])
    moving = np.linalg.solve(np.array(rows), np.array([inner, 1, 0, 0]))
    return complex(2 * moving[1] / inner**2 - 1)


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
                Published(f"momentum, {ratio} times as heavy", 0.0, 1e-12),
            )
        ),
        "Sangani & Acrivos, Int. J. Multiphase Flow 8, 193 (1982)",
        slow=True,
    ),
    Case(
        "oscillating-disk",
        oscillating_disk,
        (
            Published("force", 1.0, 0.05),  # over Stokes'
            Published("its phase", 0.0, 0.05),
            Published("added mass, nearly without friction", 1.0, 0.05),
        ),
        "Stokes 1851; Chen, Wambsganss & Jendrzejczyk, J. Appl. Mech. 43, 325 (1976)",
        slow=True,
    ),
)
