"""Derivatives keep the least that formulas of each number give the rest from, and stay what they are."""

import importlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import StepCount
from physkit.simulate.adjoint._adjoint import Direct

packing = importlib.import_module("physkit.simulate.adjoint.packing._packed_step")
kept_arrays = importlib.import_module("physkit.simulate.adjoint.packing._kept_arrays")
N, STEPS = 100, 5
X = np.linspace(0.3, 1.0, N)


@pytest.fixture(autouse=True)
def for_any_size(monkeypatch):
    monkeypatch.setattr(packing, "kernels_are_used", lambda: True)
    monkeypatch.setattr(kept_arrays, "_LEAST_BYTES", 0)


def least(function, *inputs, changing=None):
    """How many numbers are kept for the results of a function; that they give those results is asserted."""
    closed = jax.make_jaxpr(function)(*inputs)
    changing = [True] * len(inputs) if changing is None else changing
    found = kept_arrays.KeptArrays.find(closed, 0, changing)
    if found is None:
        return None
    kept = jax.core.eval_jaxpr(found.forward.jaxpr, found.forward.consts, *inputs)
    again = jax.core.eval_jaxpr(found.again.jaxpr, found.again.consts, *kept)
    for a, b in zip(again, function(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    return [x.size for x in kept]


def of_one(x):
    """Of a sum, which takes long, formulas."""
    a = jnp.cumsum(x)
    return jnp.sin(a), jax.jit(jnp.cos)(a), jnp.where(a > 1, a, a**2)


def of_two(x):
    """Two sums have the numbers of two arrays, their product those of one."""
    a, b = jnp.cumsum(x), jnp.cumprod(x)
    c = jax.jit(lambda a, b: jnp.exp(a) * b)(a, b)
    return jnp.sin(c), jnp.cos(c), c * c


def of_fewer(x):
    """What all columns have in common is kept without them."""
    a = jnp.cumsum(x)
    return jnp.broadcast_to(a[:, None], (N, 4)) + 1.0, 2.0 * a


def with_rows(x):
    """An array that the program holds is kept by itself, and counts nothing."""
    a = jnp.cumsum(x)
    return a * X, jnp.sin(a), jnp.cos(a)


@pytest.mark.parametrize(
    ("function", "expected"),
    [(of_one, [N]), (of_two, [N]), (of_fewer, [N]), (with_rows, [N, N])],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_the_least_is_kept(function, expected):
    assert least(function, X) == expected


def test_it_is_left_as_it_is_where_little_is_gained():
    assert least(lambda x: (jnp.cumsum(x), jnp.cumprod(x)), X) is None
    assert least(lambda x: (jnp.cumsum(x), jnp.fft.fft(x).real), X) is None


def test_what_no_step_changes_counts_nothing_and_is_not_spread():
    def function(x, speed, size):
        a = jnp.cumsum(x)
        return jnp.sin(a) * speed, jnp.cos(a) * jnp.broadcast_to(size, (N,)), jnp.exp(speed)

    found = least(function, X, X, np.float64(2.0), changing=[True, False, False])
    assert sorted(found) == [1, N, N, N]  # of the last result, which is kept as it is, too


def distances(carry, _=None):
    """Formulas with derivatives of their own: none of them is infinite at 0."""
    x, speed = carry
    a = jnp.cumsum(x)
    r = pk.core.safe_norm(jnp.stack([a, x * a]), axis=0)
    return (0.5 * x + 0.1 * speed * r * jnp.sin(a) * jnp.cos(r), speed), None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivatives_of_both_orders_and_modes_stay_the_same(dtype):
    plain = lambda x: jax.lax.scan(distances, (x[1:], x[0]), None, length=STEPS)[0][0]
    packed = lambda x: Direct().repeat(packing.pack_step(distances), (x[1:], x[0]), STEPS)[0][0]
    x = np.linspace(-0.6, 0.6, 8).astype(dtype)
    x[1:3] = 0.0
    rtol = 1e-4 if dtype == np.float32 else 1e-11
    for of in (jax.jacrev, jax.jacfwd, jax.hessian):
        expected, found = (of(lambda x, f=f: jnp.sum(f(x) ** 2))(x) for f in (plain, packed))
        assert np.all(np.isfinite(expected))
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


SCALE = jnp.array(0.7)


@jax.jit
def scaled_sine(x):
    return jnp.sin(SCALE * x)


@jax.custom_jvp
def sine(x):
    return jnp.sin(SCALE * x)


@sine.defjvp
def _sine_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return sine(x), SCALE * jnp.cos(SCALE * x) * dx


@pytest.mark.parametrize("function", [scaled_sine, sine])
def test_arrays_of_one_number_may_come_from_outside(function):
    def step(x, _=None):
        a = function(jnp.cumsum(x))
        b = jnp.exp(-a * a)
        return 0.5 * x + 0.1 * jnp.sqrt(1 + b) * a * b, None

    plain = lambda x: jnp.sum(jax.lax.scan(step, x, None, length=STEPS)[0])
    packed = lambda x: jnp.sum(Direct().repeat(packing.pack_step(step), x, STEPS)[0])
    for of in (jax.grad, jax.jit, lambda f: jax.jit(jax.grad(f))):
        np.testing.assert_allclose(of(packed)(X), of(plain)(X), rtol=1e-12)


class Counting(pk.core.Module):
    step: StepCount
    x: jax.Array = pk.core.data()


@pytest.mark.parametrize("start", [0, 2**24 - 3, 2**40 + 5])
def test_the_number_of_a_step_is_not_carried(start):
    """Nor lost: steps know theirs, whatever word it is in, and the end has the last."""

    def step(carry, _=None):
        high, low = (x.astype(np.float64) for x in (carry.step.high, carry.step.low))
        number = high * 2.0**24 + low - start
        x = carry.x * (1 + 0.1 * jnp.sin(number)) + 0.01 * number * jnp.cos(carry.x)
        return Counting(carry.step.plus(1), x), None

    begin = lambda x: Counting(StepCount.of(start), x)
    plain = lambda x: jax.lax.scan(step, begin(x), None, length=STEPS)[0]
    packed = lambda x: Direct().repeat(packing.pack_step(step), begin(x), STEPS)[0]
    assert int(packed(X).step) == start + STEPS
    for of in (lambda f: f, lambda f: jax.grad(lambda x: jnp.sum(f(x)))):
        x_of = [of(lambda x, f=f: f(x).x)(X) for f in (plain, packed)]
        np.testing.assert_allclose(x_of[1], x_of[0], rtol=1e-13)
    jaxpr = jax.make_jaxpr(jax.grad(lambda x: jnp.sum(packed(x).x)))(X).jaxpr
    loops = [e for e in jaxpr.eqns if e.primitive.name == "scan"]
    results = itertools.chain.from_iterable(loop.outvars for loop in loops)
    assert not [x for x in results if x.aval.dtype == np.int32]
