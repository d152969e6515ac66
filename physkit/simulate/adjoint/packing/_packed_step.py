"""Steps for loops that run on a GPU: few arrays are stored and few sums taken for their derivative."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import PyTree
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
    """A step that may be called, and that knows how it is repeated."""

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
        return unflatten(_repeat(closed, leaves, length))

    def _trace(self, carry: PyTree) -> tuple[Any, list[Any], Callable[[list[Any]], Any]]:
        leaves, form = jax.tree.flatten(carry)
        flat_step = lambda *leaves: self._step(jax.tree.unflatten(form, leaves))
        closed, shape = jax.make_jaxpr(flat_step, return_shape=True)(*leaves)
        return closed, leaves, partial(jax.tree.unflatten, jax.tree.structure(shape))


def _repeat(closed: Any, leaves: Arrays, length: int) -> list[Any]:
    """The leaves of the carry after as many steps, which are `closed`."""
    jaxpr = closed.jaxpr
    # What a step hands on is the same in all of them.
    is_made = [x is not y for x, y in zip(jaxpr.outvars, jaxpr.invars, strict=True)]
    is_constant = [True] * len(closed.consts) + [not made for made in is_made]
    program = StepProgram(pack_within(jaxpr), tuple(is_constant), tuple(is_made))
    handed_on = [None if made else x for x, made in zip(leaves, is_made, strict=True)]
    return eqx.combine(_loop(program, length, [*closed.consts, *leaves]), handed_on)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _loop(program: StepProgram, length: int, inputs: Arrays) -> list[Any]:
    """What `length` steps make of the carry, which is the last of the inputs; None for what they hand on."""

    def turn(carry: Arrays, _: None) -> tuple[Arrays, None]:
        return program(_with_carry(program, inputs, carry)), None

    return jax.lax.scan(turn, _carry_of(program, inputs), None, length=length)[0]


@partial(_loop.defjvp, symbolic_zeros=True)
def _loop_jvp(
    program: StepProgram, length: int, primals: tuple, tangents: tuple
) -> tuple[list[Any], list[Any]]:
    (inputs,), (tangents,) = primals, tangents
    derivative = LoopDerivative.trace(program, inputs, [not is_zero(t) for t in tangents])
    varying = derivative.step.varying
    given = [jnp.zeros_like(inputs[k]) if is_zero(tangents[k]) else tangents[k] for k in varying]
    prepared, (constants, moving) = derivative.prepare(inputs, given)
    first = len(inputs) - len(program.is_asked)
    moves = [k in varying and asked for k, asked in enumerate(program.is_asked, first)]

    def turn(both: tuple[Arrays, Arrays], _: None) -> tuple[tuple[Arrays, Arrays], None]:
        carry, moving = both
        results, kept = derivative.evaluate(_with_carry(program, inputs, carry), prepared)
        moved = derivative.apply(kept, prepared.backward, (constants, moving))
        changes = itertools.compress(moved, moves)
        return (results, [_or_zeros(t, x) for t, x in zip(changes, moving, strict=True)]), None

    start = _carry_of(program, inputs), moving
    results, moving = jax.lax.scan(turn, start, None, length=length)[0]
    ends = iter(moving)
    return results, with_zeros(results, [next(ends) if move else None for move in moves])


def _carry_of(program: StepProgram, inputs: Arrays) -> list[Any]:
    """The carry among the inputs, without what steps hand on."""
    carry = inputs[len(inputs) - len(program.is_asked) :]
    return [x if asked else None for x, asked in zip(carry, program.is_asked, strict=True)]


def _with_carry(program: StepProgram, inputs: Arrays, carry: Arrays) -> Arrays:
    first = len(inputs) - len(carry)
    handed_on = [y if x is None else x for x, y in zip(carry, inputs[first:], strict=True)]
    return [*inputs[:first], *handed_on]


def _or_zeros(x: Any, like: Any) -> Any:
    return jnp.zeros_like(like) if x is None else x
