"""Pictures of ensembles draw the numbers they are given, and their error bars."""

import jax
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


PATHS = np.random.default_rng(0).normal(size=(40, 9))
TIMES = np.linspace(0, 2, 9)


def test_a_fan_has_bands_whose_levels_are_rounded():
    """1 − 0.32 is not 0.68 to the last bit."""
    found = pk.ensemble_statistics(PATHS, key=0, quantiles=(0.32, 0.5, 0.68), resamples=2)
    bands = plot.fan(TIMES, found).collections
    assert [band.get_label() for band in bands if "members" in band.get_label()] == [
        "36 % of members"
    ]


def test_fan():
    found = pk.ensemble_statistics(PATHS, key=jax.random.key(0), quantiles=(0.1, 0.5, 0.9))
    ax = plot.fan(TIMES, found, label="x", unit="m", time_unit="s", name="walk")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.median(PATHS, axis=0))
    edges = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert edges.min() == pytest.approx(np.quantile(PATHS, 0.1, axis=0).min())
    assert edges.max() == pytest.approx(np.quantile(PATHS, 0.9, axis=0).max())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time / s", "x / m")
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "walk: 80 % of members",
        "walk: median",
    ]
    assert len(ax.containers) == 3  # error bars at the median and both edges
    bars = [c.lines[2][0].get_segments() for c in ax.containers]
    lengths = sorted(s[1, 1] - s[0, 1] for part in bars for s in part)
    inner = np.asarray(found.quantile.error)[:, 1:-1]
    assert 2 * inner.min() * 0.99 <= lengths[0] <= lengths[-1] <= 2 * inner.max() * 1.01
    plain = plot.fan(TIMES, PATHS, members=3)
    assert not plain.containers
    np.testing.assert_array_equal(plain.lines[2].get_ydata(), PATHS[2])


def grid(n):
    x, y = (a.ravel() for a in np.meshgrid(np.arange(n) / 2, np.arange(n) + 1.0))
    return x, y, x * y


def test_heat_map_in_any_order_with_a_hole():
    x, y, z = grid(3)
    order = np.random.default_rng(1).permutation(9)[:8]
    ax = plot.heat_map(x[order], y[order], z[order], error=0.01 * z[order], label="p")
    drawn = ax.collections[0].get_array().reshape(3, 3)
    expected = z.copy()
    expected[np.setdiff1d(np.arange(9), order)] = np.nan
    np.testing.assert_array_equal(np.ma.filled(drawn, np.nan), expected.reshape(3, 3))
    assert len(ax.texts) == 8
    assert any("±" in t.get_text() for t in ax.texts)


def test_points_beside_a_grid_are_dots():
    """Cells of a grid around a Latin hypercube are specks, and n² of them."""
    x, y, z = np.arange(5.0), np.array([3.0, 1, 4, 0, 2]), np.array([-2.0, -1, 0, 1, 1.5])
    (dots,) = plot.heat_map(x, y, z, label="p").collections
    np.testing.assert_array_equal(dots.get_offsets(), np.stack([x, y], axis=1))
    np.testing.assert_array_equal(dots.get_array(), z)
    assert dots.get_clim() == (-2.0, 2.0)  # as of cells: white is 0
    assert dots.colorbar.ax.get_ylabel() == "p"


def test_heat_map_hatches_what_is_noisy():
    x, y, z = grid(9)
    error = np.where(np.arange(81) < 5, 0.2 * np.ptp(z), 0.01)
    ax = plot.heat_map(x, y, z, error=error)
    assert len(ax.patches) == 5
    assert not ax.texts
    assert not plot.heat_map(x, y, z).patches


@pytest.mark.parametrize(
    ("scale", "written"), [(1.0, "1.50\n±0.01"), (1e-6, "1.5e-06\n±1e-08"), (1e3, "1500\n±10")]
)
def test_numbers_of_cells_have_digits_that_say_something(scale, written):
    ax = plot.heat_map([0, 1], [0, 0], [scale, 1.5 * scale], error=[0.01 * scale] * 2)
    assert ax.texts[1].get_text() == written


def test_parallel_coordinates():
    x, y, z = grid(3)
    z[4] = np.nan
    ax = plot.parallel_coordinates(
        {"a": x, "b": y, "same": 0 * y, "c": z}, error={"c": 0.1 + 0 * z}
    )
    lines = [line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 4]
    assert len(lines) == 8
    expected = {(a, b, 0.5, c) for a, b, c in zip(x, (y - 1) / 2, z / 3, strict=True) if c == c}
    assert {tuple(np.round(line, 9)) for line in lines} == {tuple(np.round(e, 9)) for e in expected}
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b", "same", "c"]
    assert len(ax.containers) == 1


def test_bad_input_is_refused():
    x, y, z = grid(3)
    with pytest.raises(ShapeError, match=r"\[members t\]"):
        plot.fan(TIMES, TIMES)
    with pytest.raises(ShapeError, match="one number for each"):
        plot.fan(TIMES[1:], PATHS)
    with pytest.raises(ParameterError, match="of 40 given"):
        plot.fan(TIMES, PATHS, members=41)
    with pytest.raises(ParameterError, match="-3 members to draw"):
        plot.fan(TIMES, PATHS, members=-3)
    broken = np.where(np.arange(9) == 8, np.nan, PATHS)
    plot.fan(TIMES, broken)  # of no member: a gap
    broken[3, 4] = np.nan
    with pytest.raises(ParameterError, match="1 of 40 members are NaN"):
        plot.fan(TIMES, broken)
    without = pk.ensemble_statistics(PATHS, key=jax.random.key(0), quantiles=(0.1, 0.9))
    with pytest.raises(ParameterError, match="median"):
        plot.fan(TIMES, without)
    with pytest.raises(ShapeError, match="one length"):
        plot.heat_map(x, y, z[1:])
    with pytest.raises(ParameterError, match="one value at each point"):
        plot.heat_map(0 * x, y, z)
    with pytest.raises(ParameterError, match="two columns"):
        plot.parallel_coordinates({"a": x})
    with pytest.raises(ShapeError, match="one number a member"):
        plot.parallel_coordinates({"a": x, "b": y[1:]})
    with pytest.raises(ParameterError, match="errors of"):
        plot.parallel_coordinates({"a": x, "b": y}, error={"c": y})
    with pytest.raises(ParameterError, match="NaN somewhere"):
        plot.parallel_coordinates({"a": x, "b": np.nan * y})
