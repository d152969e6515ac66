"""Running, resuming and looking into files from the command line."""

import json
import shutil

import jax
import numpy as np
import pytest

from physkit.cli import main
from physkit.core import FileError
from physkit.storage import open as open_file, write_table

CASE = """
import jax.numpy as jnp
import numpy as np
import physkit as pk


def burst(t, particles, args):
    return jnp.where(t > args["until"], jnp.inf, -1.0) * particles.position


def case(n=4, dt=0.01, name="x", frozen=False, until=1e9, broken=None):
    rng = np.random.default_rng(0)
    if broken:
        raise KeyError(broken)
    state = pk.Particles(rng.normal(size=(n, 2)), rng.normal(size=(n, 2)))
    record = {name: pk.Positions(), "energy": pk.KineticEnergy(), "v": pk.Velocities()}
    force = pk.ExternalForce(burst, {"until": jnp.asarray(until)})
    integrator = pk.BAOAB(force, temperature=1.0, friction=1.0)
    return pk.Simulation(integrator, dt, observers=pk.Every(2, **record)), state
"""


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    path = tmp_path_factory.mktemp("case") / "case.py"
    path.write_text(CASE)
    return str(path)


@pytest.fixture(scope="module")
def done(case, tmp_path_factory):
    """The folder of a run of ten steps."""
    to = tmp_path_factory.mktemp("run") / "r"
    assert main(["run", case, "--to", str(to), "--steps", "10", "--quiet"]) == 0
    return str(to)


def json_of(capsys, words, status=0):
    """The JSON that a verb prints, which is all that it prints."""
    capsys.readouterr()
    assert main([*words, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def check_refused(capsys, words, said, status=2):
    """A verb that says what is wrong in one line, with what it lists below."""
    capsys.readouterr()
    assert main(words) == status, words
    error = capsys.readouterr().err
    assert error.startswith("physkit: ")
    assert all(line.startswith("  ") for line in error.splitlines()[1:]), error
    assert said in error


def test_run_resume_and_info(case, tmp_path, capsys):
    case_copy = tmp_path / "copy.py"
    shutil.copy(case, case_copy)
    to = str(tmp_path / "r")
    words = ["run", str(case_copy), "--to", to, "--set", "n=3", "--set", "dt=0.02", "--seed", "5"]
    assert main([*words, "--steps", "4", "--quiet"]) == 0
    check_refused(capsys, [*words, "--steps", "4"], "--resume goes on")
    found = json_of(capsys, ["resume", to, "--steps", "10"])
    assert (found["resumed_from"], found["steps"], found["exit_status"]) == (4, 10, 0)
    assert main([*words[:3], f"{to}2", *words[4:], "--steps", "10", "--quiet"]) == 0
    found, whole = open_file(to)["x"], open_file(f"{to}2")["x"]
    assert found.shape == (6, 3, 2)
    assert found.time[-1] == pytest.approx(0.2)
    assert np.array_equal(found, whole)

    capsys.readouterr()
    assert main(["info", to]) == 0
    out = capsys.readouterr().out
    for word in ("trajectory.h5md", "6 × 3 × 2", "0 … 10", "sound, step 10 of a run from 0", "physkit",
                 "step 10 of 10, finished", "every part that was read is sound"):  # fmt: skip
        assert word in out
    assert main(["info", f"{to}/checkpoints"]) == 0
    assert main(["info", f"{to}/trajectory.h5md"]) == 0
    case_copy.write_text(CASE + "\n")
    check_refused(capsys, ["resume", to], "has changed")
    case_copy.unlink()
    check_refused(capsys, ["resume", to], "is not there any more")


def test_info_tells_health(done, tmp_path, capsys):
    to = str(tmp_path / "r")
    shutil.copytree(done, to)
    found = json_of(capsys, ["info", to])
    assert found["healthy"]
    assert {one["name"]: one["shape"] for one in found["series"]}["x"] == [6, 4, 2]
    assert [one["step"] for one in found["checkpoints"]] == [10, 0]
    assert found["bytes"] > 10_000
    newest = tmp_path / "r" / "checkpoints" / "checkpoint-000000000000010.h5"
    data = bytearray(newest.read_bytes())
    data[3000] ^= 1
    newest.write_bytes(data)
    (tmp_path / "r" / "lock").write_text("{}")
    found = json_of(capsys, ["info", to], 1)
    assert not found["healthy"]
    said = " ".join(found["health"])
    assert "goes back to the one before" in said
    assert "running: written by process ?" in said
    json.loads((tmp_path / "r" / "case.json").read_text())


def test_stopped_early_asks_to_be_tried_again(case, tmp_path, capsys):
    to = str(tmp_path / "r")
    words = ["run", case, "--to", to, "--steps", "100000", "--wall-time", "0"]
    assert main([*words, "--quiet"]) == 75
    assert "stopped; `physkit resume" in " ".join(json_of(capsys, ["info", to])["health"])


def test_a_run_that_diverges_can_be_diagnosed(case, tmp_path, capsys):
    to = str(tmp_path / "r")
    copy = tmp_path / "copy.py"
    shutil.copy(case, copy)
    words = ["run", str(copy), "--to", to, "--steps", "200", "--set", "until=0.995", "--quiet"]
    check_refused(capsys, words, f"the state is not finite; physkit diagnose {to}", 1)
    found = json_of(capsys, ["info", to], 1)
    assert "SimulationDiverged" in found["health"][0]
    found = json_of(capsys, ["diagnose", to])
    assert found["last_good_step"] == 99
    assert any("velocity: 8 of 8 not finite" in line for line in found["findings"])
    assert main(["diagnose", to]) == 0
    assert "step 99 is good, step 100 is not" in capsys.readouterr().out
    copy.write_text(copy.read_text() + "\n")
    check_refused(capsys, ["diagnose", to], "has changed since the run was begun")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "m=3"], "takes NAME=VALUE for"),
        (["--set", "n"], "takes NAME=VALUE for"),
        (["--set", "n=2.5"], "a whole number, like 4"),
        (["--set", "dt=fast"], "a number, like 0.01"),
        (["--set", "frozen=perhaps"], "true or false, like False"),
        (["--set", "broken=lights"], "line 14: KeyError: 'lights'"),
        (["--steps", "3"], "multiple of the longest observer interval"),
        (["--steps", "-2"], "whole number from 1"),
    ],
)
def test_wrong_settings_are_refused(case, tmp_path, words, said, capsys):
    check_refused(capsys, ["run", case, "--to", str(tmp_path / "r"), "--steps", "2", *words], said)
    assert not (tmp_path / "r").exists()


