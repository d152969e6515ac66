"""Pictures of fits."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

import physkit as pk
from physkit import plot
from physkit.core import ParameterError, ShapeError


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def line():
    x = np.arange(6.0)
    y = jnp.asarray(2 * x + 1 + 0.1 * np.cos(7 * x))
    model = {"slope": jnp.asarray(1.0), "start": jnp.asarray(0.5)}
    objective = lambda m: m["slope"] * x + m["start"] - y
    return x, np.asarray(y), pk.fit(objective, model, where=lambda m: m, progress=False)


def test_fit_draws_data_with_the_model_before_and_after(line):
    x, y, found = line
    top, bottom = plot.fit(
        x, y, y + found.residuals_before, y + found.residuals, error=0.1, label="y", unit="m"
    )
    shown = [np.asarray(artist.get_ydata()) for artist in top.lines]
    assert any(a.shape == y.shape and np.allclose(a, y + found.residuals) for a in shown)
    assert any(np.allclose(np.asarray(a.get_ydata()), -found.residuals) for a in bottom.lines[1:])
    assert top.get_ylabel() == "y / m"
    assert bottom.get_xlabel() == "time"
    names = [t.get_text() for t in top.get_legend().get_texts()]
    assert set(names) == {"fit", "start", "data"}
    two = np.stack([y, y], axis=1)
    axes = plot.fit(x, two, two, two, axes=(top, bottom), names=("a", "b"))
    assert axes == (top, bottom)


def test_history_and_correlations(line):
    *_, found = line
    ax = plot.fit_history(found)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found.history.loss)
    ax = plot.fit_correlations(found)
    np.testing.assert_allclose(ax.images[0].get_array(), found.correlations)
    assert [t.get_text() for t in ax.get_yticklabels()] == list(found.labels)


def test_bad_input_is_refused(line):
    x, y, _ = line
    with pytest.raises(ShapeError, match=r"needs x \[t\]"):
        plot.fit(x, y, y[1:], y)
    with pytest.raises(ParameterError, match="two axes"):
        plot.fit(x, y, y, y, axes=[plt.gca()])
    with pytest.warns(UserWarning, match="NOT converged"):
        loss = pk.fit(
            lambda m: m["a"] ** 2, {"a": jnp.asarray(1.0)}, where=lambda m: m,
            method=pk.fitting.BFGS(max_steps=1), progress=False,
        )  # fmt: skip
    with pytest.raises(ParameterError, match="no standard errors"):
        plot.fit_correlations(loss)
    with pytest.raises(ParameterError, match="no standard errors"):
        loss.error("a")
