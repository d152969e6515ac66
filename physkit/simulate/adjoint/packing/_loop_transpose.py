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

from physkit.core import Joined, custom_jvp, is_literal

from ._joined_sums import evaluate_joined
from ._nested_sums import merge_nested_sums
from ._step_derivative import Arrays, StepDerivative
from ._traced_program import FEW_TERMS, Marks, Operation, TracedProgram, evaluate_all
from ._turn_parts import Early, TurnParts

_MAX_BYTES = 2**24  # of an array that is kept until the loop has ended
_MAX_SUMMED_AGAIN = 2**11  # numbers of an array whose sums may be taken again after the loop
_LINEAR = frozenset(
    {"neg", "add", "add_any", "sub", "real", "imag", "complex", "convert_element_type", "copy"}
    | {"broadcast_in_dim", "reshape", "squeeze", "slice", "concatenate", "pad", "transpose"}
    | {"stack", "unstack"}  # since JAX 0.12
)


@dataclass(frozen=True, eq=False)
class LoopTranspose:
    """The transpose of a step's derivative in three parts: before a loop, in each turn of it, and after it.

    - `parts`: the operations of the first and the second part. `late`: those of the last.
    - `border`: names of what each turn gives to the last part: arrays that turns add up.
    - `steady`: which of the arrays that are kept the first and the last part read; they are the same in all
      turns.
    - `is_late`: which cotangents come from the last part.
    """

    program: TracedProgram
    parts: TurnParts
    late: list[Operation]
    border: list[int]
    steady: tuple[bool, ...]
    is_late: tuple[bool, ...]

    @classmethod
    def of(cls, derivative: StepDerivative, kept: Any) -> "LoopTranspose":
        """Of the shapes of what it keeps."""
        program = TracedProgram.trace(derivative.linear.transpose, kept, derivative.shapes)
        merge_nested_sums(program)
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
        parts = TurnParts.of(turn, kept_names, changing | linear, results)
        needed |= parts.reads
        steady = tuple(x in needed for x in kept_names)
        late = [*before[::-1], *late]
        return cls(program, parts, late, border, steady, is_late)

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
        return _spread(self, steady, directions) if self.border else []

    def evaluate_early(self, steady: Arrays) -> Early:
        """What the first part gives to each turn."""
        names = list(itertools.compress(self.program.inputs, self.steady))
        return self.parts.prepare(self.program.values(steady, names))

    def evaluate_turn(
        self, kept: Joined, early: Early, cotangents: Arrays
    ) -> tuple[Arrays, list[Any]]:
        """What a turn gives to the last part, and the cotangents; None for those of the last part."""
        values = self.program.values(jax.tree.leaves((kept, cotangents)))
        self.parts.take(early, values, cotangents[0])
        evaluate_joined(self.parts.turn, values)
        return [values[x] for x in self.border], [values.get(x) for x in self.program.results]

    def evaluate_late(self, steady: Arrays, border: Arrays) -> Arrays:
        """The cotangents of the last part."""
        names = [*itertools.compress(self.program.inputs, self.steady), *self.border]
        values = self.program.values([*steady, *border], names)
        evaluate_all(self.late, values)
        return [values[x] for x in itertools.compress(self.program.results, self.is_late)]


@partial(custom_jvp, nondiff_argnums=(0,))
def _spread(transpose: LoopTranspose, steady: Arrays, directions: Arrays) -> Arrays:
    late = partial(transpose.evaluate_late, steady)
    return list(jax.linear_transpose(late, transpose.shapes)(directions)[0])


@_spread.defjvp
def _spread_jvp(transpose: LoopTranspose, primals: Any, tangents: Any) -> tuple[Arrays, Arrays]:
    """Tangents by directions alone: what is spread stands for them, and forward they are read as they are.

    There the derivative by what no step changes is complete; that of what is spread would come on top of it.
    """
    steady, directions = primals
    return _spread(transpose, steady, directions), _spread(transpose, steady, tangents[1])


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
    size = operation.sum_size
    if size is None or size.length <= FEW_TERMS:
        return False
    return size.count * operation.equation.invars[0].aval.dtype.itemsize <= _MAX_BYTES


def _is_linear(operation: Operation, linear: Marks) -> bool:
    """Whether it is linear in its operands that are cotangents, whatever the others are."""
    equation, name = operation.equation, operation.equation.primitive.name
    if name == "reduce_sum":
        return _is_small_sum(operation) or equation.invars[0].aval.size <= _MAX_SUMMED_AGAIN
    if name in _LINEAR:
        return True
    names = iter(operation.operands)
    marks = [not is_literal(x) and next(names) in linear for x in equation.invars]
    if name == "mul":
        return sum(marks) == 1
    if name == "div":
        return marks == [True, False]
    return name == "select_n" and not marks[0]
