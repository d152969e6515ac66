"""Every function returns Axes with labels and the data it was given; nothing global changes."""

import shutil
import subprocess
import sys
from functools import partial

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import EllipseCollection
from matplotlib.colors import to_hex, to_rgb

from physkit import plot
from physkit.core import MissingExtraError, ParameterError, ShapeError
from physkit.geometry import Box, Free, Triclinic
from physkit.observe import Estimate
from physkit.particles import Particles
from physkit.plot._projection import cell_edges, hidden_edges, view_matrix
from physkit.plot._style import axis_label, format_measurement, format_scientific

from .axes import labels, line


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def random_particles(d=3, n=12, space=None, **leaves):
    rng = np.random.default_rng(0)
    return Particles(rng.uniform(0, 4, (n, d)), rng.normal(size=(n, d)), space=space, **leaves)


T = np.linspace(0, 5, 50)


def test_series():
    values = np.stack([np.sin(T), np.cos(T)], 1)
    ax = plot.series(
        T, values, error=0.1 + 0 * values, label="x", unit="m", time_unit="s", names="ab"
    )
    assert labels(ax) == ("time / s", "x / m")
    np.testing.assert_allclose(line(ax, 1), np.stack([T, values[:, 1]], 1))
    assert texts(ax) == ["a", "b"]
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(np.sin(T).max() + 0.1)
    whole = plot.series(T, values[:, 0], error=0.1).collections[0].get_paths()[0].vertices
    np.testing.assert_allclose(whole[:, 1].max(), band[:, 1].max())
    with pytest.raises(ShapeError, match=r"\(50,\) and \(49, 2\)"):
        plot.series(T, values[1:])
    with pytest.raises(ShapeError, match=r"got \(49,\)"):
        plot.series(T, values[:, 0], error=T[1:])
    with pytest.raises(ShapeError, match="2 lines need as many names"):
        plot.series(T, values, names=["a"])
    with pytest.raises(ShapeError, match="no times"):
        plot.series([], [])
    assert plot.series([1.0], [2.0]).lines[0].get_marker() == "o"


def test_drift_prints_the_slope():
    energy = -4.0 * (1 + 2.5e-7 * T)
    ax = plot.drift(T, energy, time_unit="τ")
    np.testing.assert_allclose(line(ax, 1)[:, 1], -2.5e-7 * T, atol=1e-12)
    assert texts(ax) == [r"slope $-2.5\times10^{-7}$ per τ"]
    plot.drift(T, 2 * energy, ax=ax, label="other")
    assert texts(ax)[1].startswith("other: slope")
    assert ax.get_ylabel() == "relative energy error"
    assert plot.drift(T, energy - energy[0]).get_ylabel() == "energy error"
    with pytest.raises(ShapeError, match="drift needs"):
        plot.drift(T, energy[:, None])


def test_radial_distribution_and_structure_factor():
    r, g = T[1:], 1 + np.sin(T[1:]) ** 2
    ax = plot.radial_distribution(r, g, error=0.1 * g, unit="σ", label="liquid")
    assert labels(ax) == ("$r$ / σ", "$g(r)$")
    np.testing.assert_allclose(line(ax, 1), np.stack([r, g], 1))
    plot.radial_distribution(r, g / 2, ax=ax, label="gas")
    assert texts(ax) == ["liquid", "gas"]
    assert ax.lines[1].get_color() != ax.lines[2].get_color()
    assert plot.radial_distribution([0.5], [1.0]).get_xlim() == (0, 1)  # one bin

    k = np.array([1.0, 1.2, 2.5])
    ax = plot.structure_factor(k, np.array([2.0, 4.0, 1.0]), width=1.0, unit="σ⁻¹")
    assert labels(ax) == ("$k$ / σ⁻¹", "$S(k)$")
    np.testing.assert_allclose(line(ax, 2), [[1.1, 3.0], [2.5, 1.0]])


