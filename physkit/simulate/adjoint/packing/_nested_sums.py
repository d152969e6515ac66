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

from physkit.core import is_literal

from ._traced_program import FEW_TERMS, Marks, Operation, TracedProgram

_VIEWS = frozenset({"broadcast_in_dim", "reshape", "squeeze"})


def merge_nested_sums(program: TracedProgram) -> None:
    """Put one sum in place of a sum of sums in a program, where nothing else needs the inner ones."""
    inner = _inner_sums(program.operations, program.results)
    if not inner:
        return
    operations, program.operations = program.operations, []
    sums: dict[int, _InnerSum] = {}
    totals: dict[int, int] = {}
    for operation in operations:
        operands = [totals.get(x, x) for x in operation.operands]
        operation, (result, *_) = operation._replace(operands=operands), operation.results
        found = next((sums[x] for x in operands if x in sums), None)
        if found is None and result not in inner:
            program.operations.append(operation)
        elif found is None:
            sums[result] = _InnerSum.of(operation)
        elif result in inner:
            sums[result] = found.then(operation, program)
        else:
            totals[result] = found.total(operation, program)
    program.results = [totals.get(x, x) for x in program.results]


class _InnerSum(NamedTuple):
    """A sum over some axes of an array, not evaluated.

    - `array`, `aval`: its name, and what it looks like.
    - `axes`: for each axis of the result that of the array; None for one of length 1.
    - `result`: the name of the sum.
    """

    array: int
    aval: Any
    axes: tuple[int | None, ...]
    result: int

    @classmethod
    def of(cls, operation: Operation) -> "_InnerSum":
        aval, summed = operation.equation.invars[0].aval, operation.equation.params["axes"]
        axes = tuple(k for k in range(aval.ndim) if k not in summed)
        return cls(operation.operands[0], aval, axes, operation.results[0])

    def then(self, operation: Operation, program: TracedProgram) -> "_InnerSum":
        """After an operation that multiplies it, sums it over more axes, or gives its axes other places.

        Products with the array are appended to the program.
        """
        equation, name = operation.equation, operation.equation.primitive.name
        after = self._replace(result=operation.results[0])
        if name == "neg":
            array = program.append(jnp.negative, [self.array], [self.aval])
            return after._replace(array=array)
        if name == "mul":
            return after._replace(array=self._multiply(operation, program))
        if name == "reduce_sum":
            return after._replace(axes=self._left_by(operation))
        long = iter([k for k in self.axes if k is not None and self.aval.shape[k] > 1])
        lengths = equation.outvars[0].aval.shape
        return after._replace(axes=tuple(None if n == 1 else next(long) for n in lengths))

    def total(self, operation: Operation, program: TracedProgram) -> int:
        """The name of the sum over some of its axes, appended to the program."""
        kept, shape = self._left_by(operation), operation.equation.outvars[0].aval.shape
        summed = tuple(k for k in range(self.aval.ndim) if k not in kept)
        add_up = lambda x: jnp.sum(x, summed).reshape(shape)
        return program.append(add_up, [self.array], [self.aval])

    def _multiply(self, operation: Operation, program: TracedProgram) -> int:
        """The name of the array times what the operation multiplies the sum with."""
        literals = [x for x in operation.equation.invars if is_literal(x)]
        if literals:
            number = jnp.asarray(literals[0].val, literals[0].aval.dtype)
            multiply = lambda x: x * self._along(number)
            return program.append(multiply, [self.array], [self.aval])
        operands = zip(operation.operands, operation.jaxpr.invars, strict=True)
        ((name, aval),) = ((name, x.aval) for name, x in operands if name != self.result)
        multiply = lambda x, factor: x * self._along(factor)
        return program.append(multiply, [self.array, name], [self.aval, aval])

    def _along(self, factor: Array) -> Array:
        """A factor of the sum as one of the array."""
        if factor.ndim == 0:
            return factor
        lengths = [1] * self.aval.ndim
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

    def is_merged(operation: Operation) -> bool:
        return all(x in scaled and x not in evaluated for x in operation.results)

    for operation in reversed(operations):
        if _is_outer(operation):
            continue
        goes_on = is_merged(operation) and (_is_inner(operation) or _scales_one(operation, scaled))
        evaluated.update(x for x in operation.operands if not (goes_on and x in scaled))
    found: Marks = set()
    for operation in operations:
        begins = _is_inner(operation)
        if is_merged(operation) and (begins or not found.isdisjoint(operation.operands)):
            found.update(operation.results)
    outer = [x for operation in operations if _is_outer(operation) for x in operation.operands]
    return found if not found.isdisjoint(outer) else set()


def _is_inner(operation: Operation) -> bool:
    """Whether it is a sum of many numbers for each of many totals."""
    size = operation.sum_size
    return size is not None and min(size.totals, size.length) > FEW_TERMS


def _is_outer(operation: Operation) -> bool:
    """Whether it is a sum that gives few totals."""
    size = operation.sum_size
    return size is not None and size.totals <= FEW_TERMS


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
