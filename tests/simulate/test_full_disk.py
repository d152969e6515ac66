"""A run on a disk that fills up raises, leaves what it committed readable, and resumes with the same bits."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from physkit.storage import Checkpoints, open as open_file

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")

SCRIPT = """
    import resource, signal, sys
    import jax, numpy as np
    import physkit as pk

    folder, steps, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    rng = np.random.default_rng(0)
    state = {
        "gas": pk.Particles(rng.normal(size=(300, 3)), rng.normal(size=(300, 3))),
        "field": pk.Field(np.asarray(rng.normal(size=(20, 20)), np.float32), pk.Grid([1.0, 1.0], (20, 20))),
    }
    sim = pk.Simulation(
        pk.Lie(
            pk.BAOAB(pk.HarmonicTrap(1.0, component="gas"), temperature=1.0, friction=1.0),
            pk.RK4(pk.equations.Diffusion(1e-3, component="field")),
        ),
        0.01,
        observers=[
            pk.Every(2, x=pk.Positions("gas"), u=pk.FieldValues("field")),
            pk.Every(1, e=pk.TotalEnergy()),
        ],
    )
    try:
        done = pk.run(
            sim, state, steps, key=jax.random.key(0), to=folder, resume=True, progress=False,
            checkpoint=pk.Checkpoints(folder + "/checkpoints", blocks=20),
        )
    except pk.errors.DiskFullError as error:
        print("FULL", error)
        sys.exit(28)
    print("done", int(done.carry.step))
"""


def command(folder, steps, limit=0):
    return [sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder), str(steps), str(limit)]


def environment():
    settings = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    return settings | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}


def run_command(arguments):
    return subprocess.run(arguments, env=environment(), capture_output=True, text=True, timeout=400)


def count_frames(folder):
    """Check that all frames can be read and a checkpoint exists; the number of frames by name."""
    found = open_file(folder)
    for series in found.values():
        assert np.all(np.isfinite(series[:]))
        assert np.array_equal(
            series.step, series.step[0] + (2 if series.name in "xu" else 1) * np.arange(len(series))
        )
    assert Checkpoints(folder / "checkpoints").paths()
    return {name: len(series) for name, series in found.items()}


def check_same_frames(a, b):
    a, b = open_file(a), open_file(b)
    assert set(a) == set(b) == {"x", "u", "e"}
    for name in a:
        assert np.array_equal(a[name], b[name])
        assert np.array_equal(a[name].step, b[name].step)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [60_000, 300_000, 600_000])
def test_a_limit_of_file_size(limit, tmp_path):
    done = run_command(command(tmp_path / "r", 400, limit))
    assert done.returncode == 28, done.stdout + done.stderr
    assert "make room and resume" in done.stdout
    if limit > 200_000:  # less, and not even the beginning can be written
        assert count_frames(tmp_path / "r")["x"] < 201
    for folder in ("r", "whole"):
        done = run_command(command(tmp_path / folder, 400))
        assert "done 400" in done.stdout, done.stdout + done.stderr
    assert count_frames(tmp_path / "r")["x"] == 201
    check_same_frames(tmp_path / "r", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("size", ["1500k", "2200k"])
def test_a_small_disk(size, tmp_path):
    """A file system in memory that is full half way, then larger."""
    small = tmp_path / "small"
    small.mkdir()
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(small)], capture_output=True
        ).returncode
    ):
        pytest.skip("no file systems can be mounted here")
    script = f"""
        mount -t tmpfs -o size={size} tmpfs "$0" || exit 99
        "${{@:1}}"
        [ $? -eq 28 ] || exit 98
        cp -r "$0/r" "{tmp_path}/full"
        mount -o remount,size=64m "$0" || exit 97
        "${{@:1}}" || exit 96
        cp -r "$0/r" "{tmp_path}/after"
    """
    arguments = ["unshare", "-rm", "bash", "-c", textwrap.dedent(script), str(small)]
    done = run_command([*arguments, *command(small / "r", 400)])
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert 0 < count_frames(tmp_path / "full")["x"] <= 201
    done = run_command(command(tmp_path / "whole", 400))
    assert "done 400" in done.stdout
    check_same_frames(tmp_path / "after", tmp_path / "whole")
