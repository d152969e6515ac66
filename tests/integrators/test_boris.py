"""Boris's pusher: speed, drift, phase, order, and fields of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, NoEnergyError, ParameterError, ShapeError, StepCount, cast_floats
from physkit.coupling import ParticleMesh
from physkit.fields import Field
from physkit.geometry import Grid
from physkit.integrators import Boris, RelativisticMotion
from physkit.observe import Every, Positions, TotalEnergy, Velocities
from physkit.particles import Particles
from physkit.particles.forces import HarmonicTrap, UniformField
from physkit.simulate import Simulation, simulate
from physkit.testing import check_integrator

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_speed_is_kept_to_rounding[2]",
    "test_phase_of_gyration",
    "test_derivatives_by_the_mass_in_si_units",
    "test_total_energy_counts_the_electric_field_or_refuses",
)


@pytest.mark.parametrize("integrator", [Boris, RelativisticMotion])
def test_derivatives_by_the_mass_in_si_units(integrator):
    """Squares of an electron's mass are 0 in single precision."""
    options = {} if integrator is Boris else {"speed_of_light": 3e8}
    moved = cast_floats(integrator(jnp.ones(1), jnp.array([1e9, 0.0]), **options), jnp.float32)
    at_rest = np.zeros((1, 2), np.float32)

    def energy(mass, charge):
        one = Particles(at_rest, at_rest, mass, charge=charge)
        clock = Clock.at(StepCount.of(0), jnp.float32(0), jnp.float32(1e-15))
        after, _ = moved.step(None, clock, one, moved.init(None, clock, one))
        return jnp.sum((1e-5 * after.velocity) ** 2)

    mass, charge = (jnp.array([x], jnp.float32) for x in (9.1e-31, -1.6e-19))
    value, slopes = jax.value_and_grad(energy, (0, 1))(mass, charge)
    # A step from rest gives (q/m) E dt, but for the little that it turns.
    np.testing.assert_allclose(slopes[0] * mass, -2 * value[None], rtol=1e-3)
    np.testing.assert_allclose(slopes[1] * charge, 2 * value[None], rtol=1e-3)


def charges(d=3, n=4, space=None, charge=None):
    rng = np.random.default_rng(d)
    charge = 0.5 + rng.random(n) if charge is None else charge
    return Particles(
        rng.random((n, d)), rng.normal(size=(n, d)), 1 + rng.random(n), space, charge=charge
    )


def record_orbit(integrator, start, dt, steps):
    record = Every(1, x=Positions(), v=Velocities())
    return simulate(Simulation(integrator, dt, record), start, steps)


def test_battery():
    field_of_time_and_place = lambda t, x, y: 1.0 + 0.3 * jnp.sin(x) * jnp.cos(y) + 0.1 * t
    integrator = Boris(field_of_time_and_place, [0.3, -0.2], HarmonicTrap(0.4))
    check_integrator(integrator, charges(2), 0.1, order=2)


@pytest.mark.slow
def test_battery_in_space():
    check_integrator(
        Boris([0.3, -0.5, 1.1], [0.1, 0.2, 0.3]), charges(3), 0.1, order=2, symmetric=True
    )


@pytest.mark.parametrize("d", [2, 3])
def test_speed_is_kept_to_rounding(d):
    uneven_field = lambda t, *x: 3.0 + x[0] if d == 2 else (1.0 + x[0], 2.0 * x[1], 3.0)
    v = record_orbit(Boris(uneven_field), charges(d), 0.4, 2000).frames["v"]
    speed = np.linalg.norm(v, axis=-1)
    np.testing.assert_allclose(speed, np.broadcast_to(speed[0], speed.shape), rtol=2e-14)


