"""Claims on chunks: one holder at a time; claims of dead workers are taken over, others never."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from physkit.ensemble.cluster import _claims
from physkit.ensemble.cluster._claims import MAX_DEATHS, Claims
from physkit.ensemble.cluster._slurm_queue import (
    SlurmQueue,
    current_job,
    job_seconds_left,
    job_states,
    requeue_this_job,
)
from physkit.storage import identify_process


@pytest.fixture
def claims(tmp_path):
    return Claims(tmp_path)


@pytest.fixture
def command(tmp_path, monkeypatch):
    """A function that puts a fake command of Slurm on the path: it prints `text`, exits with `status`, and
    appends its arguments to the file `calls`."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")

    def write_command(name, text="", status=0, error=""):
        file = bin_folder / name
        file.write_text(
            f'#!/bin/sh\necho "$@" >> {bin_folder}/calls\nprintf "%b" "{text}"\n'
            f'printf "%b" "{error}" >&2\nexit {status}\n'
        )
        file.chmod(0o755)
        return bin_folder / "calls"

    return write_command


def dead_process():
    """A process of this machine that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return {**identify_process(), "process": ended.pid, "began": "1"}


def write(claims, number, holder):
    for old in claims.folder.glob(f"{number:06d}.*claim"):
        old.unlink()
    (claims.folder / f"{number:06d}.claim").write_text(json.dumps(holder))


def newest_claim(claims):
    """The content of the newest claim on the first chunk."""
    newest = max(claims.folder.glob("000000.*claim"), key=lambda path: len(path.name))
    return json.loads(newest.read_text())


def test_a_claim_has_one_holder_at_a_time(claims):
    assert claims.acquire(3)
    assert not claims.acquire(3)
    assert not Claims(claims.folder).acquire(3)
    assert claims.acquire(4)
    assert sorted(claims.holders()) == [3, 4]
    claims.release(3)
    assert claims.acquire(3)
    assert not list(claims.folder.glob(".*")), "temporary files are left"


@pytest.mark.parametrize("dead", [0, 1, 2], ids=["nobody before", "one dead", "two dead"])
def test_of_concurrent_workers_one_acquires_the_claim(claims, dead):
    holder = dead_process()
    for chunk in range(20):
        if dead:
            write(claims, chunk, holder)
        if dead == 2:
            (claims.folder / f"{chunk:06d}.1.claim").write_text(json.dumps(holder))
        acquired, gate = [], threading.Barrier(8)

        def try_to_acquire(chunk=chunk, acquired=acquired, gate=gate):
            gate.wait()
            if Claims(claims.folder).acquire(chunk):
                acquired.append(1)

        threads = [threading.Thread(target=try_to_acquire) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(acquired) == 1
        assert chunk in claims.holders()


def test_claims_of_dead_workers_are_taken_over_until_quarantine(claims):
    holder = dead_process()
    for deaths in range(MAX_DEATHS - 1):
        write(claims, 0, {**holder, "deaths": deaths})
        assert not claims.holders()
        assert claims.acquire(0)
        assert newest_claim(claims)["deaths"] == deaths + 1
    assert not claims.quarantined()
    write(claims, 0, {**holder, "deaths": MAX_DEATHS - 1})
    assert not claims.acquire(0)
    assert claims.quarantined() == [0]
    claims.release_stale()
    assert claims.acquire(0)
    claims.release(0)
    assert not list(claims.folder.glob("000000*")), (
        "releasing a claim removes the files of dead workers"
    )


def test_a_takeover_yields_to_a_new_first_claim(claims, monkeypatch):
    """Stale claims are released and a worker claims anew, while this one is about to take over."""
    write(claims, 0, dead_process())
    new_claim = claims.folder / "000000.claim"
    create = _claims._create

    def create_after_new_claim(path, deaths):
        new_claim.write_text(json.dumps(identify_process()))
        return create(path, deaths)

    monkeypatch.setattr(_claims, "_create", create_after_new_claim)
    assert not claims.acquire(0)
    assert list(claims.folder.iterdir()) == [new_claim]


def test_claims_of_living_workers_are_kept(claims):
    write(claims, 0, {**identify_process(), "deaths": 0})
    write(claims, 1, {**identify_process(), "host": "another-machine"})
    assert not claims.acquire(0)
    assert not claims.acquire(1)
    claims.release_stale()
    assert sorted(claims.holders()) == [0, 1]


@pytest.mark.parametrize("text", ["", "not json", "[1]"])
def test_an_unreadable_claim_is_stale_after_a_minute(claims, text):
    path = claims.folder / "000000.claim"
    path.write_text(text)
    assert not claims.acquire(0)
    os.utime(path, (time.time() - 100,) * 2)
    assert claims.acquire(0)


def test_claims_of_slurm_jobs_on_other_hosts_follow_squeue(claims, command):
    elsewhere = {"host": "node7", "process": 1, "began": "1", "job": "12_3", "restarts": 1}
    write(claims, 0, elsewhere)
    calls = command("squeue", "RUNNING 1\n")
    assert not claims.acquire(0)
    assert "--jobs=12_3" in calls.read_text()
    command("squeue", "RUNNING 2\n")  # the job was restarted since
    assert Claims(claims.folder).acquire(0)
    write(claims, 0, elsewhere)
    command("squeue", "PENDING 1\n")
    assert Claims(claims.folder).acquire(0)
    write(claims, 0, elsewhere)
    command("squeue", status=1, error="slurm_load_jobs error: Unable to contact slurm controller")
    assert not Claims(claims.folder).acquire(0)
    command("squeue", status=1, error="slurm_load_jobs error: Invalid job id specified")
    assert Claims(claims.folder).acquire(0)


def test_a_requeued_job_takes_over_its_own_claims(claims, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "15")
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "12")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    write(claims, 0, {"host": "node7", "job": "12_3", "restarts": 0, "deaths": MAX_DEATHS - 1})
    assert claims.acquire(0)
    now = newest_claim(claims)
    assert (now["job"], now["restarts"]) == ("12_3", 1)
    assert now["deaths"] == MAX_DEATHS - 1, "a requeued worker has not died"


def test_output_of_squeue_is_parsed(command, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert current_job() == {}
    assert not requeue_this_job()
    assert job_seconds_left() is None
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert current_job() == {"job": "7", "restarts": 0}
    for output, seconds in (("59", 59), ("4:05", 245), ("3:04:05", 11045), ("2-03:04:05", 183845)):
        command("squeue", f"{output}\n")
        assert job_seconds_left() == seconds
    command("squeue", "UNLIMITED\n")
    assert job_seconds_left() is None
    calls = command("scontrol")
    command("squeue", "COMPLETING\n")
    assert not requeue_this_job(), "a canceled job must stay canceled"
    command("squeue", "RUNNING\n")
    assert requeue_this_job()
    assert calls.read_text().endswith("requeue 7\n")
    assert calls.read_text().count("requeue") == 1
    command("squeue", "7_0 RUNNING\n7_[1-3%2] PENDING\n")
    assert job_states(["7"]) == {"7_0": "RUNNING", "7_[1-3%2]": "PENDING"}
    calls.unlink()
    assert job_states(["7; rm -rf /"]) == {}
    assert not calls.exists()


def test_answers_of_squeue_are_cached(command):
    queue = SlurmQueue()
    calls = command("squeue", "RUNNING 0\n")
    assert queue.is_running("7", 0)
    assert queue.is_running("7", 0)
    assert not queue.is_running("7", 1)
    assert len(calls.read_text().splitlines()) == 1
