"""Truncation: what goes to zero where, consistent derivatives, tail corrections."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError, cast_floats
from physkit.particles.forces import (
    TRUNCATIONS,
    Coulomb,
    LennardJones,
    Pairwise,
    SoftSphere,
    Yukawa,
    lorentz_berthelot,
    truncate,
)
from physkit.testing import check_units

CUTOFF = jnp.asarray(2.5)
TABLE = LennardJones(**lorentz_berthelot(sigma=[1.0, 1.2], epsilon=[1.0, 0.5]))


def truncate_potential(kind, potential=None, cutoff=CUTOFF, **more):
    return truncate(LennardJones() if potential is None else potential, cutoff, kind, **more)


@pytest.mark.parametrize("kind", TRUNCATIONS)
@pytest.mark.parametrize("potential", [LennardJones(1.3, 0.9), Yukawa(2.0, 0.7), Coulomb()])
def test_force_is_the_derivative_of_energy(kind, potential):
    truncated = truncate_potential(kind, potential)
    r2 = jnp.linspace(0.8, 2.49, 12) ** 2
    _, slope = jax.jvp(truncated.energy, (r2,), (jnp.ones_like(r2),))
    np.testing.assert_allclose(
        truncated.force_over_distance(r2), -2 * slope, rtol=1e-10, atol=1e-13
    )


@pytest.mark.parametrize(
    ("kind", "energy_ends", "force_ends"),
    [
        ("plain", False, False),
        ("shifted", True, False),
        ("shifted-force", True, True),
        ("switch", True, True),
    ],
)
def test_energy_and_force_at_the_cutoff(kind, energy_ends, force_ends, dtype):
    truncated = cast_floats(truncate_potential(kind), dtype)
    r2 = jnp.asarray(2.5 - 1e-6, dtype) ** 2
    assert (abs(float(truncated.energy(r2))) < 1e-6) == energy_ends
    assert (abs(float(truncated.force_over_distance(r2))) < 1e-6) == force_ends


def test_switch_has_two_continuous_derivatives():
    truncated = truncate_potential("switch", switch_start=jnp.asarray(2.0))
    energy = lambda r: truncated.energy(r * r)
    curvature = jax.grad(jax.grad(energy))
    plain = jax.grad(jax.grad(LennardJones().energy))
    np.testing.assert_allclose(
        energy(jnp.asarray(1.99)), LennardJones().energy(jnp.asarray(1.99)), rtol=1e-14
    )
    np.testing.assert_allclose(curvature(2.0 + 1e-7), plain(2.0), rtol=1e-4)
    assert abs(curvature(2.5 - 1e-7)) < 1e-5
    np.testing.assert_allclose(truncate_potential("switch").start, 0.9 * 2.5)


def test_shifted_force_formula():
    r = jnp.asarray(1.3)
    u = LennardJones().energy
    expected = u(r) - u(CUTOFF) - (r - CUTOFF) * jax.grad(u)(CUTOFF)
    np.testing.assert_allclose(
        truncate_potential("shifted-force").energy(r * r), expected, rtol=1e-14
    )


@pytest.mark.parametrize("kind", TRUNCATIONS)
def test_species_tables_give_each_pair_its_own_truncation(kind):
    i, j = jnp.array([[0, 1], [1, 0]]), jnp.array([[0, 0], [1, 1]])
    r2 = jnp.array([[1.1, 2.0], [3.0, 6.0]])
    found = truncate_potential(kind, TABLE).between(i, j)
    for k in np.ndindex(i.shape):
        single = LennardJones(TABLE.epsilon[i[k], j[k]], TABLE.sigma[i[k], j[k]])
        truncated = truncate_potential(kind, single)
        np.testing.assert_allclose(found.energy(r2)[k], truncated.energy(r2[k]), rtol=1e-12)
        expected = truncated.force_over_distance(r2[k])
        np.testing.assert_allclose(found.force_over_distance(r2)[k], expected, rtol=1e-12)


@pytest.mark.parametrize("kind", TRUNCATIONS)
def test_gradient_by_parameters_and_cutoff(kind):
    def energy_plus_force(epsilon, sigma, cutoff):
        truncated = truncate(LennardJones(epsilon, sigma), cutoff, kind)
        return truncated.energy(jnp.asarray(5.5)) + truncated.force_over_distance(jnp.asarray(1.3))

    at = [jnp.asarray(1.2), jnp.asarray(0.95), CUTOFF]
    gradient = jax.jit(jax.grad(energy_plus_force, (0, 1, 2)))(*at)
    for k in range(3):
        up, down = ([x + s * 1e-6 * (n == k) for n, x in enumerate(at)] for s in (1, -1))
        expected = (energy_plus_force(*up) - energy_plus_force(*down)) / 2e-6
        np.testing.assert_allclose(gradient[k], expected, rtol=1e-6, atol=1e-8)


def test_tail_of_lennard_jones():
    """Closed form, and the NIST reference number of configuration 4."""
    tail = truncate_potential("plain", cutoff=jnp.asarray(3.0))
    energy = tail.tail_energy(30 / 8**3, 30, 3)
    np.testing.assert_allclose(energy, -0.5451660014945704, rtol=1e-13)
    rho, n, rc = 0.8, 100, 2.5
    virial = 16 * np.pi * rho * n * (2 / 3 * rc**-9 - rc**-3)
    np.testing.assert_allclose(
        truncate_potential("plain").tail_virial(rho, n, 3), virial, rtol=1e-13
    )
    flat = 4 * np.pi * rho * n * (rc**-10 / 10 - rc**-4 / 4)
    np.testing.assert_allclose(truncate_potential("plain").tail_energy(rho, n, 2), flat, rtol=1e-13)


@pytest.mark.parametrize("dimension", [2, 3])
def test_tail_of_other_potentials(dimension):
    surface = {2: 2 * np.pi, 3: 4 * np.pi}[dimension]
    soft = truncate_potential("plain", SoftSphere(1.3, 0.9, 7.5)).tail_energy(0.5, 10, dimension)
    closed = 1.3 * 0.9**7.5 * 2.5 ** (dimension - 7.5) / (7.5 - dimension)
    np.testing.assert_allclose(soft, 0.5 * 10 * 0.5 * surface * closed, rtol=1e-9)
    if dimension == 3:  # ∫ r e^(−r/λ) dr has a closed form
        yukawa = truncate_potential("plain", Yukawa(2.0, 0.7)).tail_energy(0.5, 10, 3)
        closed = 2.0 * 0.7 * (2.5 + 0.7) * np.exp(-2.5 / 0.7)
        np.testing.assert_allclose(yukawa, 0.5 * 10 * 0.5 * surface * closed, rtol=1e-8)


def test_tail_virial_is_the_volume_derivative():
    """Of the tail energy at constant cutoff: W + r_c³ surface term; here through dE/d(scale)."""
    n, volume = 50, 100.0

    def energy(scale):  # every distance, the cutoff included, stretched
        tail = truncate(LennardJones(), CUTOFF * scale, "plain")
        return tail.tail_energy(n / (volume * scale**3), n, 3)

    found = truncate_potential("plain").tail_virial(n / volume, n, 3)
    np.testing.assert_allclose(found, -jax.jit(jax.grad(energy))(jnp.asarray(1.0)), rtol=1e-12)


@pytest.mark.parametrize("dimension", [2, 3])
def test_tail_of_a_switch_adds_what_it_takes_away(dimension):
    """Where the switch is as narrow as nothing, it is that of a plain cut; else a sum by fine trapezoids."""
    switched = truncate_potential("switch", switch_start=jnp.asarray(1.5))
    r = np.linspace(1.5, CUTOFF, 4001)
    s = (r - 1.5) / (CUTOFF - 1.5)
    lost = 4 * (r**-12 - r**-6) * s**3 * (10 - 15 * s + 6 * s**2) * r ** (dimension - 1)
    between = {2: np.pi, 3: 2 * np.pi}[dimension] * 20 * 0.7 * np.trapezoid(lost, r)
    beyond = truncate_potential("plain").tail_energy(0.7, 20, dimension)
    energy = switched.tail_energy(0.7, 20, dimension)
    np.testing.assert_allclose(energy, beyond + between, rtol=1e-6)
    # Nothing jumps at the cutoff, so that the virial is the derivative of the energy by volume.
    np.testing.assert_allclose(
        switched.tail_virial(0.7, 20, dimension), dimension * energy, rtol=1e-12
    )


def test_tail_with_species():
    tail = truncate_potential("plain", TABLE)
    single = [
        [
            truncate_potential("plain", LennardJones(TABLE.epsilon[a, b], TABLE.sigma[a, b]))
            for a in (0, 1)
        ]
        for b in (0, 1)
    ]
    share = [0.25, 0.75]
    for name in ("tail_energy", "tail_virial"):
        expected = sum(
            share[a] * share[b] * getattr(single[a][b], name)(0.7, 20, 3)
            for a in (0, 1)
            for b in (0, 1)
        )
        found = getattr(tail, name)(0.7, 20, 3, fractions=share)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ParameterError, match="fractions"):
        tail.tail_energy(0.7, 20, 3)


def test_tail_in_single_precision_and_its_gradient():
    single = cast_floats(truncate_potential("plain"), jnp.float32).tail_energy(
        jnp.float32(0.8), 100, 3
    )
    np.testing.assert_allclose(
        single, truncate_potential("plain").tail_energy(0.8, 100, 3), rtol=1e-5
    )
    energy = lambda sigma: truncate_potential("plain", LennardJones(1.0, sigma)).tail_energy(
        0.8, 100, 3
    )
    found = jax.jit(jax.grad(energy))(jnp.asarray(1.1))
    np.testing.assert_allclose(found, (energy(1.1 + 1e-6) - energy(1.1 - 1e-6)) / 2e-6, rtol=1e-7)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: truncate_potential("soft"), "available"),
        (lambda: truncate_potential("switch", switch_start=3.0), "below the cutoff"),
        (lambda: truncate_potential("plain", switch_start=2.0), "switch_start"),
        (lambda: truncate_potential("shifted").tail_energy(0.8, 10, 3), "plain"),
        (lambda: truncate_potential("plain").tail_energy(0.8, 10, 1), "dimensions"),
        (lambda: truncate_potential("plain", Coulomb()).tail_energy(0.8, 10, 3), "charges"),
    ],
)
def test_bad_input(act, words):
    with pytest.raises(ParameterError, match=words):
        act()


def test_pairwise_switches_where_it_is_told():
    force = Pairwise(LennardJones(), 2.5, truncation="switch", switch_start=2.0)
    whole, cut = LennardJones(), force.truncated_potential(np.dtype(float))
    for r in (1.5, 1.99, 2.01, 2.3):
        same = float(cut.energy(jnp.asarray(r * r))) == pytest.approx(
            float(whole.energy(jnp.asarray(r))), rel=1e-6
        )
        assert same == (r < 2)
    with pytest.raises(ParameterError, match="switch_start must lie below the cutoff"):
        Pairwise(LennardJones(), 2.5, truncation="switch", switch_start=3.0)
    with pytest.raises(ParameterError, match="switch_start is for truncation"):
        Pairwise(LennardJones(), 2.5, switch_start=2.0)


@pytest.mark.parametrize("kind", TRUNCATIONS)
def test_atoms_in_si_units_and_single_precision(kind):
    """Constants at the cutoff, as r_c⁻¹², are beyond it, and XLA may multiply them out."""

    def cut(u):
        def values(potential, r):
            whole = truncate(potential, jnp.asarray(2.5 * u.length), kind)
            r2 = (r * u.length) ** 2
            force = whole.force_over_distance(r2) * u.length * u.length / u.energy
            tails = []
            if kind in ("plain", "switch"):
                density = jnp.asarray(0.8 / u.volume)
                tails = [whole.tail_energy(density, 9, 3), whole.tail_virial(density, 9, 3)]
            return whole.energy(r2) / u.energy, force, [x / u.energy for x in tails]

        potential, r = LennardJones(u.energy, u.length), jnp.linspace(1.0, 2.4, 6)
        values_and_slopes = jax.jit(lambda p, r: (values(p, r), jax.jacfwd(values, 1)(p, r)))
        return values_and_slopes(potential, r)

    check_units(cut, precisions=(np.float32,), exact=False, relative=1e-4)
