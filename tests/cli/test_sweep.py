"""`physkit sweep`: run, status, collect, script, submit."""

import csv
import json
import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from physkit.cli import main
from physkit.cli.sweep import _local_workers
from physkit.cli.sweep._local_workers import _Ended, _read_result
from physkit.ensemble import Ensemble
from physkit.storage import identify_process

CASE = """
import physkit as pk


def case(members=12, steps=20):
    simulation, state = pk.systems.lorenz()
    over = pk.SweepAxis(lambda model: model[1][0], [float(k) for k in range(members)], name="x")
    return pk.Sweep((simulation, state), steps, over=over)
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch, capsys):
    """A function: arguments of `physkit sweep` → its exit status and what it prints, as JSON."""
    monkeypatch.chdir(tmp_path)
    for name in ("SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_CONF"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "case.py").write_text(CASE)

    def run_sweep(*words, as_json=True):
        code = main(["sweep", *words, *["--json"] * as_json])
        printed = capsys.readouterr()
        if not as_json:
            return code, printed.out
        return code, json.loads(printed.out) if printed.out else printed.err

    return run_sweep


RUN = ("run", "case.py", "--to", "out", "--chunk-size", "5")


def test_lost_and_claimed_chunks_show_in_status_and_collect(sweep, tmp_path):
    code, did = sweep(*RUN)
    assert (code, did["computed"], did["missing"], did["stopped_by"]) == (0, [0, 1, 2], [], None)
    code, now = sweep("status", "out")
    assert (code, now["complete"], now["chunks"], now["members"]) == (0, True, 3, 12)
    code, found = sweep("collect", "out", "--to", "all.npz")
    assert (code, found["members"], found["arrays"]) == (0, 12, {"position": [12, 21, 3]})
    with np.load("all.npz") as arrays:
        whole = arrays["position"]
        np.testing.assert_array_equal(whole[:, 0, 0], arrays["at x"])

    # One chunk is lost, and another one claimed by a worker elsewhere.
    (tmp_path / "out/chunks/000001.h5").unlink()
    (tmp_path / "out/chunks/000002.h5").unlink()
    other = {**identify_process(), "host": "another-machine"}
    (tmp_path / "out/chunks/000002.claim").write_text(json.dumps(other))
    code, now = sweep("status", "out")
    assert (code, now["missing"], now["running"]) == (75, [1], [2])
    code, text = sweep("status", "out", as_json=False)
    assert "1 of 3 chunks" in text
    assert "another-machine" in text
    code, did = sweep(*RUN, "--worker", "1/2")
    assert (code, did["computed"], did["missing"], did["claimed_elsewhere"]) == (0, [1], [2], [2])
    code, part = sweep("collect", "out", "--to", "part.csv")
    assert (code, part["members"], part["missing_chunks"]) == (75, 10, [2])
    with (tmp_path / "part.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["member"] for row in rows] == [str(k) for k in range(10)]
    assert [float(row["x"]) for row in rows] == list(range(10))
    sweep("collect", "out", "--to", "again.npz")
    with np.load("again.npz") as arrays:
        assert arrays["position"].tobytes() == whole[:10].tobytes()

    code, error = sweep(*RUN, "--set", "steps=30")
    assert code == 2
    assert "another sweep" in error


def test_stopped_by_the_wall_time(sweep):
    code, did = sweep(*RUN, "--wall-time", "0")
    assert (code, did["computed"], did["stopped_by"]) == (75, [], "wall time")
    assert not did["requeued"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "case.py", "--to", "out", "--worker", "2/2"), "K < N"),
        (("run", "case.py", "--to", "out", "--workers", "0"), "at least 1"),
        (("run", "case.py", "--to", "out", "--workers", "2", "--worker", "4/4"), "K < N"),
        (("run", "none.py", "--to", "out"), "not there"),
        (("run", "other.py", "--to", "out"), "pk.Sweep"),
        (
            ("run", "case.py", "--to", "out", "--set", "size=3"),
            "NAME=VALUE for ['members', 'steps']",
        ),
        (("status", "nothing"), "holds no sweep"),
        (("collect", "nothing"), "holds no sweep"),
        (("collect", "nothing", "--to", "a.doc"), ".csv"),
        (("script", "case.py", "--to", "out", "--option", "exclude"), "NAME=VALUE"),
        (("submit", "case.py", "--to", "out", "--minutes", "1"), "shorter"),
    ],
)
def test_wrong_arguments_are_refused(sweep, tmp_path, words, message):
    (tmp_path / "other.py").write_text("def case():\n    return 3\n")
    code, error = sweep(*words)
    assert code == 2
    assert message in error


def test_the_job_script_runs_sweep_run(sweep):
    code, text = sweep(
        *(
            "script",
            "my case.py",
            "--to",
            "out",
            "--set",
            "members=40",
            "--double",
            "--chunk-size",
            "5",
        ),
        *("--elements", "4", "--gpus", "1", "--setup", "module load cuda", "--no-requeue"),
        *("--physkit", "/sw/python -m physkit"),
        as_json=False,
    )
    assert code == 0
    assert "#SBATCH --array=0-3\n" in text
    assert "#SBATCH --gres=gpu:1\n" in text
    *_, setup, line = text.splitlines()
    assert setup == "module load cuda"
    assert line == (
        "srun --ntasks=1 /sw/python -m physkit sweep run 'my case.py' --to out --set members=40 "
        '--double --chunk-size 5 --worker "$SLURM_ARRAY_TASK_ID/4"'
    )


def test_submit_without_submitit_names_the_alternatives(sweep, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    code, error = sweep("submit", "case.py", "--to", "out")
    assert code == 1
    assert "physkit[cluster]" in error
    assert "sweep script" in error


def test_submit_without_slurm_is_refused(sweep, monkeypatch):
    pytest.importorskip("submitit", reason="the cluster extra is not installed")
    monkeypatch.setenv("PATH", "/nowhere")
    code, error = sweep("submit", "case.py", "--to", "out")
    assert code == 1
    assert "no Slurm here" in error


def test_submit_hands_its_options_to_slurm_and_to_the_elements(sweep, tmp_path, monkeypatch):
    pytest.importorskip("submitit", reason="the cluster extra is not installed")
    there = tmp_path / "bin"
    there.mkdir()
    for name, text in (("sbatch", "echo Submitted batch job 12"), ("srun", ""), ("squeue", "")):
        (there / name).write_text(f"#!/bin/sh\n{text}\n")
        (there / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{there}{os.pathsep}{os.environ['PATH']}")
    code, sent = sweep(
        *(
            "submit",
            "case.py",
            "--to",
            "out",
            "--set",
            "members=7",
            "--chunk-size",
            "3",
            "--elements",
            "2",
        ),
        *("--minutes", "30", "--partition", "gpu", "--setup", "module load cuda", "--double"),
    )
    assert (code, sent["jobs"]) == (0, ["12_0", "12_1"])
    log = tmp_path / "out" / "log"
    script = (log / "12_submission.sh").read_text()
    for line in ("--array=0-1%2", "--time=30", "--partition=gpu", "--requeue", "--signal=USR1@120"):
        assert f"#SBATCH {line}\n" in script
    assert "module load cuda\n" in script
    assert "export JAX_ENABLE_X64=" in script
    assert (log / "jobs.txt").read_text() == "12\n"
    import submitit

    element = submitit.core.utils.DelayedSubmission.load(log / "12_1_submitted.pkl").function
    assert (element.worker, element.chunk_size, element.requeue) == ((1, 2), 3, True)
    assert element.source().num_members == 7
    # What the elements will do, done here.
    assert element() == 0
    code, now = sweep("status", "out")
    assert (code, now["complete"], now["jobs"]) == (0, True, {})
    words = ("submit", "case.py", "--to", "out", "--set")
    code, sent = sweep(*words, "members=7")
    assert (code, sent["jobs"]) == (0, []), "nothing is left to do"
    code, error = sweep(*words, "members=8")
    assert code == 2
    assert "another sweep" in error


@pytest.mark.parametrize(
    ("ended", "status", "requeued"),
    [
        ([(75, True, False), (75, False, True)], 75, True),
        ([(75, False, False), (-9, False, False)], 75, True),  # one has saved its chunk
        ([(75, False, True), (0, False, False)], 75, False),  # another try would come no further
        ([(75, False, True), (0, True, False)], 75, True),
        ([(130, True, False), (75, True, False)], 130, False),
        ([(0, True, False), (0, True, False)], 0, False),
    ],
)
def test_several_workers_put_their_job_back_into_the_queue_once(
    sweep, monkeypatch, ended, status, requeued
):
    requests = []
    monkeypatch.setattr("physkit.ensemble.requeue_this_job", lambda: requests.append(1) or True)
    monkeypatch.setattr(_local_workers, "_run_round", lambda *_: [_Ended(*one) for one in ended])
    sweep(*RUN, "--wall-time", "0")  # makes the folder, which workers would do
    monkeypatch.setattr(_local_workers, "_MAX_ROUNDS", 1)
    code, did = sweep(*RUN, "--workers", "2", "--requeue")
    assert (code, did["requeued"], requests) == (status, requeued, [1] * requeued)
    assert not sweep(*RUN, "--workers", "2")[1]["requeued"]


def test_a_worker_that_was_killed_says_nothing_of_itself():
    for text, said in (
        ('hello\n{"computed": [3], "too_long": false}\n', (True, False)),
        ('{"computed": [], "too_long": true}\n', (False, True)),
        ("hello\n", (False, False)),
        ("3\n", (False, False)),
        ("", (False, False)),
    ):
        assert _read_result(75, text.encode()) == (75, *said)


@pytest.mark.slow
def test_stopped_workers_put_their_job_back_into_the_queue(sweep, tmp_path, monkeypatch):
    for name, text in (("squeue", "echo RUNNING"), ("scontrol", f'echo "$@" >> {tmp_path}/calls')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")

    def send_signal():
        while not list(tmp_path.glob("out/chunks/*.h5")):
            time.sleep(0.001)
        signal.raise_signal(signal.SIGUSR1)

    sender = threading.Thread(target=send_signal)
    sender.start()
    code, did = sweep(*RUN, "--set", "members=4000", "--workers", "2", "--requeue")
    sender.join()
    assert (code, did["stopped_by"], did["requeued"]) == (75, "SIGUSR1", True)
    assert (tmp_path / "calls").read_text() == "requeue 7\n"


@pytest.mark.slow
def test_several_workers(sweep):
    code, did = sweep(*RUN, "--workers", "2")
    assert (code, did["done"], did["killed"]) == (0, 3, 0)
    assert sweep(*RUN, "--workers", "2", "--set", "steps=30")[0] == 2


def test_collect_replaces_a_file_as_a_whole_and_only_where_told_to(sweep, tmp_path, monkeypatch):
    sweep(*RUN, "--set", "members=2")
    for ending in ("csv", "npz", "nc"):
        to = tmp_path / f"all.{ending}"
        to.write_text("mine")
        code, error = sweep("collect", "out", "--to", to.name)
        assert code != 0
        assert "give --overwrite" in error
        assert to.read_text() == "mine"
        if ending == "nc":
            write_netcdf_at_the_second_attempt(monkeypatch, to)
            code, error = sweep("collect", "out", "--to", to.name, "--overwrite")
            assert code != 0
            assert "disk full" in error
            assert to.read_text() == "mine"
        code, found = sweep("collect", "out", "--to", to.name, "--overwrite")
        assert (code, found["to"]) == (0, to.name)
        assert to.read_bytes()[:4] != b"mine"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"case.py", "out", "all.csv", "all.npz", "all.nc"}


def write_netcdf_at_the_second_attempt(monkeypatch, to):
    """Let a dataset that fails once, halfway, stand for that of xarray, which need not be installed."""
    attempts = []

    def to_netcdf(path):
        attempts.append(path)
        path.write_text("half" if len(attempts) == 1 else "whole")
        assert to.read_text() == "mine"
        if len(attempts) == 1:
            raise OSError("disk full")

    monkeypatch.setattr(Ensemble, "to_xarray", lambda self: SimpleNamespace(to_netcdf=to_netcdf))
