"""Quantities of one snapshot, against formulas in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ComponentError, ObserverError, ParameterError, ShapeError
from physkit.geometry import Box, Free, Grid, Triclinic
from physkit.observe import (
    AngularMomentum,
    CenterOfMass,
    DipoleMoment,
    Dissipation,
    Enstrophy,
    FlowEnergy,
    KineticEnergy,
    Momentum,
    Positions,
    PotentialEnergy,
    Pressure,
    StressTensor,
    Temperature,
    TotalEnergy,
    Velocities,
    dielectric_constant,
)
from physkit.particles import Particles

from .trajectories import Field, Springs, snapshot

BOX = Box([5.0, 6.0, 7.0])


def particles(n=6, d=3, space=None, seed=0, dtype=jnp.float64, **leaves):
    rng = np.random.default_rng(seed)
    position = jnp.asarray(rng.uniform(0, 2, (n, d)), dtype)
    velocity = jnp.asarray(rng.normal(size=(n, d)), dtype)
    mass = jnp.asarray(rng.uniform(1, 2, n), dtype)
    return Particles(position, velocity, mass, space or Free(), **leaves)


def kinetic_energy(p):
    return 0.5 * np.sum(np.asarray(p.mass)[:, None] * np.asarray(p.velocity) ** 2)


def spring_energy(p, k):
    x = np.asarray(p.position)
    return 0.5 * k * sum(np.sum((x[i] - x[j]) ** 2) for i in range(len(x)) for j in range(i))


def test_energies(dtype):
    p = particles(dtype=dtype)
    now = snapshot(p, Springs(2.0), Field())
    potential = spring_energy(p, 2.0) - np.sum(np.asarray(p.position)[:, 0])
    tolerance = 1e-5 if dtype == jnp.float32 else 1e-12
    for quantity, value in (
        (PotentialEnergy(), potential),
        (KineticEnergy(), kinetic_energy(p)),
        (TotalEnergy(), potential + kinetic_energy(p)),
    ):
        found = quantity(now)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, value, rtol=tolerance)


@pytest.mark.slow
def test_energies_of_components():
    a, b = particles(4, seed=1), particles(5, seed=2)
    now = snapshot({"a": a, "b": b}, Springs(2.0, component="a"), Springs(3.0, component="b"))
    assert TotalEnergy("a")(now) == pytest.approx(spring_energy(a, 2.0) + kinetic_energy(a))
    assert TotalEnergy("b")(now) == pytest.approx(spring_energy(b, 3.0) + kinetic_energy(b))
    total = spring_energy(a, 2.0) + spring_energy(b, 3.0) + kinetic_energy(a) + kinetic_energy(b)
    assert TotalEnergy()(now) == pytest.approx(total)


def test_energies_are_read_from_the_running_force():
    """The gradient reaches the parameter of the running integrator, not of a copy."""
    p = particles()
    derivative = jax.grad(lambda k: PotentialEnergy()(snapshot(p, Springs(k))))(2.0)
    assert derivative == pytest.approx(spring_energy(p, 1.0))


@pytest.mark.parametrize(
    ("forces", "frozen", "degrees"),
    [
        ((Springs(),), None, 3 * 6 - 3),
        ((Springs(), Field()), None, 3 * 6),
        ((Springs(),), [True, False, False, False, False, False], 3 * 5),
    ],
)
def test_temperature_counts_degrees_of_freedom(forces, frozen, degrees):
    p = particles(frozen=frozen)
    mobile_velocity = (
        p.velocity if frozen is None else jnp.where(jnp.array(frozen)[:, None], 0, p.velocity)
    )
    expected = 2 * kinetic_energy(p.replace(velocity=mobile_velocity)) / degrees
    assert Temperature()(snapshot(p, *forces)) == pytest.approx(expected)


def test_component_temperatures_share_degrees_lost_to_momentum_conservation():
    a, b = particles(4, seed=1), particles(8, seed=2)
    now = snapshot({"a": a, "b": b}, Springs(component="a"), Springs(component="b"))
    assert Temperature()(now) == pytest.approx(
        2 * (kinetic_energy(a) + kinetic_energy(b)) / (3 * 12 - 3)
    )
    assert Temperature("a")(now) == pytest.approx(2 * kinetic_energy(a) / (12 - 1))
    assert Temperature("b")(now) == pytest.approx(2 * kinetic_energy(b) / (24 - 2))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_pressure_and_stress(d):
    p = particles(d=d, space=Box([5.0, 6.0, 7.0][:d]))
    now = snapshot(p, Springs(2.0), Field())
    r = np.asarray(p.position)[:, None] - np.asarray(p.position)[None]
    virial = -2.0 * 0.5 * np.einsum("ija,ijb->ab", r, r)
    m, v = np.asarray(p.mass), np.asarray(p.velocity)
    expected = -(np.einsum("i,ia,ib->ab", m, v, v) + virial) / float(p.space.volume)
    np.testing.assert_allclose(StressTensor()(now), expected, rtol=1e-12)
    assert Pressure()(now) == pytest.approx(-np.trace(expected) / d)


def test_pressure_is_the_derivative_of_the_energy_by_volume():
    """P = −dE/dV at constant scaled coordinates and momenta · scale."""
    p = particles(space=BOX)

    def energy(scale):
        space = Box(BOX.lengths * scale)
        q = p.replace(position=p.position * scale, velocity=p.velocity / scale, space=space)
        return TotalEnergy()(snapshot(q, Springs(2.0)))

    derivative = jax.grad(energy)(1.0) / (3 * BOX.volume)
    assert Pressure()(snapshot(p, Springs(2.0))) == pytest.approx(-derivative)


def test_pressure_needs_a_volume():
    for space in (Free(), Box([5.0, 5.0, 5.0], (True, True, False))):
        with pytest.raises(ObserverError, match="volume"):
            Pressure()(snapshot(particles(space=space), Springs()))


def test_dielectric_constant_of_dipoles_that_turn_freely():
    """⟨M²⟩ = n μ²: ε − 1 = 4π n μ²/(3 V k_B T)."""
    turns = np.random.default_rng(5).normal(size=(4000, 50, 3))
    moments = 0.4 * np.sum(turns / np.linalg.norm(turns, axis=-1, keepdims=True), axis=1)
    found = dielectric_constant(moments, 7.0, 1.3, 2.0)
    exact = 1 + 4 * np.pi * 2.0 * 50 * 0.4**2 / (3 * 7.0 * 1.3)
    assert 0 < found.error < 0.05 * exact
    assert abs(found.value - exact) < 4 * found.error
    with pytest.raises(ParameterError, match="16 frames"):
        dielectric_constant(moments[:9], 7.0, 1.3)
    with pytest.raises(ShapeError, match=r"\[m d\]"):
        dielectric_constant(moments[:, 0], 7.0, 1.3)


def test_momenta():
    image = np.random.default_rng(3).integers(-2, 3, (6, 3))
    cell = Triclinic([[5.0, 0, 0], [1.0, 6.0, 0], [0.5, 0.2, 7.0]])
    p = particles(space=cell, image=image)
    now = snapshot(p, Springs())
    m, v = np.asarray(p.mass)[:, None], np.asarray(p.velocity)
    x = np.asarray(p.position) + image @ np.asarray(cell.vectors)
    center = np.sum(m * x, 0) / np.sum(m)
    np.testing.assert_allclose(Momentum()(now), np.sum(m * v, 0), rtol=1e-12)
    np.testing.assert_allclose(CenterOfMass()(now), center, rtol=1e-12)
    np.testing.assert_allclose(AngularMomentum()(now), np.cross(x, m * v).sum(0), rtol=1e-12)
    q = np.random.default_rng(4).normal(size=6)
    charged = snapshot(p.replace(charge=jnp.asarray(q)), Springs())
    np.testing.assert_allclose(DipoleMoment()(charged), q @ x, rtol=1e-12)
    with pytest.raises(ParameterError, match="of charges"):
        DipoleMoment()(now)
    spin = np.cross(x - center, m * v).sum(0)
    np.testing.assert_allclose(AngularMomentum(about="center")(now), spin, rtol=1e-11)


def test_angular_momentum_in_other_dimensions():
    p = particles(d=2)
    x, v, m = (np.asarray(y) for y in (p.position, p.velocity, p.mass))
    expected = np.sum(m * (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]))
    assert AngularMomentum()(snapshot(p, Springs())) == pytest.approx(expected)
    with pytest.raises(ShapeError, match="one dimension"):
        AngularMomentum()(snapshot(particles(d=1), Springs()))
    with pytest.raises(ObserverError, match="about"):
        AngularMomentum(about="middle")


def test_momenta_sum_over_components():
    a, b = particles(4, seed=1), particles(5, seed=2)
    now = snapshot({"a": a, "b": b}, Springs(component="a"))
    both = Momentum("a")(now) + Momentum("b")(now)
    np.testing.assert_allclose(Momentum()(now), both, rtol=1e-12)
    ma, mb = jnp.sum(a.mass), jnp.sum(b.mass)
    center = (ma * CenterOfMass("a")(now) + mb * CenterOfMass("b")(now)) / (ma + mb)
    np.testing.assert_allclose(CenterOfMass()(now), center, rtol=1e-12)


def test_positions_and_velocities_are_sorted_by_id():
    ids = np.array([3, 0, 5, 1, 4, 2])
    p = particles(space=BOX, id=ids, image=np.ones((6, 3), int))
    now = snapshot(p, Springs())
    order = np.argsort(ids)
    np.testing.assert_array_equal(Positions()(now), p.position[order])
    np.testing.assert_array_equal(Positions(unwrapped=True)(now), p.unwrapped[order])
    np.testing.assert_array_equal(Velocities()(now), p.velocity[order])


def test_unknown_and_ambiguous_components_are_refused():
    a, b = particles(4, seed=1), particles(5, seed=2)
    now = snapshot({"a": a, "b": b}, Springs(component="a"))
    with pytest.raises(ComponentError, match="available: \\['a', 'b'\\]"):
        KineticEnergy("c")(now)
    with pytest.raises(ComponentError, match="several"):
        Positions()(now)


def test_quantities_of_a_balanced_flow_are_those_of_its_own_velocity():
    """Buoyancy at a surface is no vorticity: of b = cos 4x the velocity is sin 4x, its vorticity 4 cos 4x."""
    grid = Grid([2 * np.pi, 2 * np.pi], (16, 16))
    b = pk.Field.from_function(grid, lambda x, y: jnp.cos(4 * x) + 0 * y)
    record = pk.Every(1, e=FlowEnergy(), z=Enstrophy(), d=Dissipation())

    def first_frame(law, state):
        return pk.evaluate(pk.Simulation(pk.RK4(law), dt=0.01, observers=record), state)

    found = first_frame(pk.equations.SurfaceQuasiGeostrophic(0.1), b)
    np.testing.assert_allclose([found[k] for k in "ezd"], [0.25, 4.0, 0.8], rtol=1e-12)
    # One layer of vorticity cos 4x moves with sin 4x / 4.
    found = first_frame(pk.equations.QuasiGeostrophic(0.1), pk.Field(b.data[None], grid))
    np.testing.assert_allclose([found[k] for k in "ezd"], [1 / 64, 0.25, 0.05], rtol=1e-12)
    layers = pk.equations.QuasiGeostrophic(depth=[1.0, 1.0], coupling=[1.0])
    with pytest.raises(ObserverError, match="QuasiGeostrophic moves layers"):
        first_frame(layers, pk.Field(jnp.stack([b.data, b.data]), grid))
