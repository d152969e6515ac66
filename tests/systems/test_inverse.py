"""Inverse problems at reduced size: a fluid's potential, and a universe's initial phases."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ParameterError

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = ("test_correlation_by_scale",)

UNIVERSE = {"steps": 4, "size": 50.0, "contrast": 1.5}


def _noise(n=8, dtype=jnp.float32):
    return jax.random.normal(jax.random.key(1), (n,) * 3, dtype)


@pytest.mark.slow
def test_a_linear_universe_grows_as_the_scale_factor():
    """Tiny contrast: δ at a = 1 is the linear density, smoothed by the mesh, to a few per cent."""
    noise = _noise(8, jnp.float64)
    grid = pk.Grid([1.0, 1.0, 1.0], noise.shape)
    density = lambda x: pk.systems.linear_density(pk.Field(x, grid), size=50.0, contrast=1e-3).data
    linear = jax.jit(density)(noise)
    np.testing.assert_allclose(jnp.std(linear), 1e-3, rtol=0.1)
    final = lambda x: pk.systems.final_density(x, 30, size=50.0, contrast=1e-3).data
    end = jax.jit(final)(noise) - 1
    _, correlation = pk.systems.correlation_by_scale(linear, end)
    assert correlation[0] > 0.98
    first = lambda x: np.fft.fftn(np.asarray(x))[1, 0, 0]
    assert abs(first(end) / first(linear) - 1) < 0.2  # the mesh takes some of it


def test_phases_are_recovered_on_the_largest_scales():
    noise = _noise()
    observed = jax.jit(lambda x: pk.systems.final_density(x, **UNIVERSE).data)(noise)
    found = pk.systems.recover_phases(observed, rounds=15, rate=0.3, **UNIVERSE)
    waves, correlation = pk.systems.correlation_by_scale(noise, found.noise)
    assert waves[0] == 1
    assert correlation[0] > 0.9
    assert found.losses[-1] < 0.6 * found.losses.max()


@pytest.mark.slow
def test_memory_of_the_gradient_does_not_grow_with_the_steps():
    noise = _noise(16)

    def memory(steps, adjoint):
        power = lambda x: jnp.sum(pk.systems.final_density(x, steps, adjoint=adjoint).data ** 2)
        return jax.jit(jax.grad(power)).lower(noise).compile().memory_analysis().temp_size_in_bytes

    reversible = [memory(steps, pk.Reversible()) for steps in (8, 16, 64)]
    assert max(reversible) < 1.02 * min(reversible)
    assert memory(64, pk.adjoints.Direct()) > 2 * memory(8, pk.adjoints.Direct())


def test_correlation_by_scale():
    noise = _noise(8, jnp.float64)
    other = jax.random.normal(jax.random.key(5), noise.shape, noise.dtype)
    np.testing.assert_allclose(pk.systems.correlation_by_scale(noise, 3 * noise)[1], 1)
    np.testing.assert_allclose(pk.systems.correlation_by_scale(noise, -noise)[1], -1)
    assert np.all(np.abs(pk.systems.correlation_by_scale(noise, other)[1]) < 0.6)


SMALL = pk.systems.SmallFluid(
    cells=2, density=0.3, cutoff=1.5, r_max=1.8, bins=18, replicas=4, steps=2_040, every=12
)


@pytest.mark.slow
def test_a_fluid_from_its_structure_in_miniature():
    """32 atoms and few samples: from 10 % off to within a few per cent."""
    truth = pk.systems.fluid_structure(SMALL, pk.LennardJones(), jax.random.key(7))
    lines = []
    found = pk.systems.fit_fluid(
        SMALL, truth.value, truth.error, pk.LennardJones(1.1, 0.9), rounds=3, report=lines.append
    )
    np.testing.assert_allclose(found.path[-1], 1.0, atol=0.08)
    assert abs(found.path[-1][1] - 1) < 0.02
    assert len(lines) == 3
    assert found.effective > 0.2 * found.structure.samples.count
    with pytest.raises(ParameterError, match="one round"):
        pk.systems.fit_fluid(SMALL, truth.value, truth.error, pk.LennardJones(), rounds=0)


def test_a_round_without_samples_is_refused():
    few = SMALL._replace(steps=4 * SMALL.every)
    with pytest.raises(ParameterError, match="gives 4 in all"):
        pk.systems.fluid_structure(few, pk.LennardJones(), jax.random.key(7))


@pytest.mark.slow
def test_energy_of_samples_equals_that_of_the_force():
    structure = pk.systems.fluid_structure(
        SMALL._replace(steps=240), pk.LennardJones(), jax.random.key(7)
    )
    last = jax.tree.map(lambda x: x[0], structure.last)
    square = lambda x: x @ x
    i, j = np.triu_indices(32, 1)
    separation = last.space.displacement(last.position[i], last.position[j])
    energy = SMALL.energy(pk.LennardJones(), (jax.vmap(square)(separation), jnp.zeros(())))
    sim = pk.Simulation(
        pk.VelocityVerlet(SMALL.force(pk.LennardJones())), dt=0.005,
        observers=pk.Every(1, energy=pk.PotentialEnergy()),
    )  # fmt: skip
    observed = pk.simulate(sim, last, 1).frames["energy"][0]
    np.testing.assert_allclose(energy, observed, rtol=1e-9)
