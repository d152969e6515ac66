"""Constraints: lengths, velocities, derivatives, degrees of freedom, pressure, faults and bad input."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.geometry import Box
from physkit.integrators import Lie, RemoveMomentum, Yoshida
from physkit.particles import (
    DistanceConstraints,
    Particles,
    RigidWater,
    degrees_of_freedom,
    kinetic_energy,
    maxwell_boltzmann,
    stretch,
)
from physkit.particles.forces import HarmonicTrap, LennardJones, Pairwise

from .water import CLOCK, FREE, HH, OH, errors, water, water_pairs


def oxygens_attract(dtype=float):
    eps = jnp.asarray([[0.3, 0.1], [0.1, 0.02]], dtype)
    sigma = jnp.asarray([[2.4, 1.8], [1.8, 1.2]], dtype)
    n = 8
    inside = [(3 * i + a, 3 * i + b) for i in range(n) for a, b in ((0, 1), (0, 2), (1, 2))]
    return Pairwise(LennardJones(eps, sigma), cutoff=2.9, exclude=inside)


SLOW = pytest.mark.slow


@functools.cache
def run_of_water(kind, dtype):
    """Its start, and what it gives: one run for several tests."""
    p = water(kind, dtype)
    observers = pk.Every(50, e=pk.TotalEnergy(), t=pk.Temperature(), p=pk.Pressure())
    sim = pk.Simulation(pk.VelocityVerlet(oxygens_attract(dtype)), dt=0.02, observers=observers)
    return p, pk.run(sim, p, 400, progress=False)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("settle", jnp.float64),
        pytest.param("settle", jnp.float32, marks=SLOW),
        pytest.param("shake", jnp.float32, marks=SLOW),
        pytest.param("shake", jnp.float64, marks=SLOW),
    ],
)
def test_rigid_water_keeps_lengths_and_energy_over_the_border(kind, dtype):
    p, out = run_of_water(kind, dtype)
    length, rate = errors(out.carry.state, water_pairs(8), np.tile([OH, OH, HH], 8))
    exact = dtype == jnp.float64
    assert length < (1e-12 if exact else 1e-6)
    assert rate < (1e-12 if exact else 2e-5)
    assert (
        np.abs(np.diff(np.asarray(out.carry.state.image)[::3], axis=0)).max() > 0
    )  # they crossed it
    assert np.ptp(out.frames["e"]) < 0.02 * kinetic_energy(p)
    assert degrees_of_freedom(p) == 6 * 8 - 3
    assert abs(out.frames["t"][0] - 1) < 1e-6


def test_settle_is_shake():
    """In closed form or by iteration: the same positions and velocities, also after a long step."""
    drift = jax.jit(lambda p, dt: p.drift(dt))
    for dt in (0.02, 0.3, -0.1):
        one, two = (drift(water(kind), jnp.asarray(dt)) for kind in ("settle", "shake"))
        np.testing.assert_allclose(one.unwrapped, two.unwrapped, atol=1e-12)
        np.testing.assert_allclose(one.velocity, two.velocity, atol=1e-11)


@pytest.mark.slow
def test_a_rod_turns_on_a_circle_to_the_order_of_the_integrator():
    """A rigid rod without forces: its direction turns by ω t; RATTLE has order 2, Yoshida's order 4."""
    mass, length, omega = np.array([1.0, 3.0]), 2.0, 1.3
    x = np.array([[1.5, 0, 0], [-0.5, 0, 0]])
    v = omega * np.array([[0, 1.5, 0], [0, -0.5, 0]])
    rod = Particles(x, v, mass, constraints=DistanceConstraints([[0, 1]], length))

    def end_errors(integrator, steps):
        sim = pk.Simulation(integrator, dt=1.0 / steps)
        end = pk.simulate(sim, rod, steps).state.position
        exact = np.array([[1.5], [-0.5]]) * [np.cos(omega), np.sin(omega), 0]
        return np.abs(np.asarray(end) - exact).max()

    for integrator, order in ((pk.VelocityVerlet(FREE), 2), (Yoshida(FREE), 4)):
        coarse, fine = end_errors(integrator, 10), end_errors(integrator, 20)
        assert abs(np.log2(coarse / fine) - order) < 0.1


def test_a_step_in_a_composition_is_reversible():
    p = water()
    force = oxygens_attract()
    # A part that changes velocities alone, by what the constraints allow: nothing changes.
    both = Lie(pk.VelocityVerlet(force), RemoveMomentum())
    advance = jax.jit(lambda p: pk.simulate(pk.Simulation(both, dt=0.02), p, 50).state)
    end = advance(p)
    back = advance(end.replace(velocity=-end.velocity))
    np.testing.assert_allclose(back.unwrapped, p.unwrapped, atol=1e-10)


