"""A loop of as many turns as a number says: its values, and derivatives of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import bounded_loop

LIMIT = 20


def looped(x, k, count):
    """x ← k sin x + i/10, `count` times; how many turns there were is carried, too."""

    def body(i, carry):
        x, turns = carry
        return k * jnp.sin(x) + i.astype(x.dtype) / 10, turns + 1

    return bounded_loop(body, (x, jnp.int32(0)), count, LIMIT)


def plain(x, k, count):
    for i in range(count):
        x = k * jnp.sin(x) + i / 10
    return x


@pytest.mark.parametrize("count", [0, 1, 16, 17, LIMIT])
def test_values_and_first_derivatives(count, dtype):
    x, k = jnp.asarray(0.7, dtype), jnp.asarray(0.9, dtype)
    after, turns = jax.jit(looped)(x, k, jnp.asarray(count))
    assert after.dtype == dtype
    assert turns == count
    tolerance = 100 * float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(after, plain(x, k, count), rtol=tolerance)
    of_loop = jax.jit(jax.value_and_grad(lambda x, k: looped(x, k, jnp.asarray(count))[0], (0, 1)))
    value, slopes = of_loop(x, k)
    np.testing.assert_allclose(value, after, rtol=tolerance)
    expected = jax.grad(lambda x, k: plain(x, k, count) + 0 * k, (0, 1))(x, k)
    np.testing.assert_allclose(slopes, expected, rtol=tolerance)


@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev], ids=["forward", "reverse"])
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev], ids=["forward", "reverse"])
def test_second_derivatives(outer, inner):
    second = jax.jit(outer(inner(lambda x: looped(x, x, jnp.asarray(3))[0])))
    expected = jax.grad(jax.grad(lambda x: plain(x, x, 3)))(0.7)
    np.testing.assert_allclose(second(0.7), expected, rtol=1e-12)


def test_members_of_a_batch_take_turns_of_their_own():
    x, counts = jnp.linspace(0.1, 0.9, 4), jnp.asarray([0, 3, 17, 1])
    after, turns = jax.vmap(looped, (0, None, 0))(x, 0.9, counts)
    assert turns.tolist() == counts.tolist()
    expected = [plain(y, 0.9, n) for y, n in zip(x, counts.tolist())]
    np.testing.assert_allclose(after, expected, rtol=1e-14)
    slope = jax.vmap(jax.grad(lambda x, n: looped(x, 0.9, n)[0]))(x, counts)
    expected = [jax.grad(plain)(y, 0.9, n) if n else 1.0 for y, n in zip(x, counts.tolist())]
    np.testing.assert_allclose(slope, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "loops"), [(looped, 1), (jax.grad(lambda x, k, n: looped(x, k, n)[0]), 2)]
)
def test_what_is_not_needed_is_not_asked_for(function, loops):
    """One loop forward and one back, and no decision in them."""
    text = jax.jit(function).lower(0.7, 0.9, jnp.asarray(3)).as_text()
    assert text.count("stablehlo.while") == loops
    assert "stablehlo.case" not in text
    assert "stablehlo.if" not in text
