"""`physkit run --devices`: words, emulated devices, and runs that go on over others."""

import json
import os
import subprocess
import sys

import pytest

from physkit.cli import main
from physkit.cli.common._devices import DEVICE_COUNT_FLAG, choose_devices
from physkit.cli.verbs import _doctor as doctor
from tests.snippets import ROOT

CASE = """
import jax.numpy as jnp
import physkit as pk
def case():
    x, y = pk.Grid([1.0, 1.0], (16, 16)).coordinates()
    u = pk.Field(jnp.sin(6.283 * x) + jnp.cos(6.283 * y), pk.Grid([1.0, 1.0], (16, 16)))
    heat = pk.equations.Diffusion(1.0, scheme=pk.schemes.Central(2))
    return pk.Simulation(pk.RK4(heat), dt=5e-4, observers=[pk.Every(5, u=pk.FieldValues())]), u
"""


@pytest.mark.parametrize(
    ("text", "devices", "emulated"),
    [
        ("2x2", (2, 2), 4),
        ("3", (3,), 3),
        ("cpu:2x1", "cpu:2x1", 2),
        ("gpu:4", "gpu:4", None),
        ("gpu", "gpu", None),
        ("1", (1,), None),
        (None, None, None),
    ],
)
def test_devices_argument_is_parsed(text, devices, emulated, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--a=b")
    assert choose_devices(text) == devices
    assert os.environ["XLA_FLAGS"] == "--a=b" + (
        f" {DEVICE_COUNT_FLAG}={emulated}" if emulated else ""
    )
    choose_devices("5")
    assert os.environ["XLA_FLAGS"].count(DEVICE_COUNT_FLAG) == 1, "what the environment says stays"


@pytest.mark.parametrize("text", ["", "2x", "x2", "two", "gpu:", "2,2", "-1"])
def test_wrong_devices_arguments_are_refused(text):
    with pytest.raises(ValueError, match="numbers per axis"):
        choose_devices(text)


def test_doctor_tells_the_topology(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("SLURM_", "PHYSKIT_"))]:
        monkeypatch.delenv(name)

    def findings(count):
        return {
            subject: (verdict, text)
            for verdict, subject, text in doctor._check_topology([None] * count)
        }

    assert "emulates four on CPU" in findings(1)["topology"][1]
    assert findings(4) == {
        "topology": ("ok", "domains can be sharded over 4: devices=(4,) or (2, 2)"),
    }
    monkeypatch.setenv("PHYSKIT_COORDINATOR", "a:5000")
    monkeypatch.setenv("PHYSKIT_PROCESSES", "3")
    assert findings(2)["job"][0] == "MEND"
    monkeypatch.setenv("PHYSKIT_PROCESS", "1")
    assert "over 6, 2 of each process: devices=(6,) or (3, 2)" in findings(2)["topology"][1]
    assert "process 1 of 3 under the environment, met at a:5000" in findings(2)["job"][1]
    assert list(doctor._check_spmd()) == []
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    assert next(doctor._check_spmd())[2] == "is 'vmap': all devices are emulated by one"
    monkeypatch.setenv("PHYSKIT_SPMD", "mpi")
    assert next(doctor._check_spmd())[0] == "MEND"


def test_a_run_that_cannot_begin_leaves_no_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    (tmp_path / "case.py").write_text(CASE)
    words = ["run", str(tmp_path / "case.py"), "--steps", "10", "--to", str(tmp_path / "out")]
    assert main([*words, "--devices", "1x1x2", "--quiet"]) == 2
    assert "devices=(1, 1, 2)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow  # four processes
def test_run_and_resume_over_other_devices(tmp_path):
    (tmp_path / "case.py").write_text(CASE)
    _physkit("run case.py --steps 20 --to one --json", tmp_path)
    assert _physkit("run case.py --steps 10 --to two --devices 2x2 --json", tmp_path)["steps"] == 10
    assert json.loads((tmp_path / "two/case.json").read_text())["devices"] == "2x2"
    assert _physkit("resume two --steps 15 --json", tmp_path)["resumed_from"] == 10
    found = _physkit("resume two --steps 20 --devices 2 --json", tmp_path)
    assert (found["steps"], found["resumed_from"]) == (20, 15)
    script = (
        "import physkit as pk, numpy as np; a, b = (pk.open(f)['u'][:] for f in ('one', 'two'));"
        "assert a.shape == b.shape == (5, 16, 16), (a.shape, b.shape);"
        "np.testing.assert_allclose(b, a, rtol=0, atol=1e-6)"
    )
    _python(["-c", script], tmp_path)


def _physkit(words: str, folder):
    return json.loads(_python(["-m", "physkit", *words.split()], folder).splitlines()[-1])


def _python(words, folder) -> str:
    settings = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
