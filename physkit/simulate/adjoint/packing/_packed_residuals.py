"""What the derivative of a step keeps, in one array of each dtype instead of one for each intermediate.

On a GPU a loop stores each array that its way back reads by a launch of its own, which takes longer than the
copy of a small array. Here a step is a function with a derivative of its own: what that reads is joined, and
one launch stores all of it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax

from physkit.core import custom_jvp, has_operation, is_literal, num_scan_constants, varying_axes

from ._step_derivative import Arrays, StepDerivative, StepProgram

_LOOPS = frozenset({"scan"})
# What has a derivative backward only, which cannot be taken as a linear map first.
_BACKWARD_ONLY = frozenset({"custom_vjp_call", "custom_vjp_call_jaxpr"})


def can_be_packed(closed: Any) -> bool:
    """Whether a traced step has no effects, as collectives over devices have, and derivatives of both modes.

    Nor where `jax.shard_map` keeps account of what differs between devices: what is joined would differ in all.
    """
    avals = [*closed.in_avals, *map(jax.typeof, closed.consts)]
    differs = any(map(varying_axes, avals))
    return not (differs or closed.effects or has_operation(closed.jaxpr, _BACKWARD_ONLY))


def pack_turn(closed: Any, num_fixed: int, inputs: Sequence[Any]) -> list[Any]:
    """The results of a traced turn of a loop, which has the first of its inputs in common with all others."""
    jaxpr = closed.jaxpr
    if not can_be_packed(closed):
        return jax.core.eval_jaxpr(jaxpr, closed.consts, *inputs)
    inputs = [*closed.consts, *inputs]
    # What a turn only hands on has no part in its derivative.
    given = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))
    handed_on = [None if is_literal(x) else given.get(x) for x in jaxpr.outvars]
    is_made = tuple(x is None for x in handed_on)
    num_constants = len(closed.consts) + num_fixed
    is_constant = tuple(k < num_constants for k in range(len(inputs)))
    program = StepProgram(pack_within(jaxpr), is_constant, is_made)
    return eqx.combine(_call(program, inputs), handed_on)


def pack_within(jaxpr: Any) -> Any:
    """A program in which the turns of loops of known length are packed, too."""
    return jaxpr.replace(eqns=[_pack_operation(equation) for equation in jaxpr.eqns])


def _pack_operation(equation: Any) -> Any:
    closed = equation.params.get("jaxpr")
    if equation.primitive.name == "scan":
        num_fixed = num_scan_constants(equation)
        avals = [x.aval for x in closed.jaxpr.invars]
        packed = jax.make_jaxpr(lambda *inputs: pack_turn(closed, num_fixed, inputs))(*avals)
    elif equation.primitive.name in ("jit", "pjit") and has_operation(closed.jaxpr, _LOOPS):
        packed = closed.replace(jaxpr=pack_within(closed.jaxpr))
    else:
        return equation
    return equation.replace(params=equation.params | {"jaxpr": packed})


@partial(custom_jvp, nondiff_argnums=(0,))
def _call(program: StepProgram, inputs: Arrays) -> list[Any]:
    return program(inputs)


@partial(_call.defjvp, symbolic_zeros=True)
def _call_jvp(program: StepProgram, primals: tuple, tangents: tuple) -> tuple[list[Any], list[Any]]:
    (inputs,), (tangents,) = primals, tangents
    varying = [k for k, t in enumerate(tangents) if not is_zero(t)]
    derivative = StepDerivative.trace(program, inputs, varying)
    results, kept = derivative.evaluate(inputs)
    moved = derivative.apply(kept, [tangents[k] for k in varying])
    return results, with_zeros(results, moved)


def with_zeros(results: Sequence[Any], moved: Sequence[Any]) -> list[Any]:
    """`moved`, with zeros for those of the results that are not."""
    return [
        _zero_of(x) if t is None and x is not None else t
        for x, t in zip(results, moved, strict=True)
    ]


def is_zero(tangent: Any) -> bool:
    """Whether a tangent is zero for certain."""
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero)


def _zero_of(x: Any) -> Any:
    return jax.custom_derivatives.SymbolicZero(jax.typeof(x).to_tangent_aval())
