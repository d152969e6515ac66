"""Chapters of the demo print their results and write pictures and tables."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.cli.common._report import Report
from physkit.cli.demo import (
    _argon,
    _ensemble,
    _ensemble_pictures,
    _ensemble_results,
    _flow,
    _planets,
    _plasma,
    _two_devices,
)
from physkit.fit import fit
from physkit.systems import (
    SUN_TO_PLANET,
    FlowFit,
    Weighing,
    double_well_passage,
    lennard_jones_equation_of_state,
    liquid_argon,
    probe_flow,
    solar_tracks,
    two_species_plasma,
)


def _some_fit():
    """The mean of two numbers: chapters print how many steps a fit took."""
    two = np.array([1.0, 2.0])
    return fit(
        lambda m: m["x"] - two, {"x": jnp.asarray(0.0)}, where=lambda m: m["x"], progress=False
    )


def _weighing(error):
    tracks = solar_tracks()
    ratio = np.array(SUN_TO_PLANET) * (1 + error)
    return Weighing(
        ratio,
        ratio / 1e5,
        np.array(SUN_TO_PLANET),
        tracks.measured * 1.2,
        tracks.measured,
        _some_fit(),
    )


@pytest.mark.parametrize(("error", "verdict"), [(5e-4, "\nall within"), (2e-3, "NOT all within")])
def test_planets(tmp_path, capsys, monkeypatch, error, verdict):
    monkeypatch.setattr(_planets, "weigh_planets", lambda tracks, progress: _weighing(error))
    _planets.run(tmp_path, True, Report())
    printed = capsys.readouterr().out
    assert verdict in printed
    assert "1047.3486" in printed
    _check_files(
        tmp_path, {"wobble.png", "residuals.png", "orbits.png", "masses.csv", "wobble.csv"}
    )
    rows = np.loadtxt(tmp_path / "wobble.csv", delimiter=",", skiprows=2)
    np.testing.assert_allclose(rows[:, 1:4], rows[:, 4:7])


@pytest.mark.slow  # as `physkit demo --quick`
def test_argon(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_argon, "QUICK_MELT_STEPS", 300)
    monkeypatch.setattr(_argon, "QUICK_STEPS", 600)
    monkeypatch.setattr(_argon, "liquid_argon", partial(liquid_argon, 3))
    _argon.run(tmp_path, True, Report(quiet=True))
    assert "diffusion coefficient" in capsys.readouterr().out
    pictures = {
        f"{name}.png" for name in ("radial_distribution", "displacement", "energy", "atoms")
    }
    _check_files(tmp_path, pictures | {"radial_distribution.csv", "displacement.csv", "energy.csv"})
    rows = np.loadtxt(tmp_path / "energy.csv", delimiter=",", skiprows=2)
    assert np.all(np.diff(rows[:, 0]) > 0)


@pytest.mark.parametrize(
    ("shift", "verdict"),
    [pytest.param(1.0, "\nboth within", marks=pytest.mark.slow), (9.0, "NOT both within")],
)
def test_flow(tmp_path, capsys, monkeypatch, shift, verdict):
    """The verdict on a fit that is one, or nine, standard errors off."""
    seen = probe_flow(10)
    truth, error = np.array([0.01, 0.5]), np.array([1e-4, 2e-3])
    fit = FlowFit(
        truth + shift * error, error, truth, 0.5 * seen.measured, seen.measured, _some_fit()
    )
    monkeypatch.setattr(_flow, "probe_flow", lambda steps: seen)
    monkeypatch.setattr(_flow, "fit_flow", lambda flow, progress: fit)
    _flow.run(tmp_path, True, Report())
    assert verdict in capsys.readouterr().out
    _check_files(tmp_path, {"vorticity.png", "probes.png", "probes.csv"})


@pytest.mark.slow
def test_plasma(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_plasma, "QUICK_STEPS", 200)
    monkeypatch.setattr(
        _plasma, "two_species_plasma", partial(two_species_plasma, particles=1024, cells=64)
    )
    _plasma.run(tmp_path, True, Report(quiet=True))
    printed = capsys.readouterr().out
    assert "\nwithin 0.2 %" in printed
    assert "1.019804" in printed
    _check_files(tmp_path, {"ringing.png", "energy.png", "waves.csv"})
    rows = np.loadtxt(tmp_path / "waves.csv", delimiter=",", skiprows=2)
    assert rows.shape == (201, 5)


@pytest.mark.slow  # as `physkit demo --quick`
def test_devices(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    for name, value in (("QUICK_CELLS", 16), ("QUICK_DURATION", 0.2), ("QUICK_STEPS", 20)):
        monkeypatch.setattr(_two_devices, name, value)
    _two_devices.run_chapter(tmp_path, True, Report())
    printed = capsys.readouterr().out
    assert "\nequal to rounding" in printed
    # Two stages a step; four conserved numbers, two layers wide, of 16 cells, to two neighbors.
    assert f"{2 * 2 * 4 * 2 * 16 * 8}  " in printed
    _check_files(tmp_path, {"flow.png", "argon.png"})


def _check_files(folder, names):
    assert {p.name for p in folder.iterdir()} == names
    assert all(p.stat().st_size > 100 for p in folder.iterdir())
    for table in folder.glob("*.csv"):
        assert table.read_text(encoding="utf-8").startswith("# "), "a table says what it is"


def test_pictures_of_ensembles(tmp_path):
    t, rho = (x.ravel() for x in np.meshgrid(np.linspace(1.4, 3.0, 4), np.linspace(0.1, 0.8, 4)))
    published = np.asarray(lennard_jones_equation_of_state(rho, t).pressure)
    boxes = _ensemble_results.FluidPressures(t, rho, published + 0.05, np.full(16, 0.03), published)
    _ensemble_pictures.draw_map(boxes, tmp_path / "map.png")
    _ensemble_pictures.draw_isotherms(boxes, tmp_path / "isotherms.png")
    d = np.array([0.05, 0.1, 0.15])
    exact = np.array([1 / double_well_passage(x) for x in d])
    _ensemble_pictures.draw_escape(
        _ensemble_results.EscapeRates(d, exact, 0.1 * exact, exact), tmp_path / "k.png"
    )
    rows = np.loadtxt(_ensemble._write(boxes, tmp_path / "table.csv"), delimiter=",", skiprows=2)
    np.testing.assert_allclose(rows[:, 0], t * 120)
    np.testing.assert_allclose(
        rows[:, 2] - rows[:, 4], 0.05 * _ensemble_results.MEGAPASCAL, rtol=1e-6
    )
    _check_files(tmp_path, {"map.png", "isotherms.png", "k.png", "table.csv"})


@pytest.mark.slow  # as `physkit demo --quick`
def test_ensembles(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_ensemble, "QUICK_REPLICAS", 64)
    monkeypatch.setattr(_ensemble, "QUICK_BOXES", 2)
    monkeypatch.setattr(_ensemble, "QUICK_STEPS", 200)
    _ensemble.run(tmp_path, True, Report(quiet=True))
    printed = capsys.readouterr().out
    assert "every bit as an uninterrupted sweep" in printed
    assert "pressure of 4 boxes against Johnson" in printed
    pictures = {"escape.png", "equation_of_state.png", "isotherms.png"}
    _check_files(tmp_path, pictures | {"escape", "escape.py", "equation_of_state.csv"})
