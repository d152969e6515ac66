"""Rigid bodies: Euler's top, and rigid water against constraints."""

import jax.numpy as jnp
import numpy as np

from physkit.geometry import Box
from physkit.integrators import VelocityVerlet, Yoshida
from physkit.observe import Every, Pressure
from physkit.particles import (
    Particles,
    RigidBodies,
    RigidWater,
    angular_momentum,
    kinetic_energy,
    maxwell_boltzmann,
    random_orientations,
)
from physkit.particles.forces import ExternalWrench, LennardJones, Pairwise, SiteForce
from physkit.simulate import Simulation, simulate

from .._case import Case, Published

# 4 K(k)/λ for I = (1, 2, 3) and ω₀ = (0.05, 1, 0.05), from Jacobi's elliptic functions.
_PERIOD = 27.9060637582


def euler_top() -> dict[str, float]:
    """A free body that turns about its middle axis flips, and comes back after the exact period."""
    top = RigidBodies(np.zeros((1, 3)), [1.0, 2.0, 3.0], angular_velocity=[[0.05, 1.0, 0.05]])
    free = ExternalWrench(lambda t, b: (jnp.zeros_like(b.position),) * 2)
    end = simulate(Simulation(Yoshida(free, 6), _PERIOD / 1200), top, 1200).state
    start, final = (np.asarray(b.body_angular_velocity[0]) for b in (top, end))
    inertia = np.asarray(top.inertia[0])
    rate = np.cross(inertia * start, start) / inertia
    # How late it is where it began, by how fast it passes there.
    late = np.dot(final - start, rate) / np.dot(rate, rate)
    momenta = [np.asarray(angular_momentum(b)) for b in (top, end)]
    return {
        "period": _PERIOD - late,
        "|ω(T) − ω₀|": float(np.max(np.abs(final - start))),
        "energy error": float(abs(kinetic_energy(end) / kinetic_energy(top) - 1)),
        "angular momentum error": float(np.max(np.abs(momenta[1] - momenta[0]))),
    }


def water_of_bodies_and_of_constraints() -> dict[str, float]:
    """Water as rigid bodies and by SETTLE, from one start: how far apart after 0.8 time units, over dt²."""
    oh, angle = 0.9572, np.deg2rad(104.52)
    hh = 2 * oh * np.sin(angle / 2)
    molecule = [
        [0, 0, 0],
        [hh / 2, oh * np.cos(angle / 2), 0],
        [-hh / 2, oh * np.cos(angle / 2), 0],
    ]
    grid = 3.1 * np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), -1).reshape(-1, 3)
    bodies = RigidBodies.from_molecule(
        molecule, grid, [15.999, 1.008, 1.008], Box([6.2] * 3),
        orientation=random_orientations(0, 8), site_species=[0, 1, 1],
    )  # fmt: skip
    bodies = maxwell_boltzmann(0, bodies, 1.0)
    sites = bodies.site_particles()
    particles = Particles(
        sites.position, sites.velocity, sites.mass, sites.space, species=sites.species,
        constraints=RigidWater(np.arange(24).reshape(8, 3), oh, hh),
    )  # fmt: skip
    pairs = Pairwise(
        LennardJones([[0.3, 0.1], [0.1, 0.02]], [[2.4, 1.8], [1.8, 1.2]]),
        2.9,
        exclude=bodies.site_pairs,
    )
    distances, pressures = [], []
    for dt in (0.02, 0.01):
        steps = round(0.8 / dt)
        results = [
            simulate(
                Simulation(VelocityVerlet(force), dt, Every(steps, p=Pressure())), start, steps
            )
            for force, start in ((SiteForce(pairs), bodies), (pairs, particles))
        ]
        ends = [results[0].state.site_particles().position, results[1].state.position]
        distances.append(float(jnp.max(jnp.abs(sites.space.displacement(*ends)))))
        pressures = [float(r.frames["p"][0]) for r in results]
    return {
        "slope": float(np.log2(distances[0] / distances[1])),
        "pressure ratio": pressures[0] / pressures[1],
    }


CASES = (
    Case(
        "euler-top",
        euler_top,
        (
            Published("period", _PERIOD, 1e-8),
            Published("|ω(T) − ω₀|", 0.0, 1e-8),
            Published("energy error", 0.0, 1e-12, "at most"),
            Published("angular momentum error", 0.0, 1e-12, "at most"),
        ),
        "Landau & Lifshitz, Mechanics, §37; Miller et al., J. Chem. Phys. 116, 8649 (2002)",
    ),
    Case(
        "rigid-water",
        water_of_bodies_and_of_constraints,
        # Both are of order 2; their errors differ, and vanish together.
        (Published("slope", 2.0, 0.15), Published("pressure ratio", 1.0, 1e-9)),
        "Miyamoto & Kollman, J. Comput. Chem. 13, 952 (1992); Miller et al. (2002)",
    ),
)
