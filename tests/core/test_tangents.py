"""What derivatives compute again, what they keep, and where values and cotangents are computed once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    barrier_on_the_way_back,
    barrier_on_the_way_forward,
    kept_for_derivative,
    recomputed,
)


def has_barrier(function):
    return "optimization_barrier" in jax.jit(function).lower(jnp.ones(5)).as_text()


def test_what_is_recomputed_is_computed_again_but_for_what_is_kept():
    def of_sine(sine):
        return sine * jnp.exp(sine)

    again = recomputed(lambda x: of_sine(jnp.sin(jnp.exp(x))))
    kept = recomputed(lambda x: of_sine(kept_for_derivative(jnp.sin(2.0 * x))))
    count = lambda f: str(jax.make_jaxpr(jax.vjp(f, jnp.ones(5))[1])(jnp.ones(5))).count("= sin ")
    assert count(again) == 1
    assert count(kept) == 0
    plain = lambda x: of_sine(jnp.sin(2.0 * x))
    x = jnp.linspace(0.1, 1.0, 5)
    expected = jax.vjp(plain, x)[1](jnp.ones(5))[0]
    np.testing.assert_allclose(jax.vjp(kept, x)[1](jnp.ones(5))[0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("barrier", "there", "back"),
    [(barrier_on_the_way_forward, True, False), (barrier_on_the_way_back, False, True)],
)
def test_barriers_of_one_way(barrier, there, back):
    x = jnp.linspace(0.1, 1.0, 5)
    assert has_barrier(barrier) == there
    assert has_barrier(jax.vjp(barrier, x)[1]) == back
    np.testing.assert_array_equal(barrier(x), x)
    np.testing.assert_array_equal(jax.vjp(barrier, x)[1](x)[0], x)
    np.testing.assert_array_equal(jax.jvp(barrier, (x,), (x,))[1], x)
