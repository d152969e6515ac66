"""Quantities of a state without a step: those of a run at its start, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import DeclarationError, ObserverError, PhyskitError

POSITION, BOX = pk.lattice.face_centered_cubic(cells=(3, 3, 3), density=0.8442)
ATOMS = pk.Particles(POSITION, space=BOX, velocity=np.random.default_rng(0).normal(size=(108, 3)))


def simulation(epsilon=1.0, observers=()):
    force = pk.Pairwise(pk.LennardJones(epsilon, 1.0), cutoff=2.3)
    return pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=observers)


def test_values_are_those_of_a_run_at_its_start():
    recorded = pk.Every(2, energy=pk.TotalEnergy(), pressure=pk.Pressure())
    structure = pk.RadialDistribution(2, r_max=2.0, bins=20)
    sim = simulation(observers=[recorded, structure])
    run = pk.run(sim, ATOMS, 2, progress=False)
    own = pk.evaluate(sim, ATOMS)
    assert own["energy"] == run["energy"][0]
    assert own["pressure"] == run["pressure"][0]
    # Of this state alone: the run has accumulated two.
    (g,) = (x for name, x in own.items() if name not in ("energy", "pressure"))
    nearest = 2 ** (1 / 6) * 0.8442 ** (-1 / 3)
    assert np.argmax(g["value"]) == np.argmin(np.abs(g["r"] - nearest))
    other = pk.evaluate(sim, ATOMS, speed=lambda now: jnp.max(jnp.abs(now.state.velocity)))
    assert other == {"speed": np.abs(ATOMS.velocity).max()}


def test_it_is_a_function_with_derivatives_and_batches():
    def energy(epsilon):
        return pk.evaluate(simulation(epsilon), ATOMS, u=pk.PotentialEnergy())["u"]

    # U is proportional to ε.
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(energy)))(jnp.asarray([1.0, 2.0]))
    np.testing.assert_allclose(values[1], 2 * values[0], rtol=1e-14)
    np.testing.assert_allclose(slopes, [values[0]] * 2, rtol=1e-12)


def test_a_fault_is_an_error_outside_of_a_trace_and_no_number_inside():
    """A cutoff beyond half of the box, whose lengths a trace hides."""

    def energy(scale):
        squeezed = ATOMS.replace(position=scale * POSITION, space=pk.Box(scale * BOX.lengths))
        return pk.evaluate(simulation(), squeezed, u=pk.PotentialEnergy())["u"]

    with pytest.raises(PhyskitError, match="image limit"):
        energy(0.8)
    compiled = jax.jit(energy)
    assert np.isnan(compiled(0.8))
    assert np.isfinite(compiled(1.1))


def test_what_is_wrong_is_said():
    with pytest.raises(ObserverError, match="something to record"):
        pk.evaluate(simulation(), ATOMS)
    with pytest.raises(ObserverError, match=r"did you mean Pressure\(\)"):
        pk.evaluate(simulation(), ATOMS, p=pk.Pressure)
    # With annotations checked at every call, as in the fast suite, or without.
    with pytest.raises(DeclarationError, match=r"must be a Simulation|wrap the integrator"):
        pk.evaluate(simulation().integrator, ATOMS, p=pk.Pressure())
    with pytest.raises(PhyskitError, match=r"pk\.evaluate\(simulation, state"):
        pk.Temperature()(ATOMS)
