"""An Equinox module as a right-hand side: its arrays are parameters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk


class Decay(eqx.Module):
    rate: jax.Array

    def __call__(self, t, y):
        return -self.rate * y

    def slower(self, t, y):
        return -0.5 * self.rate * y


def last(function):
    sim = pk.Simulation(pk.RK4(function), 0.1)
    return pk.run(sim, jnp.ones(2), 4, progress=False).state


@pytest.mark.parametrize(
    ("function", "factor"), [(Decay, 1.0), (lambda rate: Decay(rate).slower, 0.5)]
)
def test_each_module_has_its_own_numbers(function, factor):
    # Twice of one structure: the second must not meet what the first has compiled.
    for rate in (1.0, 2.0):
        found = last(function(jnp.asarray(rate)))
        np.testing.assert_allclose(found, np.exp(-0.4 * rate * factor), rtol=1e-4)


def test_its_arrays_have_a_gradient():
    sim = pk.Simulation(pk.RK4(Decay(jnp.asarray(2.0))), 0.1)
    loss = lambda sim: jnp.sum(pk.simulate(sim, jnp.ones(1), 4).state)
    slope = jax.tree.leaves(eqx.filter_grad(loss)(sim).integrator)[0]
    np.testing.assert_allclose(slope, -0.4 * np.exp(-0.8), rtol=1e-4)
