"""Particle meshes: as forces, against direct solutions, and what they conserve."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, ParameterError, ShapeError, StepCount, cast_floats
from physkit.coupling import (
    CIC,
    PCS,
    TSC,
    AbstractMeshInteraction,
    Drag,
    Electrostatics,
    Gravity,
    Nearest,
    ParticleMesh,
    PassiveTracers,
    deposit,
    interpolate,
)
from physkit.fields import Field
from physkit.fields.operators import Central, Spectral
from physkit.geometry import Box, Grid
from physkit.integrators import RK4, EquationsOfMotion, VelocityVerlet
from physkit.observe import Every, TotalEnergy
from physkit.particles import Particles, kinetic_energy
from physkit.particles.forces import AbstractForce
from physkit.simulate import Simulation, simulate
from physkit.testing import check_force, check_tendency

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_energy_conserving_force_is_the_gradient_of_its_energy",
    "test_total_force_and_self_force_vanish[1-True-scheme0]",
    "test_total_force_and_self_force_vanish[2-True-scheme1]",
    "test_energy_conserving_mesh_acts_on_a_single_particle",
    "test_field_of_a_cosine_charge_density",
    "test_a_user_defined_mesh_interaction[float64]",
    "test_another_box_than_the_mesh_gives_no_number",
    "test_drag_in_another_box_is_refused",
    "test_a_position_that_is_no_number_is_not_deposited",
    "test_the_virial_in_si_units_and_single_precision",
)

# Few particles make cases small: what warns of them has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore::physkit.core.PhyskitWarning")

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
SHAPES = {1: (16,), 2: (8, 6), 3: (6, 5, 4)}


def grid_and_particles(d, n=9, seed=0, dtype=float):
    lengths = jnp.asarray([2.0, 1.7, 1.4][:d], dtype)
    rng = np.random.default_rng(seed)
    box = Box(lengths)
    particles = Particles(
        jnp.asarray(rng.random((n, d)), dtype) * lengths[None], rng.normal(size=(n, d)), 1 + rng.random(n),
        box, charge=rng.normal(size=n),
    )  # fmt: skip
    return Grid(box, SHAPES[d]), particles


class MeshWithoutEnergy(AbstractForce):
    """A mesh that keeps its energy to itself: what the battery asks of forces without one."""

    conserves_momentum: ClassVar[bool] = False
    mesh: ParticleMesh
    component: str | None = None

    def force(self, clock: Clock, state: Any):
        return self.mesh.force(clock, state)


def test_energy_conserving_force_is_the_gradient_of_its_energy():
    """What the battery shows of more, by one program; derivatives of the force are one matrix in both modes."""
    grid, particles = grid_and_particles(1)
    mesh = ParticleMesh(grid, Electrostatics(1.3), PCS(), conserves="energy")
    along = jnp.asarray(np.random.default_rng(1).normal(size=particles.position.shape))

    @jax.jit
    def both(particles):
        def energy(x):
            return mesh.energy(CLOCK, particles.replace(position=x))

        def force(x):
            return mesh.force(CLOCK, particles.replace(position=x))

        x, h = particles.position, 1e-5
        found, forward = jax.jvp(force, (x,), (along,))
        backward = jax.vjp(force, x)[1](along)[0]
        beside = jax.lax.map(lambda s: force(x + s * along), jnp.array([h, -h]))
        return found, jax.grad(energy)(x), forward, backward, (beside[0] - beside[1]) / (2 * h)

    found, slope, forward, backward, difference = both(particles)
    np.testing.assert_allclose(found, -slope, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(forward, difference, rtol=1e-6, atol=1e-8)
    # The force is a gradient: its derivatives are symmetric.
    np.testing.assert_allclose(backward, forward, rtol=1e-10, atol=1e-12)


class TestBattery:
    @pytest.mark.parametrize("d", [1, 2])
    def test_energy_conserving(self, d):
        grid, particles = grid_and_particles(d)
        mesh = ParticleMesh(grid, Electrostatics(1.3), PCS(), conserves="energy")
        check_force(mesh, particles)

    @pytest.mark.compiled_quickly
    @pytest.mark.slow
    def test_energy_conserving_in_three_dimensions(self):
        grid, particles = grid_and_particles(3)
        check_force(
            ParticleMesh(grid, Gravity(0.7), PCS(), conserves="energy", interlaced=True), particles
        )

    def test_momentum_conserving(self):
        grid, particles = grid_and_particles(1)
        mesh = ParticleMesh(grid, Electrostatics(1.3), TSC(), scheme=Central(2), interlaced=True)
        check_force(MeshWithoutEnergy(mesh), particles)

    def test_two_species(self):
        grid, particles = grid_and_particles(1, 5)
        state = {"electrons": particles, "ions": grid_and_particles(1, 4, 1)[1], "other": particles}
        mesh = ParticleMesh(
            grid, Electrostatics(1.3), TSC(), component=("electrons", "ions"), deconvolved=True
        )
        check_tendency(EquationsOfMotion(mesh), state, drives=["electrons", "ions"])


@pytest.mark.parametrize("scheme", [Spectral(), Central(2)])
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_total_force_and_self_force_vanish(d, interlaced, scheme):
    grid, particles = grid_and_particles(d)
    mesh = ParticleMesh(grid, kernel=CIC(), interlaced=interlaced, scheme=scheme)
    compute_force = jax.jit(lambda p: mesh.force(CLOCK, p))
    force = np.asarray(compute_force(particles))
    assert np.max(np.abs(np.sum(force, axis=0))) < 1e-13 * np.sum(np.abs(force))
    alone = particles.replace(charge=particles.charge.at[1:].set(0))
    assert np.max(np.abs(compute_force(alone))) < 1e-13  # no force on itself


def test_energy_conserving_mesh_acts_on_a_single_particle():
    """Else the test above could not fail."""
    grid, particles = grid_and_particles(1)
    alone = particles.replace(charge=particles.charge.at[1:].set(0))
    mesh = ParticleMesh(grid, kernel=TSC(), conserves="energy")
    assert float(jnp.max(jnp.abs(mesh.force(CLOCK, alone)))) > 1e-4


def test_energy_conserving_conserves_energy():
    grid, particles = grid_and_particles(1)
    energy = []
    for conserves in ("energy", "momentum"):
        mesh = ParticleMesh(grid, kernel=PCS(), conserves=conserves)
        sim = Simulation(VelocityVerlet(mesh), 1e-3, Every(100, energy=TotalEnergy()))
        frames = simulate(sim, particles, 2000).frames
        energy.append(float(jnp.ptp(frames["energy"])))
    assert energy[0] < 1e-5 < 1e-3 < energy[1]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_virial_is_the_derivative_by_strain(d):
    grid, particles = grid_and_particles(d)
    mesh = ParticleMesh(grid, kernel=TSC(), scheme=Central(2), deconvolved=True)

    def stretched(strain):
        lengths = grid.space.lengths * (1 + strain)
        box = grid.space.__class__(lengths)
        moved = particles.replace(position=particles.position * (1 + strain)[None], space=box)
        other = ParticleMesh(
            Grid(box, grid.shape), kernel=TSC(), scheme=Central(2), deconvolved=True
        )
        return other.energy(CLOCK, moved)

    expected = -jax.grad(stretched)(jnp.zeros(d))
    virial = mesh.virial(CLOCK, particles)
    np.testing.assert_allclose(jnp.diagonal(virial), expected, rtol=1e-10)
    np.testing.assert_allclose(virial, virial.T, rtol=1e-12, atol=1e-14)


def test_field_of_a_cosine_charge_density():
    """φ = ρ/(εk²) for displaced sheets: the field of a cosine is a sine."""
    n, amplitude, k = 4000, 1e-4, 2 * np.pi / 2.0
    rest = (np.arange(n) + 0.5) * 2.0 / n
    x = rest + amplitude * np.sin(k * rest)
    box = Box([2.0])
    particles = Particles(x[:, None], space=box, charge=2.0 / n)
    mesh = ParticleMesh(Grid(box, (64,)), Electrostatics(0.5), TSC())
    # Poisson: ε dE/dx = ρ − 1, and ρ − 1 = −d(displacement)/dx, so E = −displacement/ε.
    at = jnp.linspace(0.1, 1.9, 7)[:, None]
    masses = Particles(x[:, None], space=box, mass=2.0 / n)
    heavy = ParticleMesh(Grid(box, (64,)), Gravity(0.3), TSC())
    sharp = ParticleMesh(Grid(box, (64,)), Electrostatics(0.5), TSC(), deconvolved=True)
    found, repulsion, attraction, sharp_force = jax.jit(
        lambda charged, masses: (
            interpolate(mesh.field(charged), at, TSC())[:, 0],
            mesh.force(CLOCK, charged),
            heavy.force(CLOCK, masses),
            sharp.force(CLOCK, charged),
        )
    )(particles, masses)
    # The shape of the particles smooths a wave at both ends: sinc³ each.
    smooth = np.sinc(k * 2 / 64 / 2 / np.pi) ** 6
    np.testing.assert_allclose(
        found, -amplitude / 0.5 * smooth * np.sin(k * at[:, 0]), rtol=1e-3, atol=1e-12
    )
    force = repulsion[:, 0] / particles.charge
    np.testing.assert_allclose(
        force, -amplitude / 0.5 * smooth * np.sin(k * x), atol=1e-3 * amplitude / 0.5
    )
    # Masses attract with 4πG where charges repel with 1/ε.
    np.testing.assert_allclose(attraction, -4 * np.pi * 0.3 * 0.5 * repulsion, rtol=1e-9)
    force = sharp_force[:, 0] / particles.charge
    np.testing.assert_allclose(force, -amplitude / 0.5 * np.sin(k * x), atol=1e-3 * amplitude / 0.5)


def test_far_force_is_the_inverse_square_law():
    """Two masses in a large cube: the pull of the nearest image, as far as others do not matter."""
    box = Box.cube(1.0)
    x = jnp.array([[0.4, 0.5, 0.5], [0.6, 0.51, 0.5]])
    particles = Particles(x, mass=jnp.array([1.0, 2.0]), space=box)
    mesh = ParticleMesh(Grid(box, (32, 32, 32)), Gravity(1.0), PCS())
    force = mesh.force(CLOCK, particles)
    r = x[1] - x[0]
    direct = 2.0 * r / jnp.sum(r**2) ** 1.5
    background = (
        -4 * np.pi / 3 * 2.0 * r
    )  # of the second mass's neutralizing sphere, to lowest order
    np.testing.assert_allclose(force[0], direct + background, rtol=2e-2, atol=0.2)
    np.testing.assert_allclose(force[0], -force[1], rtol=1e-10, atol=1e-12)


def test_several_components_on_one_mesh():
    """The same as all particles in one."""
    grid, particles = grid_and_particles(2, 9)
    part = lambda s: jax.tree.map(lambda x: x[s], particles.replace(space=None)).replace(
        space=grid.space
    )
    state = {"a": part(slice(4)), "b": part(slice(4, None))}
    mesh = ParticleMesh(grid, kernel=TSC())
    both = ParticleMesh(grid, kernel=TSC(), component=["a", "b"])
    force = both.force(CLOCK, state)
    whole = mesh.force(CLOCK, particles)
    np.testing.assert_allclose(
        jnp.concatenate([force["a"], force["b"]]), whole, rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(both.energy(CLOCK, state), mesh.energy(CLOCK, particles), rtol=1e-12)
    sim = lambda force: Simulation(VelocityVerlet(force), 0.01, Every(1, energy=TotalEnergy()))
    one, two = simulate(sim(mesh), particles, 5), simulate(sim(both), state, 5)
    np.testing.assert_allclose(two.frames["energy"], one.frames["energy"], rtol=1e-12)
    total = sum(kinetic_energy(p) for p in two.state.values())
    np.testing.assert_allclose(total, kinetic_energy(one.state), rtol=1e-12)


def test_exact_deposits_do_not_depend_on_order():
    grid, particles = grid_and_particles(2, 501)
    order = np.random.default_rng(0).permutation(501)
    other = jax.tree.map(lambda x: x[order], particles.replace(space=None)).replace(
        space=grid.space
    )
    potential = jax.jit(lambda p: ParticleMesh(grid, exact=True).potential(p).data)
    assert np.array_equal(potential(particles), potential(other))


def test_a_user_defined_mesh_interaction(dtype):
    class Screened(AbstractMeshInteraction):
        """Charges in a medium that screens them over a length 1/2."""

        def charge(self, particles):
            return particles.charge

        def green_function(self, k2):
            return 1 / (k2 + 4)

    grid, particles = grid_and_particles(1, dtype=dtype)
    force = ParticleMesh(grid, Screened(), Nearest()).force(CLOCK, particles)
    assert force.dtype == dtype
    bare = ParticleMesh(grid, cast_floats(Electrostatics(), dtype), Nearest()).force(
        CLOCK, particles
    )
    assert jnp.max(jnp.abs(force)) < jnp.max(jnp.abs(bare))


def test_bad_input():
    grid, particles = grid_and_particles(2)
    with pytest.raises(ParameterError, match="walls along x"):
        ParticleMesh(Grid(Box([1.0], False), (8,)))
    with pytest.raises(ParameterError, match="conserves"):
        ParticleMesh(grid, conserves="everything")
    with pytest.raises(ParameterError, match="no charge"):
        ParticleMesh(grid).force(CLOCK, particles.replace(charge=None))
    with pytest.raises(ShapeError, match="2 dimensions on a mesh of 1"):
        ParticleMesh(grid_and_particles(1)[0]).init(particles)
    with pytest.raises(ParameterError, match="space=Box"):
        ParticleMesh(grid).init(Particles(particles.position, charge=1.0))
    with pytest.raises(ParameterError, match="use one for both"):
        ParticleMesh(Grid([1.0, 1.0], (4, 4))).init(particles)


class TestWhatATraceHides:
    """Faults that only show inside of `jit` were numbers."""

    box = Box([1.0, 1.3])
    mesh = Grid(box, (6, 7))

    def particles(self, space, dtype=jnp.float64):
        x = jnp.asarray([[0.1, 0.2], [0.6, 0.9]], dtype)
        return Particles(x, space=space, charge=jnp.asarray([1.0, 2.0], dtype))

    def test_another_box_than_the_mesh_gives_no_number(self):
        other = self.particles(Box([1.5, 1.95]))
        force = eqx.filter_jit(lambda p: ParticleMesh(self.mesh).force(CLOCK, p))
        assert jnp.all(jnp.isnan(force(other)))
        assert jnp.all(jnp.isfinite(force(self.particles(self.box))))

    def test_drag_in_another_box_is_refused(self):
        flow = Field(jnp.ones((2, 6, 7)), self.mesh, vector=True)
        state = {"flow": flow, "tracers": self.particles(Box([1.5, 1.95]))}
        for term in (Drag(1.0, "tracers", "flow"), PassiveTracers()):
            with pytest.raises(ParameterError, match="use one for both"):
                simulate(Simulation(RK4(term), dt=0.1), state, 1)
        mesh = Simulation(VelocityVerlet(ParticleMesh(self.mesh)), dt=0.1)
        with pytest.raises(ParameterError, match="use one for both"):
            simulate(mesh, state["tracers"], 1)
        with pytest.raises(ParameterError, match="use one for both"):
            interpolate(flow, self.particles(Box([1.5, 1.95])))

    @pytest.mark.parametrize("kernel", [Nearest(), CIC()])
    @pytest.mark.parametrize("exact", [False, True])
    def test_a_position_that_is_no_number_is_not_deposited(self, kernel, exact):
        lost = jnp.asarray([[0.1, 0.2], [jnp.nan, 0.5]])
        assert jnp.isnan(deposit(1.0, lost, self.mesh, kernel, exact=exact).integral())

    @pytest.mark.parametrize("interaction", [Electrostatics, Gravity])
    def test_the_virial_in_si_units_and_single_precision(self, interaction):
        # Squares of ε k² or k² leave float32; neither they nor the densities do.
        length, strength, mass = {
            Electrostatics: (1e-4, 1e20, 1.0), Gravity: (1e11, 1e-11, 1e15)
        }[interaction]  # fmt: skip

        def virial(dtype):
            box = Box(jnp.asarray([1.0, 1.3], dtype) * length)
            x = jnp.asarray([[0.1, 0.2], [0.6, 0.9]], dtype) * length
            one = jnp.ones(2, dtype)
            state = Particles(x, space=box, mass=mass * one, charge=one)
            force = ParticleMesh(Grid(box, (6, 7)), interaction(jnp.asarray(strength, dtype)))
            return np.asarray(eqx.filter_jit(force.virial)(CLOCK, state), float)

        exact = virial(jnp.float64)
        size = np.abs(exact).max()
        np.testing.assert_allclose(virial(jnp.float32), exact, rtol=1e-4, atol=1e-4 * size)
