"""Slurm jobs: who this one is, which are running, and requeueing.

Only `squeue` is asked: not every cluster keeps accounts that `sacct` could read.
"""

import os
import re
import stat
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from physkit.core import FileError
from physkit.storage import make_folder, read_regular

_JOB_LIST = "log/jobs.txt"
_NO_FOLLOW_NOR_WAIT = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_TIMEOUT = 30.0  # seconds to wait for a command of Slurm
_CACHE_SECONDS = (
    10.0  # for which an answer is used again: each squeue call loads the cluster's controller
)
# States in which a job's processes may still write files. A pending job was requeued: its claims are void.
_RUNNING = ("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING")
_JOB = re.compile(r"[0-9]{1,18}(_[0-9]{1,9})?")
_MAX_LIST_BYTES, _MAX_JOBS = 2**16, 64  # read of the list, and asked about


def current_job() -> dict[str, object]:
    """The Slurm job of this process (`7`, or `7_3` in an array) and how often it was restarted; empty outside
    of Slurm."""
    job = os.environ.get("SLURM_JOB_ID", "")
    # Elements of an array are called as squeue prints them, although each has a job number of its own, too.
    if "SLURM_ARRAY_TASK_ID" in os.environ:
        job = f"{os.environ.get('SLURM_ARRAY_JOB_ID', '')}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    restarts = os.environ.get("SLURM_RESTART_COUNT", "0")
    if not _JOB.fullmatch(job) or not restarts.isdigit():
        return {}
    return {"job": job, "restarts": int(restarts)}


class SlurmQueue:
    """Whether jobs are running; asks Slurm about each job every ten seconds at most."""

    def __init__(self):
        self._answers: dict[str, tuple[float, bool | None, int]] = {}

    def is_running(self, job: str, restarts: int) -> bool | None:
        """Whether the job runs and was restarted `restarts` times; None where Slurm does not answer."""
        asked_at, running, restarts_now = self._answers.get(job, (-_CACHE_SECONDS, None, 0))
        if time.monotonic() - asked_at > _CACHE_SECONDS:
            running, restarts_now = _query_job(job)
            self._answers[job] = time.monotonic(), running, restarts_now
        # A job that was restarted since is another process, which holds none of the old claims.
        return running and restarts_now == restarts


def job_states(jobs: Iterable[str]) -> dict[str, str] | None:
    """Those of these jobs and arrays that are queued or running, with their states; None where Slurm does not
    answer."""
    states: dict[str, str] = {}
    for job in jobs:
        # Numbers come from files in the folder: nothing else may reach a command line.
        if not _JOB.fullmatch(job):
            continue
        output = _run_command("squeue", "--noheader", f"--jobs={job}", "--format=%i %T")
        if output is None:
            return None
        states |= {w[0]: w[1] for line in output.splitlines() if len(w := line.split()) == 2}
    return states


def requeue_this_job() -> bool:
    """Ask Slurm to requeue this job; whether it will.

    A job that somebody has canceled is no longer running for Slurm: it stays canceled.
    """
    job = str(current_job().get("job", ""))
    if not job:
        return False
    state = _run_command("squeue", "--noheader", f"--jobs={job}", "--format=%T") or ""
    return state.split() == ["RUNNING"] and _run_command("scontrol", "requeue", job) is not None


def job_seconds_left() -> float | None:
    """Seconds until Slurm ends this job; None outside of Slurm or without a limit."""
    job = current_job()
    output = (
        _run_command("squeue", "--noheader", f"--jobs={job['job']}", "--format=%L") if job else None
    )
    # Slurm's forms: 5 · 4:05 · 3:04:05 · 2-03:04:05
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(?:(\d+):)?(\d+)", (output or "").strip())
    if match is None:
        return None
    days, first, second, seconds = (None if g is None else int(g) for g in match.groups())
    # With one colon the first group is minutes, with two it is hours.
    hours, minutes = (first, second) if second is not None else (0, first)
    return float(((days or 0) * 24 + (hours or 0)) * 3600 + (minutes or 0) * 60 + (seconds or 0))


def record_job(folder: Path, job: str) -> None:
    """Append a Slurm job to the list of those that work on the sweep, for `squeue` to be asked about them.

    **Errors:** `FileError` where the list is no regular file, or cannot be written.
    """
    if job in recorded_jobs(folder):
        return
    path = folder / _JOB_LIST
    make_folder(path.parent)
    # One write call in append mode: many elements may do so at the same time. A pipe is not waited for, and
    # a link, which may lead anywhere, not followed.
    flags = os.O_APPEND | os.O_CREAT | os.O_WRONLY | _NO_FOLLOW_NOR_WAIT
    try:
        handle = os.open(path, flags, 0o644)
    except OSError as error:
        raise FileError(f"{path} cannot be written ({error.strerror}): remove it") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileError(f"{path} is no regular file: remove it")
        os.write(handle, f"{job}\n".encode())
    finally:
        os.close(handle)


def recorded_jobs(folder: Path) -> list[str]:
    """The Slurm jobs that have worked on the sweep, the latest last."""
    try:
        content = read_regular(folder / _JOB_LIST, _MAX_LIST_BYTES)
    except OSError:
        return []
    words = content.decode("ascii", errors="replace").split()
    # Anybody may have written into it, and Slurm is asked about each.
    return list(dict.fromkeys(word for word in words if _JOB.fullmatch(word)))[-_MAX_JOBS:]


def _query_job(job: str) -> tuple[bool | None, int]:
    """Whether a job runs (None: unknown), and how often it was restarted."""
    if not _JOB.fullmatch(job):
        return None, 0
    output = _run_command(
        "squeue", "--noheader", f"--jobs={job}", "--Format=State:24,RestartCnt:12"
    )
    if output is None:
        return None, 0
    words = output.split()  # none: the job has left the queue
    if len(words) < 2:
        return False, 0
    return words[0] in _RUNNING, int(words[1]) if words[1].isdigit() else 0


def _run_command(*command: str) -> str | None:
    """What a command of Slurm prints; nothing for jobs that are gone, None where it fails."""
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # squeue fails for jobs that are long gone. That is an answer; any other failure is none.
    if process.returncode and "Invalid job id" in process.stderr:
        return ""
    return None if process.returncode else process.stdout
