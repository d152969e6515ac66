"""Several workers of a sweep on this machine, each a process of its own."""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..common._report import Report
from ..common._types import StopRequest, SweepFolder

_MEMORY_SETTINGS = {"XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE"}
_MAX_ROUNDS = 3  # of starting workers that were killed
_POLL_INTERVAL = 0.1  # seconds


class _Ended(NamedTuple):
    """How a worker ended: its exit code, negative for the signal that killed it, and what it says of itself."""

    exit_code: int
    computed: bool  # a chunk, at least
    too_long: bool  # a chunk takes longer than the worker had


def run_workers(args: argparse.Namespace, report: Report) -> int:
    """Start `--workers` processes, pass signals on, and wait for all of them.

    The others take over the chunks of a worker that was killed; if it was the last one, workers are
    started again. This process alone puts their job back into the queue. Returns the exit status, as of
    one worker.
    """
    from physkit.core import EXIT_INTERRUPTED, EXIT_TRY_AGAIN
    from physkit.ensemble import requeue_this_job, status
    from physkit.simulate import StopRequest as StopRequestClass

    to, began = Path(args.to), time.monotonic()
    ended: list[_Ended] = []  # of all rounds
    end = None if args.wall_time is None else began + args.wall_time
    # The first signal only sets `stop.reason`: workers finish their chunks, then this process reports.
    with StopRequestClass() as stop:
        for _ in range(_MAX_ROUNDS):
            seconds_left = None if end is None else max(0.0, end - time.monotonic())
            latest = _run_round(args, seconds_left, stop, report)
            ended += latest
            # Negative: killed by a signal, for instance by the kernel where memory ran out.
            exit_codes = [worker.exit_code for worker in latest]
            if stop.reason is not None or not any(code < 0 for code in exit_codes):
                break
            if status(to).complete:
                break
    # Workers that this process has told to stop end in their own ways; the reason decides.
    if stop.reason is None:
        code = max((c for c in exit_codes if c > 0), default=0)
    else:
        code = EXIT_INTERRUPTED if stop.reason == "SIGINT" else EXIT_TRY_AGAIN
    if code in (1, 2):  # the workers have printed why
        return code
    progress = status(to)
    if progress.complete:
        code = 0  # whatever became of single workers
    elif code == 0 and any(c < 0 for c in exit_codes):
        code = 1
    report.result(repr(progress))
    too_long = _is_too_long(ended, EXIT_TRY_AGAIN)
    if code == EXIT_TRY_AGAIN and too_long:
        report.result("a chunk takes longer than the workers have: more time, or smaller chunks")
    # As of one worker: Ctrl-C is the user's wish to stop, and another try would come no further.
    requeued = args.requeue and code == EXIT_TRY_AGAIN and not too_long and requeue_this_job()
    if requeued:
        report.result("back in the queue")
    report.json_result(
        {
            "workers": args.workers,
            "killed": sum(worker.exit_code < 0 for worker in ended),
            "done": len(progress.finished),
            "chunks": progress.num_chunks,
            "stopped_by": stop.reason,
            "requeued": requeued,
            "seconds": time.monotonic() - began,
            "to": args.to,
            "exit_status": code,
        }
    )
    return code


def _is_too_long(ended: Sequence[_Ended], try_again: int) -> bool:
    """Whether chunks take longer than the workers had, and no worker came further."""
    came_further = (w.computed or (w.exit_code == try_again and not w.too_long) for w in ended)
    return any(worker.too_long for worker in ended) and not any(came_further)


