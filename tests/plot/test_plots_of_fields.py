"""Pictures and films of fields."""

from functools import partial

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from physkit import plot
from physkit.core import DeclarationError, ParameterError
from physkit.fields import Field, FlowState
from physkit.geometry import Box, Grid, SphericalGrid

from .axes import labels, line


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_field():
    grid = Grid(Box([2.0, 1.0]), (8, 4))
    u = Field.from_function(grid, lambda x, y: x + 0 * y)
    ax = plot.field(u, label="ω", unit="1/s", length_unit="m")
    image = ax.images[0]
    assert labels(ax) == ("$x$ / m", "$y$ / m")
    assert image.get_extent() == [0.0, 2.0, 0.0, 1.0]
    np.testing.assert_allclose(image.get_array(), np.asarray(u.data).T)
    assert image.get_cmap().name == "viridis"
    signed = plot.field(u - 0.5).images[0]
    assert signed.get_cmap().name == "RdBu_r"
    assert signed.get_clim()[0] == -signed.get_clim()[1]
    # Rounding below 0 is no second sign, whatever the unit; a thousandth of the range is.
    for scale in (1e-30, 1.0, 1e6):
        rounded = plot.field((u - 0.125 - 1e-7) * scale).images[0]
        assert rounded.get_cmap().name == "viridis"
        assert rounded.get_clim()[1] > 1e3 * abs(rounded.get_clim()[0])
        both = plot.field((u - 0.2) * scale).images[0]
        assert both.get_cmap().name == "RdBu_r"
    line_ax = plot.field(Field.from_function(Grid([1.0], 5), lambda x: x**2))
    np.testing.assert_allclose(line(line_ax)[:, 1], line(line_ax)[:, 0] ** 2)
    cube = Field(np.arange(24.0).reshape(2, 3, 4), Grid([1.0, 1.0, 1.0], (2, 3, 4)))
    np.testing.assert_allclose(plot.field(cube, cut=1).images[0].get_array(), cube.data[:, :, 1].T)
    with pytest.raises(ParameterError, match="cut=4 of 4 planes"):
        plot.field(cube, cut=4)
    with pytest.raises(ParameterError, match="say which"):
        plot.field(Field(np.zeros((3, 8, 4)), grid))
    with pytest.raises(ParameterError, match=r"component=3 .*: 0 to 2"):
        plot.field(Field(np.zeros((3, 8, 4)), grid), component=3)


def test_one_of_several_fields_is_named():
    u = Field(np.zeros((4, 4)), Grid([1.0, 1.0], (4, 4)))
    flow = FlowState.of(Grid([1.0, 1.0], (4, 4)))
    for given, words in (
        ((u, u), r"a tuple of a Field, a Field: give one of them, u\[0\]"),
        ({"dye": u}, r"u\['dye'\]"),
        (flow, r"u\.velocity_x"),
    ):
        with pytest.raises(DeclarationError, match=words):
            plot.field(given)


def test_arrows_and_magnitude():
    grid = Grid(Box([1.0, 1.0]), (8, 8))
    v = Field.from_function(grid, lambda x, y: (3.0 + 0 * x, 4.0 + 0 * y))
    ax = plot.field(v)
    np.testing.assert_allclose(ax.images[0].get_array(), 5.0)
    assert ax.images[0].colorbar.ax.get_ylabel() == "$|u|$"
    assert plot.field(v[0]).images[0].colorbar.ax.get_ylabel() == ""
    wave = Field(np.full(4, 1j), Grid([1.0], 4))
    assert plot.field(wave).get_ylabel() == "$|u|^2$"
    # Of a complex vector the sum of the densities of its components.
    wave = Field(np.stack([np.full((8, 8), 3j), np.full((8, 8), 4 + 0j)]), grid, vector=True)
    np.testing.assert_allclose(plot.field(wave).images[0].get_array(), 25.0)
    assert plot.arrows(v, every=2, ax=ax) is ax
    assert ax.collections[-1].N == 16
    with pytest.raises(ParameterError, match="vector fields in two"):
        plot.arrows(v[0])
    with pytest.raises(ParameterError, match=r"vector=True.*got components \(2,\).*vector=False"):
        plot.arrows(Field(np.zeros((2, 8, 8)), grid))
    alone = plot.arrows(v)
    assert (alone.get_xlabel(), alone.get_ylabel()) == ("$x$", "$y$")
    for every in (0, 9):
        with pytest.raises(ParameterError, match=f"every={every} of 8 points"):
            plot.arrows(v, every=every)
    with pytest.raises(ParameterError, match="complex numbers"):
        plot.arrows(v.replace(data=1j * np.asarray(v.data)))


