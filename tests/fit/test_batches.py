"""Batches are unbiased, each row comes once in an epoch, and a descent goes on with the same bits."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import physkit as pk
from physkit.fit.descent import _descent_file
from physkit.fit.descent._batches import Batches
from physkit.fit.solve._problem import ObjectiveInputs

_RNG = np.random.default_rng(0)
X = jnp.asarray(_RNG.normal(size=(50, 2)))
Y = jnp.einsum("ij,j->i", X, jnp.array([1.0, -2.0])) + 0.1 * jnp.asarray(_RNG.normal(size=50))


def mean_square(model, data):
    x, y = data
    return jnp.mean((jnp.einsum("ij,j->i", x, model["slope"]) - y) ** 2)


def descend(steps=300, to=None, key=3, data=(X, Y), decay=None, **changes):
    schedule = optax.cosine_decay_schedule(0.1, decay or steps)
    arguments = {"batch_rows": 8} | changes
    with warnings.catch_warnings():
        if steps < 100:  # too few to converge
            warnings.simplefilter("ignore", UserWarning)
        return _descend(schedule, steps, arguments, data, key, to)


def _descend(schedule, steps, arguments, data, key, to):
    return pk.fit(
        mean_square, {"slope": jnp.array([0.5, -1.0])}, where=lambda m: m["slope"], data=data,
        method=pk.fitting.Optax(optax.adam(schedule), steps=steps, **arguments), key=key, to=to,
        progress=False,
    )  # fmt: skip


def test_batches_find_the_minimum_of_all_data():
    found = descend()
    assert found.converged
    best = np.linalg.lstsq(np.asarray(X), np.asarray(Y))[0]
    np.testing.assert_allclose(found.values["slope"], best, atol=0.01)
    np.testing.assert_allclose(found.loss, mean_square(found.model, (X, Y)), rtol=1e-12)
    again = descend(data=(X, np.asarray(Y).tolist()))  # a list of numbers is an array, too
    np.testing.assert_array_equal(again.values["slope"], found.values["slope"])
    assert np.any(descend(key=4).values["slope"] != found.values["slope"])


def test_every_row_comes_once_in_an_epoch_so_that_gradients_are_unbiased():
    batches = Batches.of(8, (jnp.arange(50), X), jax.random.key(1))
    inputs = ObjectiveInputs(None, None, (jnp.arange(50), X), jnp.ones(()))
    assert batches.per_epoch == 6
    seen = np.zeros(50)
    take = jax.jit(jax.vmap(lambda count: batches.take(inputs, count).data[0]))
    for rows in np.asarray(take(jnp.arange(1200))).reshape(200, 48):
        assert len(set(rows.tolist())) == 48  # the last two of the epoch's order are left out
        seen[rows] += 1
    # Each row is seen in 24 of 25 epochs: binomial with variance 200 · 0.96 · 0.04.
    assert np.all(np.abs(seen - 192) < 5 * np.sqrt(200 * 0.96 * 0.04))


def test_a_descent_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    straight = descend(60)
    file, save, calls = tmp_path / "descent.h5", _descent_file.save_checkpoint, []

    def interrupt(*arguments):
        save(*arguments)
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt

    monkeypatch.setattr(_descent_file, "save_checkpoint", interrupt)
    with pytest.raises(KeyboardInterrupt):
        descend(60, to=file)
    found = descend(60, to=file)
    np.testing.assert_array_equal(found.values["slope"], straight.values["slope"])
    np.testing.assert_array_equal(found.history.loss, straight.history.loss)
    assert 9 < len(calls) < 60
    with pytest.raises(pk.errors.MismatchError, match="is of another fit: the objective"):
        descend(60, to=file, key=4)
    with pytest.raises(pk.errors.FileError, match="a descent is kept in one file"):
        descend(60, to=tmp_path)
    with pytest.raises(pk.errors.ParameterError, match="begins anew"):
        pk.fit(
            lambda m: m["x"] - 1.0,
            {"x": jnp.ones(2)},
            where=lambda m: m["x"],
            to=file,
            progress=False,
        )


@pytest.mark.filterwarnings("ignore:the fit has NOT converged")
def test_a_descent_goes_on_with_more_steps(tmp_path):
    file = tmp_path / "descent.h5"
    first = descend(60, to=file, decay=90)
    longer = descend(90, to=file)
    straight = descend(90)
    np.testing.assert_array_equal(longer.history.loss, straight.history.loss)
    np.testing.assert_array_equal(longer.values["slope"], straight.values["slope"])
    np.testing.assert_array_equal(first.history.loss, straight.history.loss[:60])
    schedule = optax.cosine_decay_schedule(0.1, 90)
    with pytest.warns(pk.errors.PhyskitWarning, match="has come to step 90, past the 60 asked for"):
        assert _descend(schedule, 60, {"batch_rows": 8}, (X, Y), 3, file).steps == 90
    # Losses of batches scatter: that none was the lowest for more steps than are asked for means nothing.
    scattered = {
        "to": tmp_path / "scattered.h5",
        "decay": 90,
        "data": (X, Y + 3 * jnp.sin(9 * X[:, 0])),
    }
    assert not descend(90, **scattered).converged
    assert not descend(5, **scattered).converged


def test_wrong_batches_are_refused():
    for error, text, changes in (
        (pk.errors.ParameterError, "more than the data have rows, 50", {"batch_rows": 51}),
        (pk.errors.ParameterError, "batch_rows must be", {"batch_rows": 0}),
        (pk.errors.ParameterError, "do not compare", {"patience": 3}),
    ):
        with pytest.raises(error, match=text):
            descend(**changes)
    with pytest.raises(pk.errors.ShapeError, match="first axes"):
        Batches.of(2, (jnp.zeros(3), jnp.zeros(4)), None)
    with pytest.raises(pk.errors.ObjectiveError, match="there are none"):
        Batches.of(2, None, None)


def test_the_file_of_a_descent_with_another_number_in_its_loss_is_refused(tmp_path):
    def go_on(weight):
        weight = jnp.asarray(weight)
        loss = lambda m: (m - 3.0) ** 2 + weight * (m - 1.0) ** 2  # of one gradient at the start
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return pk.fit(
                loss, jnp.asarray(1.0), where=lambda m: {"m": m}, progress=False,
                method=pk.fitting.Optax(optax.sgd(0.05), steps=5), to=tmp_path / "descent.h5",
            )  # fmt: skip

    go_on(10.0)
    with pytest.raises(pk.errors.MismatchError):
        go_on(0.0)


@pytest.mark.filterwarnings("ignore:the fit has NOT converged")
def test_of_several_starts_the_best_on_all_data_is_returned():
    """Most batches hold zeros alone, of which the start at 0 has the loss 0."""
    data = jnp.concatenate([jnp.zeros(90), jnp.full(10, 10.0)])
    found = pk.fit(
        lambda m, d: jnp.mean((m["c"] - d) ** 2), {"c": jnp.asarray(0.5)}, where=lambda m: m["c"],
        starts={"c": jnp.array([1.0, 0.0])}, data=data, key=0, progress=False,
        method=pk.fitting.Optax(optax.sgd(1e-9), steps=20, batch_rows=5),
    )  # fmt: skip
    np.testing.assert_allclose(found.values["c"], 1.0, rtol=1e-6)
    np.testing.assert_allclose([a.loss for a in found.attempts], [9.0, 10.0], rtol=1e-6)
    assert "20 steps see the data 1 times, fewer than the 20" in found.reason


def test_a_descent_that_ran_out_of_patience_is_finished_and_no_other(tmp_path):
    def repeat(rate=0.5):
        optimizer = optax.chain(optax.clip(10.0), optax.sgd(rate))
        return pk.fit(
            lambda m: jnp.sum(m["x"] ** 2), {"x": jnp.ones(2)}, where=lambda m: m["x"],
            method=pk.fitting.Optax(optimizer, steps=500, patience=5), progress=False,
            to=tmp_path / "descent.h5",
        )  # fmt: skip

    first, second = repeat(), repeat()
    assert first.steps == second.steps < 100
    np.testing.assert_array_equal(first.history.loss, second.history.loss)
    # The rate is deep within the closures of the optimizer's functions.
    with pytest.raises(pk.errors.MismatchError):
        repeat(0.4)
