"""Locks of folders: never two writers, and none that stays after its writer."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from physkit.core import DiskFullError, FileInUseError
from physkit.storage import FolderLock, identify_process

from .recordings import inject_faults

GONE = {**identify_process(), "process": 2**22 - 1, "began": "7"}


def age(path, seconds=120):
    os.utime(path, (time.time() - seconds,) * 2)


def test_an_empty_lock_is_taken_over_when_it_is_old(tmp_path):
    path = tmp_path / "lock"
    path.touch()  # its writer may be at it just now
    with pytest.raises(FileInUseError, match="unknown machine"):
        FolderLock(tmp_path)
    age(path)
    FolderLock(tmp_path).release()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="needs file-size limits")
@pytest.mark.parametrize("has_links", [True, False])
def test_a_full_disk_leaves_no_lock(tmp_path, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr("physkit.storage._lock.os.link", refuse)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, old[1]))
    try:
        with pytest.raises(DiskFullError, match="lock"):
            FolderLock(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert not list(tmp_path.iterdir())
    FolderLock(tmp_path).release()
    assert not list(tmp_path.iterdir())


def refuse(*_):
    raise PermissionError(1, "no links here")


def test_a_lock_that_another_run_has_by_now_is_not_released(tmp_path):
    first = FolderLock(tmp_path)
    first.path.unlink()  # by hand
    second = FolderLock(tmp_path)
    first.release()
    with pytest.raises(FileInUseError):
        FolderLock(tmp_path)
    second.release()
    assert not list(tmp_path.iterdir())


def test_a_takeover_that_was_killed_is_taken_over(tmp_path):
    for name in ("lock", "lock.takeover"):
        (tmp_path / name).write_text(json.dumps(GONE))
    FolderLock(tmp_path).release()
    assert not list(tmp_path.iterdir())
    elsewhere = {**GONE, "namespace": "pid:[1]"}  # another container of this machine
    (tmp_path / "lock").write_text(json.dumps(elsewhere))
    with pytest.raises(FileInUseError, match="by process 4194303"):
        FolderLock(tmp_path)


@pytest.mark.parametrize("trials", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_of_processes_that_take_over_a_stale_lock_one_gets_it(tmp_path, trials):
    assert inject_faults("takeover", tmp_path / "a", trials) == {
        "trials": trials,
        "winners 1": trials,
    }


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are in /proc on Linux")
def test_the_lock_of_a_killed_process_that_nobody_has_waited_for_is_taken_over(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from physkit.storage import FolderLock\n"
        "lock = FolderLock(Path(sys.argv[1])); print(flush=True); time.sleep(100)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(FileInUseError):
            FolderLock(tmp_path)
        process.kill()
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        FolderLock(tmp_path).release()
