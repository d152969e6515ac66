"""Steps for loops that run on a GPU: few arrays are stored and few sums taken for their derivative."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import PyTree, StepCount, custom_jvp
from physkit.native import kernels_are_used

from .._loop_body import LoopBody
from ._loop_derivative import LoopDerivative
from ._packed_residuals import can_be_packed, is_zero, pack_turn, pack_within, with_zeros
from ._step_derivative import Arrays, StepProgram


def pack_step(step: LoopBody) -> LoopBody:
    """`step`, whose derivatives, of both modes, keep few arrays: for loops that run on a GPU.

    It is left as it is on CPUs, where copies cost more than they save; where it has effects, as collectives
    over devices have; and where derivatives in it are for reverse mode only.
    """
    return PackedStep(step) if kernels_are_used() else step


class PackedStep:
    """A step that may be called, and that knows how it is repeated.

    If its carry has a `step`, a `StepCount`, that is one more after each call.
    """

    def __init__(self, step: LoopBody):
        self._step = step

    def __call__(self, carry: PyTree, _: None = None) -> tuple[PyTree, PyTree]:
        closed, leaves, unflatten = self._trace(carry)
        return unflatten(pack_turn(closed, 0, leaves))

    def repeat(self, carry: PyTree, length: int) -> tuple[PyTree, PyTree] | None:
        """As `lax.scan` does; None where it has records, or a derivative that cannot be packed."""
        closed, leaves, unflatten = self._trace(carry)
        if len(closed.jaxpr.outvars) != len(leaves) or not can_be_packed(closed):
            return None
        return unflatten(_repeat(closed, leaves, length, _places_of_count(carry)))

    def _trace(self, carry: PyTree) -> tuple[Any, list[Any], Callable[[list[Any]], Any]]:
        leaves, form = jax.tree.flatten(carry)
        flat_step = lambda *leaves: self._step(jax.tree.unflatten(form, leaves))
        closed, shape = jax.make_jaxpr(flat_step, return_shape=True)(*leaves)
        return closed, leaves, partial(jax.tree.unflatten, jax.tree.structure(shape))


def _repeat(closed: Any, leaves: Arrays, length: int, count: range) -> list[Any]:
    """The leaves of the carry after as many steps, which are `closed`.

    - `count`: places of the words of the number of the step.
    """
    jaxpr = closed.jaxpr
    # What a step hands on is the same in all of them.
    is_made = [x is not y for x, y in zip(jaxpr.outvars, jaxpr.invars, strict=True)]
    is_constant = [True] * len(closed.consts) + [not made for made in is_made]
    is_asked = tuple(made and k not in count for k, made in enumerate(is_made))
    program = StepProgram(pack_within(jaxpr), tuple(is_constant), is_asked)
    num_others = len(closed.consts)
    words = range(num_others + count.start, num_others + count.stop)
    loop = _Loop(program, length, words)
    inputs = loop.at_turn([*closed.consts, *leaves], length)
    handed_on = [
        None if asked else x for x, asked in zip(inputs[num_others:], is_asked, strict=True)
    ]
    return eqx.combine(_repeat_program(loop, [*closed.consts, *leaves]), handed_on)


def _places_of_count(carry: PyTree) -> range:
    """Of the words of the number of the step among the leaves of a carry."""
    if not isinstance(getattr(carry, "step", None), StepCount):
        return range(0)
    paths = (path for path, _ in jax.tree.leaves_with_path(carry))
    places = [k for k, path in enumerate(paths) if getattr(path[0], "name", None) == "step"]
    return range(places[0], places[-1] + 1)


@dataclass(frozen=True, eq=False)
class _Loop:
    """A step that is repeated.

    - `words`: places of the number of the step among its inputs: computed from that of the turn instead of
      being carried, each word of which would take a launch.
    """

    program: StepProgram
    length: int
    words: range

    @property
    def turns(self) -> Array:
        return jnp.arange(self.length, dtype=jnp.int32)

    def carry_of(self, inputs: Arrays) -> list[Any]:
        """The carry among the inputs, without what steps hand on."""
        asked = self.program.is_asked
        carry = inputs[len(inputs) - len(asked) :]
        return [x if is_asked else None for x, is_asked in zip(carry, asked, strict=True)]

    def at_turn(self, inputs: Arrays, turn: Any, carry: Arrays | None = None) -> Arrays:
        """The inputs of a step: of the first those that steps hand on, and `carry`."""
        inputs = list(inputs)
        if self.words:
            count = StepCount(*(inputs[k] for k in self.words)).plus(turn)
            for k, word in zip(self.words, jax.tree.leaves(count), strict=True):
                inputs[k] = word
        if carry is not None:
            first = len(inputs) - len(carry)
            inputs[first:] = [
                y if x is None else x for x, y in zip(carry, inputs[first:], strict=True)
            ]
        return inputs


@partial(custom_jvp, nondiff_argnums=(0,))
def _repeat_program(loop: _Loop, inputs: Arrays) -> list[Any]:
    """What the steps make of the carry, which is the last of the inputs; None for what they hand on."""

    def turn(carry: Arrays, k: Array) -> tuple[Arrays, None]:
        return loop.program(loop.at_turn(inputs, k, carry)), None

    return jax.lax.scan(turn, loop.carry_of(inputs), loop.turns)[0]


@partial(_repeat_program.defjvp, symbolic_zeros=True)
def _repeat_jvp(loop: _Loop, primals: tuple, tangents: tuple) -> tuple[list[Any], list[Any]]:
    (inputs,), (tangents,) = primals, tangents
    program = loop.program
    derivative = LoopDerivative.trace(program, inputs, [not is_zero(t) for t in tangents])
    varying = derivative.step.varying
    given = [jnp.zeros_like(inputs[k]) if is_zero(tangents[k]) else tangents[k] for k in varying]
    prepared, (constants, moving) = derivative.prepare(inputs, given)
    first = len(inputs) - len(program.is_asked)
    moves = [k in varying and asked for k, asked in enumerate(program.is_asked, first)]

    def turn(both: tuple[Arrays, Arrays], k: Array) -> tuple[tuple[Arrays, Arrays], None]:
        carry, moving = both
        results, kept = derivative.evaluate(loop.at_turn(inputs, k, carry), prepared)
        moved = derivative.apply(kept, prepared.backward, (constants, moving))
        changes = itertools.compress(moved, moves)
        return (results, [_or_zeros(t, x) for t, x in zip(changes, moving, strict=True)]), None

    results, moving = jax.lax.scan(turn, (loop.carry_of(inputs), moving), loop.turns)[0]
    ends = iter(moving)
    return results, with_zeros(results, [next(ends) if move else None for move in moves])


def _or_zeros(x: Any, like: Any) -> Any:
    return jnp.zeros_like(like) if x is None else x
