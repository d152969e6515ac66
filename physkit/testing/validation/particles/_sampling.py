"""Sampling: free energies that are known exactly, and the lowest minima of clusters."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from physkit.core import find, safe_maximum
from physkit.ensemble import (
    SweepAxis,
    free_energies,
    replica_exchange,
    sweep,
    thermodynamic_integration,
    umbrella_energies,
    wham,
    zip_axes,
)
from physkit.geometry import Box
from physkit.integrators import BAOAB, BasinHopping, Metadynamics
from physkit.observe import (
    CollectiveVariables,
    EnergiesAt,
    EnergyDerivative,
    Every,
    LowestEnergy,
    MetadynamicsFreeEnergy,
    Positions,
)
from physkit.particles import Particles
from physkit.particles.forces import (
    CollectiveVariable,
    ExternalEnergy,
    Forces,
    GridBias,
    HarmonicBias,
    HarmonicTrap,
    LennardJones,
    Pairwise,
    SoftCoreLennardJones,
)
from physkit.simulate import Simulation

from .._case import Case, Published

TEMPERATURE = 0.15


def _well(x: Any) -> Any:
    return x**4 - 2 * x**2 + 0.3 * x


def _well_of(t: Any, particles: Particles) -> Any:
    del t
    return jnp.sum(_well(particles.position[:, 0]))


def _plane_of(t: Any, particles: Particles) -> Any:
    del t
    x, y = particles.position[0]
    return _plane(x, y)


def _plane(x: Any, y: Any) -> Any:
    return x**4 - 2 * x**2 + 0.3 * x + (y - 0.5 * x) ** 2


def _x(particles: Particles) -> Any:
    return particles.position[0, 0]


def _y(particles: Particles) -> Any:
    return particles.position[0, 1]


def exchanged_double_well() -> dict[str, Any]:
    """Three temperatures exchange: how often the coldest, whose barrier is 7 k_B T, is in the left well."""
    thermostat = BAOAB(ExternalEnergy(_well_of), temperature=0.15, friction=1.0)
    sim = Simulation(thermostat, dt=0.05, observers=Every(20, x=Positions()))
    over = SweepAxis(lambda m: m[0].integrator.temperature, [0.15, 0.3, 0.6])
    model = replica_exchange((sim, Particles(jnp.ones((1, 1)))), over=over, interval=10)
    found = sweep(model, 16_000, replicas=128, key=0, progress=False)
    x = np.asarray(found["x"])[:, 100:, :, 0, 0]
    return {
        "p(x < 0), T = 0.15": np.mean(x[:, :, 0] < 0),
        "p(x < 0), T = 0.6": np.mean(x[:, :, 2] < 0),
    }


def umbrella_of_a_double_well() -> dict[str, Any]:
    """17 windows in one sweep, by MBAR and by WHAM: the largest error of the profile over k_B T."""
    centers, stiffness = np.linspace(-1.6, 1.6, 17), 12.0
    force = ExternalEnergy(_well_of) + HarmonicBias(CollectiveVariable(_x), stiffness)
    thermostat = BAOAB(force, temperature=TEMPERATURE, friction=1.0)
    sim = Simulation(thermostat, dt=0.05, observers=Every(20, x=CollectiveVariables()))
    starts = [Particles(jnp.full((1, 1), c)) for c in centers]
    windows = SweepAxis(lambda m: find(m, HarmonicBias).center, centers)
    over = zip_axes(windows, SweepAxis("state", starts))
    found = sweep((sim, starts[0]), 60_000, over=over, key=0, progress=False)
    x = np.asarray(found["x"])[:, 50:]
    edges = np.linspace(-1.4, 1.4, 57)
    mbar = free_energies(umbrella_energies(x, stiffness, centers), TEMPERATURE).profile(
        x, edges, target=0.0
    )
    binned, _ = wham(x, edges, stiffness, centers, TEMPERATURE)
    exact = _well(mbar.centers)
    deviation = [p.free_energy - exact - np.mean(p.free_energy - exact) for p in (mbar, binned)]
    scaled = (deviation[0] / mbar.error) ** 2
    return {
        "MBAR, k_B T": np.abs(deviation[0]).max() / TEMPERATURE,
        "WHAM, k_B T": np.abs(deviation[1]).max() / TEMPERATURE,
        "deviation over error": math.sqrt(np.mean(scaled)),
    }


def metadynamics_of_a_surface() -> dict[str, Any]:
    """Well-tempered metadynamics of two variables: the error of F(x, y) below 6 k_B T, over k_B T."""
    variables = (CollectiveVariable(_x), CollectiveVariable(_y))
    bias = GridBias(variables, (-2.2, -3.0), (2.2, 3.0), nodes=(45, 61))
    thermostat = BAOAB(ExternalEnergy(_plane_of) + bias, temperature=TEMPERATURE, friction=1.0)
    hills = Metadynamics(thermostat, height=0.05, width=(0.2, 0.25), bias_factor=8.0, interval=50)
    sim = Simulation(hills, dt=0.1, observers=Every(5000, F=MetadynamicsFreeEnergy()))
    model = (sim, Particles(jnp.asarray([[1.0, 0.5]])))
    found = sweep(model, 200_000, replicas=8, key=0, progress=False)
    free_energy = np.asarray(found["F"])[:, 20:].mean(axis=(0, 1))
    x, y = np.meshgrid(np.linspace(-2.2, 2.2, 45), np.linspace(-3.0, 3.0, 61), indexing="ij")
    exact = _plane(x, y) - _plane(x, y).min()
    low = exact < 6 * TEMPERATURE
    error = free_energy[low] - exact[low]
    error = error - error.mean()
    return {
        "largest, k_B T": np.abs(error).max() / TEMPERATURE,
        "rms, k_B T": math.sqrt(np.mean(error**2)) / TEMPERATURE,
    }


def spring_into_spring() -> dict[str, Any]:
    """An oscillator of stiffness 1 becomes one of 10, by MBAR and by thermodynamic integration."""
    stiffness = np.geomspace(1.0, 10.0, 9)
    where = _stiffness
    watch = Every(10, u=EnergiesAt(where, stiffness), slope=EnergyDerivative(where))
    thermostat = BAOAB(HarmonicTrap(1.0), temperature=1.0, friction=1.0)
    # BAOAB has the exact variance of a harmonic oscillator at any dt.
    sim = Simulation(thermostat, dt=0.2, observers=watch)
    model = (sim, Particles(jnp.zeros((1, 3))))
    found = sweep(model, 20_000, over=SweepAxis(where, stiffness), key=0, progress=False)
    u, slope = (np.asarray(found[name])[:, 20:] for name in ("u", "slope"))
    return {
        "MBAR": free_energies(u, 1.0).values[-1],
        "thermodynamic integration": thermodynamic_integration(stiffness, slope).value,
    }


def _stiffness(model: Any) -> Any:
    return find(model, HarmonicTrap).stiffness


def _coupling(model: Any) -> Any:
    return find(model, SoftCoreLennardJones).coupling


def pair_from_nothing() -> dict[str, Any]:
    """Two soft-core particles in a periodic box: their interaction is turned on, by MBAR and by integration."""
    box, cutoff, T = 5.0, 2.4, 0.6
    coupling = np.linspace(0.0, 1.0, 9)
    force = Pairwise(SoftCoreLennardJones(1.0, 1.0, 1.0), cutoff=cutoff, truncation="shifted")
    watch = Every(10, u=EnergiesAt(_coupling, coupling), slope=EnergyDerivative(_coupling))
    sim = Simulation(BAOAB(force, temperature=T, friction=1.0), dt=0.02, observers=watch)
    pair = Particles(jnp.asarray([[0.0, 0.0, 0.0], [1.3, 0.0, 0.0]]), space=Box([box] * 3))
    axis = SweepAxis(_coupling, coupling)
    found = sweep((sim, pair), 20_000, over=axis, replicas=32, key=0, progress=False)
    u, slope = (np.asarray(found[name])[:, 20:] for name in ("u", "slope"))
    # Replicas of a state one after the other: [states replicas·frames …].
    u, slope = u.reshape(9, -1, 9), slope.reshape(9, -1)
    return {
        "MBAR": free_energies(u, T, subsample=False).values[-1],
        "thermodynamic integration": thermodynamic_integration(coupling, slope).value,
    }


def _pair_free_energy() -> float:
    """−k_B T ln[1 + ∫ (e^{−U/k_B T} − 1) 4π r² dr / V], of a shifted Lennard-Jones pair."""
    box, cutoff, T = 5.0, 2.4, 0.6
    r = np.linspace(1e-3, cutoff, 400_001)
    energy = 4 * (r**-12 - r**-6) - 4 * (cutoff**-12 - cutoff**-6)
    integral = np.trapezoid(np.expm1(-energy / T) * 4 * np.pi * r**2, r)
    return float(-T * np.log1p(integral / box**3))


def _lowest(atoms: int, radius: float, steps: int, searches: int) -> float:
    """The lowest energy of a Lennard-Jones cluster, from random starts."""
    rng = np.random.default_rng(0)

    def ball() -> Particles:
        x = rng.normal(size=(atoms, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return Particles(jnp.asarray(0.8 * radius * x * rng.uniform(size=(atoms, 1)) ** (1 / 3)))

    starts = [ball() for _ in range(searches)]
    wall = ExternalEnergy(_wall, args=jnp.asarray(radius))
    force = Forces.of(Pairwise(LennardJones()), wall)
    search = BasinHopping(force, temperature=0.8, displacement=0.4, allowed_force=1e-3)
    sim = Simulation(search, dt=1.0, observers=Every(steps, energy=LowestEnergy()))
    over = SweepAxis("state", starts)
    found = sweep((sim, starts[0]), steps, over=over, key=1, progress=False)
    return float(np.asarray(found["energy"])[:, -1].min())


def _wall(t: Any, particles: Particles, radius: Any) -> Any:
    del t
    x = particles.position
    square = jnp.sum((x - jnp.mean(x, axis=0, keepdims=True)) ** 2, axis=1)
    return jnp.sum(safe_maximum(square - radius**2, 0) ** 2)


def thirteen_atoms() -> dict[str, Any]:
    """Basin hopping, eight searches in one sweep: the icosahedron."""
    return {"U / ε": _lowest(13, 2.3, 40, 8)}


def thirty_eight_atoms() -> dict[str, Any]:
    """The truncated octahedron, whose funnel is narrow, from random starts."""
    return {"U / ε": _lowest(38, 3.2, 500, 12)}


def _population(T: float) -> float:
    x = np.linspace(-4, 4, 8001)
    weight = np.exp(-_well(x) / T)
    return float(weight[x < 0].sum() / weight.sum())


CASES = (
    Case(
        "replica-exchange",
        exchanged_double_well,
        (
            Published("p(x < 0), T = 0.15", _population(0.15), 0.008),
            Published("p(x < 0), T = 0.6", _population(0.6), 0.015),
        ),
        "Boltzmann's distribution, by quadrature",
        slow=True,
    ),
    Case(
        "umbrella-sampling",
        umbrella_of_a_double_well,
        (
            Published("MBAR, k_B T", 0.0, 0.25, "at most"),
            Published("WHAM, k_B T", 0.0, 0.25, "at most"),
            Published("deviation over error", 1.0, 0.6),
        ),
        "the potential itself",
        slow=True,
    ),
    Case(
        "metadynamics",
        metadynamics_of_a_surface,
        (
            Published("largest, k_B T", 0.0, 0.75, "at most"),
            Published("rms, k_B T", 0.0, 0.25, "at most"),
        ),
        "the potential itself; Barducci, Bussi & Parrinello 2008",
        slow=True,
    ),
    Case(
        "free-energy-of-a-spring",
        spring_into_spring,
        (
            # Three dimensions.
            Published("MBAR", 1.5 * math.log(10), 0.05),
            Published("thermodynamic integration", 1.5 * math.log(10), 0.08),
        ),
        "ΔF = (d/2) k_B T ln k₂/k₁",
        slow=True,
    ),
    Case(
        "alchemical-pair",
        pair_from_nothing,
        (
            Published("MBAR", _pair_free_energy(), 0.01),
            Published("thermodynamic integration", _pair_free_energy(), 0.015),
        ),
        "the second virial coefficient, by quadrature",
        slow=True,
    ),
    Case(
        "cluster-13",
        thirteen_atoms,
        (Published("U / ε", -44.326801, 1e-5),),
        "Hoare & Pal, Adv. Phys. 20, 161 (1971); Cambridge Cluster Database",
        slow=True,
    ),
    Case(
        "cluster-38",
        thirty_eight_atoms,
        (Published("U / ε", -173.928427, 1e-5),),
        "Wales & Doye, J. Phys. Chem. A 101, 5111 (1997)",
        slow=True,
    ),
)
