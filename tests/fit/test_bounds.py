"""Bounds: smooth maps there and back, that stay inside, in both precisions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.fit import AbstractBounds

BOUNDS = {
    "free": (pk.bounds.Unbounded(), [-2.0, 0.0, 3.0]),
    "above zero": (pk.bounds.PositiveBound(), [1e-3, 1.0, 1e3]),
    "interval": (pk.bounds.Interval(-1.0, 3.0), [-0.9, 1.0, 2.9]),
    "interval of arrays": (pk.bounds.Interval([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]), [0.5, 1.1, 2.9]),
    "simplex": (pk.bounds.Simplex(), [0.2, 0.5, 0.3]),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_value_and_inverse_agree_and_stay_inside(name, dtype):
    bound, value = BOUNDS[name]
    value = jnp.asarray(value, dtype)
    u = bound.inverse(value)
    assert u.dtype == dtype
    assert bound.natural_scale(value).shape == u.shape
    assert np.all(np.asarray(bound.natural_scale(value)) > 0)
    np.testing.assert_allclose(bound.value(u), value, rtol=20 * jnp.finfo(dtype).eps)
    assert bound.why_invalid(np.asarray(value)) == ""
    far = bound.value(u + jnp.asarray([5.0, -7.0, 3.0], dtype)[: u.size])
    assert bound.why_invalid(np.asarray(far)) == ""
    slope = jax.jacfwd(bound.value)(u)
    assert np.all(np.isfinite(slope))


@pytest.mark.parametrize(
    ("bound", "value", "message"),
    [
        (pk.bounds.PositiveBound(), [1.0, 0.0], "above 0"),
        (pk.bounds.Interval(0.0, 1.0), [0.5, 1.0], "between 0"),
        (pk.bounds.Simplex(), [0.5, 0.6], "add up to 1"),
        (pk.bounds.Simplex(), 1.0, "at least two fractions"),
        (pk.bounds.Unbounded(), [jnp.inf], "not finite"),
        (pk.bounds.Unbounded(-1.0), [1.0], "positive scale"),
    ],
)
def test_a_start_outside_is_refused(bound, value, message):
    assert message in bound.why_invalid(np.asarray(value))
    with pytest.raises(
        pk.errors.ParameterError, match=rf"{type(bound).__name__} bounds: a .*{message}"
    ):
        pk.fit(
            lambda m: m["a"], {"a": jnp.asarray(value)}, where=lambda m: m["a"], bounds=bound,
            progress=False,
        )  # fmt: skip


def test_an_interval_needs_its_ends_in_order():
    for low, high in ((1.0, 1.0), (2.0, 1.0), (0.0, np.inf)):
        with pytest.raises(pk.errors.ParameterError, match="finite a < b"):
            pk.bounds.Interval(low, high)


def test_a_value_at_its_end_is_an_active_bound():
    assert pk.bounds.Interval(0.0, 2.0).active_bound(np.array([1.0, 1.9999])) == "2"
    assert pk.bounds.Interval(0.0, 2.0).active_bound(np.array([1.0, 1.9])) == ""
    assert pk.bounds.PositiveBound().active_bound(np.array(0.0)) == "0"
    assert pk.bounds.Simplex().active_bound(np.array([1e-9, 1 - 1e-9])) == "0"


def test_zeros_take_the_scale_of_their_neighbors():
    np.testing.assert_array_equal(
        pk.bounds.Unbounded().natural_scale(jnp.array([0.0, 0.0])), [1.0, 1.0]
    )
    units = np.asarray(pk.bounds.Unbounded().natural_scale(jnp.array([0.0, 3.0])))
    np.testing.assert_allclose(units, [3 / np.sqrt(2), 3.0])
    assert issubclass(pk.bounds.Unbounded, AbstractBounds)