def test_info_of_a_sweep_says_who_knows(tmp_path, capsys):
    (tmp_path / "sweep.h5").touch()
    check_refused(capsys, ["info", str(tmp_path)], "physkit sweep status")


def test_a_missing_case_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    texts = {
        "a.py": ("x = 1\n", "no function case"),
        "c.py": ("def case(:\n", "line 1: SyntaxError"),
        "d.py": ("\nimport nothing_of_this_name\n", "line 2: ModuleNotFoundError"),
        "g.py": ("\n\nimport c  # the one above\n", "line 3: SyntaxError"),
        "e.py": ("def case():\n    return 3\n", "must return (simulation, state)"),
        "f.py": ("def case(n):\n    return n\n", "needs ['n']"),
    }
    for name, (text, said) in {**texts, "b.py": ("", "is not there")}.items():
        if text:
            (tmp_path / name).write_text(text)
        for verb in (["run", "--to", str(tmp_path / "r"), "--steps", "2"], ["check"]):
            check_refused(capsys, [verb[0], str(tmp_path / name), *verb[1:]], said)
    check_refused(
        capsys, ["run", str(tmp_path), "--to", str(tmp_path / "r"), "--steps", "2"], "not a file"
    )
    for record in ("", "[]", json.dumps({"case": 3}), "[" * 5000):
        (tmp_path / "case.json").write_text(record)
        check_refused(capsys, ["resume", str(tmp_path)], "does not say")
        check_refused(capsys, ["diagnose", str(tmp_path)], "does not say")
    check_refused(capsys, ["resume", str(tmp_path / "none")], "is not there")
    check_refused(capsys, ["resume", str(tmp_path / "a.py")], "is no folder")
    (tmp_path / "case.json").unlink()
    check_refused(capsys, ["resume", str(tmp_path)], "was not begun by `physkit run`")


@pytest.mark.parametrize(
    ("name", "says"),
    [("sweep", "is the folder of a sweep"), ("search", "holds no run but search.h5")],
)
def test_folders_of_other_kinds_are_named(name, says, tmp_path, capsys):
    write_table(tmp_path / f"{name}.h5", name, {}, {})
    for verb in ("plot", "animate", "info", "resume", "diagnose"):
        check_refused(capsys, [verb, str(tmp_path)], says)
    with pytest.raises(FileError, match=f"part of a {name}"):
        open_file(tmp_path)


