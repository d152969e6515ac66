"""Sweeps on a real Slurm: an array, a task that is killed, preemption, the end of the time, a script."""

import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ensemble.kill_campaign import CASE, CHUNKS, environment, numbers, same


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Compiled programs that all workers share."""
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def physkit(slurm, programs, tmp_path, monkeypatch):
    """A function: words of `physkit sweep …`, run beside `case.py`, to its exit status and JSON."""
    del slurm
    pytest.importorskip("cloudpickle", reason="the cluster extra is not installed")
    for name, value in environment(programs).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "case.py").write_text(CASE)

    def do(*words):
        done = subprocess.run(
            [sys.executable, "-m", "physkit", "sweep", *map(str, words), "--json"],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode in (0, 75), done.stderr
        return done.returncode, json.loads(done.stdout)

    return do


@pytest.fixture(scope="module")
def whole(programs, tmp_path_factory):
    """What the sweep gives where nobody interferes."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "case.py").write_text(CASE)
    subprocess.run(
        [sys.executable, "-m", "physkit", "sweep", "run", "case.py", "--to", "out", *OPTIONS],
        env=environment(programs),
        cwd=folder,
        check=True,
        timeout=300,
    )
    return numbers(folder / "out")


# Chunks long enough that something can happen to whoever has one in hand.
STEPS = 600_000
OPTIONS = ("--chunk", "4", "--double", "--set", f"steps={STEPS}")
ARRAY = ("--elements", "2", "--minutes", "10", "--warning", "30")


def until(happens, seconds=180):
    """Wait for it."""
    end = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)
    return found


def there(folder="out"):
    return len(list(Path(folder, "chunks").glob("[0-9]*.h5")))


def queued(job, states=""):
    said = subprocess.run(
        ["squeue", "-h", "-j", job, "-o", "%i %T", *([f"-t{states}"] if states else [])],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return said.stdout.split()


def holder(chunks="out/chunks"):
    """The process of a worker that has a chunk in hand."""
    for claim in Path(chunks).glob("[0-9]*.claim"):
        try:
            return json.loads(claim.read_text())
        except (OSError, ValueError):
            continue
    return None


def test_an_array_with_a_killed_task_is_finished_by_the_other(physkit, whole):
    _, sent = physkit("submit", "case.py", "--to", "out", *OPTIONS, *ARRAY)
    job = sent["jobs"][0].partition("_")[0]
    until(lambda: there() >= 2)
    victim = until(holder)
    assert victim["job"].startswith(f"{job}_")
    os.kill(victim["process"], 9)
    code, now = physkit("status", "out")
    assert code in (0, 75)
    until(lambda: not queued(job))
    assert there() == CHUNKS
    code, now = physkit("status", "out")
    assert (code, now["complete"], now["jobs"]) == (0, True, {})
    assert same(numbers(Path("out")), whole)


def test_a_cancelled_array_is_submitted_again(physkit, whole):
    _, sent = physkit("submit", "case.py", "--to", "out", *OPTIONS, *ARRAY)
    job = sent["jobs"][0].partition("_")[0]
    until(lambda: there() >= 3)
    subprocess.run(["scancel", job], check=True, timeout=60)
    until(lambda: not queued(job))
    before = there()
    assert before < CHUNKS
    time.sleep(15)  # longer than Slurm lets requeued jobs wait here
    assert not queued(job), "canceled jobs came back"
    assert there() == before
    code, now = physkit("status", "out")
    assert code == 75
    assert len(now["missing"]) == CHUNKS - before
    code, partial = physkit("collect", "out", "--to", "part.csv")
    assert code == 75
    assert partial["members"] == 4 * before
    assert len(Path("part.csv").read_text().splitlines()) == 1 + 4 * before
    _, sent = physkit("submit", "case.py", "--to", "out", *OPTIONS, *ARRAY)
    until(lambda: there() == CHUNKS)
    code, found = physkit("collect", "out")
    assert (code, found["complete"]) == (0, True)
    assert same(numbers(Path("out")), whole)


@pytest.mark.parametrize("way", ["preempted", "told"])
def test_an_array_that_is_stopped_goes_back_into_the_queue(physkit, whole, way):
    """Preempted by a job of more importance; or told by Slurm's own signal before the time is up."""
    array = (*ARRAY, "--option", "exclusive=user") if way == "preempted" else ARRAY
    _, sent = physkit("submit", "case.py", "--to", "out", *OPTIONS, *array)
    job = sent["jobs"][0].partition("_")[0]
    until(lambda: there() >= 2)
    if way == "preempted":
        wanted = ("-p", "urgent", "-N2", "--exclusive", "sleep", "1")
        subprocess.run(["srun", *wanted], check=True, timeout=120)
    else:
        subprocess.run(["scancel", "--signal=USR1", job], check=True, timeout=60)
    until(lambda: not holder() or there() == CHUNKS)
    until(lambda: there() == CHUNKS)
    until(lambda: not queued(job))
    logs = "\n".join(p.read_text() for p in Path("out", "log").glob("*_log.out"))
    assert "stopped (SIGTERM)" in logs or "stopped (SIGUSR1)" in logs, logs
    assert logs.count("Starting with JobEnvironment") > 2, "nobody was started again"
    assert same(numbers(Path("out")), whole)


def test_the_script_needs_nothing_where_it_is_submitted(physkit, whole):
    _, said = physkit(
        *("script", "case.py", "--to", "out", *OPTIONS, *ARRAY),
        *("--physkit", f"{sys.executable} -m physkit"),
    )
    Path("job.sbatch").write_text(said["script"])
    subprocess.run(["sbatch", "--wait", "job.sbatch"], check=True, timeout=300)
    assert there() == CHUNKS
    assert same(numbers(Path("out")), whole)
    assert list(Path().glob("sweep-out-*_0.txt"))


def test_from_python(physkit, whole):
    """A sweep that no file defines is sent with its functions, and waited for."""
    import physkit as pk

    del physkit
    case = runpy.run_path("case.py")["case"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_ENABLE_X64", "1")
        found = pk.sweep(case(), to="out", chunk=4, engine=pk.SlurmArray(elements=2, minutes=10))
    assert found.complete
    assert same(numbers(Path("out")), whole)