@pytest.mark.parametrize("log", [False, True])
def test_mean_square_displacement_draws_the_fit(log):
    msd = 6 * 0.25 * T + 0.3
    msd[-1] = np.nan
    ax = plot.mean_square_displacement(
        T,
        msd,
        error=0.01 * msd,
        diffusion=Estimate(0.25, 0.012),
        start=1.0,
        log=log,
        length_unit="nm",
        time_unit="ns",
    )
    assert labels(ax)[0] == "time lag $t$ / ns"
    assert labels(ax)[1].endswith(" / nm²")
    curve, fit = line(ax, 0), line(ax, 1)
    np.testing.assert_allclose(fit[:, 1], 1.5 * fit[:, 0] + 0.3)
    assert len(curve) == 49 - log
    assert texts(ax) == ["$D$ = 0.250 ± 0.012 nm²/ns"]
    with pytest.raises(ParameterError, match="two lags"):
        plot.mean_square_displacement(T, msd * np.nan)


def test_correlation():
    values = 3 * np.exp(-T)
    ax = plot.correlation(T, values, time_unit="ps")
    np.testing.assert_allclose(line(ax, 1)[:, 1], np.exp(-T))
    ax = plot.correlation(T, values, error=values, normalized=False, unit="m²/s²")
    np.testing.assert_allclose(line(ax, 1)[:, 1], values)
    assert labels(ax)[1] == "$C(t)$ / (m²/s²)"


def test_a_plane_of_paths_is_two_axes():
    assert labels(plot.trajectories(np.ones((4, 3)), plane=(0, -1))) == ("$x$", "$z$")
    with pytest.raises(ParameterError, match="two of 3 axes"):
        plot.trajectories(np.ones((4, 3)), plane=(0, 3))


def test_trajectories():
    path = np.stack([np.cos(T), np.sin(T), 0.2 * T], 1)[:, None] * np.array([1.0, 2.0])[:, None]
    flat = plot.trajectories(path[..., :2], unit="AU", names=["inner", "outer"])
    assert labels(flat) == ("$x$ / AU", "$y$ / AU")
    assert texts(flat) == ["inner", "outer"]
    np.testing.assert_allclose(line(flat, 1), path[-1:, 1, :2])
    drawn = np.concatenate([s[:1] for s in flat.collections[0].get_segments()])
    np.testing.assert_allclose(drawn, path[:-1, 0, :2])
    assert flat.get_xlim()[0] < -2 < 2 < flat.get_xlim()[1]

    side = plot.trajectories(path, plane=(0, 2))
    assert labels(side) == ("$x$", "$z$")
    spatial = plot.trajectories(path, unit="AU")
    assert spatial.get_zlabel() == "$z$ / AU"
    spans = [np.ptp(limits()) for limits in (spatial.get_xlim, spatial.get_ylim, spatial.get_zlim)]
    assert spans[0] == pytest.approx(spans[2])
    with pytest.raises(ShapeError, match="projection"):
        plot.trajectories(path, ax=flat)
    with pytest.raises(ShapeError, match=r"\(50,\)"):
        plot.trajectories(T)


@pytest.mark.parametrize("orbits", [1, 3, 9])
def test_phase_space(orbits):
    q = np.cos(T)[:, None] * np.arange(1, orbits + 1)
    ax = plot.phase_space(q, -q, labels=("angle", "momentum"), units=("rad", ""))
    assert labels(ax) == ("angle / rad", "momentum")
    np.testing.assert_allclose(line(ax, 0), np.stack([q[:, 0], -q[:, 0]], 1))
    assert len({str(ax.lines[2 * k].get_color()) for k in range(orbits)}) == orbits
    with pytest.raises(ShapeError, match="both"):
        plot.phase_space(T, T[1:])


def test_particles_in_the_plane():
    p = random_particles(2, space=Box([4.0, 5.0]), species=np.arange(12) % 3)
    ax = plot.particles(p, radius=0.25, unit="σ")
    assert labels(ax) == ("$x$ / σ", "$y$ / σ")
    edges, *kinds = ax.collections
    assert edges.get_segments()[0].shape == (2, 2)
    assert texts(ax) == ["species 0", "species 1", "species 2"]
    # Discs that look alike are one collection.
    found = {to_hex(discs.get_facecolor()[0]): discs for discs in kinds}
    for k in range(3):
        discs = found[to_hex(plot.PALETTE[k])]
        np.testing.assert_allclose(discs.get_offsets(), p.position[k::3])
        np.testing.assert_allclose(discs.get_widths(), 0.5)


