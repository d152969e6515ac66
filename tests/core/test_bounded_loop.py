"""A loop of as many turns as a number says: its values, and derivatives of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import bounded_loop, custom_jvp

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


def test_a_derivative_keeps_the_first_carry_alone():
    """Not those of all turns there may be: a run would keep them for each of its steps."""
    x = jnp.ones(1000)

    def run(x):
        return bounded_loop(lambda i, x: jnp.sin(x), x, jnp.asarray(3), limit=256)

    _, pull_back = jax.vjp(run, x)
    assert sum(kept.size for kept in jax.tree.leaves(pull_back)) < 3 * x.size


def test_carries_of_several_dtypes():
    """What is joined to be computed again, one array of each dtype, is found in its place."""

    def body(i, carry):
        x, n, key, y = carry
        noise = jax.random.normal(jax.random.fold_in(key, n[1]), x.shape)
        return x * y.astype(x.dtype) + noise, n + 1, key, jnp.cos(y) * x[0, 0].astype(y.dtype)

    def loss(x, y, loop):
        x, _, _, y = loop((x, jnp.arange(3), jax.random.key(1), y))
        return jnp.sum(x) + y.astype(x.dtype)

    def in_turns(carry):
        return bounded_loop(body, carry, jnp.asarray(3), limit=5)

    def one_by_one(carry):
        for i in range(3):
            carry = body(i, carry)
        return carry

    x, y = jnp.linspace(0.1, 0.9, 6).reshape(2, 3), jnp.asarray(0.4, jnp.float32)
    of_loop, of_turns = (jax.grad(loss, (0, 1))(x, y, loop) for loop in (in_turns, one_by_one))
    for found, expected in zip(of_loop, of_turns, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_what_turns_hand_on_comes_back_as_the_same_array():
    """With its derivative; such numbers are no part of what is carried and kept."""
    k = jnp.asarray(0.9)

    def run(x, k):
        body = lambda i, both: (both[1] * jnp.sin(both[0]), both[1], "text")
        return bounded_loop(body, (x, k, "text"), jnp.asarray(3), limit=5)

    x, same, text = run(jnp.asarray(0.7), k)
    assert same is k
    assert text == "text"
    x = jnp.asarray(0.7)
    slope = jax.grad(lambda k: run(x, k)[0] * run(x, k)[1])(k)
    expected = jax.grad(lambda k: k * k * jnp.sin(k * jnp.sin(k * jnp.sin(x))))(k)
    np.testing.assert_allclose(slope, expected, rtol=1e-12)


def test_the_last_turn_is_not_computed_again():
    """Nothing starts where it ends: n turns are computed forward, n − 1 again, and n for their derivatives."""
    turns = []

    @custom_jvp
    def counted(x):
        return jax.pure_callback(lambda x: (turns.append(1), x)[1], x, x)

    counted.defjvp(lambda primals, tangents: (counted(*primals), tangents[0]))

    def run(x):
        return bounded_loop(lambda i, x: jnp.sin(counted(x)), x, jnp.asarray(3), limit=5)

    jax.block_until_ready(jax.jit(jax.value_and_grad(run))(jnp.asarray(0.7)))
    assert len(turns) == 3 + 2 + 3
