"""Draws by number: what they are made of, and what became of them."""

import collections
import contextlib
import sys
import time
from typing import Any

import jax
import numpy as np

from . import (
    coupling_draws,
    field_draws,
    gradient_draws,
    particle_draws,
    restart_draws,
    sweep_draws,
)
from .outcome import Outcome

BLOCK = 20  # draws that share their programs
MAX_TOLD = 2  # findings of a block that are told at length
FAMILIES: dict[str, Any] = {
    "particles": particle_draws, "fields": field_draws, "coupling": coupling_draws,
    "sweeps": sweep_draws, "gradients": gradient_draws, "restarts": restart_draws,
}  # fmt: skip


def family_of(number: int) -> str:
    return list(FAMILIES)[number // BLOCK % len(FAMILIES)]


def parts(number: int) -> tuple[Any, Any, Any]:
    """The family, the structure and the numbers of a draw."""
    block, place = divmod(number, BLOCK)
    family, block = FAMILIES[family_of(number)], block // len(FAMILIES)
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
    numbers, families = arguments[:2], arguments[2:] or list(FAMILIES)
    if not numbers or not all(a.isdigit() for a in numbers) or not set(families) <= set(FAMILIES):
        print(f"usage: python -m tests.hunt FIRST [END [{'|'.join(FAMILIES)} …]]", file=sys.stderr)
        return 2
    first = int(numbers[0])
    end = int(numbers[1]) if len(numbers) > 1 else first + 1
    told, kinds, begin = 0, collections.Counter(), time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C: what there is so far
        for number in range(first, end):
            family = family_of(number)
            if family not in families:
                continue
            if number % BLOCK == 0:
                jax.clear_caches()  # a block's programs are of no use to the next
                told = 0
            outcome = examine(number)
            kinds[family, outcome.kind] += 1
            if outcome.is_finding or end - first == 1:
                # The draws of a block mostly have one cause in common.
                text = outcome.text if told < MAX_TOLD else outcome.text[:80]
                about = describe(number) if told < MAX_TOLD else f"draw {number}"
                print(f"{about}\n  {outcome.kind}: {text}", flush=True)
                told += 1
    for family in families:
        counts = ", ".join(f"{c} {kind}" for (f, kind), c in sorted(kinds.items()) if f == family)
        if counts:
            print(f"{family}: {counts}")
    print(f"{kinds.total()} draws in {time.monotonic() - begin:.0f} s")
    return int(any(kind == "WRONG" for _, kind in kinds))
