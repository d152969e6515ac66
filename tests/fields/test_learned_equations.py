"""Learned equations: networks on grids, and their mistakes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
import physkit.fields.equations
from physkit.core import ParameterError
from physkit.fields import Field
from physkit.fields.equations import (
    Closure,
    Diffusion,
    FourierNeuralOperator,
)
from physkit.fields.operators import Central
from physkit.geometry import Grid

from .equation_states import advance, convolution, rate, wall

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_a_network_of_the_right_weights_is_diffusion",
    "test_closure_padding_must_be_a_count",
)


def test_a_network_of_the_right_weights_is_diffusion():
    network = eqx.nn.Conv1d(1, 1, 3, use_bias=False, key=jax.random.key(0))
    h = 2.0 / 7
    weights = jnp.array([[[1.0, -2.0, 1.0]]]) * 0.3 / h**2
    closure = Closure(eqx.tree_at(lambda n: n.weight, network, weights), padding=1)
    learned = advance(pk.RK4(closure), wall(), 0.05, 20)
    known = advance(pk.RK4(Diffusion(0.3, scheme=Central())), wall(), 0.05, 20)
    np.testing.assert_allclose(learned.data, known.data, rtol=1e-12)


@pytest.mark.slow
def test_a_fourier_neural_operator_is_the_same_on_every_grid():
    wave = lambda x: 2.0 * jnp.exp(jnp.sin(np.pi * x) + 0.3 * jnp.cos(2 * np.pi * x))
    operator = FourierNeuralOperator(1, 4, width=4, depth=2, key=0, scale=3.0, activation=jnp.sin)

    def found(n, shift=0.0, operator=operator):
        field = Field.from_function(Grid([2.0], (n,)), lambda x: wave(x - shift))
        modes = rate(operator, field)
        # Cell centers are elsewhere on another grid: back to the phases at x = 0.
        k = np.pi * np.arange(5) * (1.0 / n + shift)
        return modes.coefficients[:5] / n * np.exp(-1j * k), modes

    at_64, modes = found(64)
    assert float(jnp.min(abs(at_64[1:]))) > 1e-3
    np.testing.assert_allclose(found(128)[0], at_64, atol=1e-9)
    np.testing.assert_allclose(
        found(64, 0.3)[0] * np.exp(2j * np.pi * np.arange(5) * 0.3), at_64, atol=1e-9
    )
    np.testing.assert_array_equal(modes.coefficients[5:], 0)
    assert float(abs(at_64[0])) == 0  # conserved


def test_closure_padding_must_be_a_count():
    with pytest.raises(ParameterError, match="counts ghost cells"):
        Closure(convolution(1, 1), padding=-1)
    with pytest.raises(pk.errors.DeclarationError, match="network must be a function; got 3"):
        Closure(3.0)


def test_numbers_of_learned_terms():
    assert FourierNeuralOperator(1, np.int64(4), width=2, depth=1, key=0).modes == (4,)
    with pytest.raises(ParameterError, match="scale must be positive"):
        FourierNeuralOperator(1, 4, width=2, depth=1, key=0, scale=0.0)