def _run_round(
    args: argparse.Namespace, wall_time: float | None, stop: StopRequest, report: Report
) -> list[_Ended]:
    """Start workers together; how they ended, after all have."""
    from physkit.ensemble import SweepFolder as SweepFolderClass

    with contextlib.ExitStack() as stack:
        # Results are printed here for all of them; only their errors are let through. Into files: a case that
        # prints much would fill a pipe and wait.
        outputs = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(args.workers)]
        # In sessions of their own, so that Ctrl-C reaches each of them once, passed on by this process.
        workers = [
            subprocess.Popen(
                worker_command(args, k, wall_time),
                start_new_session=True,
                stdout=output,
                env={**os.environ, **worker_environment(k, args.workers, visible_gpus())},
            )
            for k, output in enumerate(outputs)
        ]
        _wait(workers, SweepFolderClass(args.to), stop, report)
        for output in outputs:
            output.seek(0)
        return [
            _read_result(worker.returncode, output.read())
            for worker, output in zip(workers, outputs, strict=True)
        ]


def _wait(
    workers: Sequence[subprocess.Popen], folder: SweepFolder, stop: StopRequest, report: Report
) -> None:
    """Wait until all workers have ended; pass a request to stop on, and show progress."""
    from physkit.simulate import Progress

    is_stopping, bar = False, None
    while any(worker.poll() is None for worker in workers):
        if stop.reason is not None and not is_stopping:
            is_stopping = True
            for worker in workers:
                worker.terminate()  # each finishes its chunk, so this loop goes on
        # The first worker makes the folder: how many chunks there are is not known before.
        if bar is None and folder.exists:
            done = len(folder.finished_chunks())
            bar = Progress(
                folder.num_chunks, unit="chunks", enabled=report.shows_progress, begin=done
            )
        elif bar is not None:
            bar.update(len(folder.finished_chunks()))
        time.sleep(_POLL_INTERVAL)
    if bar is not None:
        bar.close()


def _read_result(exit_code: int, output: bytes) -> _Ended:
    """How a worker ended, with what it has printed last; nothing of one that was killed."""
    try:
        result = json.loads(output.splitlines()[-1])
        return _Ended(exit_code, bool(result["computed"]), bool(result["too_long"]))
    except (ValueError, LookupError, TypeError):
        return _Ended(exit_code, computed=False, too_long=False)


def visible_gpus() -> list[str]:
    """The GPUs that this process may use: those of CUDA_VISIBLE_DEVICES, else all that the driver knows."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name.strip() for name in chosen.split(",") if name.strip() not in ("", "-1")]
    # Asked of the driver, not of JAX, which would take memory on every GPU for this process.
    try:
        found = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return found.stdout.split() if found.returncode == 0 else []


def worker_environment(k: int, workers: int, gpus: Sequence[str]) -> dict[str, str]:
    """What worker `k` has in its environment: GPUs of its own, or its part of the memory of one."""
    if not gpus:
        return {}
    if workers <= len(gpus):
        return {"CUDA_VISIBLE_DEVICES": ",".join(gpus[k::workers])}
    environment = {"CUDA_VISIBLE_DEVICES": gpus[k % len(gpus)]}
    # XLA reserves three quarters of a GPU's memory: the second worker on it would find none.
    share = len(range(k % len(gpus), workers, len(gpus)))
    if share > 1 and not {*os.environ} & _MEMORY_SETTINGS:
        environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.9 / share:.3f}"
    return environment


def worker_command(args: argparse.Namespace, k: int, wall_time: float | None) -> list[str]:
    """The command line of worker `k` of `args.workers`, with the settings of this process.

    Without `--requeue`: a job goes back into the queue once, not once for each of its workers.
    """
    index, count = parse_worker(args.worker)
    command = [sys.executable, "-m", "physkit", "sweep", "run", args.case, "--to", args.to]
    command += ["--worker", f"{index * args.workers + k}/{count * args.workers}", "--json"]
    for value in args.values:
        command += ["--set", value]
    command += ["--double"] * args.double
    command += [] if args.chunk_size is None else ["--chunk-size", str(args.chunk_size)]
    command += [] if wall_time is None else ["--wall-time", str(wall_time)]
    return command


def parse_worker(text: str) -> tuple[int, int]:
    """The (k, n) of `--worker K/N`.

    **Errors:** `ValueError`.
    """
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise ValueError(f"--worker is K/N with K < N, such as 0/4; got {text}")
    return int(index), int(count)
