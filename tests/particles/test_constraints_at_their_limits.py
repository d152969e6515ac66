"""Constraints: steps that are too long, bad input, other units, devices without clusters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    DeclarationError,
    NotReversible,
    ParameterError,
    ShapeError,
    StepSizeError,
)
from physkit.geometry import Box
from physkit.integrators import RK4, Boris, EquationsOfMotion
from physkit.particles import (
    Constraints,
    DistanceConstraints,
    Particles,
    RigidWater,
    constrain,
    total_momentum,
)
from physkit.particles.forces import HarmonicAngles, HarmonicTrap

from .water import CLOCK, FREE, HH, OH, errors, water, water_pairs, water_positions


@pytest.mark.slow
def test_minimize_and_constrain():
    """A bent chain of three rods in a trap; rounded coordinates and wild velocities."""
    x = np.array([[0, 0, 0], [1.0, 0.02, 0], [1.1, 0.99, 0.03]])
    p = Particles(x, np.ones((3, 3)) * [[1], [-2], [3]], mass=[1, 2, 3],
                  constraints=DistanceConstraints([[0, 1], [1, 2]], 1.0))  # fmt: skip
    with pytest.raises(StepSizeError, match="constrain"):
        pk.run(pk.Simulation(pk.VelocityVerlet(FREE), dt=0.01), p, 1, progress=False)
    exact = constrain(p)
    length, rate = errors(exact, np.array([[0, 1], [1, 2]]), 1.0)
    assert length < 1e-14
    assert rate < 1e-14
    np.testing.assert_allclose(total_momentum(exact), total_momentum(p), atol=1e-13)
    angle = HarmonicAngles([[0, 1, 2]], 1.0, 2.0)
    found = pk.minimize(angle, exact, allowed_force=1e-9, max_move=0.05).state
    assert angle.energy(CLOCK, found) < 1e-15
    assert errors(found, np.array([[0, 1], [1, 2]]), 1.0)[0] < 1e-12


def test_a_step_that_is_too_long_is_a_fault():
    rod = Particles([[0.5, 0, 0], [-0.5, 0, 0]], [[0, 1.0, 0], [0, -1.0, 0]],
                    constraints=DistanceConstraints([[0, 1]], 1.0))  # fmt: skip
    sim = pk.Simulation(pk.VelocityVerlet(FREE), dt=2.0)
    with pytest.raises(StepSizeError, match="constraints"):
        pk.run(sim, rod, 3, progress=False)
    assert np.isnan(pk.simulate(sim, rod, 3).state.position).all()
    flat = water()
    with pytest.raises(StepSizeError, match="constraints"):
        pk.run(pk.Simulation(pk.VelocityVerlet(FREE), dt=5.0), flat, 3, progress=False)


X3 = np.array([[0.0, 0, 0], [1, 0, 0], [0.3, 1, 0]])


BAD = {
    "named twice|has 2 constraints": lambda: DistanceConstraints([[0, 1], [1, 0]], 1.0),
    "shape": lambda: DistanceConstraints([[0, 1]], [1.0, 2.0]),
    "positive": lambda: DistanceConstraints([[0, 1]], -1.0),
    "particle 3, but there are only 3": lambda: Particles(
        X3, constraints=DistanceConstraints([[0, 3]], 1.0)
    ),
    "frozen": lambda: Particles(
        X3, frozen=[True, False, False], constraints=DistanceConstraints([[0, 1]], 1.0)
    ),
    "1.04403 apart": lambda: Particles(X3, constraints=DistanceConstraints([[0, 2]], 3.0)),
    "half the box": lambda: Particles(
        X3, space=Box([1.8] * 3), constraints=DistanceConstraints([[0, 1]], 1.0)
    ),
    "split over the border": lambda: Particles(
        X3 + np.array([[0, 0, 0], [8, 0, 0], [0, 0, 0]]), constraints=DistanceConstraints([[0, 1]], 1.0)
    ),
    "not independent": lambda: Particles(
        [[0.0, 0, 0], [1, 0, 0], [2, 0, 0]],
        constraints=DistanceConstraints([[0, 1], [1, 2], [0, 2]], [1.0, 1.0, 2.0]),
    ),
    "overlapping": lambda: Particles(
        X3,
        constraints=DistanceConstraints([[0, 1]], 1.0) + DistanceConstraints([[1, 2]], 1.2),
    ),
    "equal mass": lambda: Particles(
        water_positions(1), mass=[16, 1, 2], constraints=RigidWater([[0, 1, 2]], OH, HH)
    ),
    "3 dimensions": lambda: Particles(X3[:, :2], constraints=RigidWater([[0, 1, 2]], OH, HH)),
    "triangle": lambda: RigidWater([[0, 1, 2]], 1.0, 2.5),
    "expected constraints": lambda: DistanceConstraints([[0, 1]], 1.0) + FREE,
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_input(text):
    with pytest.raises((ParameterError, ShapeError, DeclarationError), match=text):
        BAD[text]()


@pytest.mark.parametrize(
    "integrator",
    [
        RK4(EquationsOfMotion(FREE)),
        pk.Brownian(FREE, temperature=1.0, friction=1.0),
        Boris(1.0, force=FREE),
    ],
    ids=["RK4", "Brownian", "Boris"],
)
def test_integrators_that_would_break_constraints_are_refused(integrator):
    p = Particles(X3, charge=1.0, constraints=DistanceConstraints([[0, 1]], 1.0))
    with pytest.raises(DeclarationError, match="constraints"):
        pk.simulate(pk.Simulation(integrator, dt=0.1), p, 1, key=0)


def test_reversible_is_refused_by_name():
    p = Particles(X3, constraints=DistanceConstraints([[0, 1]], 1.0))
    sim = pk.Simulation(pk.VelocityVerlet(FREE), dt=0.1, adjoint=pk.Reversible())
    with pytest.raises(NotReversible, match="constraints"):
        pk.simulate(sim, p, 1)


def test_a_sum_is_flat():
    a, b = DistanceConstraints([[0, 1]], 1.0), DistanceConstraints([[2, 3]], 1.0)
    assert isinstance(a + b, Constraints)
    assert len((a + b + DistanceConstraints([[4, 5]], 1.0)).parts) == 3


def test_rigid_water_in_metres_and_single_precision():
    """Fourth powers of its lengths are below the smallest number."""
    metres, kilograms = 1e-10, 1.66e-27
    height = np.sqrt(OH**2 - HH**2 / 4)
    x = np.array(
        [[0.0, 0, 0], [HH / 2, height, 0.1], [-HH / 2, height, 0]], np.float32
    ) * np.float32(metres)
    rigid = RigidWater([[0, 1, 2]], OH * metres, HH * metres)
    mass = np.array([16.0, 1, 1], np.float32) * np.float32(kilograms)
    p = constrain(Particles(x, mass=mass, constraints=rigid))
    a, b = water_pairs(1).T
    distances = np.linalg.norm(np.asarray(p.position[a] - p.position[b], float), axis=1)
    np.testing.assert_allclose(distances, np.array([OH, OH, HH]) * metres, rtol=1e-5)


@pytest.mark.slow
def test_a_device_without_clusters_has_derivatives(monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    x = np.array([[1.0, 5, 5], [2, 5, 5], [6, 5, 5], [8, 5, 5]])
    v = np.random.default_rng(0).normal(size=(4, 3))
    rod = DistanceConstraints([[0, 1]], 1.0)
    p = constrain(Particles(x, velocity=v, space=Box([10.0] * 3), constraints=rod))
    trap = HarmonicTrap(1.0, center=[5.0, 5, 5])
    sim = pk.Simulation(pk.VelocityVerlet(trap), 0.01, guards=())

    def loss(length, devices):
        q = eqx.tree_at(lambda q: q.constraints.parts[0].lengths, p, length)
        return jnp.sum(pk.simulate(sim, q, 1, devices=devices).state.position ** 3)

    length = p.constraints.parts[0].lengths
    one, two = (jax.value_and_grad(loss)(length, devices) for devices in (None, (2,)))
    np.testing.assert_allclose(two, one, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:nothing moves")
def test_pressure_of_constrained_particles_without_forces():
    """Constraints hold them, so that their virial is that of the motion: m v² / r of a rod that turns."""
    x, v = [[4.5, 5.0, 5.0], [5.5, 5.0, 5.0]], [[0, 1.0, 0], [0, -1.0, 0]]
    rod = Particles(
        x, velocity=v, space=Box([10.0] * 3), constraints=DistanceConstraints([[0, 1]], 1.0)
    )
    free = Particles([[1.0, 1, 1]], space=Box([10.0] * 3))
    trap = HarmonicTrap(1.0, center=[1.0, 1, 1], component="free")
    record = pk.Every(1, rod=pk.Pressure("rod"), both=pk.Pressure())
    sim = pk.Simulation(pk.VelocityVerlet(trap), 0.01, record)
    frames = pk.simulate(sim, {"rod": rod, "free": free}, 1).frames
    # Without forces and without motion of its center a molecule has no pressure: 2 K + W = 0.
    np.testing.assert_allclose([frames["rod"], frames["both"]], 0, atol=1e-12)


def test_the_pressure_of_rigid_molecules_is_in_their_precision():
    p = water(dtype=np.float32)
    sim = pk.Simulation(pk.VelocityVerlet(FREE), dt=0.02)
    assert pk.evaluate(sim, p, p=pk.Pressure())["p"].dtype == np.float32