# Steps compile for long: the fast suite has what they are made of, positions and velocities put right.
@pytest.mark.parametrize(
    ("kind", "has_step"),
    [
        pytest.param("settle", True, marks=SLOW),
        pytest.param("shake", True, marks=SLOW),
        ("shake", False),
    ],
    ids=["settle", "shake", "shake without a step"],
)
def test_derivatives_are_those_of_the_solution(kind, has_step):
    """By lengths, positions, masses and velocities, in both modes, against finite differences; second, too."""
    start, dt = water(kind, count=1), jnp.asarray(0.05)
    key = jax.random.normal(jax.random.key(3), start.position.shape)
    direction = jax.random.normal(jax.random.key(4), start.position.shape)

    def outcome(s):
        scale = 1 + s * jnp.array([0.3, 0.5, 0.2])
        part = start.constraints.parts[0]
        if kind == "settle":
            part = RigidWater(part.groups[0].tuples.places, part.oh * scale[0], part.hh * scale[0])
        else:
            part = DistanceConstraints(part.pairs, part.lengths * scale[0])
        p = Particles(
            start.position + 0.1 * s * direction, start.velocity, start.mass * scale[1],
            start.space, constraints=part,
        )  # fmt: skip
        end = p.displace(jnp.zeros_like(p.position)).constrain_velocities()
        if has_step:
            end = end.kick(-end.unwrapped, dt).drift(dt)
        return jnp.sum(key * end.unwrapped) + jnp.sum(key * end.velocity)

    h, one = 1e-4, jnp.ones(())

    # One program for all: its parts share most of their compilation.
    @jax.jit
    def derivatives(s):
        slope = lambda s: jax.jvp(outcome, (s,), (one,))[1]
        # Of the second order, too: nothing of the iteration is differentiated.
        forward, second = jax.jvp(slope, (s,), (one,)) if kind == "shake" else (slope(s), None)
        points = s + h * jnp.array([-2.0, -1.0, 0.0, 1.0, 2.0])
        return forward, second, jax.grad(outcome)(s), jax.lax.map(outcome, points)

    forward, second, backward, f = derivatives(jnp.zeros(()))
    f = np.asarray(f)
    slope = (f[0] - 8 * f[1] + 8 * f[3] - f[4]) / (12 * h)
    np.testing.assert_allclose(forward, slope, rtol=1e-7)
    np.testing.assert_allclose(backward, forward, rtol=1e-10)
    if kind == "shake":
        curvature = (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * h**2)
        np.testing.assert_allclose(second, curvature, rtol=1e-4)


