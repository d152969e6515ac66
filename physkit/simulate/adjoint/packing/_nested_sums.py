"""Sums of sums, as one sum of all numbers.

The cotangent of a coordinate along one axis is a sum along the others, and that of what many coordinates
depend on, the center of a body say, is a sum of it:

    Σᵢ cᵢ Σⱼ aᵢⱼ = Σᵢⱼ cᵢ aᵢⱼ

On a GPU each sum takes two launches, and on the left the outer one waits for the inner one. Those on the
right are few reductions of many operands each, or wait until a loop has ended.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ._traced_program import Marks, Operation, TracedProgram

_FEW = (
    8  # totals of an outer sum at most; an inner one adds up more numbers for each of more totals
)
_VIEWS = frozenset({"broadcast_in_dim", "reshape", "squeeze"})


def merge_nested_sums(program: TracedProgram) -> TracedProgram:
    """The program with one sum in place of a sum of sums, where nothing else needs the inner ones."""
    inner = _inner_sums(program.operations, program.results)
    if not inner:
        return program

    def evaluate(*inputs: Any) -> list[Any]:
        values = program.constants | dict(zip(program.inputs, inputs, strict=True))
        for operation in program.operations:
            (result, *_), operands = operation.results, operation.operands
            found = next((values[x] for x in operands if x in inner), None)
            if found is None and result not in inner:
                operation.evaluate(values)
            elif found is None:
                values[result] = _InnerSum.of(operation, values)
            elif result in inner:
                values[result] = found.then(operation, values)
            else:
                values[result] = found.total(operation)
        return [values[x] for x in program.results]

    return TracedProgram.trace(evaluate, *program.shapes)


class _InnerSum(NamedTuple):
    """A sum over some axes of an array, not evaluated.

    - `axes`: for each axis of the result that of the array; None for one of length 1.
    """

    array: Array
    axes: tuple[int | None, ...]

    @classmethod
    def of(cls, operation: Operation, values: dict[int, Any]) -> "_InnerSum":
        array, summed = values[operation.operands[0]], operation.equation.params["axes"]
        return cls(array, tuple(k for k in range(array.ndim) if k not in summed))

    def then(self, operation: Operation, values: dict[int, Any]) -> "_InnerSum":
        """After an operation that multiplies it, sums it over more axes, or gives its axes other places."""
        equation, name = operation.equation, operation.equation.primitive.name
        if name == "neg":
            return self._replace(array=-self.array)
        if name == "mul":
            names = iter(operation.operands)
            both = [x.val if hasattr(x, "val") else values[next(names)] for x in equation.invars]
            (factor,) = (jnp.asarray(x) for x in both if x is not self)
            return self._replace(array=self.array * self._along(factor))
        if name == "reduce_sum":
            return self._replace(axes=self._left_by(operation))
        long = iter([k for k in self.axes if k is not None and self.array.shape[k] > 1])
        lengths = equation.outvars[0].aval.shape
        return self._replace(axes=tuple(None if n == 1 else next(long) for n in lengths))

    def total(self, operation: Operation) -> Array:
        """The sum over some of its axes."""
        kept = self._left_by(operation)
        summed = tuple(k for k in range(self.array.ndim) if k not in kept)
        return jnp.sum(self.array, summed).reshape(operation.equation.outvars[0].aval.shape)

    def _along(self, factor: Array) -> Array:
        """A factor of the result as one of the array."""
        if factor.ndim == 0:
            return factor
        lengths = [1] * self.array.ndim
        for k, n in zip(self.axes, factor.shape, strict=True):
            if k is not None:
                lengths[k] = n
        return factor.reshape(lengths)

    def _left_by(self, operation: Operation) -> tuple[int | None, ...]:
        summed = operation.equation.params["axes"]
        return tuple(k for n, k in enumerate(self.axes) if n not in summed)


def _inner_sums(operations: Sequence[Operation], results: Sequence[int]) -> Marks:
    """Names of sums, scaled or seen in other shapes, of which all that is needed are sums of few totals."""
    scaled: Marks = set()  # of inner sums
    for operation in operations:
        if _is_inner(operation) or _scales_one(operation, scaled):
            scaled.update(operation.results)
    # What has another use is evaluated as it is.
    evaluated = set(results)
    for operation in reversed(operations):
        if _is_outer(operation):
            continue
        is_merged = scaled.difference(evaluated).issuperset(operation.results)
        goes_on = is_merged and (_is_inner(operation) or _scales_one(operation, scaled))
        evaluated.update(x for x in operation.operands if not (goes_on and x in scaled))
    found: Marks = set()
    for operation in operations:
        is_merged = scaled.difference(evaluated).issuperset(operation.results)
        if is_merged and (_is_inner(operation) or not found.isdisjoint(operation.operands)):
            found.update(operation.results)
    outer = [x for operation in operations if _is_outer(operation) for x in operation.operands]
    return found if not found.isdisjoint(outer) else set()


def _is_inner(operation: Operation) -> bool:
    """Whether it is a sum of many numbers for each of many totals."""
    x, totals = _summed(operation)
    return min(totals, x // totals) > _FEW if totals else False


def _is_outer(operation: Operation) -> bool:
    """Whether it is a sum that gives few totals."""
    _, totals = _summed(operation)
    return 0 < totals <= _FEW


def _summed(operation: Operation) -> tuple[int, int]:
    """How many numbers a sum adds up, and how many totals it gives; zeros for what is none."""
    equation = operation.equation
    if equation.primitive.name != "reduce_sum":
        return 0, 0
    x, totals = equation.invars[0].aval, equation.outvars[0].aval
    return (x.size, totals.size) if jnp.issubdtype(x.dtype, jnp.inexact) else (0, 0)


def _scales_one(operation: Operation, marks: Marks) -> bool:
    """Whether it only multiplies the one operand that is marked, or gives its axes other places."""
    names = [k for k, x in enumerate(operation.operands) if x in marks]
    if len(names) != 1:
        return False
    name = operation.equation.primitive.name
    x, y = operation.jaxpr.invars[names[0]].aval.shape, operation.equation.outvars[0].aval.shape
    if name in ("neg", "mul"):
        return x == y
    return name in _VIEWS and [n for n in x if n > 1] == [n for n in y if n > 1]