def test_a_folder_in_use_keeps_its_record(case, done, tmp_path, capsys):
    to = tmp_path / "r"
    shutil.copytree(done, to)
    before = (to / "case.json").read_bytes()
    (to / "lock").write_text(json.dumps({"host": "elsewhere", "process": 1, "began": "?"}))
    words = ["run", case, "--to", str(to), "--steps", "20", "--resume", "--set", "n=5"]
    check_refused(capsys, words, "is being written by process 1 on elsewhere", 1)
    assert (to / "case.json").read_bytes() == before
    (to / "lock").unlink()
    check_refused(capsys, words, "position: ")
    assert (to / "case.json").read_bytes() == before
    check_refused(capsys, ["run", case, "--to", case, "--steps", "2"], "cannot be made a folder")


def test_a_run_that_does_not_begin_keeps_the_former_request(case, done, tmp_path, capsys):
    to = tmp_path / "r"
    shutil.copytree(done, to)
    before = (to / "case.json").read_bytes()
    capsys.readouterr()
    # A system of particles in no box cannot be cut over devices.
    assert main(["resume", str(to), "--devices", "3", "--quiet"]) != 0
    error = capsys.readouterr().err
    assert error.startswith("physkit: ")
    assert "diagnose" not in error
    assert (to / "case.json").read_bytes() == before
    assert json_of(capsys, ["resume", str(to)])["steps"] == 10


def test_no_request_for_fewer_steps_than_a_run_has_come_to(done, tmp_path, capsys):
    to = tmp_path / "r"
    shutil.copytree(done, to)
    with pytest.warns(UserWarning, match="past the 4 asked for"):
        assert main(["resume", str(to), "--steps", "4", "--quiet"]) == 0
    assert "step 10 of 10, finished" in " ".join(json_of(capsys, ["info", str(to)])["health"])


@pytest.mark.parametrize("words", [[], ["--resume"]])
def test_a_refused_run_leaves_nothing_in_the_folder_of_another(case, done, tmp_path, words, capsys):
    to = tmp_path / "r"
    shutil.copytree(done, to)
    (to / "case.json").unlink()  # as a script begins a run
    names = sorted(to.rglob("*"))
    words = ["run", case, "--to", str(to), "--steps", "20", "--set", "n=5", *words]
    check_refused(capsys, words, "position: " if words[-1] == "--resume" else "resume=True")
    (to / "lock").write_text(json.dumps({"host": "elsewhere", "process": 1, "began": "?"}))
    check_refused(capsys, words, "is being written by process 1 on elsewhere", 1)
    (to / "lock").unlink()
    assert sorted(to.rglob("*")) == names


