"""`physkit sweep run | submit | script`: execute a sweep here, or on Slurm."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from ..common._load_case import add_settings, choose_precision, load_sweep
from ..common._report import Report
from ..common._types import Sweep
from ..common._wall_time import add_wall_time_argument
from ._local_workers import parse_worker, run_workers


def add_arguments(parser: argparse.ArgumentParser, action: str) -> None:
    """Add the arguments of one action."""
    add_settings(parser, "points=100")
    parser.add_argument("--to", required=True, metavar="FOLDER", help="where chunks are written")
    parser.add_argument("--chunk-size", type=int, metavar="MEMBERS", help="members in a chunk")
    if action == "run":
        _add_run_arguments(parser)
    else:
        _add_slurm_arguments(parser)
    if action == "script":
        parser.add_argument(
            "--physkit",
            default="physkit",
            metavar="COMMAND",
            help="how the nodes call it, e.g. '/sw/env/bin/python -m physkit'",
        )


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes on this machine"
    )
    parser.add_argument(
        "--worker", default="0/1", metavar="K/N", help="begin with every N-th chunk, from the K-th"
    )
    add_wall_time_argument(parser, "begin no chunk that would end later")
    parser.add_argument(
        "--requeue", action="store_true", help="in Slurm: when stopped, back into the queue"
    )


def _add_slurm_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("of the job array")
    numbers = {
        "--elements": (8, "jobs in the array (default 8)"),
        "--minutes": (60, "time limit of each (default 60)"),
        "--gpus": (0, "of each"),
        "--warning": (120, "seconds between the signal to stop and the end (default 120)"),
        "--cpus": (None, "of each"),
        "--max-running": (None, "jobs that may run at the same time"),
    }
    for name, (default, meaning) in numbers.items():
        group.add_argument(name, type=int, default=default, metavar="N", help=meaning)
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


def execute(args: argparse.Namespace, report: Report) -> int:
    """Compute what is missing."""
    if args.workers < 1:
        report.error(f"--workers is at least 1; got {args.workers}")
        return 2
    try:
        worker = parse_worker(args.worker)
    except ValueError as error:
        report.error(str(error))
        return 2
    if args.workers > 1:
        # This process only starts others: it computes nothing and loads no case.
        return run_workers(args, report)
    # Before the case is loaded, which makes arrays in this precision.
    choose_precision(args.double)
    sweep = _load_sweep(args, report)
    if sweep is None:
        return 2
    from physkit.ensemble import run_worker

    result = run_worker(
        sweep,
        Path(args.to),
        chunk_size=args.chunk_size,
        worker=worker,
        requeue=args.requeue,
        wall_time=args.wall_time,
        progress=report.shows_progress,
    )
    report.result(repr(result))
    report.json_result(
        {**dataclasses.asdict(result), "to": args.to, "exit_status": result.exit_status}
    )
    return result.exit_status


def submit(args: argparse.Namespace, report: Report) -> int:
    """Send a job array to Slurm."""
    from functools import partial

    choose_precision(args.double)
    sweep = _load_sweep(args, report)
    if sweep is None:
        return 2
    from physkit import ensemble

    # Raise errors here rather than in the log of a job.
    folder = ensemble.SweepFolder(args.to)
    if folder.exists:
        folder.require_same_sweep(sweep)
        if len(folder.finished_chunks()) == folder.num_chunks:
            report.result(f"{args.to} is complete: nothing is sent")
            report.json_result({"jobs": [], "to": args.to})
            return 0
    # Elements build the sweep themselves, perhaps in another folder: hand over a path, not arrays.
    case = Path(args.case).resolve()
    engine = _slurm_array(args)
    sent = ensemble.submit(
        partial(load_sweep, case, tuple(args.values)), args.to, engine, chunk_size=args.chunk_size
    )
    # Slurm names the elements of an array ARRAY_INDEX: the part before the line is that of all.
    report.result(f"{sent.jobs[0].partition('_')[0]}: {engine.elements} elements, {args.to}")
    report.info(f"physkit sweep status {args.to} says how far they are")
    report.json_result({"jobs": sent.jobs, "to": args.to})
    return 0


def script(args: argparse.Namespace, report: Report) -> int:
    """Print a job script. Neither Slurm nor the case need be here."""
    import shlex

    command = [*shlex.split(args.physkit), "sweep", "run", args.case, "--to", args.to]
    for value in args.values:
        command += ["--set", value]
    command += ["--double"] * args.double
    command += [] if args.chunk_size is None else ["--chunk-size", str(args.chunk_size)]
    text = _slurm_array(args).script(command, name=f"sweep-{Path(args.to).name}")
    report.result(text.rstrip("\n"))
    report.json_result({"script": text})
    return 0


def _load_sweep(args: argparse.Namespace, report: Report) -> Sweep | None:
    """The sweep that the case returns; None where it fails, after printing why."""
    try:
        return load_sweep(Path(args.case).resolve(), args.values)
    # `load_sweep` makes a ValueError of whatever goes wrong in the case, with the line where it did.
    except ValueError as error:
        report.error(str(error))
        return None


def _slurm_array(args: argparse.Namespace) -> Any:
    """The `SlurmArray` that the options ask for.

    **Errors:** `ParameterError`.
    """
    from physkit.core import ParameterError
    from physkit.ensemble import SlurmArray

    options = {}
    for text in args.option:
        name, equals, value = text.partition("=")
        if not equals:
            raise ParameterError(f"--option takes NAME=VALUE, e.g. exclude=node7; got {text}")
        options[name] = value
    return SlurmArray(
        elements=args.elements,
        minutes=args.minutes,
        partition=args.partition,
        account=args.account,
        constraint=args.constraint,
        qos=args.qos,
        gpus=args.gpus,
        cpus=args.cpus,
        memory=args.memory,
        max_running=args.max_running,
        warning=args.warning,
        requeue=not args.no_requeue,
        setup=tuple(args.setup),
        options=options,
    )
