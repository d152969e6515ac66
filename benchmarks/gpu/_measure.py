"""Counts of a system's programs, compiled for an H100."""

import time
from typing import Any

from physkit.core import gpu_compiler_options

from ._count import Cost, Program, low_precision_dots
from ._systems import GRADIENT_STEPS, SYSTEMS, forward_program, gradient_program
from ._target import lower_for_h100

KINDS = ("forward", "gradient")


def measure(name: str, kind: str) -> dict[str, Any]:
    """What one step of a system costs: `Cost`, `dots` that may be rounded, and seconds of compilation.

    A gradient is that by `Direct`, which computes nothing twice: a step forward and a step back.
    """
    make = {"forward": forward_program, "gradient": gradient_program}[kind]
    program, arguments = make(SYSTEMS[name]())
    lowered = lower_for_h100(program, *arguments)
    began = time.process_time()
    compiled = Program(lowered.compile(gpu_compiler_options()).as_text())
    seconds = time.process_time() - began
    cost = compiled.step() if kind == "forward" else compiled.turns(GRADIENT_STEPS)
    return as_row(cost) | {"dots": low_precision_dots(lowered.as_text()), "compile": seconds}


def as_row(cost: Cost) -> dict[str, Any]:
    """Numbers for a table and a file."""
    return {name: round(value, 2) for name, value in vars(cost).items()}
