"""Several workers of a sweep on this machine, each a process of its own."""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..common._report import Report

_ROUNDS = 3
_LOOK_AGAIN = 0.1  # seconds


def run_workers(given: argparse.Namespace, report: Report) -> int:
    """Start `--workers` processes, pass signals on, and wait for all of them.

    What one that was killed had in hand, the others take over; if it was the last one, workers are
    started again.
    """
    from physkit.core import EXIT_INTERRUPTED, EXIT_TRY_AGAIN
    from physkit.ensemble import status
    from physkit.simulate import StopRequest

    to, began, died = Path(given.to), time.monotonic(), 0
    end = None if given.wall_time is None else began + given.wall_time
    with StopRequest() as stop:
        for _ in range(_ROUNDS):
            left = None if end is None else max(0.0, end - time.monotonic())
            ended = _one_round(given, left, stop, report)
            died += sum(code < 0 for code in ended)
            if stop.reason is not None or not any(code < 0 for code in ended):
                break
            if status(to).complete:
                break
    if stop.reason is None:
        code = max((c for c in ended if c > 0), default=0)
    else:
        code = EXIT_INTERRUPTED if stop.reason == "SIGINT" else EXIT_TRY_AGAIN
    if code in (1, 2):  # they have said why
        return code
    now = status(to)
    if now.complete:
        code = 0
    elif code == 0 and any(c < 0 for c in ended):
        code = 1
    report.result(repr(now))
    report.answer(
        {
            "workers": given.workers,
            "died": died,
            "done": len(now.done),
            "chunks": now.chunks,
            "stopped_by": stop.reason,
            "seconds": time.monotonic() - began,
            "to": given.to,
            "exit_status": code,
        }
    )
    return code


def _one_round(
    given: argparse.Namespace, wall_time: float | None, stop: Any, report: Report
) -> list[int]:
    """Exit statuses of workers started together, after all have ended; negative: the signal that killed."""
    from physkit.ensemble import SweepFolder
    from physkit.simulate import Progress

    words = [
        sys.executable,
        "-m",
        "physkit",
        "sweep",
        "run",
        given.case,
        "--to",
        given.to,
        "--quiet",
    ]
    for value in given.values:
        words += ["--set", value]
    words += ["--double"] * given.double
    words += [] if given.chunk is None else ["--chunk", str(given.chunk)]
    words += [] if wall_time is None else ["--wall-time", str(wall_time)]
    # Sessions of their own: Ctrl-C reaches them once, through here.
    workers = [
        subprocess.Popen(
            [*words, "--share", f"{k}/{given.workers}"],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        )
        for k in range(given.workers)
    ]
    told, found, bar = False, SweepFolder(given.to), None
    while any(worker.poll() is None for worker in workers):
        if stop.reason is not None and not told:
            told = True
            for worker in workers:
                worker.terminate()
        if bar is None and found.exists:
            done = len(found.done())
            bar = Progress(found.chunks, unit="chunks", enabled=report.shows_progress, begin=done)
        elif bar is not None:
            bar.update(len(found.done()))
        time.sleep(_LOOK_AGAIN)
    if bar is not None:
        bar.close()
    return [worker.returncode for worker in workers]
