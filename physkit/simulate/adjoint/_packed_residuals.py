"""What the derivative of a step keeps, in one array of each dtype instead of one for each intermediate.

On a GPU a loop stores each array that its way back reads by a launch of its own, which takes longer than the
copy of a small array. Here a step is a function with a derivative of its own: what that reads is joined, and
one launch stores all of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import PyTree, has_operation, linear_call, mark_results, num_scan_constants
from physkit.native import kernels_are_used

from ._adjoint import LoopBody
from ._array_layout import ArrayLayout, Joined
from ._joined_sums import join_sums

Arrays: TypeAlias = list[Any]  # numbers that a program holds are no `jax.Array` to JAX 0.10

_MAX_BYTES = 2**21  # to copy more takes longer than a launch
_LOOPS = frozenset({"scan"})
# What has a derivative backward only, which cannot be taken as a linear map first.
_BACKWARD_ONLY = frozenset({"custom_vjp_call", "custom_vjp_call_jaxpr"})


def pack_residuals(step: LoopBody) -> LoopBody:
    """`step`, whose derivatives, of both modes, keep few arrays: for loops that run on a GPU.

    It is left as it is on CPUs, where copies cost more than they save; where it has effects, as collectives
    over devices have; and where derivatives in it are for reverse mode only.
    """
    if not kernels_are_used():
        return step

    def packed(carry: PyTree, _: None = None) -> tuple[PyTree, PyTree]:
        leaves, form = jax.tree.flatten(carry)
        flat_step = lambda *leaves: step(jax.tree.unflatten(form, leaves))
        closed, shape = jax.make_jaxpr(flat_step, return_shape=True)(*leaves)
        return jax.tree.unflatten(jax.tree.structure(shape), _pack(closed, 0, leaves))

    return packed


def _pack(closed: Any, num_fixed: int, inputs: Sequence[Any]) -> list[Any]:
    """The results of a traced turn of a loop, which has the first of its inputs in common with all others."""
    jaxpr = closed.jaxpr
    if closed.effects or has_operation(jaxpr, _BACKWARD_ONLY):
        return jax.core.eval_jaxpr(jaxpr, closed.consts, *inputs)
    inputs = [*closed.consts, *inputs]
    # What a turn only hands on has no part in its derivative.
    given = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))
    handed_on = [None if hasattr(x, "val") else given.get(x) for x in jaxpr.outvars]
    is_made = tuple(x is None for x in handed_on)
    program = _Program(_pack_within(jaxpr), len(closed.consts) + num_fixed, is_made)
    return eqx.combine(_call(program, inputs), handed_on)


def _pack_within(jaxpr: Any) -> Any:
    """A program in which the turns of loops of known length are packed, too."""
    return jaxpr.replace(eqns=[_pack_operation(equation) for equation in jaxpr.eqns])


def _pack_operation(equation: Any) -> Any:
    closed = equation.params.get("jaxpr")
    if equation.primitive.name == "scan":
        num_fixed = num_scan_constants(equation)
        avals = [x.aval for x in closed.jaxpr.invars]
        packed = jax.make_jaxpr(lambda *inputs: _pack(closed, num_fixed, inputs))(*avals)
    elif equation.primitive.name in ("jit", "pjit") and has_operation(closed.jaxpr, _LOOPS):
        packed = closed.replace(jaxpr=_pack_within(closed.jaxpr))
    else:
        return equation
    return equation.replace(params=equation.params | {"jaxpr": packed})


@dataclass(frozen=True, eq=False)
class _Program:
    """A traced step: a function of what it closes over, which no step changes, and of the carry.

    - `num_constants`: how many of its inputs no step changes.
    - `chosen`: its results that are asked for; None is in the place of the others.
    """

    jaxpr: Any
    num_constants: int
    chosen: tuple[bool, ...]

    def __call__(self, inputs: Arrays) -> list[Any]:
        n = len(self.jaxpr.constvars)
        results = jax.core.eval_jaxpr(self.jaxpr, inputs[:n], *inputs[n:])
        return [x if choose else None for x, choose in zip(results, self.chosen, strict=True)]

    def linearize(
        self, inputs: Arrays, varying: Sequence[int], moving: Sequence[bool] | None = None
    ) -> tuple[list[Any], Callable[[Arrays], list[Any]]]:
        """The results, and the derivative of those that are `moving` by the inputs that are `varying`.

        - `moving`: of each result; if left out, all that are floating.
        """

        def of_varying(values: Arrays) -> tuple[list[Any], list[Any]]:
            full = list(inputs)
            for k, value in zip(varying, values, strict=True):
                full[k] = value
            return eqx.partition(self(full), eqx.is_inexact_array if moving is None else moving)

        values = [inputs[k] for k in varying]
        results, derivative, others = jax.linearize(of_varying, values, has_aux=True)
        return eqx.combine(results, others), derivative

    def moving(self, inputs: Arrays, varying: Sequence[int], directions: Arrays) -> list[bool]:
        """Which results have a derivative that is not zero for certain."""
        marks: list[bool] = []

        def trace(inputs: Arrays) -> None:
            results, derivative = self.linearize(inputs, varying)
            jaxpr = jax.make_jaxpr(derivative)(directions).jaxpr
            floats = iter(mark_results(jaxpr, [True] * len(directions)))
            marks[:] = [eqx.is_inexact_array(x) and next(floats) for x in results]

        jax.eval_shape(trace, inputs)
        return marks


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _call(program: _Program, inputs: Arrays) -> list[Any]:
    return program(inputs)


@partial(_call.defjvp, symbolic_zeros=True)
def _call_jvp(program: _Program, primals: tuple, tangents: tuple) -> tuple[list[Any], list[Any]]:
    (inputs,), (tangents,) = primals, tangents
    varying = [k for k, t in enumerate(tangents) if not _is_zero(t)]
    directions = [tangents[k] for k in varying]
    # What has no derivative gets no tangent, not one of zeros: the loop would carry it.
    moving = program.moving(inputs, varying, directions)
    traced: list[Any] = []

    def forward(inputs: Arrays) -> tuple[list[Any], Arrays]:
        """The results, and what their derivative keeps."""
        results, derivative = program.linearize(inputs, varying, moving)
        closed, shape = jax.make_jaxpr(derivative, return_shape=True)(directions)
        traced[:] = closed.jaxpr, shape
        return results, list(closed.consts)

    closed, form = jax.make_jaxpr(forward, return_shape=True)(inputs)
    found = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *inputs)
    results, kept = jax.tree.unflatten(jax.tree.structure(form), found)
    first_kept = len(found) - len(kept)
    # What no step changes a loop keeps once.
    changing = [k >= program.num_constants for k in range(len(inputs))]
    changing = mark_results(closed.jaxpr, changing)[first_kept:]
    places = _places_of_equals(closed.jaxpr, first_kept)
    changing, kept = ([x for k, x in enumerate(xs) if k in places] for xs in (changing, kept))
    is_joined = [change and _is_small(x) for change, x in zip(changing, kept, strict=True)]
    layout = ArrayLayout.of(kept, is_joined)
    jaxpr, shape = traced
    order = {k: i for i, k in enumerate(sorted(set(places)))}
    linear = _LinearMap(
        jaxpr,
        layout,
        tuple(order[k] for k in places),
        tuple((x.shape, x.dtype) for x in directions),
    )
    shapes, form = jax.tree.flatten(shape)
    moved = linear_call(linear, _Transpose(linear), layout.join(kept), directions, shapes)
    still = [
        None if moves or x is None else _zero(x) for x, moves in zip(results, moving, strict=True)
    ]
    return results, eqx.combine(jax.tree.unflatten(form, moved), still)


def _places_of_equals(jaxpr: Any, start: int) -> list[int]:
    """For each result from `start` on, the place of the first that is computed in the same way.

    Each use of a complex number keeps its own real and imaginary parts, say.
    """
    same: dict[Any, Any] = {}
    known: dict[Any, Any] = {}

    def name_of(x: Any) -> Any:
        return (str(x), x.aval) if hasattr(x, "val") else same.get(x, x)

    for equation in jaxpr.eqns:
        inputs = tuple(name_of(x) for x in equation.invars)
        for k, result in enumerate(equation.outvars):
            try:
                key = equation.primitive, inputs, k, tuple(sorted(equation.params.items()))
                same[result] = known.setdefault(key, result)
            except TypeError:  # settings that cannot be compared
                break
    firsts: dict[Any, int] = {}
    return [firsts.setdefault(name_of(x), k) for k, x in enumerate(jaxpr.outvars[start:])]


@dataclass(frozen=True, eq=False)
class _LinearMap:
    """The derivative of a step, of what is kept and of a direction."""

    jaxpr: Any
    layout: ArrayLayout
    places: tuple[int, ...]  # where in the layout each constant of the program is
    shapes: tuple[tuple[tuple[int, ...], Any], ...]  # of the direction

    def __call__(self, kept: Joined, direction: Arrays) -> Arrays:
        arrays = self.layout.split(kept)
        return jax.core.eval_jaxpr(self.jaxpr, [arrays[k] for k in self.places], *direction)


@dataclass(frozen=True, eq=False)
class _Transpose:
    linear: _LinearMap

    def __call__(self, kept: Joined, cotangents: Arrays) -> Arrays:
        return join_sums(self._transpose, kept, cotangents)

    def _transpose(self, kept: Joined, cotangents: Arrays) -> Arrays:
        direction = [jax.ShapeDtypeStruct(*shape) for shape in self.linear.shapes]
        transpose = jax.linear_transpose(partial(self.linear, kept), direction)
        return list(transpose(cotangents)[0])


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero)


def _zero(x: Any) -> Any:
    return jax.custom_derivatives.SymbolicZero(jax.typeof(x).to_tangent_aval())


def _is_small(x: Any) -> bool:
    is_number = not jnp.issubdtype(x.dtype, jax.dtypes.extended)  # random keys are none
    return is_number and x.size * x.dtype.itemsize <= _MAX_BYTES