def test_arrows_on_a_sphere_lie_on_its_map():
    grid = SphericalGrid(1.0, 10)
    v = Field(np.ones((2, *grid.shape)), grid, vector=True)
    ax = plot.arrows(v, every=1, ax=plot.field(v[0]))
    offsets = np.asarray(ax.collections[-1].get_offsets())
    north_east = np.rad2deg([grid.longitudes[-1], grid.latitudes[-1]])
    np.testing.assert_allclose(offsets.max(axis=0), north_east)


def test_spectrum_of_a_harmonic_is_one_point():
    wave = Field.from_function(SphericalGrid(1.0, 10), lambda x, y: np.sin(y) + 0 * x)
    k, power = line(plot.spectrum(wave)).T
    np.testing.assert_allclose((k[0], power[0]), (np.sqrt(2), 1 / 3))
    assert power[1:].max(initial=0) < 1e-20


def test_spectrum_of_one_wave_is_one_point():
    grid = Grid([2 * np.pi, 2 * np.pi], (16, 16))
    u = Field.from_function(grid, lambda x, y: np.sqrt(2.0) * np.sin(3 * x) + 0 * y)
    k, power = line(plot.spectrum(u)).T
    np.testing.assert_allclose(power[np.isclose(k, 3)], 1.0)
    assert power[~np.isclose(k, 3)].max(initial=0) < 1e-20


def test_a_film_draws_only_what_changes(tmp_path):
    """Frames drawn over the scenery of the first are those that a new figure would show, pixel by pixel."""
    from PIL import Image

    from physkit.plot._animate import _with_colors_of_all
    from physkit.plot._film_frames import _Stage

    grid = Grid(Box([1.0, 1.0]), (8, 8))
    rng = np.random.default_rng(1)
    fields = [Field(rng.uniform(size=(8, 8)), grid) for _ in range(3)]

    def titled(u, ax):
        plot.field(u, ax=ax, limits=(0.0, 1.0), label="u")
        ax.set_title(f"{float(u.data[0, 0]):.4f}", loc="left")

    size = {"size": (2.4, 2.0), "dpi": 60}
    stage = _Stage(titled, *size.values(), True)
    again = [stage.draw(u) for u in fields]
    assert stage._ax is not None
    assert len(stage._ax.child_axes) == 1  # one color bar for all frames
    for u, picture in zip(fields, again, strict=True):
        anew = _Stage(titled, *size.values(), True).draw(u)
        # Text may sit elsewhere by a part of a pixel.
        assert np.mean(np.abs(picture.astype(int) - anew) > 32) < 0.002
    # Colors that are chosen anew for each frame have another bar each: nothing is kept then.
    stage = _Stage(plot.field, *size.values(), True)
    assert not np.array_equal(stage.draw(fields[0]), stage.draw(fields[1] * 3.0))
    assert stage._ax is None
    # A list of fields has the colors of all of them: what stays is drawn once. An iterator is not looked at.
    together = _with_colors_of_all(partial(plot.field, label="u"), fields)
    values = np.stack([np.asarray(u.data) for u in fields])
    assert together.keywords["limits"] == (values.min(), values.max())
    stage = _Stage(together, *size.values(), True)
    for u in fields:
        stage.draw(u)
    assert stage._ax is not None
    assert _with_colors_of_all(plot.field, iter(fields)) is plot.field
    film = plot.animate(fields, draw=titled, **size)
    assert film._repr_html_().startswith(("<img src=", "<video src="))
    path = film.save(tmp_path / f"film{film.ending}")
    if film.ending == ".gif":
        with Image.open(path) as saved:
            assert saved.n_frames == 3
    with pytest.raises(ParameterError, match="this film is"):
        film.save(tmp_path / "film.avi")


def test_a_style_sets_back_its_own_settings_only():
    """As in a notebook, where the backend starts with the first figure and turns interactive mode on."""
    before = dict(matplotlib.rcParams)
    try:
        with plot.style():
            matplotlib.rcParams["interactive"] = True
            assert matplotlib.rcParams["figure.dpi"] == 110
        assert matplotlib.is_interactive()
        assert matplotlib.rcParams["figure.dpi"] == before["figure.dpi"]
    finally:
        matplotlib.interactive(before["interactive"])
