"""The chapters of the demo say what they found and leave pictures and tables behind."""

from functools import partial

import numpy as np
import pytest

from physkit.cli import _argon, _planets
from physkit.cli._report import Report
from physkit.systems import SUN_TO_PLANET, Weighing, liquid_argon, solar_tracks


def _weighing(error):
    tracks = solar_tracks()
    ratio = np.array(SUN_TO_PLANET) * (1 + error)
    return Weighing(
        ratio, ratio / 1e5, np.array(SUN_TO_PLANET), tracks.seen * 1.2, tracks.seen, (2.0, 1.0)
    )


@pytest.mark.parametrize(("error", "verdict"), [(5e-4, "\nall within"), (2e-3, "NOT all within")])
def test_planets(tmp_path, capsys, monkeypatch, error, verdict):
    monkeypatch.setattr(_planets, "weigh_planets", lambda tracks, progress: _weighing(error))
    _planets.run(tmp_path, True, Report())
    said = capsys.readouterr().out
    assert verdict in said
    assert "1047.3486" in said
    _holds(tmp_path, {"wobble.png", "residuals.png", "orbits.png", "masses.csv", "wobble.csv"})
    rows = np.loadtxt(tmp_path / "wobble.csv", delimiter=",", skiprows=2)
    np.testing.assert_allclose(rows[:, 1:4], rows[:, 4:7])


def test_argon(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_argon, "QUICK_MELT_STEPS", 300)
    monkeypatch.setattr(_argon, "QUICK_STEPS", 600)
    monkeypatch.setattr(_argon, "liquid_argon", partial(liquid_argon, 3))
    _argon.run(tmp_path, True, Report(quiet=True))
    assert "diffusion coefficient" in capsys.readouterr().out
    pictures = {
        f"{name}.png" for name in ("radial_distribution", "displacement", "energy", "atoms")
    }
    _holds(tmp_path, pictures | {"radial_distribution.csv", "displacement.csv", "energy.csv"})
    rows = np.loadtxt(tmp_path / "energy.csv", delimiter=",", skiprows=2)
    assert np.all(np.diff(rows[:, 0]) > 0)


def _holds(folder, names):
    assert {p.name for p in folder.iterdir()} == names
    assert all(p.stat().st_size > 100 for p in folder.iterdir())
    for table in folder.glob("*.csv"):
        assert table.read_text(encoding="utf-8").startswith("# "), "a table says what it is"
