"""`check_gradient` on functions with right and wrong derivatives, and the comparisons under it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Module, ParameterError, param
from physkit.testing import TOLERANCES, check_equal, check_finite, check_gradient, tolerance

TREE = {"a": jnp.array([1.0, 2.0, 3.0]), "b": jnp.array(2.0)}


@jax.custom_jvp
def slightly_off(x):
    return x**3


slightly_off.defjvp(lambda x, v: (x[0] ** 3, 3.0001 * x[0] ** 2 * v[0]))


@jax.custom_vjp
def wrong_backwards(x):
    return x**3


wrong_backwards.defvjp(lambda x: (x**3, x), lambda x, g: (3.0001 * x**2 * g,))


@jax.custom_vjp
def right_backwards(x):
    return x**3


right_backwards.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))


@jax.custom_jvp
def disagreeing(x):
    return jnp.sin(x)


@disagreeing.defjvp
def _(x, v):
    # Forward mode is exact; the transpose that this declares is wrong by 10⁻⁶.
    return jnp.sin(x[0]), _scale_with_wrong_transpose(jnp.cos(x[0]), v[0])


def _scale_with_wrong_transpose(c, v):
    return jax.custom_derivatives.linear_call(
        lambda c, v: c * v, lambda c, g: c * g * (1 + 1e-6), c, v
    )


class TestRightDerivatives:
    def test_nonlinear(self):
        check_gradient(lambda t: jnp.sin(t["a"]) * t["b"] ** 3, TREE)

    def test_linear(self):
        check_gradient(lambda t: 2 * t["a"], {"a": TREE["a"]})

    def test_complex(self):
        z = {"a": jnp.array([1 + 0.2j, 0.3 - 1j]), "b": jnp.array(1.5)}
        check_gradient(lambda t: {"out": jnp.exp((1 + 1j) * t["a"]) * t["b"].astype(complex)}, z)

    def test_float32_leaves_are_examined_in_float64(self):
        check_gradient(lambda x: jnp.exp(x), jnp.float32(0.3))

    def test_reverse_mode_only(self):
        check_gradient(right_backwards, TREE["a"], modes=("reverse",))

    def test_an_infinite_limit_is_left_alone(self):
        check_gradient(
            lambda t: jnp.exp(-1 / t["b"]) * t["a"], {"a": TREE["a"], "b": jnp.array(jnp.inf)}
        )

    def test_an_ignored_leaf_may_have_no_effect(self):
        check_gradient(lambda t: jnp.sin(t["a"]), TREE, ignore=["b"])


class Wave(Module):
    height: jax.Array = param(1.0)
    unused: jax.Array = param(1.0)


@pytest.mark.parametrize(
    ("function", "tree", "message"),
    [
        (
            lambda t: jnp.sin(t["a"]) * jax.lax.stop_gradient(t["b"]),
            TREE,
            r"\['b'\] is exactly 0, but the finite difference is 0\.187",
        ),
        (lambda t: t["a"] ** 2, TREE, r"\['b'\] has no effect.*consumed in __init__"),
        (lambda w: w.height**2, Wave(), r"\.unused has no effect"),
        (
            lambda t: jnp.sqrt(t["b"] - t["b"]) + t["a"],
            TREE,
            r"derivative by \['b'\] \(reverse mode\): it is not finite \(nan",
        ),
        (lambda t: jnp.log(-t["b"]) + t["a"], TREE, r"the value: .* not finite"),
        (
            slightly_off,
            TREE["a"],
            r"the argument.*computed 34\.583\d+, expected 34\.582\d+.*tolerance",
        ),
        (wrong_backwards, TREE["a"], "forward-mode differentiation fails"),
        (disagreeing, TREE["a"], "forward and reverse mode disagree"),
        (lambda x: x if x[0] > 0 else -x, TREE["a"], "numbers of an array in Python"),
        (
            lambda x: jnp.sin(x.astype(jnp.float32)),
            TREE["a"],
            "float32 where all that goes in is float64",
        ),
        (lambda x: jnp.argmax(x), TREE["a"], "returns no floating numbers"),
        (lambda x: x, {"n": jnp.arange(3)}, "no floating leaf"),
    ],
)
def test_wrong_derivatives_fail(function, tree, message):
    with pytest.raises(AssertionError, match=message):
        check_gradient(function, tree)


def test_a_jump_of_the_second_derivative_nearby_is_no_fault():
    """As of a shifted force, at whose cutoff a pair is by chance."""
    check_gradient(
        lambda x: jnp.sum(jnp.maximum(x - 1.00003, 0) ** 2) + x[1], jnp.array([1.0, 3.0])
    )


def test_names_of_nothing_are_refused():
    square = lambda t: t["a"] ** 2
    with pytest.raises(ParameterError, match=r"\['aa'\].*these are"):
        check_gradient(square, {"a": TREE["a"]}, require_gradient=["['aa']"])
    for modes in ((), ("backward",)):
        with pytest.raises(ParameterError, match="modes are of"):
            check_gradient(square, {"a": TREE["a"]}, modes=modes)


def test_wrong_reverse_mode_alone():
    with pytest.raises(AssertionError, match="automatic against differences"):
        check_gradient(wrong_backwards, TREE["a"], modes=("reverse",))


def test_taylor_order_sees_what_a_loose_tolerance_lets_pass():
    with pytest.raises(
        AssertionError, match=r"Taylor remainder .* has order (0\.9|1\.)\d+, expected"
    ):
        check_gradient(slightly_off, TREE["a"], relative=1e-2)


def test_double_precision_without_the_setting():
    with jax.enable_x64(False):
        check_gradient(lambda t: jnp.sin(t["a"]) * t["b"], {k: jnp.float32(1) for k in "ab"})
        assert jnp.ones(()).dtype == jnp.float32


class TestCheckEqual:
    def test_names_the_leaf_and_the_numbers(self):
        with pytest.raises(AssertionError) as caught:
            check_equal({"x": jnp.array([1.0, 2.5])}, {"x": jnp.array([1.0, 2.0])}, "it", "sum")
        for part in (
            "it: ['x'] differs",
            "computed 2.5",
            "expected 2",
            "at [1]",
            "tolerance 2e-12",
        ):
            assert part in str(caught.value)

    def test_bit_for_bit(self):
        one = jnp.array(1.0)
        check_equal(one, one, "it", "same")
        with pytest.raises(AssertionError):
            check_equal(np.nextafter(1.0, 2.0), np.asarray(1.0), "it", "same")

    def test_nan_is_no_infinity(self):
        with pytest.raises(AssertionError, match=r"computed nan, expected inf at \[1\]"):
            check_equal(jnp.array([1.0, jnp.nan]), jnp.array([1.0, jnp.inf]), "it", "same")
        check_equal(jnp.array([jnp.nan, jnp.inf]), jnp.array([jnp.nan, jnp.inf]), "it", "same")

    def test_one_nan_is_a_difference(self):
        with pytest.raises(AssertionError):
            check_equal(jnp.array([1.0, jnp.nan]), jnp.array([1.0, 2.0]), "it", relative=10.0)

    def test_shapes(self):
        with pytest.raises(AssertionError, match="the shapes differ"):
            check_equal(jnp.ones(2), jnp.ones(3), "it")

    def test_integers_exactly(self):
        with pytest.raises(AssertionError, match="computed 3, expected 2"):
            check_equal(jnp.array(3), jnp.array(2), "it", relative=10.0)

    def test_finite_names_the_place(self):
        with pytest.raises(AssertionError, match=r"\['x'\] is not finite \(inf at \[1\]; 1 of 2"):
            check_finite({"x": jnp.array([0.0, jnp.inf])}, "it")

    @pytest.mark.parametrize("kind", TOLERANCES)
    def test_tolerances_are_stricter_in_double_precision(self, kind):
        assert tolerance(jnp.float64, kind) <= tolerance(jnp.float32, kind)
