"""Bonds, angles, torsions, torsion maps, special pairs and own energies of tuples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    Clock,
    DeclarationError,
    Network,
    ParameterError,
    ShapeError,
    StepCount,
    cast_floats,
)
from physkit.geometry import Box
from physkit.particles import Particles
from physkit.particles.forces import (
    BondedEnergy,
    CosineAngles,
    CosineSquaredAngles,
    Coulomb,
    FENEBonds,
    HarmonicAngles,
    HarmonicBonds,
    HarmonicTorsions,
    LennardJones,
    MorseBonds,
    Pairwise,
    PeriodicTorsions,
    RyckaertBellemansTorsions,
    SpecialPairs,
    TorsionMaps,
    lorentz_berthelot,
    urey_bradley,
)

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
PAIRS, TRIPLES = [[0, 1], [2, 1], [4, 5]], [[0, 1, 2], [5, 3, 1]]
QUADRUPLES, QUINTUPLES = [[0, 1, 2, 3], [5, 3, 4, 1]], [[0, 1, 2, 3, 4], [5, 4, 2, 0, 1]]
TABLE = lorentz_berthelot(epsilon=[1.0, 0.6], sigma=[0.4, 0.5])


def quartic(x, p):
    return p["stiffness"] * jnp.sum(((x[1] - x[2]) / p["length"]) ** 2) ** 2


def map_values(g=8):
    rng = np.random.default_rng(2)
    return rng.normal(size=(2, g, g))


# Each term, with two of its parameters from `k` (by tuple) and `l` (one for all), in units of length `s`.
TERMS = {
    "FENEBonds": lambda k, l, s: FENEBonds(PAIRS, 30 * k / s**2, 9.0 * s * l),
    "MorseBonds": lambda k, l, s: MorseBonds(PAIRS, k, 2.0 / s, 1.1 * s * l),
    "HarmonicAngles": lambda k, l, s: HarmonicAngles(TRIPLES, k[:2], 1.4 * l),
    "CosineAngles": lambda k, l, s: CosineAngles(TRIPLES, k[:2], 1.4 * l),
    "CosineSquaredAngles": lambda k, l, s: CosineSquaredAngles(TRIPLES, k[:2], 1.4 * l),
    "urey_bradley": lambda k, l, s: urey_bradley(TRIPLES, k[:2] / s**2, 1.4 * s * l),
    "PeriodicTorsions": lambda k, l, s: PeriodicTorsions(QUADRUPLES, k[:2], [3, 2], 0.4 * l),
    "RyckaertBellemansTorsions": lambda k, l, s: RyckaertBellemansTorsions(
        QUADRUPLES, jnp.stack([k[:2], l * k[1:], k[:2], k[1:] * 2, k[:2], k[:2]], axis=1)
    ),
    "HarmonicTorsions": lambda k, l, s: HarmonicTorsions(QUADRUPLES, k[:2], 0.3 * l),
    "TorsionMaps": lambda k, l, s: TorsionMaps(QUINTUPLES, l * map_values(), [0, 1]),
    "SpecialPairs": lambda k, l, s: SpecialPairs(PAIRS, Coulomb(l * s), 0.5 * k),
    "BondedEnergy": lambda k, l, s: BondedEnergy(
        TRIPLES, quartic, {"stiffness": k[:2], "length": s * l}
    ),
}


def particles(scale=1.0, dtype=float, space=None):
    rng = np.random.default_rng(3)
    return Particles(
        jnp.asarray(scale * rng.uniform(0, 3, (7, 3)), dtype), space=space,
        charge=rng.normal(size=7), species=np.arange(7) % 2,
    )  # fmt: skip


def term_of(name, s=1.0):
    return TERMS[name](jnp.array([1.0, 2.0, 0.5]), jnp.asarray(1.0), s)


def dihedral(a, b, c, d):
    """The IUPAC angle, written as in textbooks."""
    u, v, w = b - a, c - b, d - c
    m, n = np.cross(u, v), np.cross(v, w)
    return np.arctan2(np.linalg.norm(v) * (u @ n), m @ n)


def angle(a, b, c):
    u, v = a - b, c - b
    return np.arccos(u @ v / np.linalg.norm(u) / np.linalg.norm(v))


def expected_energies():
    p = particles()
    x, q, k = np.asarray(p.position), np.asarray(p.charge), [1.0, 2.0, 0.5]
    bonds = [np.linalg.norm(x[i] - x[j]) for i, j in PAIRS]
    ends = [np.linalg.norm(x[i] - x[j]) for i, _, j in TRIPLES]
    angles = [angle(*x[t]) for t in TRIPLES]
    phi = [dihedral(*x[t]) for t in QUADRUPLES]
    coefficients = np.stack([k[:2], k[1:], k[:2], 2 * np.array(k[1:]), k[:2], k[:2]], axis=1)
    return {
        "FENEBonds": sum(-15 * c * 81 * np.log(1 - r**2 / 81) for c, r in zip(k, bonds)),
        "MorseBonds": sum(c * (1 - np.exp(-2 * (r - 1.1))) ** 2 for c, r in zip(k, bonds)),
        "HarmonicAngles": sum(c / 2 * (a - 1.4) ** 2 for c, a in zip(k, angles)),
        "CosineAngles": sum(c * (1 - np.cos(a - 1.4)) for c, a in zip(k, angles)),
        "CosineSquaredAngles": sum(
            c / 2 * (np.cos(a) - np.cos(1.4)) ** 2 for c, a in zip(k, angles)
        ),
        "urey_bradley": sum(c / 2 * (r - 1.4) ** 2 for c, r in zip(k, ends)),
        "PeriodicTorsions": sum(c * (1 + np.cos(n * a - 0.4)) for c, n, a in zip(k, [3, 2], phi)),
        "RyckaertBellemansTorsions": sum(
            np.polynomial.Polynomial(c)(np.cos(a - np.pi)) for c, a in zip(coefficients, phi)
        ),
        "HarmonicTorsions": sum(
            c / 2 * ((a - 0.3 + np.pi) % (2 * np.pi) - np.pi) ** 2 for c, a in zip(k, phi)
        ),
        "SpecialPairs": sum(0.5 * c * q[i] * q[j] / r for c, r, (i, j) in zip(k, bonds, PAIRS)),
        "BondedEnergy": sum(
            c * np.sum((x[j] - x[m]) ** 2) ** 2 for c, (_, j, m) in zip(k, TRIPLES)
        ),
    }


def test_values():
    found = jax.jit(lambda p: {k: term_of(k).energy(CLOCK, p) for k in TERMS})(particles())
    for name, expected in expected_energies().items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-12, err_msg=name)


# In the fast suite one of each kind: the others differ in their energies, which `test_values` knows.
ONE_OF_EACH = ("FENEBonds", "PeriodicTorsions", "SpecialPairs", "BondedEnergy")


@pytest.mark.parametrize(
    "name",
    [pytest.param(k, marks=() if k in ONE_OF_EACH else pytest.mark.slow) for k in TERMS],
)
def test_force_virial_precision_and_parameters(name):
    """Force and virial are derivatives of the energy; so are those by parameters; nothing overflows in SI."""
    box = Box([6.5, 7.0, 7.5])
    p, term = particles(space=box), term_of(name)

    @jax.jit
    def all_of(term, p):
        slope = jax.grad(lambda x: term.energy(CLOCK, p.replace(position=x)))(p.position)
        strain = term._virial_by_strain(CLOCK, p, None)
        return term.force(CLOCK, p), term.virial(CLOCK, p), term.energy(CLOCK, p), slope, strain

    force, virial, energy, slope, strain = all_of(term, p)
    np.testing.assert_allclose(force, -slope, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(virial, strain, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(np.sum(force, axis=0), 0, atol=1e-11)
    assert np.abs(force).max() > 1e-3

    # In meters and single precision; energies are those of reduced units.
    scaled = Box([6.5e-10, 7.0e-10, 7.5e-10])
    single = particles(1e-10, jnp.float32, scaled)
    in_si = all_of(cast_floats(term_of(name, 1e-10), jnp.float32), single)
    np.testing.assert_allclose(in_si[0] * np.float32(1e-10), force, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(in_si[2], energy, rtol=1e-5)
    assert in_si[0].dtype == jnp.float32

    def response(k, l):
        term = TERMS[name](k, l, 1.0)
        weight = jnp.cos(jnp.arange(21.0)).reshape(7, 3)
        return jnp.sum(weight * term.force(CLOCK, p)) + term.energy(CLOCK, p)

    @jax.jit
    def slopes(k, l):
        along = jnp.cos(jnp.arange(3.0)), 0.7
        found = sum(jnp.sum(s * d) for s, d in zip(jax.grad(response, (0, 1))(k, l), along))
        ahead, behind = jax.vmap(lambda h: response(k + h * along[0], l + h * along[1]))(
            jnp.array([1e-6, -1e-6])
        )
        return found, (ahead - behind) / 2e-6

    np.testing.assert_allclose(*slopes(jnp.array([1.0, 2.0, 0.5]), jnp.asarray(1.0)), rtol=1e-6)


def test_a_map_goes_through_its_values_and_is_smooth():
    """A smooth function is found between its values to fourth order in their spacing."""
    places = 2 * np.pi * np.arange(24) / 24
    values = np.cos(places)[:, None] * np.sin(2 * places)[None]
    p = particles()
    phi, psi = (dihedral(*np.asarray(p.position)[k : k + 4]) for k in (0, 1))
    found = TorsionMaps([[0, 1, 2, 3, 4]], values).energy(CLOCK, p)
    np.testing.assert_allclose(found, np.cos(phi) * np.sin(2 * psi), atol=3e-4)
    assert abs(float(found) - np.cos(phi) * np.sin(2 * psi)) > 1e-9  # a spline, not the function


def test_undefined_angles_are_finite():
    """On a line and on one spot forces and their derivatives are 0, not NaN."""
    line = Particles(np.arange(5.0)[:, None] * np.array([[1.0, 2.0, 0.5]]))
    spot = line.replace(position=jnp.zeros((5, 3)))
    chain = [[0, 1, 2, 3]]
    sum_of = PeriodicTorsions(chain, 1.0, 3, 0.3) + HarmonicTorsions(chain, 1.0, 0.3)
    sum_of += CosineAngles([[0, 1, 2]], 1.0) + CosineSquaredAngles([[0, 1, 2]], 1.0, 2.0)
    sum_of += FENEBonds([[0, 1]], 30.0, 9.0) + MorseBonds([[0, 1]], 1.0, 1.0, 1.0)

    @jax.jit
    def slopes(p):
        def total(x):
            moved = p.replace(position=x)
            return sum(jnp.sum(t.force(CLOCK, moved) ** 2) for t in sum_of.terms)

        return jax.grad(total)(p.position), [t.force(CLOCK, p) for t in sum_of.terms]

    for p in (line, spot):
        assert all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(slopes(p)))


def test_a_bond_that_is_too_long_is_not_a_number():
    p = Particles([[0.0, 0, 0], [1.6, 0, 0]])
    assert not np.isfinite(FENEBonds([[0, 1]], 30.0, 1.5).energy(CLOCK, p))


@pytest.mark.slow
def test_special_pairs_are_those_that_pairwise_leaves_out():
    """Excluded and added again with scale 1: the same energy and force; tables go by species."""
    p, potential = particles(), LennardJones(**TABLE)
    every = Pairwise(potential, 20.0, truncation="plain")
    without = Pairwise(potential, 20.0, truncation="plain", exclude=PAIRS)
    special = SpecialPairs(PAIRS, potential)
    for quantity in ("energy", "force", "virial"):
        whole, rest, added = (
            getattr(term, quantity)(CLOCK, p) for term in (every, without, special)
        )
        np.testing.assert_allclose(rest + added, whole, rtol=1e-9, atol=1e-9)


def test_an_own_energy_with_a_network():
    network = Network(lambda x: jnp.tanh(x))
    term = BondedEnergy(PAIRS, lambda x, net: jnp.sum(net(x[1]) ** 2), network)
    x = np.asarray(particles().position)
    expected = sum(np.sum(np.tanh(x[j] - x[i]) ** 2) for i, j in PAIRS)
    np.testing.assert_allclose(term.energy(CLOCK, particles()), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: FENEBonds([[0, 1]], 30.0, 0.0), ParameterError, "max_length"),
        (lambda: MorseBonds([[0, 0]], 1.0, 1.0, 1.0), ParameterError, "to itself"),
        (lambda: CosineAngles([[0, 1]], 1.0), ShapeError, r"\[m 3\]"),
        (lambda: PeriodicTorsions([[0, 1, 2]], 1.0, 1), ShapeError, r"\[m 4\]"),
        (lambda: PeriodicTorsions([[0, 1, 2, 3]], 1.0, 1.5), ParameterError, "whole numbers"),
        (lambda: PeriodicTorsions([[0, 1, 2, 3]], [1.0, 2.0], 1), ShapeError, "stiffness"),
        (lambda: PeriodicTorsions([[0, 1, 2, 3]], 1.0, 2, 180.0), ParameterError, "phase is in radians"),
        (lambda: HarmonicTorsions([[0, 1, 2, 3]], 1.0, 60.0), ParameterError, "angle is in radians"),
        (lambda: RyckaertBellemansTorsions([[0, 1, 2, 3]], [1.0, 2.0]), ShapeError, r"\(6,\)"),
        (lambda: TorsionMaps([[0, 1, 2, 3, 4]], np.zeros((3, 4))), ShapeError, r"\[g g\]"),
        (lambda: TorsionMaps([[0, 1, 2, 3, 4]], np.zeros((4, 4)), 1), ParameterError, "maps 0"),
        (lambda: BondedEnergy([[0, 1]], quartic, {"k": jnp.ones(3)}), ShapeError, "a row for each"),
        (lambda: BondedEnergy([0, 1], quartic), ShapeError, r"\[m k\]"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(build, error, words):
    with pytest.raises(error, match=words):
        build()


@pytest.mark.parametrize(
    ("term", "error", "words"),
    [
        (PeriodicTorsions([[0, 1, 2, 3]], 1.0, 1), ShapeError, "three dimensions"),
        (HarmonicBonds([[0, 9]]), ParameterError, "particle 9"),
        (SpecialPairs([[0, 1]], Coulomb()), ParameterError, "charge"),
        (SpecialPairs([[0, 1]], LennardJones(**TABLE)), ParameterError, "species"),
        (BondedEnergy([[0, 1]], lambda x: x[1]), ShapeError, "one number"),
        (BondedEnergy([[0, 1]], lambda x, y: 1.0), DeclarationError, r"\(x\)"),
    ],
)
def test_wrong_particles_are_named(term, error, words):
    with pytest.raises(error, match=words):
        term.energy(CLOCK, Particles(np.eye(4, 2)))


@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_both_entries_of_a_table_have_half_of_the_derivative(pair):
    state = Particles([[0.0, 0, 0], [1.2, 0, 0]], species=[0, 1])

    def energy(epsilon):
        return SpecialPairs([pair], LennardJones(epsilon)).energy(CLOCK, state)

    u = 4 * (1.2**-12 - 1.2**-6)
    slope = jax.grad(energy)(jnp.array([[1.0, 2.0], [2.0, 3.0]]))
    np.testing.assert_allclose(slope, [[0, u / 2], [u / 2, 0]], rtol=1e-12)
