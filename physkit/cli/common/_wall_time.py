"""`--wall-time`: the seconds after which nothing further is begun."""

import argparse
import math


def add_wall_time_argument(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add the argument; `meaning` says what happens when the time is over."""
    parser.add_argument("--wall-time", type=_seconds, metavar="SECONDS", help=meaning)


def _seconds(text: str) -> float:
    """**Errors:** `argparse.ArgumentTypeError`."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    # 0 is a time: what has been computed is kept, and nothing is begun.
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"seconds, a number from 0; got {text!r}")
    return seconds
