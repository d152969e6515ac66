"""Harmonic bonds and angles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    Clock,
    ParameterError,
    PhyskitWarning,
    ShapeError,
    StepCount,
    cast_floats,
)
from physkit.geometry import Box, Triclinic
from physkit.particles import Particles
from physkit.particles.forces import HarmonicAngles, HarmonicBonds

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
PAIRS = [[0, 1], [1, 2], [4, 1], [4, 2], [2, 0]]
STIFFNESS = np.array([1.0, 2.0, 0.5, 3.0, 1.5])
LENGTH = np.array([1.0, 0.5, 0.0, 2.0, 1.2])
TRIPLES = [[0, 1, 2], [1, 2, 4], [4, 0, 3]]
SPACES = {
    2: [None, Box([3.0, 4.0]), Triclinic([[3.0, 0], [1.4, 3.0]])],
    3: [None, Box([3.0, 4.0, 3.5]), Triclinic([[3.0, 0, 0], [1.4, 3.0, 0], [-1, 1, 4.0]])],
}


def random_particles(d=3, space=None, dtype=float):
    x = np.random.default_rng(d).uniform(0, 3, size=(6, d))
    return Particles(jnp.asarray(x, dtype), space=space)


def bonds():
    return HarmonicBonds(PAIRS, STIFFNESS, LENGTH)


def angles():
    return HarmonicAngles(TRIPLES, [1.0, 2.0, 0.5], [1.9, 1.0, 2.5])


@pytest.mark.parametrize("d", [1, 2, 3])
def test_bond_values(d):
    p = random_particles(d)
    x = np.asarray(p.position)
    force, energy = np.zeros_like(x), 0.0
    for (i, j), k, length in zip(PAIRS, STIFFNESS, LENGTH):
        v = x[i] - x[j]
        r = np.linalg.norm(v)
        energy += 0.5 * k * (r - length) ** 2
        force[i] -= k * (r - length) * v / r
        force[j] += k * (r - length) * v / r
    found = jax.jit(lambda p: (bonds().force(CLOCK, p), bonds().energy(CLOCK, p)))(p)
    np.testing.assert_allclose(found[0], force, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found[1], energy, rtol=1e-13)


def test_angle_values():
    right = Particles([[1.0, 0, 0], [0, 0, 0], [0, 2.0, 0]])
    straight = Particles([[1.0, 0, 0], [0, 0, 0], [-1.0, 0, 0]])
    force = HarmonicAngles([[0, 1, 2]], 2.0, 1.0)
    np.testing.assert_allclose(force.energy(CLOCK, right), (np.pi / 2 - 1) ** 2)
    np.testing.assert_allclose(force.energy(CLOCK, straight), (np.pi - 1) ** 2)
    at_rest = HarmonicAngles([[0, 1, 2]], 2.0, np.pi)
    assert bool(jnp.all(at_rest.force(CLOCK, straight) == 0))
    flat = Particles(right.position[:, :2])
    np.testing.assert_allclose(force.energy(CLOCK, flat), (np.pi / 2 - 1) ** 2)


@pytest.mark.parametrize("make", [bonds, angles])
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kind", range(3), ids=["free", "box", "triclinic"])
def test_force_energy_and_virial_agree(make, d, kind):
    p, force = random_particles(d, SPACES[d][kind]), make()
    assert force.conserves_momentum

    def strained(strain):
        stretch = jnp.eye(d) + strain
        space = p.space
        if isinstance(space, Triclinic):
            space = space.__class__(SPACES[d][kind].vectors)
            object.__setattr__(space, "vectors", p.space.vectors @ stretch)
            object.__setattr__(space, "reduction", p.space.reduction)
        elif isinstance(space, Box):  # a strained box is not a box
            space = Triclinic(jnp.diag(p.space.lengths))
            object.__setattr__(space, "vectors", jnp.diag(p.space.lengths) @ stretch)
        return force.energy(CLOCK, p.replace(position=p.position @ stretch, space=space))

    @jax.jit
    def values(x, strain):
        here = p.replace(position=x)
        slope = jax.grad(lambda x: force.energy(CLOCK, p.replace(position=x)))(x)
        return (
            force.force(CLOCK, here),
            force.virial(CLOCK, here),
            slope,
            jax.grad(strained)(strain),
        )

    found, virial, slope, by_strain = map(np.asarray, values(p.position, jnp.zeros((d, d))))
    np.testing.assert_allclose(found, -slope, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(virial, -by_strain, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("make", [bonds, angles])
def test_single_precision(make):
    of = lambda force: jax.jit(lambda p: force.force(CLOCK, p))
    single = of(cast_floats(make(), jnp.float32))(random_particles(dtype=jnp.float32))
    assert single.dtype == jnp.float32
    double = of(make())(random_particles())
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("build", "value"),
    [
        (lambda k: HarmonicBonds(PAIRS, k, LENGTH), STIFFNESS),
        (lambda r: HarmonicBonds(PAIRS, STIFFNESS, r), LENGTH),
        (lambda k: HarmonicBonds(PAIRS, k, 1.0), 2.0),
        (lambda k: HarmonicAngles(TRIPLES, k, 1.0), 2.0),
        (lambda a: HarmonicAngles(TRIPLES, 1.5, a), np.array([1.0, 2.0, 3.0])),
    ],
)
def test_derivative_by_parameters(build, value):
    @jax.jit
    def response(v):
        weight = jnp.cos(jnp.arange(18.0)).reshape(6, 3)
        force = build(v)
        return jnp.sum(weight * force.force(CLOCK, random_particles())) + force.energy(
            CLOCK, random_particles()
        )

    value = jnp.asarray(value)
    found = jax.grad(response)(value)
    direction = jnp.cos(1 + jnp.arange(value.size, dtype=float)).reshape(value.shape)
    expected = (response(value + 1e-6 * direction) - response(value - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(jnp.sum(found * direction), expected, rtol=1e-7)


def test_bond_across_the_boundary():
    p = Particles([[0.1, 1.0], [3.9, 1.0]], space=Box([4.0, 4.0]))
    force = HarmonicBonds([[0, 1]], 2.0, 0.5)
    np.testing.assert_allclose(force.force(CLOCK, p), [[0.6, 0], [-0.6, 0]], atol=1e-12)


def test_coincident_ends_and_empty_lists_are_finite():
    """Finite values and derivatives where the direction of a bond is undefined."""
    p = Particles([[1.0, 1.0], [1.0, 1.0]])
    force = HarmonicBonds([[0, 1]], 2.0, 0.5)
    np.testing.assert_array_equal(force.force(CLOCK, p), 0)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(force.force(CLOCK, p.replace(position=x)) ** 2)))
    assert bool(jnp.all(jnp.isfinite(slope(p.position))))
    onto_itself = Particles([[1.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    angle = HarmonicAngles([[0, 1, 2]], 2.0, 0.5)
    bend = jax.jit(jax.grad(lambda x: jnp.sum(angle.force(CLOCK, p.replace(position=x)) ** 2)))
    for value in (angle.force(CLOCK, onto_itself), bend(onto_itself.position)):
        assert bool(jnp.all(jnp.isfinite(value)))
    none = HarmonicBonds([], 2.0, 0.5)
    np.testing.assert_array_equal(none.force(CLOCK, p), 0)
    assert float(none.energy(CLOCK, p)) == 0


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: HarmonicBonds([[0, 1, 2]]), ShapeError, r"\[m 2\]"),
        (lambda: HarmonicBonds([[0.0, 1.0]]), ParameterError, "whole numbers"),
        (lambda: HarmonicBonds([[0, -1]]), ParameterError, "whole numbers"),
        (lambda: HarmonicBonds([[0, 1], [2, 2]]), ParameterError, r"bonds\[1\] = \[2, 2\]"),
        (lambda: HarmonicBonds(PAIRS, [1.0, 2.0]), ShapeError, "stiffness"),
        (lambda: HarmonicAngles([[0, 1, 0]]), ParameterError, "itself"),
        (lambda: HarmonicAngles(TRIPLES, 1.0, [1.0]), ShapeError, "angle"),
        (
            lambda: HarmonicAngles(TRIPLES, 1.0, 109.5),
            ParameterError,
            r"radians.*np\.radians\(109\.5\)",
        ),
        (lambda: HarmonicBonds([[0, 9]]).init(random_particles()), ParameterError, "only 6"),
        (lambda: HarmonicAngles([[0, 9, 1]]).init(random_particles()), ParameterError, "only 6"),
        (lambda: angles().init(random_particles(1)), ShapeError, "one dimension"),
    ],
)
def test_bad_input(build, error, words):
    with pytest.raises(error, match=words):
        build()


def test_a_bond_that_is_given_from_both_ends_is_noticed():
    with pytest.warns(
        PhyskitWarning, match=r"1 of 2 bonds are given more than once, such as \[0, 1\]"
    ):
        HarmonicBonds([[1, 0], [2, 1], [0, 1]])


def test_traced_pairs_are_refused():
    with pytest.raises(ParameterError, match="outside of jit"):
        jax.jit(lambda pairs: HarmonicBonds(pairs).energy(CLOCK, random_particles()))(
            jnp.array(PAIRS)
        )
