"""`physkit sweep run | submit | script`: workers of a sweep."""

import argparse
from pathlib import Path
from typing import Any

from ..common._load_case import add_settings, choose_precision, load_sweep
from ..common._report import Report
from ._local_workers import run_workers


def add_arguments(parser: argparse.ArgumentParser, action: str) -> None:
    """Options of one action."""
    add_settings(parser, "points=100")
    parser.add_argument("--to", required=True, metavar="FOLDER", help="where chunks are written")
    parser.add_argument("--chunk", type=int, metavar="MEMBERS", help="members in a chunk")
    if action == "run":
        _of_run(parser)
    else:
        _of_slurm(parser)
    if action == "script":
        parser.add_argument(
            "--physkit",
            default="physkit",
            metavar="COMMAND",
            help="how the nodes call it, e.g. '/sw/env/bin/python -m physkit'",
        )


def _of_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes on this machine"
    )
    parser.add_argument(
        "--share", default="0/1", metavar="K/N", help="begin with every N-th chunk, from the K-th"
    )
    parser.add_argument(
        "--wall-time", type=float, metavar="SECONDS", help="begin no chunk that would end later"
    )
    parser.add_argument(
        "--requeue", action="store_true", help="in Slurm: when stopped, back into the queue"
    )


def _of_slurm(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("of the job array")
    whole = {
        "--elements": (8, "jobs in the array (default 8)"),
        "--minutes": (60, "the longest that one may run (default 60)"),
        "--gpus": (0, "of each"),
        "--warning": (120, "seconds between the signal to stop and the end (default 120)"),
        "--cpus": (None, "of each"),
        "--at-once": (None, "so many may run at the same time"),
    }
    for name, (default, words) in whole.items():
        group.add_argument(name, type=int, default=default, metavar="N", help=words)
    for name in ("--partition", "--account", "--constraint", "--qos"):
        group.add_argument(name, help="as Slurm calls it")
    group.add_argument("--memory", help="of each, with its unit: 16G")
    group.add_argument(
        "--setup",
        action="append",
        default=[],
        metavar="LINE",
        help="shell before the work, e.g. 'module load python'; may be repeated",
    )
    group.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other of sbatch's long options, e.g. exclude=node7; may be repeated",
    )
    group.add_argument(
        "--no-requeue", action="store_true", help="stay out of the queue when stopped"
    )


def execute(given: argparse.Namespace, report: Report) -> int:
    """Carry out what is missing."""
    if given.workers < 1:
        report.problem(f"--workers is at least 1; got {given.workers}")
        return 2
    if given.workers > 1:
        return run_workers(given, report)
    number, _, of = given.share.partition("/")
    if not (number.isdigit() and of.isdigit() and int(number) < int(of)):
        report.problem(f"--share is K/N with K < N, such as 0/4; got {given.share}")
        return 2
    choose_precision(given.double)
    found = _sweep(given, report)
    if found is None:
        return 2
    from physkit.ensemble import run_worker

    done = run_worker(
        found,
        Path(given.to),
        chunk=given.chunk,
        share=(int(number), int(of)),
        requeue=given.requeue,
        wall_time=given.wall_time,
        progress=report.shows_progress,
    )
    report.result(repr(done))
    report.answer(
        {
            "computed": done.computed,
            "left": done.left,
            "elsewhere": done.claimed_elsewhere,
            "deadly": done.quarantined,
            "stopped_by": done.stopped_by,
            "requeued": done.requeued,
            "too_long": done.too_long,
            "seconds": done.seconds,
            "to": given.to,
            "exit_status": done.exit_status,
        }
    )
    return done.exit_status


def submit(given: argparse.Namespace, report: Report) -> int:
    """Send a job array to Slurm."""
    from functools import partial

    choose_precision(given.double)
    found = _sweep(given, report)
    if found is None:
        return 2
    from physkit import ensemble

    # Mistakes are told here, not in a log.
    folder = ensemble.SweepFolder(given.to)
    if folder.exists:
        folder.require_same_sweep(found)
        if len(folder.done()) == folder.chunks:
            report.result(f"{given.to} is complete: nothing is sent")
            report.answer({"jobs": [], "to": given.to})
            return 0
    case = Path(given.case).resolve()
    engine = _array(given)
    sent = ensemble.submit(
        partial(load_sweep, case, tuple(given.values)), given.to, engine, chunk=given.chunk
    )
    report.result(f"{sent.jobs[0].partition('_')[0]}: {engine.elements} elements, {given.to}")
    report.say(f"physkit sweep status {given.to} says how far they are")
    report.answer({"jobs": sent.jobs, "to": given.to})
    return 0


def script(given: argparse.Namespace, report: Report) -> int:
    """Print a job script."""
    import shlex

    words = [*shlex.split(given.physkit), "sweep", "run", given.case, "--to", given.to]
    for value in given.values:
        words += ["--set", value]
    words += ["--double"] * given.double
    words += [] if given.chunk is None else ["--chunk", str(given.chunk)]
    text = _array(given).script(words, name=f"sweep-{Path(given.to).name}")
    report.result(text.rstrip("\n"))
    report.answer({"script": text})
    return 0


def _sweep(given: argparse.Namespace, report: Report) -> Any:
    """The sweep that the case makes; None, and why, where it makes none."""
    try:
        return load_sweep(Path(given.case).resolve(), given.values)
    except ValueError as error:
        report.problem(str(error))
        return None


def _array(given: argparse.Namespace) -> Any:
    from physkit.core import ParameterError
    from physkit.ensemble import SlurmArray

    options = {}
    for text in given.option:
        name, equals, value = text.partition("=")
        if not equals:
            raise ParameterError(f"--option {text}: NAME=VALUE is wanted, e.g. exclude=node7")
        options[name] = value
    return SlurmArray(
        elements=given.elements,
        minutes=given.minutes,
        partition=given.partition,
        account=given.account,
        constraint=given.constraint,
        qos=given.qos,
        gpus=given.gpus,
        cpus=given.cpus,
        memory=given.memory,
        at_once=given.at_once,
        warning=given.warning,
        requeue=not given.no_requeue,
        setup=tuple(given.setup),
        options=options,
    )