def test_drift_across_e_and_b_is_exact():
    """A charge that starts with the drift velocity E×B/B² keeps it; others do on average over a turn."""
    b, e = np.array([0.2, -0.4, 1.3]), np.array([0.5, 0.1, 0.0])
    e = e - b * (e @ b) / (b @ b)
    drift = np.cross(e, b) / (b @ b)
    start = charges(3).replace(velocity=jnp.broadcast_to(jnp.asarray(drift), (4, 3)))
    v = record_orbit(Boris(b, e), start, 0.3, 500).frames["v"]
    np.testing.assert_allclose(v, np.broadcast_to(drift, v.shape), atol=1e-13)
    # A quarter of a turn a step: ω dt/2 = tan(π/4).
    one = Particles([[0.0, 0.0]], [[0.7, -0.3]], charge=1.0)
    x = record_orbit(Boris(1.0, [0.0, 0.2]), one, 2.0, 400).frames["x"]
    np.testing.assert_allclose((x[-1] - x[0])[0] / 800, [0.2, 0.0], atol=1e-10)


def test_phase_of_gyration():
    """2 atan(ω dt/2) a step, clockwise about B for positive charge."""
    one = Particles([[0.0, 0.0]], [[1.0, 0.0]], 2.0, charge=3.0)
    v = record_orbit(Boris(1.0), one, 0.1, 50).frames["v"][:, 0]
    angle = np.unwrap(np.arctan2(v[:, 1], v[:, 0]))
    np.testing.assert_allclose(np.diff(angle), -2 * np.arctan(1.5 * 0.1 / 2), rtol=1e-12)


def test_fields_of_every_kind_agree():
    grid = Grid([1.0, 1.0], (4, 4))
    start = charges(2, space=grid.space)
    bz, e = Field(1.3, grid), Field(0.2, grid, vector=True)
    states = [start, start, start, {"p": start, "B": bz, "E": e}]
    integrators = [
        Boris(1.3, [0.2, 0.2]),
        Boris(lambda t, x, y: 1.3 + 0 * x, lambda t, x, y: (0.2, 0.2)),
        Boris(bz, e),
        Boris("B", "E", component="p"),
    ]
    ends = []
    for integrator, state in zip(integrators, states, strict=True):
        end = simulate(Simulation(integrator, 0.1), state, 20).state
        ends.append(end["p"] if isinstance(end, dict) else end)
    for end in ends[1:]:
        np.testing.assert_allclose(end.velocity, ends[0].velocity, rtol=1e-12, atol=1e-13)


def test_gradient_with_the_particles_own_field():
    grid = Grid([1.0, 1.0], (8, 8))
    start = charges(2, 40, grid.space)
    final = lambda b: simulate(Simulation(Boris(b, force=ParticleMesh(grid)), 0.02), start, 5).state
    slope = jax.grad(lambda b: jnp.sum(final(b).velocity ** 2 * final(b).mass[:, None]))(2.0)
    assert np.isfinite(slope)
    assert slope != 0


def test_bad_input_is_an_error():
    with pytest.raises(ShapeError, match="one dimension"):
        record_orbit(Boris(1.0), charges(1), 0.1, 1)
    with pytest.raises(ParameterError, match="no charge"):
        record_orbit(Boris(1.0), charges(2).replace(charge=None), 0.1, 1)
    with pytest.raises(ShapeError, match="B in 3 dimensions has 3 components"):
        record_orbit(Boris(1.0), charges(3), 0.1, 1)
    with pytest.raises(ParameterError, match="acts on"):
        Boris(1.0, force=HarmonicTrap(1.0, component="ions"))


def test_total_energy_counts_the_electric_field_or_refuses():
    start = charges()
    energy = Every(5, energy=TotalEnergy())
    E = [0.3, 0.2, -0.1]
    unknown = Simulation(Boris([0.0, 0.0, 1.0], E), 0.02, energy)
    with pytest.raises(NoEnergyError, match="UniformField"):
        simulate(unknown, start, 10)
    known = Simulation(Boris([0.0, 0.0, 1.0], force=UniformField(E)), 0.02, energy)
    energies = simulate(known, start, 100).frames["energy"]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-4)
