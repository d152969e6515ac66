"""Sweeps on a real Slurm: an array, a killed task, preemption, time limits, a job script."""

import importlib.util
import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ensemble.kill_campaign import CASE, CHUNKS, environment, equal_bits, read_results


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Compiled programs that all workers share."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def physkit(slurm, programs, tmp_path, monkeypatch):
    """A function: words of `physkit sweep …`, run beside `case.py`, to its exit status and JSON."""
    del slurm
    # Not importorskip: importing submitit here would reconfigure logging.
    if importlib.util.find_spec("submitit") is None:
        pytest.skip("the cluster extra is not installed")
    for name, value in environment(programs).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "case.py").write_text(CASE)

    def run_sweep_command(*words):
        process = subprocess.run(
            [sys.executable, "-m", "physkit", "sweep", *map(str, words), "--json"],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert process.returncode in (0, 75), process.stderr
        return process.returncode, json.loads(process.stdout)

    return run_sweep_command


@pytest.fixture(scope="module")
def uninterrupted(programs, tmp_path_factory):
    """The results of an uninterrupted sweep."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    (folder / "case.py").write_text(CASE)
    subprocess.run(
        [sys.executable, "-m", "physkit", "sweep", "run", "case.py", "--to", "out", *OPTIONS],
        env=environment(programs),
        cwd=folder,
        check=True,
        timeout=300,
    )
    return read_results(folder / "out")


# Chunks long enough to interrupt a worker while it computes one.
STEPS = 600_000
OPTIONS = ("--chunk-size", "4", "--double", "--set", f"steps={STEPS}")
ARRAY = ("--elements", "2", "--minutes", "10", "--warning", "30")


def wait_until(condition, seconds=180):
    """Wait until a condition holds; its value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "timed out"
        time.sleep(0.1)
    return found


def num_finished(folder="out"):
    return len(list(Path(folder, "chunks").glob("[0-9]*.h5")))


def queued_jobs(job, states=""):
    process = subprocess.run(
        ["squeue", "-h", "-j", job, "-o", "%i %T", *([f"-t{states}"] if states else [])],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return process.stdout.split()


def current_holder(chunks="out/chunks"):
    """The claim of a worker that is computing a chunk."""
    for claim in Path(chunks).glob("[0-9]*.claim"):
        try:
            return json.loads(claim.read_text())
        except (OSError, ValueError):
            continue
    return None


def test_an_array_with_a_killed_task_is_finished_by_the_other(physkit, uninterrupted):
    _, submitted = physkit("submit", "case.py", "--to", "out", *OPTIONS, *ARRAY)
    job = submitted["jobs"][0].partition("_")[0]
    wait_until(lambda: num_finished() >= 2)
    victim = wait_until(current_holder)
    assert victim["job"].startswith(f"{job}_")
    os.kill(victim["process"], 9)
    code, progress = physkit("status", "out")
    assert code in (0, 75)
    wait_until(lambda: not queued_jobs(job))
    assert num_finished() == CHUNKS
    code, progress = physkit("status", "out")
    assert (code, progress["complete"], progress["jobs"]) == (0, True, {})
    assert equal_bits(read_results(Path("out")), uninterrupted)


def test_a_canceled_array_stays_canceled_until_submitted_again(physkit, uninterrupted):
    _, submitted = physkit("submit", "case.py", "--to", "out", *OPTIONS, *ARRAY)
    job = submitted["jobs"][0].partition("_")[0]
    wait_until(lambda: num_finished() >= 3)
    subprocess.run(["scancel", job], check=True, timeout=60)
    wait_until(lambda: not queued_jobs(job))
    before = num_finished()
    assert before < CHUNKS
    time.sleep(15)  # longer than Slurm lets requeued jobs wait here
    assert not queued_jobs(job), "canceled jobs came back"
    assert num_finished() == before
    code, progress = physkit("status", "out")
    assert code == 75
    assert len(progress["missing"]) == CHUNKS - before
    code, partial = physkit("collect", "out", "--to", "part.csv")
    assert code == 75
    assert partial["members"] == 4 * before
    assert len(Path("part.csv").read_text().splitlines()) == 1 + 4 * before
    _, submitted = physkit("submit", "case.py", "--to", "out", *OPTIONS, *ARRAY)
    wait_until(lambda: num_finished() == CHUNKS)
    code, found = physkit("collect", "out")
    assert (code, found["complete"]) == (0, True)
    assert equal_bits(read_results(Path("out")), uninterrupted)


@pytest.mark.parametrize("stopped_by", ["preempted", "signaled"])
def test_a_stopped_array_is_requeued(physkit, uninterrupted, stopped_by):
    """Preempted by a job of higher priority; or signaled by Slurm before its time is up."""
    array = (*ARRAY, "--option", "exclusive=user") if stopped_by == "preempted" else ARRAY
    _, submitted = physkit("submit", "case.py", "--to", "out", *OPTIONS, *array)
    job = submitted["jobs"][0].partition("_")[0]
    wait_until(lambda: num_finished() >= 2)
    if stopped_by == "preempted":
        urgent_job = ("-p", "urgent", "-N2", "--exclusive", "sleep", "1")
        subprocess.run(["srun", *urgent_job], check=True, timeout=120)
    else:
        subprocess.run(["scancel", "--signal=USR1", job], check=True, timeout=60)
    wait_until(lambda: not current_holder() or num_finished() == CHUNKS)
    wait_until(lambda: num_finished() == CHUNKS)
    wait_until(lambda: not queued_jobs(job))
    logs = "\n".join(p.read_text() for p in Path("out", "log").glob("*_log.out"))
    assert "stopped (SIGTERM)" in logs or "stopped (SIGUSR1)" in logs, logs
    assert logs.count("Starting with JobEnvironment") > 2, "no job was restarted"
    assert equal_bits(read_results(Path("out")), uninterrupted)


def test_the_job_script_computes_the_sweep(physkit, uninterrupted):
    _, output = physkit(
        *("script", "case.py", "--to", "out", *OPTIONS, *ARRAY),
        *("--physkit", f"{sys.executable} -m physkit"),
    )
    Path("job.sbatch").write_text(output["script"])
    subprocess.run(["sbatch", "--wait", "job.sbatch"], check=True, timeout=300)
    assert num_finished() == CHUNKS
    assert equal_bits(read_results(Path("out")), uninterrupted)
    assert list(Path().glob("sweep-out-*_0.txt"))


def test_the_slurm_engine_pickles_sweeps_without_a_module(physkit, uninterrupted):
    """A sweep that no importable module defines is pickled with its functions."""
    import physkit as pk

    del physkit
    case = runpy.run_path("case.py")["case"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_ENABLE_X64", "1")
        found = pk.sweep(
            case(steps=STEPS), to="out", chunk_size=4, engine=pk.SlurmArray(elements=2, minutes=10)
        )
    assert found.complete
    assert equal_bits(read_results(Path("out")), uninterrupted)
