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
PRINT_JOB = "import physkit as pk; print(pk.parallel.initialize(wait=5))"


@pytest.fixture(autouse=True)
def environment_of_steps(monkeypatch, slurm):
    del slurm
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=1")
    monkeypatch.delenv("PHYSKIT_SPMD", raising=False)


def step_command(*words, nodes=2):
    """The command of a Slurm step of two processes."""
    command = ("srun", f"-N{nodes}", "-n2", "--kill-on-bad-exit=1", sys.executable, SCRIPT, *words)
    return [str(word) for word in command]


@pytest.mark.parametrize("nodes", [1, 2])
def test_two_processes_of_a_step_compute_what_one_process_does(
    nodes, run_command, tmp_path, monkeypatch
):
    output = run_command(*step_command(tmp_path / "two", "2x1", 60, nodes=nodes), timeout=300)
    assert output.count("resumed from None, at step 60") == 2
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    run_command(sys.executable, SCRIPT, tmp_path / "one", "2x1", 60, timeout=300)
    one, two = (np.load(tmp_path / name / "last.npz") for name in ("one", "two"))
    for name in one.files:
        assert np.array_equal(one[name], two[name])


def test_a_killed_process_ends_the_step_and_the_run_resumes(run_command, tmp_path):
    folder = tmp_path / "r"
    srun = subprocess.Popen(
        step_command(folder, "2x1", 10**6, "slow"),
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 120
        while len(list((folder / "checkpoints").glob("checkpoint-*.h5"))) < 2:
            assert time.monotonic() < deadline
            assert srun.poll() is None, srun.communicate()[0]
            time.sleep(0.1)
        os.kill(find_process("1"), signal.SIGKILL)
        killed = time.monotonic()
        output, _ = srun.communicate(timeout=60)
        assert time.monotonic() - killed < 15
        assert srun.returncode != 0
        assert "is gone: it was killed" in output, output
        print(output)
    finally:
        srun.kill()
        srun.communicate()
    newest = max((folder / "checkpoints").glob("checkpoint-*.h5")).name
    steps = int(newest[11:26]) + 200
    resumed = run_command(*step_command(folder, "2x1", steps), timeout=300)
    assert resumed.count(f"resumed from {steps - 200}, at step {steps}") == 2


def find_process(number: str) -> int:
    """The process that is task `number` of the step."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = path.read_bytes()
            words = (path.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_script = str(SCRIPT).encode() in words and words[0].endswith(sys.executable.encode())
        if is_script and f"SLURM_PROCID={number}".encode() in environment.split(b"\0"):
            return int(path.parent.name)
    raise AssertionError("no such process")


def test_processes_outside_of_a_step_are_alone(run_command, tmp_path):
    output = run_command("salloc", "-n2", sys.executable, "-c", PRINT_JOB)
    assert "ProcessGroup of one process" in output
    run_command(
        *("sbatch", "--wait", "-n2", f"--output={tmp_path}/out.txt"),
        f'--wrap={sys.executable} -c "{PRINT_JOB}"',
    )
    assert "ProcessGroup of one process" in (tmp_path / "out.txt").read_text()