@pytest.mark.parametrize("seconds", ["nan", "-1", "inf", "soon"])
@pytest.mark.parametrize(
    "verb", [["run", "case.py", "--to", "r", "--steps", "2"], ["resume", "r"],
             ["sweep", "run", "case.py", "--to", "r"],
             ["sweep", "run", "case.py", "--to", "r", "--workers", "2"]],
)  # fmt: skip
def test_what_is_no_wall_time_is_refused(verb, seconds, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main([*verb, f"--wall-time={seconds}"])
    assert stop.value.code == 2
    assert f"seconds, a number from 0; got '{seconds}'" in capsys.readouterr().err


# --- pictures and other formats -------------------------------------------------------------------


def test_plot_draws_recordings(done, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["plot", done]) == 0
    assert main(["plot", done, "energy", "x", "--quiet"]) == 0
    assert main(["plot", done, "x", "--frame", "0", "--to", "a.svg"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.svg", "r-energy-x.png", "r.png"]
    assert (tmp_path / "r.png").read_bytes()[1:4] == b"PNG"
    check_refused(capsys, ["plot", done], "r.png is there already")
    assert main(["plot", done, "--force"]) == 0
    for words, said in (
        (["speed"], "there are: energy, x, v"),
        (["--to", "a.doc"], ".png, .pdf, .svg"),
        (["x", "--frame", "6"], "has 6 frames, no frame 6"),
        (["--to", "none/a.png"], "is no folder"),
    ):
        check_refused(
            capsys, ["plot", done, *words, *([] if "--to" in words else ["--to", "b.png"])], said
        )
    check_refused(capsys, ["plot", "nothing"], "nothing is not there")
    check_refused(capsys, ["plot", str(tmp_path)], "no recording")
    check_refused(capsys, ["plot", "a.svg"], "a run writes .h5, .h5md, .vtkhdf")
    check_refused(capsys, ["plot", f"{done}/checkpoints"], "holds checkpoints, no frames")
    one = f"{done}/checkpoints/checkpoint-000000000000010.h5"
    check_refused(capsys, ["plot", one], "is a checkpoint")
    (tmp_path / "broken.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(500))
    check_refused(capsys, ["plot", "broken.h5"], "cannot be opened")
    assert not (tmp_path / "b.png").exists()


def test_animate_writes_films(done, tmp_path, capsys, monkeypatch):
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    assert main(["animate", done, "--every", "2", "--quiet"]) == 0
    with Image.open(tmp_path / "r-x.gif") as film:
        assert film.n_frames == 3
    check_refused(capsys, ["animate", done], "is there already")
    for words, said in (
        (["energy"], "nothing that moves"),
        (["x", "--every", "0"], "--every counts frames"),
        (["x", "--fps", "0"], "fps must be at least 1"),
        (["x", "--to", "a.avi"], ".gif or .mp4"),
    ):
        check_refused(
            capsys, ["animate", done, *words, *([] if "--to" in words else ["--to", "b.gif"])], said
        )


def test_export_writes_every_format(done, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", done, "energy", "--to", "e.csv", "--frames", "1:5:2"]) == 0
    assert [line.split(",")[0] for line in (tmp_path / "e.csv").read_text().splitlines()] == [
        "step", "2", "6",
    ]  # fmt: skip
    assert main(["export", done, "x", "--to", "x.pvd", "--frames", "-1"]) == 0
    assert [p.name for p in (tmp_path / "x_frames").iterdir()] == ["00000005.vtp"]
    assert main(["export", done, "--to", "all.npz", "--quiet"]) == 0
    assert main(["export", done, "x", "--to", "x.extxyz"]) == 0
    for words, said in (
        ([], "export needs --to FILE"),
        (["--to", "e.csv"], "is there already"),
        (["--to", "a.doc"], "cannot write '.doc'"),
        (["--to", "a.vti"], "there are none"),
        (["nope", "--to", "a.csv"], "there are: energy, x, v"),
        (["--to", "a.npz", "--frames", "1:x"], "A:B:C"),
        (["--to", "a.npz", "--frames", "::-1"], "C from 1"),
        (["x", "--to", "a.csv"], "scalars and vectors"),
    ):
        check_refused(capsys, ["export", done, *words], said)
    assert len(list(tmp_path.iterdir())) == 5


# --- before a run ---------------------------------------------------------------------------------


def test_check_predicts_memory_and_time(case, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["check", case, "--steps", "1000", "--seconds", "0.1"]
    found = json_of(capsys, words)
    assert found["steps"] == 1000
    assert found["precision"] == "float64"
    assert found["memory_bytes"] > found["temporary_bytes"] >= 0
    assert found["steps_per_second"] > 0
    assert found["courant"] is None
    # Per frame: positions and velocities in single precision and three dimensions, a number, step and time.
    assert found["frames_bytes"] == 500 * (2 * (4 * 3 * 4 + 16) + 8 + 16)
    assert not list(tmp_path.iterdir())
    assert main(words) == 0
    out = capsys.readouterr().out
    for word in ("steps/s", "1000 in blocks of 2", "on disk", "checkpoints"):
        assert word in out
    check_refused(capsys, [*words, "--set", "until=0.0"], "the case does not run", 1)
    check_refused(capsys, ["check", case, "--steps", "0"], "--steps counts steps")


def test_the_predicted_size_is_right(case, done, capsys):
    predicted = json_of(capsys, ["check", case, "--steps", "10", "--seconds", "0"])
    found = open_file(done)
    written = sum(6 * int(np.prod(s.shape[1:])) * s.dtype.itemsize for s in found.values())
    deep = 6 * 2 * 4 * 4  # the third axis of positions and velocities
    assert predicted["frames_bytes"] * 6 / 5 == written + deep + 6 * 3 * 16


@pytest.mark.slow
def test_check_knows_the_courant_number(tmp_path, capsys):
    path = tmp_path / "tube.py"
    path.write_text("from physkit.systems import sod\n\n\ndef case():\n    return sod(cells=32)\n")
    found = json_of(capsys, ["check", str(path), "--seconds", "0", "--devices", "8"])
    assert 0.05 < found["courant"] < 1
    assert found["device_state_bytes"] >= 3 * 4 * 8
    # Density, momentum, energy: two layers to two neighbors, in each of three stages.
    assert (found["device_sent_bytes"], found["device_exchanges"]) == (3 * 2 * 3 * 2 * 8, 18)
    assert "nothing is recorded" in " ".join(found["notes"])
    assert jax.default_backend() == "cpu"
