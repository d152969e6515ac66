"""What a turn of a loop gives, from what all turns are given and from what is computed before the loop."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax

from ._step_derivative import Arrays, StepDerivative
from ._traced_program import TracedProgram
from ._turn_parts import Early, TurnParts


@dataclass(frozen=True, eq=False)
class LoopTurn:
    """The results of a step and what its derivative keeps, as far as they change from turn to turn.

    - `is_fixed`: which of them do not change.
    - `moving`: the name of an input that changes.
    - `form`: the structure of all of them.
    """

    step: StepDerivative
    program: TracedProgram
    parts: TurnParts
    is_fixed: tuple[bool, ...]
    moving: int
    form: Any

    @classmethod
    def of(cls, step: StepDerivative, inputs: Arrays) -> "LoopTurn":
        program = TracedProgram(lambda *x: jax.tree.leaves(step.evaluate(list(x))), *inputs)
        is_constant = step.program.is_constant
        changing = {x for x, c in zip(program.inputs, is_constant, strict=True) if not c}
        # One that has a derivative: others may be there for nothing else, such as the number of a step.
        moving = [x for k, x in enumerate(program.inputs) if x in changing and k in step.varying]
        for operation in program.operations:
            operation.mark(changing)
        results = [x for x in program.results if x in changing]
        parts = TurnParts.of(program.operations, program.inputs, changing, results)
        form = jax.tree.structure(jax.eval_shape(step.evaluate, inputs))
        is_fixed = tuple(x not in changing for x in program.results)
        return cls(step, program, parts, is_fixed, (moving or program.inputs)[0], form)

    def prepare(self, inputs: Arrays) -> Early:
        """What each turn is given."""
        return self.parts.prepare(self._values(inputs))

    def evaluate(self, inputs: Arrays, early: Early) -> Arrays:
        """What changes."""
        return _evaluate(self, inputs, early)

    def evaluate_parts(self, inputs: Arrays, early: Early) -> Arrays:
        """What changes, operation by operation."""
        values = self._values(inputs)
        self.parts.take(early, values, values[self.moving])
        for operation in self.parts.turn:
            operation.evaluate(values)
        rows = zip(self.program.results, self.is_fixed, strict=True)
        return [values[x] for x, is_fixed in rows if not is_fixed]

    def evaluate_whole(self, inputs: Arrays) -> Arrays:
        """What changes, from the inputs alone."""
        rows = zip(jax.tree.leaves(self.step.evaluate(inputs)), self.is_fixed, strict=True)
        return [x for x, is_fixed in rows if not is_fixed]

    def _values(self, inputs: Arrays) -> dict[int, Any]:
        return self.program.constants | dict(zip(self.program.inputs, inputs, strict=True))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _evaluate(turn: LoopTurn, inputs: Arrays, early: Early) -> Arrays:
    return turn.evaluate_parts(inputs, early)


@_evaluate.defjvp
def _evaluate_jvp(turn: LoopTurn, primals: tuple, tangents: tuple) -> tuple[Arrays, Arrays]:
    # Operations that are evaluated one by one have lost the derivatives that calls give them.
    return jax.jvp(turn.evaluate_whole, primals[:1], tangents[:1])
