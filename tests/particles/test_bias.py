"""Collective variables and what biases them; soft cores and scaled charges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit import sampling
from physkit.core import Clock, NoVirialError, ObserverError, ParameterError, ShapeError, StepCount

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
BOX = pk.Box([4.0, 4.0, 4.0])
X = np.array([[3.9, 0.2, 1.0], [0.3, 0.1, 1.1], [0.5, 3.8, 0.4], [1.2, 3.5, 0.9], [1.5, 0.3, 1.2]])
MASS = np.array([1.0, 2.0, 1.5, 0.7, 1.1])
ATOMS = pk.Particles(jnp.asarray(X), mass=MASS, space=BOX)


def nearest(v):
    return v - 4.0 * np.round(v / 4.0)


def dihedral(a, b, c):
    n1, n2 = np.cross(a, b), np.cross(b, c)
    return np.arctan2(np.linalg.norm(b) * a @ n2, n1 @ n2)


@pytest.fixture(scope="module")
def values():
    variables = (
        sampling.Distance(0, 1),
        sampling.Distance([0, 1], [2, 3, 4]),
        sampling.Angle(0, 1, 2),
        sampling.Torsion(0, 1, 2, 3),
        sampling.RadiusOfGyration([0, 1, 2]),
        sampling.CollectiveVariable(lambda p, a: a * p.position[0, 0], jnp.asarray(2.0)),
    )
    return [float(x) for x in jax.jit(lambda p: [v(p) for v in variables])(ATOMS)]


def test_variables_are_what_they_say(values):
    """Against NumPy, across the sides of a box."""
    center = lambda g: X[g[0]] + MASS[g] @ nearest(X[g] - X[g[0]]) / MASS[g].sum()
    a, b, c = nearest(X[0] - X[1]), nearest(X[1] - X[2]), nearest(X[2] - X[3])
    group = nearest(X[:3] - X[0])
    group = group - MASS[:3] @ group / MASS[:3].sum()
    expected = [
        np.linalg.norm(a),
        np.linalg.norm(nearest(center([0, 1]) - center([2, 3, 4]))),
        np.arccos(-a @ b / np.linalg.norm(a) / np.linalg.norm(b)),
        dihedral(-a, -b, -c),
        np.sqrt(MASS[:3] @ (group**2).sum(1) / MASS[:3].sum()),
        2 * X[0, 0],
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_centers_of_groups_are_seen_by_their_own_nearest_image():
    """Their first members may be nearer the other way around."""
    x = jnp.asarray([[0.0, 0.5, 0.5], [0.3, 0.5, 0.5], [0.6, 0.5, 0.5], [0.3, 0.5, 0.5]])
    atoms = pk.Particles(x, space=pk.Box([1.0, 1.0, 1.0]))
    for i, j in (([0, 1], [2, 3]), ([1, 0], [3, 2])):
        assert sampling.Distance(i, j)(atoms) == pytest.approx(0.3)


def test_a_spring_takes_the_short_way_around():
    torsion = sampling.Torsion(0, 1, 2, 3)
    bias = pk.HarmonicBias(torsion, 3.0, 0.0)
    assert bias.energy_of((jnp.asarray(2 * np.pi + 0.1),)) == pytest.approx(0.015)


def first(particles):
    return particles.position[0, 0]


def wave(x):
    return np.sin(2 * x)


def test_a_grid_bias_interpolates():
    """Third order in the distance of nodes, the slope continuous, none beyond the end."""
    x = np.linspace(-0.99, 0.99, 37)

    def error(nodes):
        variable = sampling.CollectiveVariable(first)
        bias = sampling.GridBias(
            variable, -1.5, 1.5, nodes=nodes, values=wave(np.linspace(-1.5, 1.5, nodes))
        )
        energy = jax.vmap(lambda x: bias.energy_of((x,)))
        return np.abs(energy(jnp.asarray(x)) - wave(x)).max(), bias

    coarse, fine = error(16)[0], error(31)[0]
    assert 6 < coarse / fine < 12
    bias = error(16)[1]
    slope = jax.vmap(jax.grad(lambda x: bias.energy_of((x,))))
    at_nodes = np.asarray(slope(jnp.asarray([0.1 - 1e-9, 0.1 + 1e-9, 1.6, -9.0])))
    assert at_nodes[0] == pytest.approx(at_nodes[1], abs=1e-6)
    np.testing.assert_array_equal(at_nodes[2:], 0)


def test_a_grid_bias_is_as_good_at_its_ends():
    """A parabola is met in the first and the last cell, too, with its slope."""
    x = np.linspace(-1.5, 1.5, 16)
    bias = sampling.GridBias(
        sampling.CollectiveVariable(first), -1.5, 1.5, nodes=16, values=2 * x - x**2
    )
    near = jnp.asarray([-1.49, -1.4, -1.31, 0.05, 1.31, 1.4, 1.49])
    energy, slope = jax.vmap(jax.value_and_grad(lambda x: bias.energy_of((x,))))(near)
    np.testing.assert_allclose(energy, 2 * near - near**2, atol=1e-12)
    np.testing.assert_allclose(slope, 2 - 2 * near, atol=1e-12)


def test_virials_of_biases():
    """Of differences by strain; of places only if that is said."""
    bias = pk.HarmonicBias(sampling.Distance(0, 1), 3.0, 0.1)
    virial = np.trace(np.asarray(jax.jit(lambda p: bias.virial(CLOCK, p))(ATOMS)))
    r = np.linalg.norm(nearest(X[0] - X[1]))
    assert virial == pytest.approx(-3.0 * (r - 0.1) * r)
    with pytest.raises(NoVirialError, match="outside"):
        pk.HarmonicBias(sampling.CollectiveVariable(first), 1.0).virial(CLOCK, ATOMS)
    outside = sampling.CollectiveVariable(first, outside=True)
    assert not np.any(pk.HarmonicBias(outside, 1.0).virial(CLOCK, ATOMS))


def test_biases_are_recorded_and_refuse_what_is_wrong():
    two = pk.HarmonicBias(sampling.Distance(0, 1), 3.0, 0.1) + pk.HarmonicBias(
        sampling.Distance(1, 2), 3.0, 0.1
    )
    watch = pk.Every(
        1, xi=sampling.CollectiveVariables(), U=sampling.BiasEnergy(), all=pk.PotentialEnergy()
    )
    run = pk.simulate(pk.Simulation(pk.VelocityVerlet(two), dt=1e-3, observers=watch), ATOMS, 1)
    lengths = [np.linalg.norm(nearest(X[0] - X[1])), np.linalg.norm(nearest(X[1] - X[2]))]
    np.testing.assert_allclose(np.asarray(run.frames["xi"])[0], lengths)
    np.testing.assert_allclose(run.frames["U"], run.frames["all"])
    with pytest.raises(ObserverError, match="bias"):
        pk.simulate(
            pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.0)), dt=0.1, observers=watch),
            ATOMS,
            1,
        )
    with pytest.raises(ParameterError, match="places"):
        sampling.Distance(0, 1.5)
    with pytest.raises(ParameterError, match="particle 7"):
        sampling.Distance(0, 7)(ATOMS)
    with pytest.raises(ParameterError, match="upper"):
        sampling.GridBias(sampling.Distance(0, 1), 0.0)
    with pytest.raises(ParameterError, match="period"):
        sampling.GridBias(sampling.Torsion(0, 1, 2, 3), 0.0, 1.0)
    with pytest.raises(ShapeError, match="one number"):
        sampling.CollectiveVariable(lambda p: p.position[0])(ATOMS)


def test_a_soft_core_goes_from_nothing_to_lennard_jones():
    """λ = 1 is Lennard-Jones, λ = 0 nothing; between them it is finite at r = 0, 4ελ (1/D² − 1/D)."""
    r = jnp.linspace(0.0, 2.5, 11)
    whole, half, none = (sampling.SoftCoreLennardJones(1.3, 0.9, x) for x in (1.0, 0.4, 0.0))
    np.testing.assert_allclose(
        whole.energy(r[3:]), pk.LennardJones(1.3, 0.9).energy(r[3:]), rtol=1e-10
    )
    np.testing.assert_array_equal(none.energy(r), 0)
    D = 0.5 * 0.6 + (np.asarray(r) / 0.9) ** 6
    np.testing.assert_allclose(half.energy(r), 4 * 1.3 * 0.4 * (D**-2 - 1 / D), rtol=1e-10)
    assert np.isfinite(half.force_over_distance(r**2)).all()
    # Only pairs of a solute and the solvent are alchemical.
    table = sampling.SoftCoreLennardJones(1.3, 0.9, 0.0, alchemical=[[0, 1], [1, 0]])
    i, j = jnp.asarray([0, 0, 1]), jnp.asarray([0, 1, 1])
    energy = np.asarray(table.between(i, j).energy(jnp.full(3, 1.2)))
    expected = float(pk.LennardJones(1.3, 0.9).energy(jnp.asarray(1.2)))
    np.testing.assert_allclose(energy, [expected, 0, expected], rtol=1e-10)


def coupling(model):
    return pk.find(model, sampling.ScaledCharges).coupling


def test_scaled_charges_are_charges_scaled():
    """Force, energy and dU/dλ around a force of charges equal those of particles with other charges."""
    charge = jnp.asarray([1.0, -1.0, 0.5, -0.2, -0.3])
    inner = pk.Pairwise(pk.Coulomb())
    atoms = pk.Particles(jnp.asarray(X), charge=charge)
    scaled = sampling.ScaledCharges(inner, [0, 1], 0.3)
    watch = pk.Every(
        1,
        U=pk.PotentialEnergy(),
        slope=sampling.EnergyDerivative(coupling),
        u=sampling.EnergiesAt(coupling, [0.3, 0.3 + 1e-5, 0.3 - 1e-5]),
    )
    run = pk.simulate(pk.Simulation(pk.VelocityVerlet(scaled), dt=1e-9, observers=watch), atoms, 1)
    less = atoms.replace(charge=charge * jnp.asarray([0.3, 0.3, 1, 1, 1]))
    plain = pk.simulate(
        pk.Simulation(
            pk.VelocityVerlet(inner), dt=1e-9, observers=pk.Every(1, U=pk.PotentialEnergy())
        ),
        less,
        1,
    )
    u = np.asarray(run.frames["u"])[0]
    assert float(run.frames["U"][0]) == pytest.approx(float(plain.frames["U"][0]))
    assert u[0] == pytest.approx(float(plain.frames["U"][0]))
    assert float(run.frames["slope"][0]) == pytest.approx((u[1] - u[2]) / 2e-5, rel=1e-6)
    np.testing.assert_allclose(run.state.velocity, plain.state.velocity)
    with pytest.raises(ParameterError, match="places"):
        sampling.ScaledCharges(inner, [9])(CLOCK, atoms, None)
