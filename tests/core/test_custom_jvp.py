"""Rules of derivatives are used in every order, also within loops, where JAX before 0.12 forgets its own."""

import re
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit
from physkit.core import custom_jvp, with_tangent_of

MODES = {
    "reverse-reverse": lambda f: jax.grad(jax.grad(f)),
    "forward-reverse": lambda f: jax.jacfwd(jax.grad(f)),
    "reverse-forward": lambda f: jax.grad(jax.jacfwd(f)),
    "forward-forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
}


@custom_jvp
def rounded(x):
    """x to nine digits, with the rule f′ = 2f²: its own operations have the derivative 0."""
    return jnp.round(x * 1e9) / 1e9


@rounded.defjvp
def _(primals, tangents):
    return rounded(*primals), 2 * rounded(*primals) ** 2 * tangents[0]


@partial(custom_jvp, nondiff_argnums=(0,))
def scaled(power, x, count):
    return {"sum": jnp.round(x) * count, "count": count + power}


@partial(scaled.defjvp, symbolic_zeros=True)
def _(power, primals, tangents):
    (x, count), (dx, dcount) = primals, tangents
    assert isinstance(dcount, jax.custom_derivatives.SymbolicZero)
    out = scaled(power, x, count)
    return out, {
        "sum": power * x ** (power - 1) * dx * count,
        "count": np.zeros((), jax.dtypes.float0),
    }


def in_a_loop(function):
    return lambda x: jax.lax.scan(lambda c, _: (function(c), None), x, None, length=1)[0]


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives_in_a_loop(mode):
    second = MODES[mode](in_a_loop(rounded))
    np.testing.assert_allclose(second(0.7), 8 * 0.7**3, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(second)(0.7), 8 * 0.7**3, rtol=1e-5)


def test_third_derivatives_in_a_loop():
    third = jax.grad(jax.grad(jax.grad(in_a_loop(rounded))))
    np.testing.assert_allclose(third(0.7), 48 * 0.7**4, rtol=1e-5)


def test_members_of_a_batch():
    second = jax.grad(jax.grad(in_a_loop(rounded)))
    x = jnp.asarray([0.3, 0.7])
    np.testing.assert_allclose(jax.vmap(second)(x), 8 * x**3, rtol=1e-5)
    # A batch within the loop, of which one argument is the same for all.
    of_members = in_a_loop(
        lambda x: jnp.sum(
            jax.vmap(lambda a, b: rounded(a) * b, (0, None))(jnp.stack([x, 2 * x]), x)
        )
    )
    # d²/dx² x (f(x) + f(2x)) with f′ = 2f²
    a, b = 0.3, 0.6
    expected = 2 * (2 * a**2 + 4 * b**2) + 0.3 * (8 * a**3 + 4 * 8 * b**3)
    np.testing.assert_allclose(jax.grad(jax.grad(of_members))(0.3), expected, rtol=1e-5)


def test_a_rule_may_call_such_functions_on_tangents():
    @custom_jvp
    def doubled(x, count):
        return 2 * x, count

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), (2 * tangents[0], tangents[1])))

    @custom_jvp
    def square(x):
        return x**2

    @square.defjvp
    def _(primals, tangents):
        return square(*primals), doubled(primals[0] * tangents[0], 1)[0]

    slope = jax.grad(in_a_loop(square))
    np.testing.assert_allclose(slope(0.7), 1.4, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(slope)(0.7), 2.0, rtol=1e-6)
    x = jnp.asarray([0.3, 0.7])
    np.testing.assert_allclose(jax.jit(jax.vmap(slope))(x), 2 * x, rtol=1e-6)


def test_static_arguments_and_whole_numbers():
    def of_loop(x):
        def turn(carry, _):
            x, count = carry
            out = scaled(2, x, count)
            return (out["sum"], out["count"]), None

        return jax.lax.scan(turn, (x, jnp.asarray(3)), None, length=1)[0][0]

    # Its rule stands for 3 x².
    np.testing.assert_allclose(jax.grad(of_loop)(0.7), 6 * 0.7, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.grad(of_loop))(0.7), 6, rtol=1e-6)


def test_arguments_by_name_and_what_is_closed_over():
    np.testing.assert_allclose(jax.grad(lambda x: rounded(x=x))(0.7), 2 * 0.7**2, rtol=1e-6)

    def outer(a):
        @custom_jvp
        def inner(x):
            return x * jax.lax.stop_gradient(a)

        inner.defjvp(lambda primals, tangents: (inner(*primals), 5 * tangents[0]))
        return jax.jvp(inner, (2.0,), (1.0,))

    value, slope = jax.jit(outer)(3.0)
    assert (value, slope) == (6, 5)


def test_a_rounded_value_keeps_the_second_derivative():
    def step(x):
        exact = 1.3 * jnp.sin(x)
        return with_tangent_of(jnp.round(exact * 1e9) / 1e9, exact) ** 2

    plain = jax.grad(jax.grad(lambda x: (1.3 * jnp.sin(x)) ** 2))(0.7)
    np.testing.assert_allclose(jax.grad(jax.grad(in_a_loop(step)))(0.7), plain, rtol=1e-5)


def test_no_module_uses_rules_that_loops_forget():
    root = Path(physkit.__file__).parent
    forgetful = re.compile(r"@.*\b(jax\.custom_jvp|filter_custom_jvp)\b")
    users = [
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if path.name != "_custom_jvp.py" and forgetful.search(path.read_text())
    ]
    assert not users
