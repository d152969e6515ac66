"""The Lennard-Jones equation of state against published numbers, and a simulated box against it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.systems import lennard_jones_box, lennard_jones_equation_of_state


def test_equation_of_state():
    """The paper's critical point, second virial coefficients, NIST's liquids."""
    pressure = lambda rho, t: lennard_jones_equation_of_state(rho, t).pressure
    critical = (jnp.asarray(0.310), jnp.asarray(1.313))
    slope = jax.jit(jax.grad(pressure))
    assert abs(float(slope(*critical))) < 2e-3
    assert abs(float(jax.grad(slope)(*critical))) < 0.03
    for t, second in ((1.0, -5.316), (2.0, -1.3131), (3.4, 0.0)):  # Hirschfelder, Curtiss & Bird
        rho = 1e-4
        assert float((pressure(rho, t) / (rho * t) - 1) / rho) == pytest.approx(second, abs=0.03)
    for rho, energy, p in (
        (0.776, -5.5121, 0.0068),
        (0.820, -5.7947, 0.5536),
        (0.860, -6.0305, 1.266),
    ):
        found = lennard_jones_equation_of_state(rho, 0.85)
        assert float(found.energy) == pytest.approx(energy, rel=5e-3)
        assert float(found.pressure) == pytest.approx(p, abs=0.03)


def test_pressure_and_energy_derive_from_one_free_energy():
    """∂U/∂ρ = (p − T ∂p/∂T)/ρ², and arrays of points."""
    state = lennard_jones_equation_of_state
    rho, t = jnp.asarray(0.6), jnp.asarray(1.7)
    left = jax.grad(lambda r: state(r, t).energy)(rho)
    right = (state(rho, t).pressure - t * jax.grad(lambda t: state(rho, t).pressure)(t)) / rho**2
    np.testing.assert_allclose(left, right, rtol=1e-10)
    many = state(np.full((2, 3), 0.6), np.full((2, 3), 1.7))
    np.testing.assert_allclose(many.pressure, np.full((2, 3), state(rho, t).pressure))


@pytest.mark.slow
def test_a_box_has_the_pressure_of_the_equation_of_state():
    sim, atoms = lennard_jones_box(0.6, 1.8)
    done = pk.sweep((sim, atoms), 8_000, replicas=8, key=jax.random.key(0), progress=False)
    expected = lennard_jones_equation_of_state(0.6, 1.8)
    for name, tolerance in (("pressure", 0.08), ("energy", 0.03)):  # four standard errors
        assert np.mean(done[name][:, 80:]) == pytest.approx(
            float(getattr(expected, name)), abs=tolerance
        )
