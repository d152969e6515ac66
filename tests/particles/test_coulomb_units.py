"""Coulomb forces in units far from 1: SI in single precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, Fault, StepCount, cast_floats

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
K, E = 8.9875517923e9, 1.602176634e-19  # SI
PLACES = 2.8e-10 * np.array([[0, 0, 0], [1.1, 0, 0], [0, 0.9, 0.2], [0.3, 0.2, 1.0]])


def pairwise(constant, **settings):
    return pk.Pairwise(pk.Coulomb(constant), 1.2e-9, use_neighbor_list=False, **settings)


@pytest.mark.parametrize(
    ("charge", "exact"), [(1.0, False), (0.4, True)], ids=["ions", "partial charges, exact sums"]
)
def test_ions_in_meters_and_coulombs(charge, exact):
    """e² is at the end of the range of float32, partial charges' products beyond it, and k/r³ at the other."""

    def calculate(x, q, constant):
        ions = pk.Particles(x, charge=q)
        force = cast_floats(pairwise(constant, exact=exact), x.dtype)
        value, cache = force(CLOCK, ions, force.init(ions))
        return {
            "force": value,
            "energy": force.energy(CLOCK, ions),
            "virial": force.virial(CLOCK, ions),
            "slope": jax.grad(lambda f: f.energy(CLOCK, ions))(force).potential.coulomb_constant,
        }, cache.faults.bits

    numbers = PLACES, charge * E * np.array([1.0, -1.0, 1.0, -1.0]), np.array(K)
    found, bits = jax.jit(calculate)(*(jnp.asarray(x, jnp.float32) for x in numbers))
    exact_values, _ = calculate(*(jnp.asarray(x, jnp.float64) for x in numbers))
    assert Fault(int(bits)) == Fault(0)
    for name, value in exact_values.items():
        np.testing.assert_allclose(
            np.asarray(found[name], float) / np.max(np.abs(value)),
            value / np.max(np.abs(value)),
            atol=2e-6,
        )


def test_charges_too_small_for_the_precision_are_named():
    """k q² below all numbers of float32: the force would be 0 without a word."""

    def faults(charge):
        x, q = (jnp.asarray(a, jnp.float32) for a in (PLACES, charge * np.array([1, -1, 1, 0])))
        ions = pk.Particles(x, charge=q)
        return Fault(int(cast_floats(pairwise(K), x.dtype).init(ions).faults.bits))

    assert faults(1e-26) == Fault.FORCE_RANGE
    assert faults(1e-3 * E) == faults(0.0) == Fault(0)


def test_units_of_charge_change_no_bit():
    """Another power of two as unit: the same significands."""
    random = np.random.default_rng(0)
    x = jnp.asarray(random.normal(size=(7, 3)), jnp.float32)
    q = jnp.asarray(random.normal(size=7), jnp.float32)

    def value(unit):
        ions = pk.Particles(x, charge=q * unit)
        force = pk.Pairwise(pk.Coulomb(1.3 / float(unit) ** 2), 2.0, use_neighbor_list=False)
        return cast_floats(force, x.dtype).force(CLOCK, ions)

    np.testing.assert_array_equal(value(jnp.float32(2.0**40)), value(jnp.float32(1)))


def test_exact_sums_out_of_range_have_no_finite_gradient():
    """Also of a force that is called directly, outside of the loop, which poisons the state."""

    def total(x, quantum):
        force = pk.Pairwise(
            pk.LennardJones(), 2.5, exact=True, quantum=quantum, use_neighbor_list=False
        )
        return force.force(CLOCK, pk.Particles(x))[0, 0]

    x = jnp.asarray([[0.0, 0, 0], [1.05, 0, 0]])
    value, slope = jax.value_and_grad(total)(x, 1e-14)
    assert np.all(np.isfinite([value, *slope.ravel()]))
    value, slope = jax.value_and_grad(total)(x, 1e-60)
    assert np.all(np.isnan([value, *slope.ravel()]))
