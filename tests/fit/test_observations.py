"""`observations` and `frames_at`: data for a fit from a table, and the frames at their times."""

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import physkit as pk

NAN = np.nan
TABLE = {
    "t": [2.0, 0.0, 1.0, 3.0],
    "x": [0.2, 1.0, NAN, NAN],
    "y": [NAN, 5.0, 6.0, NAN],
    "dy": [NAN, 0.5, 0.25, NAN],
}


def test_times_are_sorted_and_missing_values_left_out():
    found = pk.fitting.observations(TABLE, time="t", errors={"x": 0.1, "y": "dy"})
    assert found.columns == ("x", "y")
    assert found.times == (0.0, 1.0, 2.0)  # the last row has no value
    assert found.count == 4
    np.testing.assert_array_equal(found.rows["x"], [0, 2])
    np.testing.assert_array_equal(found.values["y"], [5.0, 6.0])
    predicted = {"x": jnp.array([1.1, 7.0, 0.2]), "y": jnp.array([5.0, 6.5, 9.0])}
    residuals = found.residuals(predicted)
    np.testing.assert_allclose(residuals["x"], [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(residuals["y"], [0.0, 2.0], atol=1e-12)
    as_array = found.residuals(jnp.stack(list(predicted.values()), axis=1))
    np.testing.assert_array_equal(as_array["y"], residuals["y"])
    only = pk.fitting.observations(TABLE, time="t", columns="x")
    np.testing.assert_allclose(only.residuals(jnp.array([1.0, 0.3]))["x"], [0.0, 0.1], atol=1e-12)
    half = found.residuals({name: x.astype(jnp.float32) for name, x in predicted.items()})
    assert half["y"].dtype == jnp.float32


def test_tables_of_pandas_with_every_kind_of_missing_value():
    pd = pytest.importorskip("pandas", reason="the pandas extra is not installed")
    plain = pd.DataFrame(TABLE)
    nullable = plain.convert_dtypes()
    objects = pd.DataFrame({"t": [0, 1, 2], "x": [1.0, None, 0.2], "y": [5.0, 6.0, None]})
    for table in (plain, nullable, objects):
        found = pk.fitting.observations(table, time="t", columns=("x", "y"))
        np.testing.assert_array_equal(found.values["x"], [1.0, 0.2])
        np.testing.assert_array_equal(found.rows["y"], [0, 1])
    dated = plain.assign(t=pd.date_range("2020-01-01", periods=4))
    with pytest.raises(pk.errors.ParameterError, match="'t' holds dates"):
        pk.fitting.observations(dated, time="t")


def test_a_fit_takes_them_whatever_is_missing():
    """A decay that was measured without noise: the rate comes back, and missing values count for nothing."""
    t = np.arange(0, 2.01, 0.25)
    x = np.exp(-0.7 * t)
    table = {"t": t, "x": np.where(np.arange(9) == 4, NAN, x), "twice": np.where(t > 1, NAN, 2 * x)}
    seen = pk.fitting.observations(table, time="t", errors=0.01)
    sim = pk.Simulation(Decay(1.0), dt=0.05, observers=pk.Every(5, x=lambda now: now.state))
    at = pk.fitting.frames_at(sim, seen.times, every=5)

    def residuals(sim, seen):
        x = at.pick(pk.simulate(sim, jnp.asarray(1.0), at.steps), "x")
        return seen.residuals({"x": x, "twice": 2 * x})

    found = pk.fit(residuals, sim, where=lambda m: m.integrator.rate, data=seen, progress=False)
    assert found.count == 11  # 13 values, of which the two of the start are given, not found
    assert set(found.residuals) == {"x", "twice"}
    np.testing.assert_allclose(next(iter(found.values.values())), 0.7, rtol=1e-7)


class Decay(pk.AbstractOneStep):
    """x' = −k x, solved exactly."""

    rate: Float[Array, ""] = pk.param()

    def step(self, plan, clock, state, aux):
        return state * jnp.exp(-self.rate * clock.dt), aux


@pytest.mark.parametrize(
    ("changes", "arguments", "says"),
    [
        ({}, {"columns": "z"}, "no column 'z'; available"),
        ({}, {"time": "year"}, "no column 'year'"),
        ({"t": [NAN, 0.0, 1.0, 2.0]}, {}, "time in row 0 is missing"),
        ({"x": [NAN] * 4}, {}, "'x' has no value"),
        ({"x": [np.inf] * 4}, {}, "'x' holds an infinite"),
        ({"x": [1.0] * 3}, {}, "'x' has 3 rows, 't' has 4"),
        ({"x": [1.0] * 5}, {}, "'x' has 5 rows, 't' has 4"),
        ({"dy": [1.0] * 5}, {"errors": {"y": "dy"}}, "'dy' has 5 rows"),
        ({"x": ["a"] * 4}, {}, "'x' is no list of numbers"),
        ({}, {"errors": {"x": -1.0}}, "errors of 'x' are standard deviations"),
        ({}, {"errors": {"z": 1.0}}, r"errors for \['z'\]"),
        ({}, {"errors": {"x": np.ones(4)}}, "Put errors of each row into the table"),
        ({}, {"errors": np.ones(4)}, "Put errors of each row into the table"),
        ({}, {"errors": "x"}, "does not say whose errors"),
    ],
)
def test_bad_tables_are_refused(changes, arguments, says):
    with pytest.raises(pk.errors.ParameterError, match=says):
        pk.fitting.observations({**TABLE, **changes}, **{"time": "t", **arguments})


def test_wrong_predictions_are_refused():
    found = pk.fitting.observations(TABLE, time="t", columns=("x", "y"))
    with pytest.raises(pk.errors.ShapeError, match=r"a prediction of x is \[3\]"):
        found.residuals({"x": jnp.ones(4), "y": jnp.ones(4)})
    with pytest.raises(pk.errors.ShapeError, match=r"\[3, 2\]"):
        found.residuals(jnp.ones((3, 3)))
    with pytest.raises(pk.errors.ParameterError, match="predictions are of"):
        found.residuals({"x": jnp.ones(3)})


def test_frames_at_times_of_data():
    sim = pk.Simulation(
        pk.RK4(lambda t, y: -y), dt=0.1, observers=pk.Every(5, y=lambda now: now.state), t0=10.0
    )
    at = pk.fitting.frames_at(sim, [10.0, 11.5, 13.0], every=5)
    assert at.steps == 30
    assert at.index == (0, 3, 6)
    result = pk.simulate(sim, jnp.ones(2), at.steps)
    np.testing.assert_allclose(at.pick(result, "y")[:, 0], np.exp([0, -1.5, -3]), rtol=1e-5)
    with pytest.raises(
        pk.errors.ParameterError, match=r"1 of 2 times .* t = 11.2 lies nearest to 11 and 11.5"
    ):
        pk.fitting.frames_at(sim, [10.5, 11.2], every=5)
    with pytest.raises(pk.errors.ParameterError, match="do not fall on frames"):
        pk.fitting.frames_at(sim, [9.5], every=5)
    with pytest.raises(pk.errors.ParameterError, match=r"times\[1\] is nan"):
        pk.fitting.frames_at(sim, [10.5, NAN], every=5)
    with pytest.raises(pk.errors.ParameterError, match="no times"):
        pk.fitting.frames_at(sim, [], every=5)
    with pytest.raises(pk.errors.ParameterError, match="does not divide"):
        pk.fitting.frames_at(sim, [10.5], every=3)
    with pytest.raises(pk.errors.ParameterError, match="nothing recorded as 'x'; available"):
        at.pick(result, "x")
    with pytest.raises(pk.errors.ShapeError, match=r"3 frames, .* among 7"):
        at.pick(pk.simulate(sim, jnp.ones(2), 10), "y")


def test_frames_of_another_interval_are_refused():
    record = [pk.Every(5, x=lambda now: now.state), pk.Every(10, y=lambda now: now.state)]
    sim = pk.Simulation(pk.RK4(lambda t, y: -y), 0.1, observers=record)
    at = pk.fitting.frames_at(sim, [0.0, 1.0, 2.0], every=10)
    result = pk.simulate(sim, jnp.ones(1), at.steps)
    np.testing.assert_allclose(at.pick(result, "y")[:, 0], np.exp([0, -1, -2]), rtol=1e-5)
    with pytest.raises(pk.errors.ShapeError, match=r"5 frames, .* among 3"):
        at.pick(result, "x")
