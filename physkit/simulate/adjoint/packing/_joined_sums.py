"""Sums over cells or particles, as few reductions of many operands each.

The cotangent of a parameter is a sum over all cells wherever the parameter is used. On a GPU each such sum
takes two launches; here those that do not wait for one another take two together.
"""

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import FEW_NUMBERS, custom_jvp, has_operation

from ._traced_program import FEW_TERMS, Operation, TracedProgram

_MOST_OPERANDS = 16  # of one reduction
_MAX_TOTALS = 2**11  # totals of a sum: one for each line of cells, but not for each cell of a layer
# What the programs of loops and choices are called among their settings.
_PROGRAMS = {"while": "body_jaxpr", "scan": "jaxpr", "cond": "branches"}
_SUMS = frozenset({"reduce_sum"})


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def join_sums(function: Callable[..., list[Any]], *args: Any) -> list[Any]:
    """`function(*args)`, in which sums of as many numbers, or over the same axes, are one reduction.

    A sum waits, with all that depends on it, until nothing else is left to do. The derivative is that of
    `function` itself.
    """
    program = TracedProgram.trace(function, *args)
    values = program.values(jax.tree.leaves(args))
    evaluate_joined(program.operations, values)
    return [values[name] for name in program.results]


@join_sums.defjvp
def _join_sums_jvp(function: Callable, primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    return jax.jvp(function, primals, tangents)


class Sum(NamedTuple):
    """A sum over some axes of an array; operand and result by name."""

    operand: int
    result: int
    shape: tuple[int, ...]
    dtype: Any
    axes: tuple[int, ...]
    totals: tuple[int, ...]  # shape of the result

    @classmethod
    def of(cls, operation: Operation) -> "Sum | None":
        """The sum that an operation is, if it adds up many numbers for each of some totals."""
        size, equation = operation.sum_size, operation.equation
        if size is None or size.totals > _MAX_TOTALS or size.length <= FEW_TERMS:
            return None
        x, totals = equation.invars[0].aval, equation.outvars[0].aval
        names, axes = (operation.operands[0], operation.results[0]), equation.params["axes"]
        return cls(*names, x.shape, x.dtype, tuple(axes), totals.shape)

    @property
    def length(self) -> int:
        """How many numbers each total adds up."""
        return math.prod(self.shape[k] for k in self.axes)

    @property
    def gives_few(self) -> bool:
        """Whether it gives so few totals that each may be a sum of its own."""
        return math.prod(self.totals) <= FEW_TERMS

    def rows(self, x: Array, length: int) -> list[Array]:
        """What it adds up, as rows of `length`, one or several for each total."""
        kept = [k for k in range(x.ndim) if k not in self.axes]
        rows = x.transpose(*kept, *self.axes).reshape(-1, length)
        return [row.reshape(-1) for row in jnp.split(rows, len(rows))]


def evaluate_joined(operations: Sequence[Operation], values: dict[int, Any]) -> None:
    """Add the results of all operations to `values`, with joined sums."""
    while operations:
        operations = _evaluate_round(operations, values)


def _evaluate_round(operations: Sequence[Operation], values: dict[int, Any]) -> list[Operation]:
    """Evaluate all that waits for no sum, and then the sums themselves; what still waits."""
    waiting: list[Operation] = []
    sums: list[Sum] = []
    for operation in operations:
        if any(name not in values for name in operation.operands):
            waiting.append(operation)
        elif found := Sum.of(operation):
            sums.append(found)
        elif _adds_few(operation):
            x, axes = values[operation.operands[0]], operation.equation.params["axes"]
            values[operation.results[0]] = _add_one_by_one(x, tuple(map(int, axes)))
        else:
            _join_within(operation).evaluate(values)
    _evaluate_rows([x for x in sums if x.gives_few], values)
    _evaluate_alike([x for x in sums if not x.gives_few], values)
    return waiting


def _evaluate_rows(sums: list[Sum], values: dict[int, Any]) -> None:
    """Evaluate sums that give few totals each, of which each is that of one row or of several."""
    for length, group in _group_sums(sums):
        rows = [x.rows(values[x.operand], length) for x in group]
        totals = iter(_add_up(list(itertools.chain(*rows)), (0,)))
        for x, own in zip(group, rows, strict=True):
            parts = [next(totals) for _ in own]
            # One by one: a reduction would be a launch of its own.
            n = len(parts) // math.prod(x.totals)
            each = [
                functools.reduce(operator.add, parts[k : k + n]) for k in range(0, len(parts), n)
            ]
            values[x.result] = jnp.stack(each).reshape(x.totals)


def _evaluate_alike(sums: list[Sum], values: dict[int, Any]) -> None:
    """Evaluate sums over the same axes of arrays of the same shape."""
    alike: dict[Any, list[Sum]] = {}
    for x in sums:
        alike.setdefault((x.shape, x.dtype, x.axes), []).append(x)
    for (_, _, axes), group in alike.items():
        results = _add_up([values[x.operand] for x in group], axes)
        values.update(zip([x.result for x in group], results, strict=True))


def _join_within(operation: Operation) -> Operation:
    """An operation. Where that is a loop or a choice, sums are joined in its programs."""
    equation = operation.equation
    name = _PROGRAMS.get(equation.primitive.name)
    if name is None or not has_operation(operation.jaxpr, _SUMS):
        return operation

    def join(closed: Any) -> Any:
        function = functools.partial(jax.core.eval_jaxpr, closed.jaxpr, closed.consts)
        joined = lambda *x: join_sums(lambda *x: list(function(*x)), *x)
        return jax.make_jaxpr(joined)(*(x.aval for x in closed.jaxpr.invars))

    programs = equation.params[name]
    joined = tuple(map(join, programs)) if name == "branches" else join(programs)
    equation = equation.replace(params=equation.params | {name: joined})
    return operation._replace(jaxpr=operation.jaxpr.replace(eqns=[equation]))


def _adds_few(operation: Operation) -> bool:
    """Whether it is a sum over an axis of a small array, of components of a vector say."""
    size = operation.sum_size
    return size is not None and 0 < size.count <= FEW_NUMBERS and size.length <= FEW_TERMS


def _add_one_by_one(x: Array, axes: tuple[int, ...]) -> Array:
    """The sum over some axes; a reduction would be a launch of its own, and not part of another."""
    x = jnp.moveaxis(x, axes, range(len(axes)))
    x = x.reshape(-1, *x.shape[len(axes) :])
    return functools.reduce(operator.add, [x[k] for k in range(len(x))])


def _group_sums(sums: list[Sum]) -> list[tuple[int, list[Sum]]]:
    """Sums whose numbers are rows of one length and dtype, and that length.

    Rows filled up with zeros, where lengths nearly agree, take more launches than they save.
    """
    groups: list[tuple[int, list[Sum]]] = []
    for x in sorted(sums, key=lambda x: x.length):
        for length, group in groups:
            parts, rest = divmod(x.length, length)
            if rest == 0 and parts <= FEW_TERMS and x.dtype == group[0].dtype:
                group.append(x)
                break
        else:
            groups.append((x.length, [x]))
    return groups


def _add_up(arrays: list[Array], axes: tuple[int, ...]) -> list[Array]:
    """The sums over these axes of each of several arrays of one shape and dtype."""
    totals: list[Array] = []
    for start in range(0, len(arrays), _MOST_OPERANDS):
        some = tuple(arrays[start : start + _MOST_OPERANDS])
        zeros = tuple(jnp.zeros((), x.dtype) for x in some)
        totals += jax.lax.reduce(some, zeros, _add_pairs, axes)
    return totals


def _add_pairs(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))
