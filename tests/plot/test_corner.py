"""Corner plots show the draws, their medians and what is known otherwise."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import physkit as pk


def test_a_corner_plot_shows_numbers_and_pairs():
    rng = np.random.default_rng(0)
    table = rng.multivariate_normal([0, 1, 2], np.diag([1, 2, 3]) + 0.5, 3000)
    panels = pk.plot.corner(table, labels=["a", "b / m", "c"], truth=[0, 1, 2])
    assert panels.shape == (3, 3)
    assert panels[0, 1] is None
    assert panels[2, 1].get_xlabel() == "b / m"
    assert panels[2, 0].get_ylabel() == "c"
    median = panels[1, 1].lines[0].get_xdata()[0]
    assert median == np.median(table[:, 1])
    assert len(panels[1, 0].collections) == 1  # contours
    plt.close("all")
    for wrong in (table[:, :1], table[None]):
        with pytest.raises(pk.errors.ShapeError, match="two or more"):
            pk.plot.corner(wrong)
    with pytest.raises(pk.errors.ShapeError, match="labels"):
        pk.plot.corner(table, labels=["a"])


def test_draws_by_name():
    rng = np.random.default_rng(0)
    draws = {"k": rng.normal(size=200), "x": rng.normal(size=(200, 2))}
    panels = pk.plot.corner(draws)
    assert [ax.get_xlabel() for ax in panels[2]] == ["k", "x[0]", "x[1]"]
    assert panels[1, 1].lines[0].get_xdata()[0] == np.median(draws["x"][:, 0])
    plt.close("all")
    with pytest.raises(pk.errors.ShapeError, match=r"as many draws of each; got .*'x': \(4,\)"):
        pk.plot.corner({"k": np.ones(3), "x": np.ones(4)})
    with pytest.raises(pk.errors.ParameterError, match=r"samples of x\[1\] are not all finite"):
        pk.plot.corner({**draws, "x": draws["x"] + [0.0, np.nan]})


def test_a_number_that_is_the_same_in_all_draws_has_no_contours():
    """Histograms of no width made contours that mean nothing, and a warning of matplotlib."""
    draws = np.stack([np.linspace(-1, 1, 300), np.full(300, 2.0), np.zeros(300)], axis=1)
    panels = pk.plot.corner(draws)
    panels[0, 0].figure.canvas.draw()
    assert all(not panels[k].collections for k in ((1, 0), (2, 0), (2, 1)))
    for low, high in (panels[1, 1].get_xlim(), panels[2, 1].get_ylim()):
        assert low < high
    plt.close("all")
