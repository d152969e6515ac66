"""The motion of rigid bodies under every integrator that moves them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount
from physkit.geometry import Box
from physkit.integrators import EquationsOfMotion, ThermostatChain, Yoshida
from physkit.observe import AngularVelocities, ConservedEnergy, Orientations
from physkit.particles import (
    Particles,
    RigidBodies,
    RigidWater,
    angular_momentum,
    constrain,
    kinetic_energy,
    maxwell_boltzmann,
)
from physkit.particles.forces import (
    ExternalWrench,
    HarmonicBonds,
    LennardJones,
    Pairwise,
    SiteForce,
)
from physkit.testing import check_integrator, check_reversible

from .test_rigid_bodies import MASS, water

# The compositions have seven stages, each with its derivatives.
pytestmark = pytest.mark.compiled_quickly

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
FREE = ExternalWrench(lambda t, b: (0 * b.position, 0 * b.position))
SOFT = LennardJones([[0.3, 0.1], [0.1, 0.02]], [[2.4, 1.8], [1.8, 1.2]])
OH, HH = 0.9572, 1.5139
PERIOD = 27.9060637582  # of Euler's top, by Jacobi's elliptic functions


def tumbling(linear=False):
    """Two bodies that turn fast, joined by springs between sites."""
    rng = np.random.default_rng(2)
    x = 0.4 * rng.normal(size=(2, 2 if linear else 3, 3)) + 1.5 * np.arange(2)[:, None, None]
    bodies = RigidBodies.from_sites(
        x, rng.uniform(1, 2, x.shape[:2]), velocity=rng.normal(size=x.shape)
    )
    second = bodies.num_sites
    springs = HarmonicBonds([[0, second], [1, second + 1]], 2.0, 1.1)
    return bodies, SiteForce(springs)


class TestFreeRotation:
    def test_euler_top(self):
        """I = (1, 2, 3) returns after the period of the exact solution, having turned over."""
        top = RigidBodies(np.zeros((1, 3)), [1.0, 2, 3], angular_velocity=[[0.05, 1, 0.05]])
        observe = pk.Every(300, w=AngularVelocities(body_axes=True), energy=pk.KineticEnergy())
        sim = pk.Simulation(Yoshida(FREE, 6), PERIOD / 1200, observe)
        result = pk.simulate(sim, top, 1200)
        end = result.carry.state
        w = np.asarray(result.frames["w"])
        np.testing.assert_allclose(w[-1], w[0], atol=1e-8)
        assert w[2, 0, 1] < -0.99  # half a period later it turns the other way round
        np.testing.assert_allclose(
            result.frames["energy"], np.full(5, kinetic_energy(top)), rtol=1e-12
        )
        np.testing.assert_allclose(angular_momentum(end), angular_momentum(top), rtol=1e-12)

    def test_a_line_turns_exactly(self):
        rod = RigidBodies(
            np.zeros((1, 3)), [0.0, 2, 2], angular_velocity=[[0, 0.3, -0.4]], sites=[[1.0, 0, 0]]
        )
        turned = rod.drift(jnp.asarray(3.0))
        axis = np.array([0, 0.3, -0.4]) / 0.5
        x = np.array([1.0, 0, 0])
        expected = np.cos(1.5) * x + np.sin(1.5) * np.cross(axis, x)
        np.testing.assert_allclose(turned.site_particles().position[0], expected, atol=1e-15)
        np.testing.assert_array_equal(turned.angular_momentum, rod.angular_momentum)
        # A difference moves the moment about the line off 0: it does not turn about itself.
        off = rod.replace(
            inertia=rod.inertia.at[0, 0].set(1e-9),
            angular_momentum=rod.angular_momentum.at[0, 0].set(1e-9),
        )
        np.testing.assert_array_equal(off.body_angular_velocity, rod.body_angular_velocity)


class TestIntegrators:
    @pytest.mark.slow
    def test_velocity_verlet(self):
        bodies, force = tumbling()
        check_integrator(
            pk.VelocityVerlet(force), bodies, 0.05, order=2, symmetric=True,
            reference=pk.RK4(EquationsOfMotion(force)),
        )  # fmt: skip

    @pytest.mark.parametrize("linear", [pytest.param(False, marks=pytest.mark.slow), True])
    def test_drifts_and_kicks_run_back_to_the_last_bit(self, linear):
        bodies, _ = tumbling(linear)
        exact = bodies.to_fixed_point(jnp.asarray(0.05), 8.0)
        wrench = jnp.asarray(np.random.default_rng(0).normal(size=(2, 6)))

        @jax.jit
        def move(bodies, dt, kick_first):
            def step(_, b):
                b = b.kick(wrench, dt * kick_first).drift(dt)
                return b.kick(wrench, dt * (1 - kick_first))

            return jax.lax.fori_loop(0, 50, step, bodies)

        there = move(exact, jnp.asarray(0.05), jnp.asarray(1.0))
        back = move(there, jnp.asarray(-0.05), jnp.asarray(0.0))
        assert np.max(np.abs(there.orientation - exact.orientation)) > 0.1
        np.testing.assert_allclose(np.linalg.norm(there.orientation, axis=1), 1, rtol=1e-14)
        for a, b in zip(*(jax.tree.leaves(x.exact_bits()) for x in (exact, back)), strict=True):
            np.testing.assert_array_equal(a, b)
        # The same motion in floats.
        floats = move(bodies, jnp.asarray(0.05), jnp.asarray(1.0))
        np.testing.assert_allclose(there.spin, floats.spin, rtol=1e-12)
        sites = [x.site_particles().position for x in (there, floats)]
        np.testing.assert_allclose(*sites, rtol=1e-11)

    @pytest.mark.slow
    @pytest.mark.parametrize("linear", [False, True])
    def test_reversible(self, linear):
        bodies, force = tumbling(linear)
        check_reversible(pk.VelocityVerlet(force), bodies, 0.05)

    @pytest.mark.slow
    @pytest.mark.parametrize("linear", [False, True])
    def test_compositions(self, linear):
        bodies, force = tumbling(linear)
        reference = pk.RK4(EquationsOfMotion(force))
        check_integrator(
            Yoshida(force, 4), bodies, 0.1, order=4, symmetric=True, reference=reference
        )
        check_integrator(
            pk.Leapfrog(force), bodies, 0.05, order=2, symmetric=True, reference=reference
        )
        check_reversible(Yoshida(force, 4), bodies, 0.05)


class TestBaths:
    @pytest.mark.slow
    def test_langevin_equipartition(self):
        """Every degree of freedom of free bodies has k_B T, those of rods and tops alike."""
        n = 4000
        for inertia, rotations in (([1.0, 2, 3], 3), ([0.0, 2, 2], 2)):
            bodies = RigidBodies(np.zeros((n, 3)), inertia)
            sim = pk.Simulation(pk.BAOAB(FREE, temperature=0.7, friction=5.0), 0.1)
            end = pk.simulate(sim, bodies, 10, key=1).carry.state
            energies = np.mean(
                np.asarray(end.generalized_mass * end.generalized_velocity**2), axis=0
            )
            c2 = np.exp(-10 * 2 * 5.0 * 0.1)
            expected = np.where(np.asarray(end.generalized_mass[0]) > 0, 0.7 * (1 - c2), 0)
            np.testing.assert_allclose(energies, expected, atol=0.7 * 5 * np.sqrt(2 / n))
            assert np.count_nonzero(energies[3:]) == rotations

    @pytest.mark.slow
    def test_thermostats(self):
        """Each takes rigid bodies, and keeps what it says that it keeps."""
        bodies, force = tumbling()
        named = SiteForce(force.inner, component="b")
        chain = {"b": bodies, "thermostat": ThermostatChain.at_rest()}
        verlet = pk.VelocityVerlet(force)
        for integrator, state, tolerance in (
            (pk.NoseHooverChain(named, 1.0, 2.0), chain, 1e-4),
            (pk.VelocityRescaling(verlet, 1.0, 0.5), bodies, 1e-3),
            (pk.Andersen(verlet, 1.0, 0.5), bodies, 1e-3),
        ):
            observe = pk.Every(50, e=ConservedEnergy(), T=pk.Temperature())
            sim = pk.Simulation(integrator, 0.01, observe)
            frames = pk.simulate(sim, state, 100, key=3).frames
            np.testing.assert_allclose(frames["e"], np.full(3, frames["e"][0]), rtol=tolerance)
            assert np.ptp(frames["T"]) > 0.01


def as_constrained(bodies):
    """The same molecules as particles that constraints hold."""
    sites = bodies.site_particles()
    rigid = RigidWater(np.arange(sites.num_particles).reshape(-1, 3), OH, HH)
    return constrain(
        Particles(
            sites.position,
            sites.velocity,
            np.tile(MASS, len(bodies.position)),
            sites.space,
            species=sites.species,
            charge=sites.charge,
            constraints=rigid,
        )
    )  # fmt: skip


def both_waters(dt, steps, **observed):
    """Frames and final places of the sites of water as bodies, and as particles with constraints."""
    bodies = maxwell_boltzmann(0, water(), 1.0)
    pairs = Pairwise(SOFT, 2.9, exclude=bodies.site_pairs)
    observe = pk.Every(steps, **observed)
    ends = [
        pk.simulate(pk.Simulation(pk.VelocityVerlet(force), dt, observe), state, steps)
        for force, state in ((SiteForce(pairs), bodies), (pairs, as_constrained(bodies)))
    ]
    sites = ends[0].carry.state.site_particles()
    apart = sites.space.displacement(sites.position, ends[1].carry.state.position)
    return *(end.frames for end in ends), float(np.max(np.abs(apart)))


@pytest.mark.slow
def test_rigid_water_is_that_of_settle():
    """Bodies and constraints: one trajectory, one temperature, one pressure."""
    a, b, distance = both_waters(0.01, 10, T=pk.Temperature(), p=pk.Pressure())
    # The molecule of the file has its lengths to seven digits.
    np.testing.assert_allclose(a["T"], b["T"], rtol=1e-5)
    np.testing.assert_allclose(a["p"], b["p"], rtol=1e-4)
    assert distance < 1e-4


@pytest.mark.slow
def test_rigid_water_to_the_order_of_the_step():
    coarse, fine = (both_waters(dt, round(0.8 / dt), e=pk.TotalEnergy())[2] for dt in (0.02, 0.01))
    assert coarse < 2e-3
    assert 3.5 < coarse / fine < 4.5


@pytest.mark.slow
def test_bodies_and_ions_in_one_state():
    bodies = maxwell_boltzmann(0, water(), 1.0)
    ions = Particles(
        [[1.5, 1.5, 1.4], [4.6, 4.5, 4.6]], species=1, charge=0.0, space=Box([6.2] * 3)
    )
    force = SiteForce(Pairwise(SOFT, 2.9, exclude=bodies.site_pairs), ["water", "ions"])
    observe = pk.Every(20, e=pk.TotalEnergy(), T=pk.Temperature(), p=pk.Pressure())
    sim = pk.Simulation(pk.VelocityVerlet(force), 0.01, observe)
    frames = pk.simulate(sim, {"water": bodies, "ions": ions}, 40).frames
    np.testing.assert_allclose(frames["e"], np.full(3, frames["e"][0]), rtol=1e-4)
    assert np.all(np.isfinite(frames["p"]))


def test_files_and_restart(tmp_path):
    """Trajectories of sites open as of particles, and a run that was stopped continues bit by bit."""
    bodies, force = tumbling()
    observe = pk.Every(
        5, x=pk.Positions(sites=True), v=pk.Velocities(sites=True), q=Orientations(),
        w=AngularVelocities(),
    )  # fmt: skip
    sim = pk.Simulation(pk.BAOAB(force, 1.0, 1.0), 0.05, observe)
    whole = pk.run(sim, bodies, 20, key=4, to=tmp_path / "whole", progress=False)
    pk.run(sim, bodies, 10, key=4, to=tmp_path / "parts", progress=False)
    parts = pk.run(sim, bodies, 20, key=4, to=tmp_path / "parts", resume=True, progress=False)
    for name in ("position", "orientation", "angular_momentum"):
        np.testing.assert_array_equal(
            getattr(whole.carry.state, name), getattr(parts.carry.state, name)
        )
    recording = pk.open(tmp_path / "whole")
    atoms = pk.storage.load_component(recording["x"])
    sites = whole.carry.state.site_particles()
    np.testing.assert_allclose(atoms.position, sites.position, rtol=1e-6)
    np.testing.assert_allclose(atoms.velocity, sites.velocity, rtol=1e-5)
    np.testing.assert_allclose(atoms.mass, sites.mass)
    assert np.shape(recording["q"][:]) == (5, 2, 4)
