"""The derivative of a turn of a loop, with what all turns have in common taken out of it."""

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from physkit.core import FEW_NUMBERS, ArrayLayout, Joined, linear_call

from ._loop_transpose import LoopTranspose
from ._loop_turn import LoopTurn
from ._step_derivative import Arrays, StepDerivative, StepProgram, places_of_equals
from ._turn_parts import Early

# Of what no step changes, as a constant of the loop, and of what steps change.
Directions: TypeAlias = tuple[Joined, Arrays]


class Prepared(NamedTuple):
    """What is computed before a loop.

    - `forward`, `backward`: what each turn of the loop, and of the loop back, is given.
    - `fixed`: what no step changes of its results and of what its derivative keeps; None for the rest.
    """

    forward: Early
    backward: Early
    fixed: Arrays


@dataclass(frozen=True, eq=False)
class LoopDerivative:
    """The derivative of each turn, by what no step changes and by the carry.

    Directions of constants are spread before the loop where the transpose has sums (`LoopTranspose`), and those
    of few numbers are one array, so that the transpose adds up arrays, few of them, and sums after the loop.
    """

    step: StepDerivative
    turn: LoopTurn
    transpose: LoopTranspose
    _places: tuple[int, ...]  # for each array that is spread, the first with the same numbers
    _layout: ArrayLayout  # of those that are first, and of directions of constants

    @classmethod
    def trace(
        cls, program: StepProgram, inputs: Arrays, is_varying: list[bool]
    ) -> "LoopDerivative":
        """By what varies in any turn if this does before the first."""
        step = _trace_step(program, inputs, is_varying)
        kept = jax.eval_shape(lambda x: step.evaluate(x)[1], inputs)
        transpose = LoopTranspose.of(step, kept)
        steady = list(itertools.compress(jax.tree.leaves(kept), transpose.steady))
        constants = [inputs[k] for k in step.varying if program.is_constant[k]]
        late = [inputs[k] for k in itertools.compress(step.varying, transpose.is_late)]
        places = places_of_equals(jax.make_jaxpr(transpose.spread)(steady, late).jaxpr)
        arrays = [*(x for k, x in enumerate(transpose.shapes) if k in places), *constants]
        layout = ArrayLayout.of(
            arrays, ["few" if math.prod(x.shape) <= FEW_NUMBERS else None for x in arrays]
        )
        return cls(step, LoopTurn.of(step, inputs), transpose, tuple(places), layout)

    @property
    def is_constant(self) -> list[bool]:
        """Of each direction."""
        return [self.step.program.is_constant[k] for k in self.step.varying]

    def prepare(self, inputs: Arrays, directions: Arrays) -> tuple[Prepared, Directions]:
        """What is computed once for all turns, and directions as turns take them.

        The latter are those of what no step changes, and of what the first turn finds.
        """
        transpose = self.transpose
        # What no step changes, any state gives.
        fixed = self.turn.evaluate_fixed(inputs)
        kept = fixed[len(fixed) - len(transpose.steady) :]
        steady = list(itertools.compress(kept, transpose.steady))
        spread = transpose.spread(steady, list(itertools.compress(directions, transpose.is_late)))
        firsts = [x for k, x in enumerate(spread) if k in self._places]
        constants = itertools.compress(directions, self.is_constant)
        moving = [x for x, c in zip(directions, self.is_constant, strict=True) if not c]
        joined = self._layout.join([*firsts, *constants])
        early = self.turn.prepare(inputs), transpose.evaluate_early(steady)
        return Prepared(*early, fixed), (joined, moving)

    def evaluate(self, inputs: Arrays, prepared: Prepared) -> tuple[list[Any], Joined]:
        """The results of a turn, and what its derivative keeps."""
        changing = self.turn.evaluate_changing(inputs, prepared.forward)
        rows = zip(changing, prepared.fixed, strict=True)
        return jax.tree.unflatten(self.turn.form, [y if x is None else x for x, y in rows])

    def apply(self, kept: Joined, early: Early, directions: Directions) -> list[Any]:
        """The derivative of each result of a turn; None for those that have none."""
        shapes = self.step.shapes
        return self.step.place(
            linear_call(_Forward(self), _Backward(self), (kept, early), directions, shapes)
        )

    def directions(self, directions: Directions) -> Arrays:
        """All of them, in the order of the step's."""
        constants, moving = directions
        num_spread = len(set(self._places))
        given, changing = iter(self._layout.split(constants)[num_spread:]), iter(moving)
        return [next(given if constant else changing) for constant in self.is_constant]

    def cotangents(self, border: Arrays, of_step: Arrays) -> Directions:
        """What a turn adds to the cotangents of what no step changes, and those of what steps change."""
        added: dict[int, Any] = {}
        for place, x in zip(self._places, border, strict=True):
            added[place] = added[place] + x if place in added else x
        shapes = self.step.linear.shapes
        # Their part goes by way of what is spread.
        full = [jnp.zeros(*s) if x is None else x for x, s in zip(of_step, shapes, strict=True)]
        constants = itertools.compress(full, self.is_constant)
        moving = [x for x, constant in zip(full, self.is_constant, strict=True) if not constant]
        return self._layout.join([*added.values(), *constants]), moving


@dataclass(frozen=True, eq=False)
class _Forward:
    """Forward, what is spread has no part: directions of constants are there as they are."""

    loop: LoopDerivative

    def __call__(self, given: tuple[Joined, Early], directions: Directions) -> Arrays:
        kept, _ = given
        return self.loop.step.linear(kept, self.loop.directions(directions))


@dataclass(frozen=True, eq=False)
class _Backward:
    loop: LoopDerivative

    def __call__(self, given: tuple[Joined, Early], cotangents: Arrays) -> Directions:
        return self.loop.cotangents(*self.loop.transpose.evaluate_turn(*given, cotangents))


def _trace_step(program: StepProgram, inputs: Arrays, is_varying: list[bool]) -> StepDerivative:
    while True:
        varying = [k for k, varies in enumerate(is_varying) if varies]
        derivative = StepDerivative.trace(program, inputs, varying)
        moving = [False] * (len(inputs) - len(derivative.moving)) + list(derivative.moving)
        wider = [a or b for a, b in zip(is_varying, moving, strict=True)]
        if wider == is_varying:
            return derivative
        is_varying = wider
