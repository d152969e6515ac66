"""Draws by number: what they are made of, and what became of them."""

import collections
import sys
import time
from typing import Any

import jax
import numpy as np

from . import field_draws, particle_draws
from .outcome import Outcome

BLOCK = 20  # draws that share their programs
MAX_SHOWN = 2  # findings of a block that are told at length
FAMILIES: list[Any] = [particle_draws, field_draws]


def parts(number: int) -> tuple[Any, Any, Any]:
    """The family, the structure and the numbers of a draw."""
    block, place = divmod(number, BLOCK)
    family = FAMILIES[block % len(FAMILIES)]
    structure = family.draw_structure(np.random.default_rng([1, block]), block)
    return family, structure, family.draw_numbers(np.random.default_rng([2, number]), place)


def describe(number: int) -> str:
    _, structure, numbers = parts(number)
    return f"draw {number}: {structure}; {numbers}"


def examine(number: int) -> Outcome:
    family, structure, numbers = parts(number)
    return family.examine(structure, numbers)


def main(arguments: list[str]) -> int:
    """Examine the draw, or the draws from … to; the exit status tells whether something is wrong."""
    if not arguments or not all(a.isdigit() for a in arguments[:2]):
        print("usage: python -m tests.hunt FIRST [END]", file=sys.stderr)
        return 2
    first = int(arguments[0])
    end = int(arguments[1]) if len(arguments) > 1 else first + 1
    shown = 0
    kinds, begin = collections.Counter(), time.monotonic()
    for number in range(first, end):
        if number % BLOCK == 0:
            jax.clear_caches()  # a block's programs are of no use to the next
            shown = 0
        outcome = examine(number)
        kinds[outcome.kind] += 1
        if outcome.is_finding or end - first == 1:
            # The draws of a block mostly have one cause in common.
            text = outcome.text if shown < MAX_SHOWN else outcome.text[:80]
            about = describe(number) if shown < MAX_SHOWN else f"draw {number}"
            print(f"{about}\n  {outcome.kind}: {text}", flush=True)
            shown += 1
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{end - first} draws in {time.monotonic() - begin:.0f} s: {counts}")
    return int(kinds["WRONG"] > 0)