def test_discs_of_many_looks_are_one_collection():
    p = random_particles(2, space=Box([4.0, 5.0]))
    _edges, discs = plot.particles(p, color=np.arange(12.0), radius=0.25).collections
    np.testing.assert_allclose(discs.get_offsets(), p.position)
    assert len(np.unique(discs.get_facecolor(), axis=0)) == 12


@pytest.mark.parametrize("space", [Box([4.0] * 3), Triclinic([[4.0, 0, 0], [2, 4, 0], [1, 1, 4]])])
def test_particles_in_space(space):
    p = random_particles(space=space)
    ax = plot.particles(p, color="speed", limits=(0, 3), radius=0.2, unit="σ")
    spheres, hidden, shown = ax.collections
    camera = view_matrix(-60.0, 18.0)
    seen = np.asarray(p.position) @ camera.T
    base = np.asarray(spheres.get_offsets())[:: len(spheres.get_offsets()) // 12]
    np.testing.assert_allclose(base, seen[np.argsort(seen[:, 2]), :2], atol=1e-12)
    assert (len(hidden.get_segments()), len(shown.get_segments())) == (3, 9)
    assert ax.get_xlabel().startswith("cell 4 ×")
    bar = ax.figure.axes[-1]
    assert bar.get_ylabel() == "speed"
    assert bar.get_ylim() == pytest.approx((0, 3))


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("space", [None, Free()])
def test_a_particle_that_is_nowhere_hides_no_other(d, space):
    state = random_particles(d, space=space or Box.cube(4.0, d))
    others = state.position[1:]
    lost = state.replace(position=state.position.at[0].set(np.nan))
    alone = Particles(others, space=state.space)
    drawn, expected = (
        [c for c in plot.particles(p, radius=0.3).collections if isinstance(c, EllipseCollection)]
        for p in (lost, alone)
    )
    for get in ("get_offsets", "get_facecolors"):
        np.testing.assert_allclose(getattr(drawn[0], get)(), getattr(expected[0], get)())
    assert np.all(np.isfinite(plot.particles(lost).get_xlim()))
    plot.particles(Particles(others[:0], space=state.space))  # of none there is the cell


def test_particles_of_many_kinds():
    line_up = plot.particles(random_particles(1, space=Box([4.0])), color="red")
    np.testing.assert_allclose(line_up.collections[1].get_facecolor()[0, :3], to_rgb("red"))
    free = plot.particles(random_particles(space=Free()), color=np.arange(12.0), color_label="rank")
    assert len(free.collections) == 1
    charged = random_particles(2, charge=np.resize([1.0, -2.0], 12))
    assert plot.particles(charged, color="charge").figure.axes[-1].get_ylim() == (-2, 2)
    both = plot.particles({"ions": charged, "electrons": random_particles(2)})
    assert texts(both) == ["ions", "electrons"]
    with pytest.raises(ParameterError, match="no charge"):
        plot.particles(random_particles(), color="charge")
    with pytest.raises(ShapeError, match=r"\[12\]"):
        plot.particles(random_particles(), color=np.arange(3.0))
    with pytest.raises(ShapeError, match="radius"):
        plot.particles(random_particles(), radius=np.ones(3))
    with pytest.raises(ParameterError, match="no particles"):
        plot.particles({"a": 1})
    with pytest.raises(ParameterError, match="'velocity' is none of species, speed"):
        plot.particles(random_particles(), color="velocity")
    with pytest.raises(ParameterError, match="ordinary axes"):
        plot.particles(random_particles(), ax=plt.figure().add_subplot(projection="3d"))


def test_equal_numbers_have_the_color_of_the_bar():
    ax = plot.particles(random_particles(2, space=Free()), color="mass")
    bar = ax.figure.axes[-1]
    low, high = bar.get_ylim()
    assert low < 1 < high  # each mass is 1
    color = matplotlib.colormaps["viridis"]((1 - low) / (high - low))
    np.testing.assert_allclose(ax.collections[0].get_facecolor()[0], color, atol=0.02)


def test_projection():
    camera = view_matrix(30.0, 20.0)
    np.testing.assert_allclose(camera @ camera.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(camera) == pytest.approx(1)
    assert camera[1, 2] > 0
    edges = cell_edges(np.diag([1.0, 2.0, 3.0]))
    assert sorted(np.linalg.norm(edges[:, 1] - edges[:, 0], axis=1)) == [1] * 4 + [2] * 4 + [3] * 4
    assert len(np.unique(edges.reshape(-1, 3), axis=0)) == 8
    assert hidden_edges(edges, camera[2]).sum() == 3


def test_axes_that_are_given_are_used_and_only_they_change():
    before = dict(matplotlib.rcParams)
    figure, (left, right) = plt.subplots(1, 2)
    assert plot.series(T, T, ax=right) is right
    assert not left.lines
    assert left.spines["top"].get_visible()
    assert not right.spines["top"].get_visible()
    assert dict(matplotlib.rcParams) == before
    assert figure.axes == [left, right]


def test_nothing_of_pyplot_is_imported_with_the_package():
    code = "import sys, physkit.plot; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_animation(tmp_path):
    from PIL import Image

    p = random_particles(2, space=Box([4.0, 4.0]))
    states = (p.replace(position=p.position + 0.1 * k) for k in range(4))
    draw = partial(plot.particles, radius=0.2, color="speed")
    path = plot.animate(states, tmp_path / "film.gif", draw=draw, fps=20, size=(2, 2), dpi=50)
    pictures = []
    with Image.open(path) as film:
        assert (film.n_frames, film.size, film.info["duration"]) == (4, (100, 100), 50)
        for k in range(4):
            film.seek(k)
            pictures.append(np.asarray(film.convert("RGB")))
    assert np.all(pictures[0][0, 0] == 255)
    assert not np.array_equal(pictures[0], pictures[3])
    assert [f.name for f in tmp_path.iterdir()] == ["film.gif"]
    assert not plt.get_fignums()


def test_animations_that_cannot_be_written_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="ends in"):
        plot.animate([random_particles()], tmp_path / "film.avi")
    with pytest.raises(ParameterError, match="no frames"):
        plot.animate([], tmp_path / "film.gif")
    with pytest.raises(ParameterError, match="fps"):
        plot.animate([random_particles()], tmp_path / "film.gif", fps=0)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingExtraError, match="ffmpeg"):
        plot.animate([random_particles()], tmp_path / "film.mp4")
    assert list(tmp_path.iterdir()) == []


