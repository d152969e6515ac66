"""Running, resuming and looking into files from the command line."""

import json

import numpy as np
import pytest

from physkit.cli import main
from physkit.storage import open as open_file

CASE = """
import numpy as np
import physkit as pk


def case(n=4, dt=0.01, name="x", frozen=False):
    rng = np.random.default_rng(0)
    state = pk.Particles(rng.normal(size=(n, 2)), rng.normal(size=(n, 2)))
    observers = pk.Every(2, **{name: pk.Positions()})
    integrator = pk.BAOAB(pk.HarmonicTrap(1.0), temperature=1.0, friction=1.0)
    return pk.Simulation(integrator, dt, observers=observers), state
"""


@pytest.fixture
def case(tmp_path):
    path = tmp_path / "case.py"
    path.write_text(CASE)
    return str(path)


def test_run_resume_and_look(case, tmp_path, capsys):
    to = str(tmp_path / "r")
    words = ["run", case, "--to", to, "--set", "n=3", "--set", "dt=0.02", "--seed", "5", "--quiet"]
    assert main([*words, "--steps", "4"]) == 0
    assert main([*words, "--steps", "4"]) == 1
    assert "--resume goes on" in capsys.readouterr().err
    assert main(["resume", to, "--steps", "10", "--quiet"]) == 0
    assert "resumed at step 4" in capsys.readouterr().out
    assert main(["run", case, "--to", f"{to}2", *words[4:], "--steps", "10"]) == 0
    found, whole = open_file(to)["x"], open_file(f"{to}2")["x"]
    assert found.shape == (6, 3, 2)
    assert found.time[-1] == pytest.approx(0.2)
    assert np.array_equal(found, whole)

    capsys.readouterr()
    assert main(["info", to]) == 0
    out = capsys.readouterr().out
    for word in (
        "trajectory.h5md",
        "6 × 3 × 2",
        "0 … 10",
        "sound, step 10 of a run from 0",
        "physkit",
    ):
        assert word in out
    assert main(["info", f"{to}/checkpoints"]) == 0
    assert main(["info", f"{to}/trajectory.h5md"]) == 0
    assert main(["info", f"{to}/run.json"]) == 1
    assert main(["info", f"{to}/none"]) == 1

    (tmp_path / "case.py").write_text(CASE + "\n")
    assert main(["resume", to]) == 2
    assert "has changed" in capsys.readouterr().err


def test_stopped_early_asks_to_be_tried_again(case, tmp_path):
    words = ["run", case, "--to", str(tmp_path / "r"), "--steps", "100000", "--wall-time", "0"]
    assert main([*words, "--quiet"]) == 75


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "m=3"], "takes NAME=VALUE for"),
        (["--set", "n"], "takes NAME=VALUE for"),
        (["--set", "n=2.5"], "a int like 4"),
        (["--set", "frozen=perhaps"], "a bool like False"),
    ],
)
def test_wrong_settings(case, tmp_path, words, said, capsys):
    assert main(["run", case, "--to", str(tmp_path / "r"), "--steps", "2", *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_no_case(tmp_path, capsys):
    (tmp_path / "a.py").write_text("x = 1\n")
    for name, said in (("a.py", "no function case"), ("b.py", "is not there")):
        words = ["run", str(tmp_path / name), "--to", str(tmp_path / "r"), "--steps", "2"]
        assert main(words) == 2
        assert said in capsys.readouterr().err
    for record in ("", "[]", json.dumps({"case": 3})):
        (tmp_path / "case.json").write_text(record)
        assert main(["resume", str(tmp_path)]) == 2
        assert "does not say" in capsys.readouterr().err
