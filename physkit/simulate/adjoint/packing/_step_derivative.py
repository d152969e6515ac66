"""The derivative of a traced step: what it keeps, and a linear map of that and of a direction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import FEW_NUMBERS, ArrayLayout, Joined, is_literal, linear_call, mark_results

from ._joined_sums import join_sums
from ._kept_arrays import KeptArrays
from ._traced_program import reads_memory

Arrays: TypeAlias = list[Any]  # numbers that a program holds are no `jax.Array` to JAX 0.10

_MAX_BYTES = 2**21  # to copy more takes longer than a launch


@dataclass(frozen=True, eq=False)
class StepProgram:
    """A traced step: a function of what it closes over and of the leaves of the carry.

    - `is_constant`: which of its inputs no step changes.
    - `is_asked`: which of its results are asked for; None is in the place of the others.
    """

    jaxpr: Any
    is_constant: tuple[bool, ...]
    is_asked: tuple[bool, ...]

    def __call__(self, inputs: Arrays) -> list[Any]:
        n = len(self.jaxpr.constvars)
        results = jax.core.eval_jaxpr(self.jaxpr, inputs[:n], *inputs[n:])
        return [x if asked else None for x, asked in zip(results, self.is_asked, strict=True)]

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

    def moving(self, inputs: Arrays, varying: Sequence[int]) -> list[bool]:
        """Which results have a derivative by the inputs that are `varying` that is not zero for certain."""
        marks: list[bool] = []

        def trace(inputs: Arrays) -> None:
            directions = [inputs[k] for k in varying]
            results, derivative = self.linearize(inputs, varying)
            jaxpr = jax.make_jaxpr(derivative)(directions).jaxpr
            floats = iter(mark_results(jaxpr, [True] * len(directions)))
            marks[:] = [eqx.is_inexact_array(x) and next(floats) for x in results]

        jax.eval_shape(trace, inputs)
        return marks


@dataclass(frozen=True, eq=False)
class StepDerivative:
    """The derivative of a `StepProgram` by some of its inputs.

    - `moving`: which of the results have one.
    - `linear`: what is kept and a direction → derivative of the moving results.
    - `shapes`: what that looks like.
    - `steady`: which of the arrays that are kept no step changes, in the order of their `Joined`.
    """

    program: StepProgram
    varying: tuple[int, ...]
    moving: tuple[bool, ...]
    linear: "LinearMap"
    shapes: list[Any]
    steady: tuple[bool, ...]
    _forward: Any  # traced: inputs → results, all that is kept
    _form: Any
    _moved_form: Any
    _places: tuple[int, ...]  # of that, each different array once

    @classmethod
    def trace(
        cls, program: StepProgram, inputs: Arrays, varying: Sequence[int]
    ) -> "StepDerivative":
        """Of inputs that are given or traced, by those that are `varying`."""
        # What has no derivative gets no tangent, not one of zeros: the loop would carry it.
        moving = program.moving(inputs, varying)
        directions = [inputs[k] for k in varying]
        traced: list[Any] = []

        def forward(inputs: Arrays) -> tuple[list[Any], Arrays]:
            results, derivative = program.linearize(inputs, varying, moving)
            closed, shape = jax.make_jaxpr(derivative, return_shape=True)(directions)
            traced[:] = closed.jaxpr, shape
            return results, list(closed.consts)

        closed, form = jax.make_jaxpr(forward, return_shape=True)(inputs)
        jaxpr, derivatives = traced
        shapes, moved_form = jax.tree.flatten(derivatives)
        first_kept = len(closed.out_avals) - len(form[1])
        changes_input = [not constant for constant in program.is_constant]
        if fewer := KeptArrays.find(closed, first_kept, changes_input):
            closed, jaxpr = fewer.forward, fewer.put_before(jaxpr, directions)
        kept = closed.out_avals[first_kept:]
        # What no step changes a loop keeps once.
        changing = mark_results(closed.jaxpr, changes_input)
        places = places_of_equals(closed.jaxpr, first_kept)
        firsts = sorted(set(places))
        changes = [changing[first_kept + k] for k in firsts]
        avals = [kept[k] for k in firsts]
        order = {k: i for i, k in enumerate(firsts)}
        in_memory = {order[places[k]] for k in _places_in_memory(jaxpr)}
        names = [
            _group_of(x, change, k in in_memory)
            for k, (x, change) in enumerate(zip(avals, changes, strict=True))
        ]
        layout = ArrayLayout.of(avals, names)
        linear = LinearMap(
            jaxpr,
            layout,
            tuple(order[k] for k in places),
            tuple((x.shape, x.dtype) for x in directions),
        )
        groups = [changes[group[0].place] for group in layout.groups]
        steady = [not change for change in (*groups, *(changes[k] for k in layout.alone))]
        return cls(
            program, tuple(varying), tuple(moving), linear, shapes, tuple(steady),
            closed, jax.tree.structure(form[0]), moved_form, tuple(firsts),
        )  # fmt: skip

    def evaluate(self, inputs: Arrays) -> tuple[list[Any], Joined]:
        """The results, and what the derivative keeps."""
        found = jax.core.eval_jaxpr(self._forward.jaxpr, self._forward.consts, *inputs)
        results, kept = found[: self._form.num_leaves], found[self._form.num_leaves :]
        results = jax.tree.unflatten(self._form, results)
        return results, self.linear.layout.join([kept[k] for k in self._places])

    def apply(self, kept: Joined, directions: Arrays) -> list[Any]:
        """The derivative of each result; None for those that have none."""
        transpose = _Transpose(self.linear)
        return self.place(linear_call(self.linear, transpose, kept, directions, self.shapes))

    def place(self, moved: Arrays) -> list[Any]:
        """The derivatives of the moving results among all results."""
        return jax.tree.unflatten(self._moved_form, moved)


@dataclass(frozen=True, eq=False)
class LinearMap:
    """The derivative of a step, of what is kept and of a direction."""

    jaxpr: Any
    layout: ArrayLayout
    places: tuple[int, ...]  # where in the layout each constant of the program is
    shapes: tuple[tuple[tuple[int, ...], Any], ...]  # of the direction

    def __call__(self, kept: Joined, direction: Arrays) -> Arrays:
        arrays = self.layout.split(kept)
        return jax.core.eval_jaxpr(self.jaxpr, [arrays[k] for k in self.places], *direction)

    def transpose(self, kept: Joined, cotangents: Arrays) -> Arrays:
        direction = [jax.ShapeDtypeStruct(*shape) for shape in self.shapes]
        transpose = jax.linear_transpose(partial(self, kept), direction)
        return list(transpose(cotangents)[0])


@dataclass(frozen=True, eq=False)
class _Transpose:
    linear: LinearMap

    def __call__(self, kept: Joined, cotangents: Arrays) -> Arrays:
        return join_sums(self.linear.transpose, kept, cotangents)


def places_of_equals(jaxpr: Any, start: int = 0) -> list[int]:
    """For each result from `start` on, the place of the first that is computed in the same way.

    Each use of a complex number keeps its own real and imaginary parts, say.
    """
    same: dict[Any, Any] = {}
    known: dict[Any, Any] = {}

    def name_of(x: Any) -> Any:
        return (str(x), x.aval) if is_literal(x) else same.get(x, x)

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


def _places_in_memory(jaxpr: Any) -> list[int]:
    """Which constants of a program loops and kernels read as they are in memory."""
    read = {
        x
        for equation in jaxpr.eqns
        if reads_memory(equation)
        for x in equation.invars
        if not is_literal(x)
    }
    return [k for k, x in enumerate(jaxpr.constvars) if x in read]


def _group_of(x: Any, changes: bool, is_in_memory: bool) -> str | None:
    """With which others an array that is kept is joined."""
    if jnp.issubdtype(x.dtype, jax.dtypes.extended):  # random keys
        return None
    if changes:
        return "changing" if x.size * x.dtype.itemsize <= _MAX_BYTES else None
    # XLA makes one of kernels that read the same array of several numbers, not of those that read one number.
    # But what a loop takes as it is, a number of such an array, is a copy by a kernel of its own.
    return "steady" if x.size <= FEW_NUMBERS and not is_in_memory else None
