"""Constraints: lengths, velocities, derivatives, degrees of freedom, pressure, faults and bad input."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    Clock,
    DeclarationError,
    NotReversible,
    ParameterError,
    ShapeError,
    StepCount,
    StepSizeError,
)
from physkit.geometry import Box
from physkit.integrators import RK4, Boris, EquationsOfMotion, Lie, RemoveMomentum, Yoshida
from physkit.particles import (
    Constraints,
    DistanceConstraints,
    Particles,
    RigidWater,
    constrain,
    degrees_of_freedom,
    kinetic_energy,
    maxwell_boltzmann,
    stretch,
    total_momentum,
)
from physkit.particles.forces import HarmonicAngles, HarmonicTrap, LennardJones, Pairwise

OH, HH, SPACING = 0.9572, 1.5139, 3.1
FREE = HarmonicTrap(0.0)
CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)


def water_positions(count=2, seed=0):
    """count³ molecules near a lattice, turned at random; the box has the length count · SPACING."""
    rng = np.random.default_rng(seed)
    height = np.sqrt(OH**2 - HH**2 / 4)
    triangle = np.array([[0.0, 0, 0], [HH / 2, height, 0], [-HH / 2, height, 0]])
    sites = np.stack(np.meshgrid(*[np.arange(count)] * 3, indexing="ij"), -1).reshape(-1, 3)
    turns = np.linalg.qr(rng.normal(size=(len(sites), 3, 3)))[0]
    x = SPACING * sites[:, None] + np.einsum("nij,aj->nai", turns, triangle)
    return x.reshape(-1, 3) % (count * SPACING)


def water_pairs(n):
    return (3 * np.arange(n)[:, None, None] + [[0, 1], [0, 2], [1, 2]]).reshape(-1, 2)


def water(kind="settle", dtype=float, count=2, temperature=1.0):
    n = count**3
    if kind == "settle":
        rigid = RigidWater(np.arange(3 * n).reshape(n, 3), OH, HH)
    else:
        rigid = DistanceConstraints(water_pairs(n), np.tile([OH, OH, HH], n))
    box = Box((count * SPACING,) * 3)
    x, mass = jnp.asarray(water_positions(count), dtype), np.tile([16.0, 1.0, 1.0], n)
    p = Particles(x, mass=mass, space=box, species=np.tile([0, 1, 1], n), constraints=rigid)
    return maxwell_boltzmann(0, constrain(p), temperature)


def oxygens_attract(dtype=float):
    eps = jnp.asarray([[0.3, 0.1], [0.1, 0.02]], dtype)
    sigma = jnp.asarray([[2.4, 1.8], [1.8, 1.2]], dtype)
    n = 8
    inside = [(3 * i + a, 3 * i + b) for i in range(n) for a, b in ((0, 1), (0, 2), (1, 2))]
    return Pairwise(LennardJones(eps, sigma), cutoff=2.9, exclude=inside)


def errors(p, pairs, lengths):
    """The largest relative error of lengths, and of rates of lengths by the mean speed."""
    x = np.asarray(p.space.displacement(p.position[pairs[:, 0]], p.position[pairs[:, 1]]), float)
    v = np.asarray(p.velocity[pairs[:, 0]] - p.velocity[pairs[:, 1]], float)
    distance = np.linalg.norm(x, axis=1)
    rate = np.abs(np.sum(x * v, axis=1)) / distance / np.std(np.asarray(p.velocity))
    return np.abs(distance / lengths - 1).max(), rate.max()


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
