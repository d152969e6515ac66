"""Processes of the report: their environment, how long they may take, several at once."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).parents[2]
GAVE_UP = 124
MOST = 600.0  # seconds that one process may take
_running: set[subprocess.Popen] = set()


def make_environment(**more: str) -> dict[str, str]:
    """That of this process, for several that share a GPU."""
    # JAX otherwise takes three quarters of the memory at once, and leaves too little for a second process.
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    # Other codes may lie where the caller says.
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    )
    if importlib.util.find_spec("beartype") is None:
        environment["PHYSKIT_TYPECHECK"] = "0"
    return environment | more


def seconds_left(deadline: float, most: float = MOST) -> float:
    """Until the deadline (of `time.monotonic`), and `most` at the most."""
    return max(0.0, min(most, deadline - time.monotonic()))


def run(command: list[str], seconds: float, **environment: str) -> tuple[int, str]:
    """Exit status and output of a command, which is given up after a while."""
    with subprocess.Popen(
        command, cwd=ROOT, env=make_environment(**environment), text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        _running.add(process)
        try:
            said = process.communicate(timeout=seconds)[0]
            return process.returncode, said
        except subprocess.TimeoutExpired:
            stop(process)
            said = process.communicate()[0]
            return GAVE_UP, f"{said}\ngiven up after {seconds / 60:.1f} minutes"
        finally:
            stop(process)
            _running.discard(process)


def stop(process: subprocess.Popen) -> None:
    """With the processes that it started, which hold the GPU."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def start_pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads for `run`; an interrupt ends what they run, and does not wait for it."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in tuple(_running):
            stop(process)
        raise
    finally:
        pool.shutdown()


def run_at_once(commands: dict[str, list[str]], deadline: float) -> Iterator[tuple[str, int, str]]:
    """Name, exit status and output of each as it ends; as many at a time as there are cores."""

    def run_in_time(command: list[str]) -> tuple[int, str]:
        seconds = seconds_left(deadline)
        return run(command, seconds) if seconds else (GAVE_UP, "not begun")

    with start_pool(os.cpu_count() or 1) as pool:
        jobs = {pool.submit(run_in_time, command): name for name, command in commands.items()}
        for job in as_completed(jobs):
            yield jobs[job], *job.result()


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]
