"""Whatever is recorded has a natural picture, with the numbers that were recorded."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from physkit import plot
from physkit.cli.verbs._animate import FrameDrawing
from physkit.core import ParameterError
from physkit.fields import Field
from physkit.geometry import Box, Free, Grid
from physkit.observe import Every, FieldValues, Positions, Velocities
from physkit.particles import Particles
from physkit.plot import recording, shows_one_frame
from physkit.storage import open as open_file
from tests.storage.recordings import numbers, output


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def time_of(now):
    return now.t


@pytest.fixture
def found(tmp_path):
    """One of each kind, twelve frames each."""
    line, plane = Grid([2.0], (6,)), Grid([2.0, 1.0], (6, 4))
    state = {
        "gas": Particles(jnp.zeros((20, 3)), space=Box.cube(4.0)),
        "bodies": Particles(jnp.zeros((2, 2)), space=Free()),
        "line": Field(0.0, line),
        "plane": Field(0.0, plane),
        "flow": Field(0.0, plane, vector=True),
        "psi": Field(jnp.zeros(6, complex), line),
    }
    frames = {
        "x": numbers(12, 20, 3), "v": numbers(12, 20, 3), "orbit": numbers(12, 2, 2),
        "line": numbers(12, 6), "plane": numbers(12, 6, 4), "flow": numbers(12, 2, 6, 4),
        "psi": numbers(12, 6) + 1j, "amplitudes": numbers(12, 3, 2) + 1j,
        "e": numbers(12), "p": numbers(12, 3), "many": numbers(12, 30),
        "points": numbers(12, 30, 2), "image": numbers(12, 5, 7), "cube": numbers(12, 2, 3, 4),
    }  # fmt: skip
    others = dict.fromkeys(("amplitudes", "e", "p", "many", "points", "image", "cube"), time_of)
    observers = (
        Every(1, x=Positions("gas"), v=Velocities("gas")),
        Every(1, orbit=Positions("bodies")),
        Every(1, **{name: FieldValues(name) for name in ("line", "plane", "flow", "psi")}),
        Every(1, **others),
    )
    output(tmp_path, observers, state, **frames)
    return open_file(tmp_path), frames


def test_curves(found):
    series, frames = found
    ax = recording(series["e"])
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), 1 + 0.25 * np.arange(12))
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), frames["e"])
    assert (ax.get_title("left"), ax.get_xlabel(), ax.get_ylabel()) == ("e", "time", "e")
    assert len(recording(series["p"]).lines) == 3


@pytest.mark.parametrize("name", ["line", "many"])
def test_maps_over_time(found, name):
    series, frames = found
    ax = recording(series[name])
    np.testing.assert_array_equal(
        ax.images[0].get_array(), np.float32(frames[name]) if name == "line" else frames[name]
    )
    assert ax.get_ylabel() == "time"
    # A row has its time in its middle, and an index its column.
    across = [0.0, 2.0] if name == "line" else [-0.5, 29.5]
    assert ax.images[0].get_extent() == [*across, 0.875, 3.875]


def test_waves_are_drawn_as_densities(found):
    series, frames = found
    ax = recording(series["psi"])
    np.testing.assert_allclose(ax.images[0].get_array(), np.abs(frames["psi"]) ** 2, rtol=1e-5)
    assert ax.images[0].colorbar.ax.get_ylabel() == "|psi|²"
    ends = [line.get_xydata()[-1] for line in recording(series["amplitudes"]).lines]
    np.testing.assert_allclose(ends, np.abs(frames["amplitudes"][-1]) ** 2, rtol=1e-6)


def test_maps_of_one_frame(found):
    series, frames = found
    ax = recording(series["plane"], frame=2)
    np.testing.assert_allclose(ax.images[0].get_array(), frames["plane"][2].T, rtol=1e-6)
    assert ax.get_title("left") == "plane at t = 1.5"
    speed = np.sqrt(np.sum(frames["flow"][-1] ** 2, axis=0))
    flow = recording(series["flow"]).images[0]
    np.testing.assert_allclose(flow.get_array(), speed.T, rtol=1e-6)
    assert flow.colorbar.ax.get_ylabel() == "|flow|"
    film = Figure().add_subplot()
    FrameDrawing(series["flow"], [0, 11])(11, film)
    assert film.images[0].colorbar.ax.get_ylabel() == "|flow|"
    image = recording(series["image"], frame=3).images[0].get_array()
    np.testing.assert_array_equal(image, frames["image"][3].T)


def test_particles(found):
    series, frames = found
    assert recording(series["x"]).get_title("left") == "x at t = 3.75"
    paths = recording(series["orbit"])
    ends = [line.get_xydata()[-1] for line in paths.lines]
    np.testing.assert_allclose(ends, frames["orbit"][-1], rtol=1e-6)
    np.testing.assert_array_equal(
        recording(series["points"]).lines[0].get_xydata(), frames["points"][-1]
    )
    ax = recording(series["v"])
    assert ax.get_ylabel() == "probability density"
    assert len(ax.get_legend().get_texts()) == 3


def test_shows_one_frame(found):
    series, _ = found
    moving = {name for name in series if shows_one_frame(series[name])}
    assert moving == {"x", "v", "orbit", "line", "plane", "flow", "psi", "points", "image"}


def test_bad_input_is_refused(found, tmp_path):
    series, _ = found
    with pytest.raises(ParameterError, match=r"too many axes .*\['cube'\]"):
        recording(series["cube"])
    for frame in (12, -13):
        with pytest.raises(ParameterError, match=f"has 12 frames, no frame {frame}"):
            recording(series["x"], frame=frame)
    output(tmp_path / "none", (Every(1, e=time_of),), None, e=numbers(0))
    with pytest.raises(ParameterError, match="no frames yet"):
        recording(open_file(tmp_path / "none")["e"])


def test_recordings_are_drawn_on_given_axes(found):
    series, _ = found
    _, ax = plt.subplots()
    assert recording(series["e"], ax=ax) is ax
    assert plot.recording is recording


@pytest.mark.parametrize("shape", [(), (3,), (30,), (30, 2), (5, 7)])
def test_names_that_are_no_formula_are_drawn_as_they_are(tmp_path, shape):
    """matplotlib takes text between dollar signs for a formula, and stops where it is none."""
    names = ("price$ $^x", r"$\alpha$", "US$", "$" + 50 * "{" + "$")
    frames = {name: numbers(12, *shape) for name in names}
    output(
        tmp_path,
        (Every(1, **dict.fromkeys(names, time_of)),),
        Particles(jnp.zeros((2, 2))),
        **frames,
    )
    for name in names:
        ax = recording(open_file(tmp_path)[name])
        ax.figure.canvas.draw()
        title = ax.get_title("left").partition(" at t")[0]
        assert title == (name if "alpha" in name else name.replace("$", r"\$"))
