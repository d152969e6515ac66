"""What Slurm's queue knows of jobs. `squeue` alone is asked: accounting is not there everywhere."""

import os
import re
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from physkit.storage import make_folder

_JOBS = "log/jobs.txt"
_PATIENCE = 30.0  # seconds for an answer
_ASK_AGAIN = 10.0
_RUNNING = ("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING")
_JOB = re.compile(r"\d+(_\d+)?")


def current_job() -> dict[str, object]:
    """The Slurm job of this process (`7`, or `7_3` in an array) and how often it was started again;
    nothing outside of Slurm."""
    job = os.environ.get("SLURM_JOB_ID", "")
    if "SLURM_ARRAY_TASK_ID" in os.environ:
        job = f"{os.environ.get('SLURM_ARRAY_JOB_ID', '')}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    again = os.environ.get("SLURM_RESTART_COUNT", "0")
    return {"job": job, "restarts": int(again)} if _JOB.fullmatch(job) and again.isdigit() else {}


class SlurmQueue:
    """Whether jobs are running. An answer is good for ten seconds."""

    def __init__(self):
        self._known: dict[str, tuple[float, bool | None, int]] = {}

    def is_running(self, job: str, restarts: int) -> bool | None:
        """Whether the job runs, in its `restarts`-th start; None where nobody answers."""
        asked, running, now = self._known.get(job, (-_ASK_AGAIN, None, 0))
        if time.monotonic() - asked > _ASK_AGAIN:
            running, now = _ask(job)
            self._known[job] = time.monotonic(), running, now
        return running and now == restarts


def job_states(jobs: Iterable[str]) -> dict[str, str] | None:
    """What is queued or running of these jobs and arrays, with its state; None where nobody answers."""
    found: dict[str, str] = {}
    for job in jobs:
        if not _JOB.fullmatch(job):
            continue
        said = _say("squeue", "--noheader", f"--jobs={job}", "--format=%i %T")
        if said is None:
            return None
        found |= {w[0]: w[1] for line in said.splitlines() if len(w := line.split()) == 2}
    return found


def requeue_this_job() -> bool:
    """Ask Slurm to start this job again from the queue; whether it will. One that somebody has canceled
    does not run any more for Slurm, and stays canceled."""
    job = str(current_job().get("job", ""))
    if not job or (_say("squeue", "--noheader", f"--jobs={job}", "--format=%T") or "").split() != [
        "RUNNING"
    ]:
        return False
    return _say("scontrol", "requeue", job) is not None


def job_seconds_left() -> float | None:
    """Until Slurm ends this job; None outside of Slurm or without a limit."""
    job = current_job()
    said = _say("squeue", "--noheader", f"--jobs={job['job']}", "--format=%L") if job else None
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(?:(\d+):)?(\d+)", (said or "").strip())
    if found is None:
        return None
    days, first, second, seconds = (None if g is None else int(g) for g in found.groups())
    # 5 · 4:05 · 3:04:05 · 2-03:04:05
    hours, minutes = (first, second) if second is not None else (0, first)
    return float(((days or 0) * 24 + (hours or 0)) * 3600 + (minutes or 0) * 60 + (seconds or 0))


def record_job(folder: Path, job: str) -> None:
    """Write down that a Slurm job works on the sweep, so that its elements can be asked for."""
    if job in recorded_jobs(folder):
        return
    make_folder((folder / _JOBS).parent)
    # Appended in one go: many elements may do so at once.
    handle = os.open(folder / _JOBS, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.write(handle, f"{job}\n".encode())
    finally:
        os.close(handle)


def recorded_jobs(folder: Path) -> list[str]:
    """The Slurm jobs that have worked on the sweep, the latest last."""
    try:
        text = (folder / _JOBS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return list(dict.fromkeys(text.split()))


def _ask(job: str) -> tuple[bool | None, int]:
    if not _JOB.fullmatch(job):
        return None, 0
    said = _say("squeue", "--noheader", f"--jobs={job}", "--Format=State:24,RestartCnt:12")
    if said is None:
        return None, 0
    words = said.split()  # none: the job has left the queue
    if len(words) < 2:
        return False, 0
    return words[0] in _RUNNING, int(words[1]) if words[1].isdigit() else 0


def _say(*words: str) -> str | None:
    """What a command of Slurm's prints; nothing for jobs that are gone, None where it fails."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_PATIENCE, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode and "Invalid job id" in done.stderr:
        return ""
    return None if done.returncode else done.stdout