def test_mp4_is_piped_to_ffmpeg(tmp_path, monkeypatch):
    """With a stand-in that keeps what it is sent: whole RGB frames of even size."""
    stand_in = tmp_path / "bin" / "ffmpeg"
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\nfor last; do :; done\ncat > "$last"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(stand_in.parent), prepend=":")
    p = random_particles(2, space=Box([4.0, 4.0]))
    path = plot.animate([p, p], tmp_path / "film.mp4", size=(1.01, 1.01), dpi=50)
    assert path.stat().st_size == 2 * 50 * 50 * 3


def test_labels_of_numbers_and_units():
    assert axis_label("D", "cm²/s") == "D / (cm²/s)"
    assert axis_label("slope") == "slope"
    assert format_scientific(0.01234) == "0.012"
    assert format_scientific(1234.5, 3) == "1234"
    assert format_scientific(-3.14e-9) == r"$-3.1\times10^{-9}$"
    assert format_measurement(0.0325, 0.0012) == "0.0325 ± 0.0012"
    assert format_measurement(2.43e-5, 1.2e-6) == r"(2.43 ± 0.12) $\times10^{-5}$"
    assert format_measurement(2.5, np.nan) == "2.50"


def test_more_species_than_colors_of_the_palette_have_shades():
    p = random_particles(2, space=Box([4.0, 5.0]), species=np.arange(12))
    handles = plot.particles(p).get_legend().legend_handles
    assert len({handle.get_color() for handle in handles}) == 12