@pytest.mark.slow
def test_a_long_chain_and_batches():
    """Twenty rods in a chain are one cluster; a batch of systems is a loop over them."""
    n = 21
    rng = np.random.default_rng(1)
    turns = np.cumsum(rng.uniform(-0.4, 0.4, n - 1))
    x = np.concatenate([[[0, 0]], np.cumsum(np.stack([np.cos(turns), np.sin(turns)], 1), 0)])
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], 1)
    chain = Particles(x, constraints=DistanceConstraints(pairs, np.ones(n - 1)))
    assert len(chain.constraints.parts[0].groups) == 1
    sim = pk.Simulation(pk.VelocityVerlet(HarmonicTrap(0.1)), dt=0.02)
    starts = [maxwell_boltzmann(k, chain, 1.0) for k in range(3)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
    many = jax.jit(jax.vmap(lambda p: pk.simulate(sim, p, 20).state.position))(batch)
    for k, start in enumerate(starts):
        end = pk.simulate(sim, start, 20).state
        np.testing.assert_allclose(many[k], end.position, atol=1e-11)
        assert errors(end, pairs, np.ones(n - 1))[0] < 1e-12


def centers(p):
    """Centers of mass of the water molecules, and their velocities."""
    mass = np.asarray(p.mass).reshape(-1, 3, 1)
    x, v = p.position.reshape(-1, 3, 3), np.asarray(p.velocity).reshape(-1, 3, 3)
    whole = np.asarray(x[:, :1] + p.space.displacement(x, x[:, :1]))
    return np.sum(mass * whole, 1) / mass.sum(1), np.sum(mass * v, 1) / mass.sum(1)


@jax.jit
def energy_of_scaled(p, force, scale):
    """Of molecules that move as rigid bodies: their centers are scaled with the box."""
    x = p.position.reshape(-1, 3, 3)
    whole = x[:, :1] + p.space.displacement(x, x[:, :1])
    center = jnp.sum(p.mass.reshape(-1, 3, 1) * whole, 1, keepdims=True) / 18.0
    moved = (whole + (scale - 1) * center).reshape(-1, 3)
    box = Box(p.space.lengths * scale)
    return force.energy(CLOCK, p.replace(position=moved, space=box))


def molecular_pressure(p, force):
    """(2 K + W)/(3 V) of centers and forces on whole molecules."""
    twice_kinetic = 18 * np.sum(centers(p)[1] ** 2)
    volume, h = float(p.space.volume), 1e-5
    high, low = (float(energy_of_scaled(p, force, 1 + sign * h)) for sign in (1, -1))
    return (twice_kinetic - (high - low) / (2 * h)) / (3 * volume)


@pytest.mark.parametrize("kind", ["settle", pytest.param("shake", marks=SLOW)])
def test_pressure_is_that_of_rigid_molecules(kind):
    """Instant by instant: the atoms' virial with constraint forces, or dU/dV of rigid molecules."""
    p, out = run_of_water(kind, jnp.float64)
    for state, found in zip((p, out.carry.state), out.frames["p"][[0, -1]], strict=True):
        assert abs(found / molecular_pressure(state, oxygens_attract()) - 1) < 1e-6


def test_thermostats_count_constraints():
    p = water()
    sim = pk.Simulation(
        pk.BAOAB(oxygens_attract(), temperature=0.5, friction=5.0),
        dt=0.02, observers=pk.Every(10, t=pk.Temperature()),
    )  # fmt: skip
    out = pk.run(sim, p, 1500, key=1, progress=False)
    mean = out.frames["t"][20:].mean()
    assert abs(mean / 0.5 - 1) < 0.1  # 3 standard errors; half of it were constraints not counted
    assert errors(out.carry.state, water_pairs(8), np.tile([OH, OH, HH], 8))[0] < 1e-12


@pytest.mark.slow
def test_a_chain_of_thermostats_counts_constraints():
    p = water()
    chain = {"water": p, "thermostat": pk.integrators.ThermostatChain.at_rest()}
    force = Pairwise(
        oxygens_attract().potential, 2.9, exclude=water_pairs(8).tolist(), component="water"
    )
    integrator = pk.NoseHooverChain(force, temperature=1.0, period=1.0)
    observers = pk.Every(20, e=pk.quantities.ConservedEnergy())
    out = pk.run(pk.Simulation(integrator, 0.02, observers), chain, 400, progress=False)
    assert np.ptp(out.frames["e"]) < 0.02 * kinetic_energy(p)


def test_a_box_is_stretched_with_rigid_molecules():
    """Across the border: centers follow the box, shapes stay, and so does the total momentum."""
    p = water()
    matrix = 1.1 * jnp.eye(3)
    moved = stretch(p, matrix, jnp.linalg.inv(matrix).T)
    assert errors(moved, water_pairs(8), np.tile([OH, OH, HH], 8))[0] < 1e-13
    before, after = (centers(q) for q in (p, moved))
    difference = moved.space.displacement(jnp.asarray(after[0]), jnp.asarray(1.1 * before[0]))
    np.testing.assert_allclose(difference, 0, atol=1e-13)
    np.testing.assert_allclose(after[1], before[1] / 1.1, atol=1e-13)


def test_what_a_shrinking_box_moves_over_its_border_is_wrapped():
    """Centers move, shapes stay: the end of a rod at the border is beyond that of a smaller box."""
    rod = DistanceConstraints([[0, 1]], 1.0)
    p = Particles([[8.95, 5.0, 5.0], [9.95, 5.0, 5.0]], space=Box([10.0] * 3), constraints=rod)
    moved = stretch(p, 0.95 * jnp.eye(3))
    np.testing.assert_allclose(moved.position[:, 0], [8.4775, 9.4775], atol=1e-12)
    moved = stretch(p, 0.9 * jnp.eye(3))
    np.testing.assert_allclose(moved.position[:, 0], [8.005, 0.005], atol=1e-12)
    np.testing.assert_allclose(moved.unwrapped[:, 0], [8.005, 9.005], atol=1e-12)


@pytest.mark.slow
def test_andersen_collides_with_whole_molecules():
    """Without forces: each component of the velocities of the rigid molecules holds half k_B T."""
    p = water(temperature=0.1)
    bath = pk.integrators.Andersen(pk.VelocityVerlet(FREE), temperature=1.0, rate=10.0)
    sim = pk.Simulation(bath, dt=0.05, observers=pk.Every(5, t=pk.Temperature()))
    mean = pk.run(sim, p, 8000, key=1, progress=False).frames["t"][10:].mean()
    assert abs(mean - 1) < 0.02  # 4 standard errors
