"""What a turn of a loop gives, from what all turns are given and from what is computed before the loop."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from physkit.core import custom_jvp, is_literal

from ._step_derivative import Arrays, StepDerivative
from ._traced_program import TracedProgram, evaluate_all
from ._turn_parts import Early, TurnParts


@dataclass(frozen=True, eq=False)
class LoopTurn:
    """The results of a step and what its derivative keeps: what turns do not change of them, and the rest.

    - `form`: the structure of all of them.
    """

    form: Any
    _closed: Any  # traced: inputs → all of them
    _is_fixed: tuple[bool, ...]  # which of them do not change
    _fixed: Any  # the part of it that gives those
    _program: TracedProgram
    _parts: TurnParts
    _moving: int  # the name of an input that changes

    @classmethod
    def of(cls, step: StepDerivative, inputs: Arrays) -> "LoopTurn":
        closed, shape = jax.make_jaxpr(step.evaluate, return_shape=True)(inputs)
        program = TracedProgram(closed)
        is_constant = step.program.is_constant
        changing = {x for x, c in zip(program.inputs, is_constant, strict=True) if not c}
        # One that has a derivative: others may be there for nothing else, such as the number of a step.
        moving = [x for k, x in enumerate(program.inputs) if x in changing and k in step.varying]
        for operation in program.operations:
            operation.mark(changing)
        results = [x for x in program.results if x in changing]
        parts = TurnParts.of(program.operations, program.inputs, changing, results)
        is_fixed = tuple(x not in changing for x in program.results)
        form, fixed = jax.tree.structure(shape), _part_for(closed.jaxpr, is_fixed)
        return cls(form, closed, is_fixed, fixed, program, parts, (moving or program.inputs)[0])

    def prepare(self, inputs: Arrays) -> Early:
        """What each turn is given."""
        return self._parts.prepare(self._program.values(inputs))

    def evaluate_fixed(self, inputs: Arrays) -> Arrays:
        """What does not change, with None in the place of the rest."""
        found = jax.core.eval_jaxpr(self._fixed, self._closed.consts, *inputs)
        # Numbers that a program holds are no `jax.Array` to JAX 0.10.
        arrays = (x if isinstance(x, jax.Array) else jnp.asarray(x) for x in found)
        return [next(arrays) if is_fixed else None for is_fixed in self._is_fixed]

    def evaluate_changing(self, inputs: Arrays, early: Early) -> Arrays:
        """The rest, with None in the place of what does not change."""
        found = iter(_evaluate(self, inputs, early))
        return [None if is_fixed else next(found) for is_fixed in self._is_fixed]

    def evaluate_parts(self, inputs: Arrays, early: Early) -> Arrays:
        """What changes, operation by operation."""
        values = self._program.values(inputs)
        self._parts.take(early, values, values[self._moving])
        evaluate_all(self._parts.turn, values)
        return self._changing([values.get(x) for x in self._program.results])

    def evaluate_whole(self, inputs: Arrays) -> Arrays:
        """What changes, from the inputs alone."""
        return self._changing(jax.core.eval_jaxpr(self._closed.jaxpr, self._closed.consts, *inputs))

    def _changing(self, results: Arrays) -> Arrays:
        rows = zip(results, self._is_fixed, strict=True)
        return [x for x, is_fixed in rows if not is_fixed]


def _part_for(jaxpr: Any, is_asked: Sequence[bool]) -> Any:
    """The part of a program that gives some of its results."""
    results = list(itertools.compress(jaxpr.outvars, is_asked))
    needed = {x for x in results if not is_literal(x)}
    equations = []
    for equation in reversed(jaxpr.eqns):
        if not needed.isdisjoint(equation.outvars):
            equations.append(equation)
            needed.update(x for x in equation.invars if not is_literal(x))
    return jaxpr.replace(eqns=equations[::-1], outvars=results)


@partial(custom_jvp, nondiff_argnums=(0,))
def _evaluate(turn: LoopTurn, inputs: Arrays, early: Early) -> Arrays:
    return turn.evaluate_parts(inputs, early)


@_evaluate.defjvp
def _evaluate_jvp(turn: LoopTurn, primals: tuple, tangents: tuple) -> tuple[Arrays, Arrays]:
    # Operations that are evaluated one by one have lost the derivatives that calls give them.
    return jax.jvp(turn.evaluate_whole, primals[:1], tangents[:1])
