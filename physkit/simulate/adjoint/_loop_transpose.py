"""The transpose of a step's derivative, with what need not be done in each turn taken out of a loop.

A few numbers that no step changes are computed once before the loop. And sums over cells for cotangents of
parameters are taken once after it: that of a parameter θ that no step changes is

    θ̄ = Σₙ L(Σₓ aₙ(x)) = L(Σₓ Σₙ aₙ(x)),    L linear and the same in all steps n,

a sum over all cells x. On the right, a step only adds the array aₙ to those of other steps, which takes no
launch of its own on a GPU, as a sum over cells does.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ._array_layout import Joined
from ._joined_sums import evaluate_joined
from ._step_derivative import Arrays, StepDerivative
from ._traced_program import Marks, Operation, TracedProgram

_MAX_BYTES = 2**24  # of an array that is kept until the loop has ended
_FEW = 8  # numbers that are added up each time, which takes no launch
_SOME = 2**11  # numbers of an array whose sums cost little wherever they are
# What costs nothing where its result is read; and choices between platforms, which must stay where they are.
_FREE = frozenset(
    {"broadcast_in_dim", "reshape", "squeeze", "slice", "convert_element_type"}
    | {"bitcast_convert_type", "ne", "eq", "iota", "platform_index"}
)
_LINEAR = frozenset(
    {"neg", "add", "add_any", "sub", "real", "imag", "complex", "convert_element_type", "copy"}
    | {"broadcast_in_dim", "reshape", "squeeze", "slice", "concatenate", "pad", "transpose"}
    | {"stack", "unstack"}  # since JAX 0.12
)


@dataclass(frozen=True, eq=False)
class LoopTranspose:
    """The transpose of a step's derivative in three parts: before a loop, in each turn of it, and after it.

    - `early`, `turn`, `late`: the operations of each.
    - `given`: names of what the first part gives to each turn: few numbers.
    - `border`: names of what each turn gives to the last part: arrays that turns add up.
    - `steady`: which of the arrays that are kept the first and the last part read; they are the same in all
      turns.
    - `is_late`: which cotangents come from the last part.
    """

    program: TracedProgram
    early: list[Operation]
    given: list[int]
    turn: list[Operation]
    late: list[Operation]
    border: list[int]
    steady: tuple[bool, ...]
    is_late: tuple[bool, ...]

    @classmethod
    def of(cls, derivative: StepDerivative, kept: Any) -> "LoopTranspose":
        """Of the shapes of what it keeps."""
        program = TracedProgram(derivative.linear.transpose, kept, derivative.shapes)
        is_steady = derivative.steady
        kept_names = program.inputs[: len(is_steady)]
        linear = set(program.inputs[len(is_steady) :])
        changing = {x for x, steady in zip(kept_names, is_steady, strict=True) if not steady}
        for operation in program.operations:
            operation.mark(linear)
            # All results of an operation count as changing if one does: it could not be evaluated later.
            if any(x in changing or x in linear for x in operation.operands):
                changing.update(operation.results)
        may_wait = [derivative.program.is_constant[k] for k in derivative.varying]
        late = _find_late(program, linear, changing, may_wait)
        made = {x for operation in late for x in operation.results}
        names = [x for operation in late for x in operation.operands if x not in made]
        border = list(dict.fromkeys(x for x in names if x in linear))
        needed = {x for x in names if x not in linear}
        turn = [operation for operation in program.operations if not made & set(operation.results)]
        before = []
        for operation in reversed(turn):
            if needed & set(operation.results):
                before.append(operation)
                needed |= set(operation.operands)
        is_late = tuple(x in made for x in program.results)
        results = [*border, *(x for x in program.results if x not in made)]
        early, given, turn = _take_out(turn, changing, kept_names, results)
        needed.update(x for operation in early for x in operation.operands)
        steady = tuple(x in needed for x in kept_names)
        late = [*before[::-1], *late]
        return cls(program, early, given, turn, late, border, steady, is_late)

    @property
    def shapes(self) -> list[Any]:
        """Of what a turn gives to the last part."""
        avals = {
            name: variable.aval
            for operation in self.late
            for name, variable in zip(operation.operands, operation.jaxpr.invars, strict=True)
        }
        return [jax.ShapeDtypeStruct(avals[x].shape, avals[x].dtype) for x in self.border]

    def spread(self, steady: Arrays, directions: Arrays) -> Arrays:
        """The transpose of the last part, of the directions whose cotangents it gives."""
        if not self.border:
            return []
        transpose = jax.linear_transpose(partial(self.evaluate_late, steady), self.shapes)
        return list(transpose(directions)[0])

    def evaluate_early(self, steady: Arrays) -> Arrays:
        """What the first part gives to each turn."""
        names = itertools.compress(self.program.inputs, self.steady)
        values = self.program.constants | dict(zip(names, steady, strict=True))
        for operation in self.early:
            operation.evaluate(values)
        return [values[x] for x in self.given]

    def evaluate_turn(
        self, kept: Joined, early: Arrays, cotangents: Arrays
    ) -> tuple[Arrays, list[Any]]:
        """What a turn gives to the last part, and the cotangents; None for those of the last part."""
        names = [*self.program.inputs, *self.given]
        inputs = [*jax.tree.leaves((kept, cotangents)), *early]
        values = self.program.constants | dict(zip(names, inputs, strict=True))
        evaluate_joined(self.turn, values)
        return [values[x] for x in self.border], [values.get(x) for x in self.program.results]

    def evaluate_late(self, steady: Arrays, border: Arrays) -> Arrays:
        """The cotangents of the last part."""
        names = [*itertools.compress(self.program.inputs, self.steady), *self.border]
        values = self.program.constants | dict(zip(names, [*steady, *border], strict=True))
        for operation in self.late:
            operation.evaluate(values)
        return [values[x] for x in itertools.compress(self.program.results, self.is_late)]


def _find_late(
    program: TracedProgram, linear: Marks, changing: Marks, may_wait: Sequence[bool]
) -> list[Operation]:
    """The operations that can wait until the loop has ended: sums, and what depends on them."""
    chosen: set[int] = set()
    made: Marks = set()
    for operation in program.operations:
        begins = _is_small_sum(operation) and operation.operands[0] in linear
        if begins or any(x in made for x in operation.operands):
            chosen.add(id(operation))
            made |= set(operation.results)
    # What is needed within a turn cannot wait, and then nothing before it.
    stays = {x for x, wait in zip(program.results, may_wait, strict=True) if not wait}
    found: list[Operation] = []
    for operation in reversed(program.operations):
        is_found = (
            id(operation) in chosen
            and not stays & set(operation.results)
            and _is_linear(operation, linear)
            and not any(x in changing for x in operation.operands if x not in linear)
        )
        if is_found:
            found.append(operation)
        else:
            stays |= set(operation.operands)
    return found[::-1] if any(map(_is_small_sum, found)) else []


def _is_small_sum(operation: Operation) -> bool:
    """Whether it adds up many numbers each of an array that is not too large to be kept."""
    equation = operation.equation
    if equation.primitive.name != "reduce_sum":
        return False
    x, totals = equation.invars[0].aval, equation.outvars[0].aval
    is_number = jnp.issubdtype(x.dtype, jnp.inexact)
    return is_number and x.size > _FEW * totals.size and x.size * x.dtype.itemsize <= _MAX_BYTES


def _is_linear(operation: Operation, linear: Marks) -> bool:
    """Whether it is linear in its operands that are cotangents, whatever the others are."""
    equation, name = operation.equation, operation.equation.primitive.name
    if name == "reduce_sum":
        return _is_small_sum(operation) or equation.invars[0].aval.size <= _SOME
    if name in _LINEAR:
        return True
    names = iter(operation.operands)
    marks = [not hasattr(x, "val") and next(names) in linear for x in equation.invars]
    if name == "mul":
        return sum(marks) == 1
    if name == "div":
        return marks == [True, False]
    return name == "select_n" and not marks[0]


def _take_out(
    operations: Sequence[Operation], changing: Marks, kept: Sequence[int], results: Sequence[int]
) -> tuple[list[Operation], list[int], list[Operation]]:
    """Of a turn: what can be done before the loop, what that gives to each turn, and what is left of it.

    - `changing`: what is not the same in all turns.
    - `results`: what a turn is done for.
    """
    # Numbers that are kept, or are in the program, at other places or of other dtypes.
    as_kept: Marks = set(kept)
    for operation in operations:
        is_free = operation.equation.primitive.name in _FREE
        if is_free and all(x in as_kept for x in operation.operands):
            as_kept.update(operation.results)
    needed, needed_early = set(results), set()
    early, given, turn = [], [], []
    for operation in reversed(operations):
        found = [x for x in operation.results if x in needed]
        is_steady = not any(x in changing for x in operation.results)
        can_be_given = is_steady and not as_kept.intersection(found) and _gives_some(operation)
        if can_be_given:
            given += found
            needed_early.update(found)
        elif found:
            turn.append(operation)
            needed.update(operation.operands)
        if needed_early.intersection(operation.results):
            early.append(operation)
            needed_early.update(operation.operands)
    return early[::-1], given[::-1], turn[::-1]


def _gives_some(operation: Operation) -> bool:
    """Whether it gives so few numbers that to read them takes no longer than to compute them."""
    return all(x.aval.size <= _SOME for x in operation.equation.outvars)
