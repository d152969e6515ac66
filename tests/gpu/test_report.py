"""`make gpu`: processes get ready together and are timed one by one; outcomes of tests are told at once."""

import json
import os
import subprocess
import sys
import time

import jax
import pytest

from benchmarks._harness import rate_of_cells
from benchmarks.gpu import _turns
from benchmarks.gpu._outcomes import OUTCOMES
from benchmarks.gpu._processes import GAVE_UP, ROOT, run
from benchmarks.gpu._suite import read_outcomes, summarize
from benchmarks.gpu._turns import Waiting, give_turns
from benchmarks.gpu.report import list_benchmarks

MEASUREMENT = """
import sys, time
name, journal = sys.argv[1:]
def note(what):
    with open(journal, "a") as file:
        file.write(f"{what} {name}\\n")
time.sleep(0.3 if name == "slow" else 0)
if name == "dead":
    sys.exit("nothing to measure")
if name == "never":
    time.sleep(60)
from benchmarks._harness import seconds, wait_for_turn
note("ready")
wait_for_turn()
note("begin")
if name == "long":
    time.sleep(60)
seconds(lambda: time.sleep(0.05), 2)
note("end")
print("a word of a driver")
print('{"rate": 1.0}')
"""


def give_turns_to(names, folder, minutes=1.0):
    """What has come of each measurement, and what they noted, in order."""
    journal = folder / "journal"
    batch = {
        name: Waiting([sys.executable, "-c", MEASUREMENT, name, str(journal)], folder / name)
        for name in names
    }
    try:
        found = dict(give_turns(batch, time.monotonic() + 60 * minutes))
    finally:
        for waiting in batch.values():
            waiting.stop()
    return found, [line.split() for line in journal.read_text().splitlines()]


def test_all_are_ready_before_any_is_timed_and_then_one_by_one(tmp_path):
    found, notes = give_turns_to(["slow", "a", "b"], tmp_path)
    assert found == {name: {"rate": 1.0} for name in ("slow", "a", "b")}
    assert sorted(notes[:3]) == [["ready", name] for name in ("a", "b", "slow")]
    assert notes[3:] == [[what, name] for name in ("slow", "a", "b") for what in ("begin", "end")]


def test_the_dead_and_the_late_lose_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(_turns, "READY", 5.0)
    monkeypatch.setattr(_turns, "TIMED", 2.0)
    found, notes = give_turns_to(["dead", "never", "long", "a"], tmp_path)
    assert found["dead"] == {"failed": "nothing to measure"}
    assert found["never"] == {"failed": "not ready after 5 s"}
    assert found["long"] == {"failed": "not timed in 2 s"}
    assert found["a"] == {"rate": 1.0}
    assert notes[2:] == [["begin", "long"], ["begin", "a"], ["end", "a"]]


def test_what_no_time_is_left_for_is_left_out(tmp_path):
    (tmp_path / "journal").touch()
    found, _ = give_turns_to(["a"], tmp_path, minutes=0)
    assert not found


def test_a_measurement_by_itself_does_not_wait(tmp_path):
    command = [sys.executable, "-c", MEASUREMENT, "a", str(tmp_path / "journal")]
    assert run(command, 20)[0] == 0


def test_a_command_is_given_up_with_what_it_said():
    sleeper = "import time; print('said', flush=True); time.sleep(60)"
    code, said = run([sys.executable, "-c", sleeper], 0.5)
    assert code == GAVE_UP
    assert said.startswith("said")


TESTS = """
import pytest

@pytest.mark.parametrize("n", [1, 2])
def test_passes(n):
    pass

def test_skips():
    pytest.skip("why not")

def test_fails():
    assert False

@pytest.fixture
def broken_at_the_end():
    yield
    raise ValueError

def test_ends_badly(broken_at_the_end):
    pass
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_outcomes_of_pytest(tmp_path, workers):
    pytest.importorskip("xdist")
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_not_imported.py").write_text("import nowhere")
    environment = os.environ | {OUTCOMES: str(tmp_path / "outcomes"), "PYTHONPATH": str(ROOT)}
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]  # of the worker that this test runs in
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "benchmarks.gpu._outcomes", "-n", workers,
         "--continue-on-collection-errors", "-p", "no:cacheprovider", "test_some.py", "test_not_imported.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = read_outcomes((tmp_path / "outcomes").read_text())
    some = summarize("test_some.py", found, {}, done.returncode, done.stdout)
    assert some["counts"] == {"passed": 2, "skipped": 1, "failed": 2}, done.stdout
    assert sorted(some["failures"]) == ["test_some.py::test_ends_badly", "test_some.py::test_fails"]
    assert not some["unfinished"]
    other = summarize("test_not_imported.py", found, {}, done.returncode, done.stdout)
    assert other["failures"] == ["test_not_imported.py"]


def test_cells_are_counted_by_the_clock_on_a_gpu(monkeypatch):
    assert rate_of_cells(6.0, 1.0, 2.0)["rate"] == 3.0
    assert rate_of_cells(6.0, 1.0, 2.0)["unit"] == "M cells/CPU s"
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert rate_of_cells(6.0, 1.0, 2.0) == {"rate": 6.0, "unit": "M cells/s"}


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows)


def result(test, outcome="passed", worker="gw0", gpu_error=False):
    return {"test": f"f.py::{test}", "outcome": outcome, "worker": worker, "gpu_error": gpu_error}


def test_the_next_call_goes_on_with_the_tests_that_are_left():
    collected = {"collected": [f"f.py::{name}" for name in "abc"]}
    text = lines(collected, result("a"), result("b", "failed")) + '\n{"test": "f.py::c", "outc'
    first = summarize("f.py", read_outcomes(text), {}, GAVE_UP, "")
    assert first["said"] == "1 passed, 1 failed, 1 left; `f.py::b`"
    assert first["left"] == ["f.py::c"]
    assert first["unfinished"]
    text = lines({"collected": ["f.py::c"]}, result("c"))
    second = summarize("f.py", read_outcomes(text), first, 0, "")
    assert second["said"] == "2 passed, 1 failed; `f.py::b`"
    assert second["code"] == 1
    assert not second["unfinished"]


def test_what_fails_after_the_loss_of_a_context_is_left():
    broken = {"outcome": "failed", "gpu_error": True}
    rows = [result("a", **broken), result("b", **broken), result("c", worker="gw1", **broken)]
    found = summarize("f.py", read_outcomes(lines(*rows)), {}, 1, "")
    assert found["failures"] == ["f.py::a", "f.py::c"]
    assert found["left"] == ["f.py::b"]
    assert "1 of them lost" in found["said"]


def test_a_pytest_that_says_nothing_of_a_file_is_a_failure():
    found = summarize("f.py", {}, {}, 4, "ERROR: file or directory not found: f.py\n")
    assert found["code"] == 1
    assert "not found" in found["said"]


def test_names_of_benchmarks_are_their_own():
    rows = [row for quick in (True, False) for row in list_benchmarks(quick).values()]
    assert {"case": "light", "size": 256, "code": "physkit", "precision": "float32"} in rows
    assert len({str(row) for row in rows}) == len(rows)
