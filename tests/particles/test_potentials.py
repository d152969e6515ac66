"""Pair potentials: closed-form values, derivatives, tables, precision, bad input."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import DeclarationError, ParameterError, ShapeError, cast_floats, param
from physkit.particles.forces import (
    WCA,
    AbstractPairPotential,
    Buckingham,
    Coulomb,
    LennardJones,
    Morse,
    NeuralPair,
    ReactionField,
    SoftSphere,
    Yukawa,
    geometric,
    lorentz_berthelot,
)
from physkit.testing import check_units

ALPHA = 13.0
POTENTIALS = {
    "lennard-jones": LennardJones(1.3, 0.9),
    "wca": WCA(1.3, 0.9),
    "morse": Morse(0.8, 4.0, 1.1),
    "buckingham": Buckingham(
        1.2 * 6 * np.exp(ALPHA) / (ALPHA - 6), 1 / ALPHA, 1.2 * ALPHA / (ALPHA - 6)
    ),
    "yukawa": Yukawa(2.0, 0.7),
    "soft sphere": SoftSphere(1.3, 0.9, 9.5),
    "coulomb": Coulomb(1.5),
    "screened coulomb": Coulomb(1.5, 0.8),
    "neural": NeuralPair(
        eqx.nn.MLP("scalar", "scalar", 8, 2, activation=jnp.tanh, key=jax.random.key(1))
    ),
}
DISTANCES = jnp.array([[0.7, 0.9, 1.0], [1.05, 1.7, 3.0]])


@pytest.fixture(params=POTENTIALS.values(), ids=POTENTIALS.keys())
def potential(request):
    return request.param


@pytest.mark.parametrize(
    ("name", "r", "value"),
    [
        ("lennard-jones", 0.9, 0.0),
        ("lennard-jones", 0.9 * 2 ** (1 / 6), -1.3),
        ("lennard-jones", 1.8, 4 * 1.3 * (2.0**-12 - 2.0**-6)),
        ("wca", 0.9, 1.3),
        ("wca", 0.9 * 2 ** (1 / 6) + 1e-9, 0.0),
        ("morse", 1.1, -0.8),
        ("morse", 1.1 - np.log(2) / 4, 0.0),
        ("buckingham", 1.0, -1.2),
        ("yukawa", 0.7, 2.0 / 0.7 / np.e),
        ("soft sphere", 1.8, 1.3 * 2**-9.5),
        ("coulomb", 3.0, 0.5),
        ("screened coulomb", 0.8, 1.5 / 0.8 / np.e),
    ],
)
def test_values(name, r, value):
    np.testing.assert_allclose(POTENTIALS[name].energy(jnp.asarray(r)), value, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "r"),
    [("lennard-jones", 0.9 * 2 ** (1 / 6)), ("morse", 1.1), ("buckingham", 1.0)],
)
def test_minimum_is_where_the_docstring_says(name, r):
    slope = jax.grad(POTENTIALS[name].energy)
    assert abs(slope(jnp.asarray(r))) < 1e-9
    assert slope(jnp.asarray(1.01 * r)) > 0 > slope(jnp.asarray(0.99 * r))


def test_shape_is_kept(potential):
    assert potential.energy(DISTANCES).shape == DISTANCES.shape
    assert potential.force_over_distance(DISTANCES**2).shape == DISTANCES.shape
    assert potential.energy(jnp.asarray(1.0)).shape == ()


def test_force_is_the_derivative_of_energy(potential):
    expected = AbstractPairPotential.force_over_distance(potential, DISTANCES**2)
    found = potential.force_over_distance(DISTANCES**2)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    slope = jax.vmap(jax.vmap(jax.grad(potential.energy)))(DISTANCES)
    np.testing.assert_allclose(found, -slope / DISTANCES, rtol=1e-12, atol=1e-14)


def test_gradient_by_every_parameter(potential):
    """Reverse mode against central differences, for energy and for force."""
    leaves, tree = jax.tree.flatten(potential)

    def energy_plus_force(values):
        p = tree.unflatten(values)
        return jnp.sum(p.energy(DISTANCES) + p.force_over_distance(DISTANCES**2) / 9)

    gradient = jax.jit(jax.grad(energy_plus_force))(leaves)
    compiled = jax.jit(energy_plus_force)
    for k, leaf in enumerate(leaves):
        if not bool(jnp.all(jnp.isfinite(leaf))):
            assert bool(jnp.all(gradient[k] == 0))  # an infinite screening length
            continue
        direction = jnp.cos(jnp.arange(leaf.size, dtype=float)).reshape(leaf.shape)
        h = 1e-6 * (1 + float(jnp.max(jnp.abs(leaf))))
        moved = [
            compiled([*leaves[:k], leaf + s * h * direction, *leaves[k + 1 :]]) for s in (1, -1)
        ]
        expected = (moved[0] - moved[1]) / (2 * h)
        found = jnp.sum(gradient[k] * direction)
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)


def test_single_precision(potential):
    single = cast_floats(potential, jnp.float32)
    r = DISTANCES.astype(jnp.float32)
    for found, expected in (
        (single.energy(r), potential.energy(r.astype(float))),
        (single.force_over_distance(r * r), potential.force_over_distance((r * r).astype(float))),
    ):
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, expected, rtol=5e-5, atol=2e-5)


@pytest.mark.parametrize("name", [n for n in POTENTIALS if n != "buckingham"])
def test_no_nan_at_small_distances(name, dtype):
    """Too close is infinitely repulsive at worst, never NaN."""
    potential = cast_floats(POTENTIALS[name], dtype)
    r = jnp.logspace(-8, 0, 50, dtype=dtype)
    assert not bool(jnp.any(jnp.isnan(potential.energy(r))))
    assert not bool(jnp.any(jnp.isnan(potential.force_over_distance(r * r))))


TABLES = {
    "lennard-jones": lambda t: LennardJones(t, 1.1),
    "wca": lambda t: WCA(t, 0.9 + 0.1 * t),
    "morse": lambda t: Morse(t, 4.0, 1.1),
    "buckingham": lambda t: Buckingham(1000 * t, 0.2 + 0.01 * t, t),
    "yukawa": lambda t: Yukawa(t, 0.7),
    "soft sphere": lambda t: SoftSphere(1.0, t, 9.5),
    "coulomb": lambda t: Coulomb(t),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_tables_equal_scalars_for_each_pair(make):
    table = jnp.array([[1.0, 0.7, 0.4], [0.7, 1.2, 0.9], [0.4, 0.9, 0.6]])
    i, j = jnp.array([[0, 1, 2], [2, 0, 1]]), jnp.array([[0, 2, 1], [0, 1, 1]])
    potential = make(table)
    assert potential.species == 3
    found = potential.between(i, j)
    energy, force = found.energy(DISTANCES), found.force_over_distance(DISTANCES**2)
    for k in np.ndindex(i.shape):
        single = make(table[i[k], j[k]])
        np.testing.assert_allclose(energy[k], single.energy(DISTANCES[k]), rtol=1e-13)
        expected = single.force_over_distance(DISTANCES[k] ** 2)
        np.testing.assert_allclose(force[k], expected, rtol=1e-13)


def test_tables_are_differentiable():
    i, j = jnp.array([0, 1, 1]), jnp.array([0, 0, 1])
    energy_plus_force = lambda t: jnp.sum(
        LennardJones(t, 1.0).between(i, j).energy(jnp.array([1.0, 1.2, 1.5]))
    )
    gradient = jax.jit(jax.grad(energy_plus_force))(jnp.array([[1.0, 0.5], [0.5, 2.0]]))
    lone = LennardJones().energy(jnp.array([1.0, 1.2, 1.5]))
    np.testing.assert_allclose(gradient, [[lone[0], 0], [lone[1], lone[2]]], rtol=1e-12)


def test_scalars_ignore_species():
    potential = LennardJones()
    assert potential.species is None
    assert potential.between(jnp.array([0]), jnp.array([1])) is potential
    network = POTENTIALS["neural"]
    assert network.between(jnp.array([0]), jnp.array([1])) is network


def test_batch_of_potentials():
    epsilons = jnp.array([0.5, 1.0, 2.0])
    batch = eqx.filter_vmap(LennardJones)(epsilons)
    found = jax.vmap(lambda p: p.energy(jnp.asarray(1.5)))(batch)
    np.testing.assert_allclose(found, epsilons * LennardJones().energy(jnp.asarray(1.5)))


def test_mixing_rules():
    mixed = lorentz_berthelot(sigma=[1.0, 2.0], epsilon=[1.0, 4.0])
    np.testing.assert_allclose(mixed["sigma"], [[1, 1.5], [1.5, 2]])
    np.testing.assert_allclose(mixed["epsilon"], [[1, 2], [2, 4]])
    np.testing.assert_allclose(
        geometric(sigma=[1.0, 4.0], epsilon=[1.0, 4.0])["sigma"], [[1, 2], [2, 4]]
    )
    assert LennardJones(**mixed).species == 2
    slope = jax.grad(lambda e: jnp.sum(lorentz_berthelot(sigma=jnp.ones(2), epsilon=e)["epsilon"]))
    assert bool(jnp.all(jnp.isfinite(slope(jnp.array([0.0, 1.0])))))


def test_a_user_defined_potential_needs_only_its_energy():
    class Gaussian(AbstractPairPotential):
        height: jax.Array = param(2.0)

        def energy(self, r):
            return self.height * jnp.exp(-(r**2))

    found = Gaussian().force_over_distance(DISTANCES**2)
    np.testing.assert_allclose(found, 4 * jnp.exp(-(DISTANCES**2)), rtol=1e-13)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: LennardJones([1.0, 2.0]), ShapeError, "mixing rule"),
        (lambda: LennardJones([[1.0, 2.0]]), ShapeError, r"\(1, 2\)"),
        (lambda: LennardJones([[1.0, 2.0], [3.0, 1.0]]), ParameterError, "symmetric"),
        (lambda: LennardJones(jnp.ones((2, 2)), jnp.ones((3, 3))), ShapeError, "differ in species"),
        (lambda: LennardJones("strong"), ParameterError, "number"),
        (lambda: lorentz_berthelot(sigma=[1.0], epsilon=[1.0, 2.0]), ShapeError, "per species"),
        (lambda: lorentz_berthelot(sigma=1.0, epsilon=1.0), ShapeError, "per species"),
        (lambda: NeuralPair(eqx.nn.Linear(3, 1, key=jax.random.key(0))), ShapeError, "scalar"),
        (lambda: NeuralPair(eqx.nn.Linear("scalar", 2, key=jax.random.key(0))), ShapeError, "2"),
    ],
)
def test_bad_input(build, error, words):
    with pytest.raises(error, match=words):
        build()


POTENTIALS_IN_UNITS = {
    "LennardJones": lambda u, a, b: LennardJones(a * u.energy, b * u.length),
    "WCA": lambda u, a, b: WCA(a * u.energy, b * u.length),
    "SoftSphere": lambda u, a, b: SoftSphere(a * u.energy, b * u.length, 9.0),
    "Yukawa": lambda u, a, b: Yukawa(a * u.energy * u.length, b * u.length),
    "Coulomb": lambda u, a, b: Coulomb(a * u.energy * u.length, b * u.length),
    "ReactionField": lambda u, a, b: ReactionField(3 * b * u.length, 4.0, a * u.energy * u.length),
}


@pytest.mark.parametrize("name", POTENTIALS_IN_UNITS)
def test_derivatives_in_units_whose_r4_is_beyond_single_precision(name):
    r = np.array([0.95, 1.02, 1.08, 1.3, 1.9])

    def slopes(u):
        make = functools.partial(POTENTIALS_IN_UNITS[name], u)

        def energy(a, b, r):
            return jnp.sum(make(a, b).energy(r * u.length)) / u.energy

        def force(a, b, r):
            terms = make(a, b).force_over_distance((r * u.length) ** 2)
            return jnp.sum(terms) * u.length * u.length / u.energy

        numbers = jnp.ones(()), jnp.ones(()), jnp.asarray(r, jnp.float32)
        return [jax.grad(f, argnums=(0, 1, 2))(*numbers) for f in (energy, force)]

    check_units(slopes, precisions=(np.float32,), exact=False, relative=1e-5)


class SumOfPairs(AbstractPairPotential):
    def energy(self, r):
        return jnp.sum(jnp.exp(-r))


def test_an_energy_without_a_return_is_named():
    class Forgotten(AbstractPairPotential):
        def energy(self, r):
            jnp.exp(-r)

    with pytest.raises(DeclarationError, match=r"Forgotten.energy\(r\) returned None: is there"):
        Forgotten().force_over_distance(DISTANCES**2)


def test_an_energy_that_is_not_of_each_pair_is_refused():
    with pytest.raises(ShapeError, match=r"shape \[\] for distances r of shape \[2, 3\]"):
        SumOfPairs().force_over_distance(DISTANCES**2)
