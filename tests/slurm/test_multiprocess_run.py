"""A domain over the processes of a step of a real Slurm."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "tests" / "simulate" / "diffusion_over_processes.py"
ALONE = "import physkit as pk; print(pk.parallel.initialize(wait=5))"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, slurm):
    del slurm
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=1")
    monkeypatch.delenv("PHYSKIT_SPMD", raising=False)


def step(*words, nodes=2):
    """The words of a step of two processes."""
    found = ("srun", f"-N{nodes}", "-n2", "--kill-on-bad-exit=1", sys.executable, SCRIPT, *words)
    return [str(word) for word in found]


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_step_of_two_processes(nodes, run_command, tmp_path, monkeypatch):
    said = run_command(*step(tmp_path / "two", "2x1", 60, nodes=nodes), timeout=300)
    assert said.count("resumed from None, at step 60") == 2
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    run_command(sys.executable, SCRIPT, tmp_path / "one", "2x1", 60, timeout=300)
    one, two = (np.load(tmp_path / name / "last.npz") for name in ("one", "two"))
    for name in one.files:
        assert np.array_equal(one[name], two[name])


def test_one_of_them_is_killed(run_command, tmp_path):
    folder = tmp_path / "r"
    srun = subprocess.Popen(
        step(folder, "2x1", 10**6, "slow"),
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 120
        while len(list((folder / "checkpoints").glob("checkpoint-*.h5"))) < 2:
            assert time.monotonic() < until
            assert srun.poll() is None, srun.communicate()[0]
            time.sleep(0.1)
        os.kill(process_of("1"), signal.SIGKILL)
        killed = time.monotonic()
        said, _ = srun.communicate(timeout=60)
        assert time.monotonic() - killed < 15
        assert srun.returncode != 0
        assert "is gone: it was killed" in said, said
        print(said)
    finally:
        srun.kill()
        srun.communicate()
    newest = max((folder / "checkpoints").glob("checkpoint-*.h5")).name
    steps = int(newest[11:26]) + 200
    again = run_command(*step(folder, "2x1", steps), timeout=300)
    assert again.count(f"resumed from {steps - 200}, at step {steps}") == 2


def process_of(number: str) -> int:
    """The process that is this task of the step."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = path.read_bytes()
            words = (path.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = str(SCRIPT).encode() in words and words[0].endswith(sys.executable.encode())
        if ours and f"SLURM_PROCID={number}".encode() in environment.split(b"\0"):
            return int(path.parent.name)
    raise AssertionError("it is not there")


def test_an_allocation_is_not_a_job(run_command, tmp_path):
    said = run_command("salloc", "-n2", sys.executable, "-c", ALONE)
    assert "Job of one process" in said
    run_command(
        *("sbatch", "--wait", "-n2", f"--output={tmp_path}/out.txt"),
        f'--wrap={sys.executable} -c "{ALONE}"',
    )
    assert "Job of one process" in (tmp_path / "out.txt").read_text()
