"""Statistics of ensembles: values against NumPy, error bars against what is known of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import ParameterError, SelectionError, ShapeError
from physkit.ensemble import bootstrap, ensemble_statistics, passage_rate

KEY = jax.random.key(3)


def mean(x):
    return jnp.mean(x, axis=0)


def test_statistics_equal_numpys():
    x = np.random.default_rng(0).normal(size=(40, 3))
    found = ensemble_statistics(x, key=KEY, quantiles=(0.1, 0.5))
    np.testing.assert_allclose(found.mean.value, x.mean(axis=0))
    np.testing.assert_allclose(found.std.value, x.std(axis=0, ddof=1))
    np.testing.assert_allclose(found.quantile.value, np.quantile(x, [0.1, 0.5], axis=0))
    assert found.num_members == 40
    assert found.levels == (0.1, 0.5)


@pytest.mark.parametrize("members", [3, 50])
def test_bootstrap_error_of_a_mean_is_unbiased(members):
    """Over many ensembles the error bar squared is s²/n: for three members, too."""
    draws = jax.random.normal(KEY, (members, 400))  # 400 ensembles at once, resampled together
    found = bootstrap(mean, draws, key=KEY, resamples=2000)
    expected = np.var(np.asarray(draws), axis=0, ddof=1) / members
    ratio = np.asarray(found.error) ** 2 / expected
    assert np.mean(ratio) == pytest.approx(1, abs=0.06)  # 2/3 with n draws of 3
    assert np.all(np.asarray(found.low) < np.asarray(found.high))


def test_errors_of_standard_deviation_and_median():
    """Of a normal sample: σ/√(2n) and √(π/2n) σ."""
    n = 4000
    x = 2.0 * jax.random.normal(KEY, (n,))
    found = ensemble_statistics(x, key=KEY, quantiles=(0.5,))
    assert float(found.std.error) == pytest.approx(2 / np.sqrt(2 * n), rel=0.15)
    assert float(found.quantile.error[0]) == pytest.approx(2 * np.sqrt(np.pi / 2 / n), rel=0.25)


def test_bootstrap_intervals_have_their_coverage():
    inside = []
    for i in range(150):
        x = jax.random.exponential(jax.random.key(i), (60,))
        found = bootstrap(mean, x, key=jax.random.key(i + 999), resamples=300, level=0.8)
        inside.append(bool(found.low <= 1.0 <= found.high))
    assert np.mean(inside) == pytest.approx(0.8, abs=0.1)


def test_an_interval_is_as_far_below_as_above():
    """Of the mean of a sample that is its own mirror image: ±1.28 errors hold 80 %."""
    x = jax.random.normal(KEY, (50,))
    found = bootstrap(mean, jnp.concatenate([x, -x]), key=KEY, resamples=4000, level=0.8)
    ends = np.array([found.low, found.high]) / float(found.error)
    np.testing.assert_allclose(ends, [-1.28, 1.28], atol=0.1)


def test_the_key_decides_the_draws():
    x = jax.random.normal(KEY, (20,))
    one, two, other = (bootstrap(mean, x, key=jax.random.key(k)) for k in (1, 1, 2))
    assert float(one.error) == float(two.error)
    assert float(one.error) != float(other.error)


def test_statistics_by_coordinates():
    """Replicas at 2 × 2 points in any order, one left out."""
    hot = np.array([2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 1.0, 2.0, 1.0])
    dense = np.array([0.1, 0.1, 0.2, 0.2, 0.1, 0.1, 0.2, 0.2, 0.2])
    value = np.array([1.0, 2.0, 3.0, 4.0, 3.0, 6.0, 8.0, 7.0, np.nan])
    by = {"temperature": hot, "density": dense}
    found = ensemble_statistics(value, key=KEY, by=by, ok=np.isfinite(value))
    np.testing.assert_array_equal(found.points["temperature"], [1, 1, 2, 2])
    np.testing.assert_array_equal(found.points["density"], [0.1, 0.2, 0.1, 0.2])
    np.testing.assert_allclose(found.mean.value, [4, 6, 2, 5])
    np.testing.assert_array_equal(found.num_members, [2, 2, 2, 2])
    one = found.nearest(temperature=2.0, density=0.1)
    assert float(one.mean.value) == 2
    assert one.quantile.value.shape == (5,)
    with pytest.raises(SelectionError, match="2 points"):
        found.nearest(temperature=2.0)
    with pytest.raises(SelectionError, match="available"):
        found.nearest(pressure=2.0)


def test_one_member_has_no_error_bar():
    found = ensemble_statistics([3.0], key=KEY)
    assert float(found.mean.value) == 3
    assert np.isnan(found.mean.error)
    assert np.isnan(found.std.value)


def test_estimates_print_in_the_shape_of_their_values():
    paths = np.arange(6.0)[:, None] + [[0.0, 10.0]]
    found = ensemble_statistics(paths, key=KEY).mean
    assert str(found).startswith("[2.5 ± ")
    assert "12.5 ± " in str(found)
    assert str(ensemble_statistics(paths[:, 0], key=KEY).mean).startswith("2.5 ± ")


def test_passage_rate_with_members_still_waiting():
    """Exponential times, a third of which are cut off: the rate comes out, its error is k/√N."""
    times = np.array(jax.random.exponential(KEY, (6000,))) / 0.25
    times[times > 4.4] = np.nan
    found = passage_rate(times, 4.4, key=KEY)
    passed = np.sum(np.isfinite(times))
    assert float(found.error) == pytest.approx(0.25 / np.sqrt(passed), rel=0.15)
    assert abs(float(found.value) - 0.25) < 3 * float(found.error)
    assert float(passage_rate([np.nan, np.nan], 1.0, key=KEY).value) == 0


def test_bad_arguments_are_refused():
    x = np.ones(4)
    with pytest.raises(ShapeError, match="members as their first axis"):
        bootstrap(lambda t: t, (x, x[1:]), key=KEY)
    with pytest.raises(ShapeError, match="ok is a mask"):
        ensemble_statistics(x, key=KEY, ok=np.ones(3, bool))
    with pytest.raises(ShapeError, match="'density'"):
        ensemble_statistics(x, key=KEY, by={"density": x[1:]})
    with pytest.raises(ShapeError, match="one time a member"):
        passage_rate(np.ones((2, 2)), 1.0, key=KEY)
    for values, options, said in (
        (x[:0], {}, "no members"),
        (x, {"ok": np.zeros(4, bool)}, "no members"),
        (x, {"ok": np.zeros(4, bool), "by": {"a": x}}, "no members"),
        (x, {"quantiles": (1.5,)}, "between 0 and 1"),
        (x, {"resamples": 1}, "two resamples"),
        (x, {"by": {}}, "no coordinate"),
    ):
        with pytest.raises(ParameterError, match=said):
            ensemble_statistics(values, key=KEY, **options)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        bootstrap(mean, x, key=KEY, level=1.0)


def test_a_mask_may_be_zeros_and_ones_and_nothing_else():
    """Tables of an ensemble hold `ok` as whole numbers."""
    x, by = np.arange(8.0), {"T": np.repeat([1.0, 2.0], 4)}
    ok = np.array([1, 1, 0, 1, 1, 1, 1, 1])
    found = ensemble_statistics(x, key=KEY, by=by, ok=ok)
    np.testing.assert_array_equal(found.points["T"], [1.0, 2.0])
    np.testing.assert_array_equal(found.num_members, [3, 4])
    np.testing.assert_allclose(found.mean.value, [4 / 3, 5.5])
    assert ensemble_statistics(x, key=KEY, ok=ok).num_members == 7
    for wrong in (np.arange(8), np.ones(7, int), np.ones(8)):
        for points in (by, None):
            with pytest.raises(ShapeError, match="mask of the members"):
                ensemble_statistics(x, key=KEY, by=points, ok=wrong)
