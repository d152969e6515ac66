"""Sums over cells or particles, as few reductions of many operands each.

The cotangent of a parameter is a sum over all cells wherever the parameter is used. On a GPU each such sum
takes two launches; here those that do not wait for one another take two together.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import called_program, has_operation

_MOST_OPERANDS = 16  # of one reduction
_FEW = 8  # totals of a sum, one for each component; rows of a total
_SOME = 2**11  # totals of a sum: one for each line of cells, but not for each cell of a layer
# What the programs of loops and choices are called among their settings.
_PROGRAMS = {"while": "body_jaxpr", "scan": "jaxpr", "cond": "branches"}
_SUMS = frozenset({"reduce_sum"})


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def join_sums(function: Callable[..., list[Any]], *args: Any) -> list[Any]:
    """`function(*args)`, in which sums of as many numbers, or over the same axes, are one reduction.

    A sum waits, with all that depends on it, until nothing else is left to do. The derivative is that of
    `function` itself.
    """
    leaves, form = jax.tree.flatten(args)
    closed = jax.make_jaxpr(lambda *leaves: function(*jax.tree.unflatten(form, leaves)))(*leaves)
    program = _Program()
    results = program.inline(closed.jaxpr, program.name_all([*closed.consts, *leaves]))
    while program.waiting:
        program.evaluate_round()
    return [program.values[name] for name in results]


@join_sums.defjvp
def _join_sums_jvp(function: Callable, primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    return jax.jvp(function, primals, tangents)


class _Operation(NamedTuple):
    """An operation of `_Program`, a traced program of one equation; operands and results by name."""

    jaxpr: Any
    operands: list[int]
    results: list[int]


class _Sum(NamedTuple):
    """A sum over some axes of an array; operand and result by name."""

    operand: int
    result: int
    shape: tuple[int, ...]
    dtype: Any
    axes: tuple[int, ...]
    totals: tuple[int, ...]  # shape of the result

    @classmethod
    def of(cls, operation: _Operation) -> "_Sum | None":
        """The sum that an operation is, if it adds up floating numbers to one or some."""
        (equation,) = operation.jaxpr.eqns
        if equation.primitive.name not in _SUMS:
            return None
        x, totals = equation.invars[0].aval, equation.outvars[0].aval
        is_floating = jnp.issubdtype(x.dtype, jnp.floating)
        if not (is_floating and 0 < totals.size <= _SOME and x.size // totals.size > _FEW):
            return None
        names, axes = (operation.operands[0], operation.results[0]), equation.params["axes"]
        return cls(*names, x.shape, x.dtype, tuple(axes), totals.shape)

    @property
    def length(self) -> int:
        """How many numbers each total adds up."""
        return math.prod(self.shape[k] for k in self.axes)

    @property
    def gives_few(self) -> bool:
        """Whether it gives so few totals that each may be a sum of its own."""
        return math.prod(self.totals) <= _FEW

    def rows(self, x: Array, length: int) -> list[Array]:
        """What it adds up, as rows of `length`, one or several for each total."""
        kept = [k for k in range(x.ndim) if k not in self.axes]
        rows = x.transpose(*kept, *self.axes).reshape(-1, length)
        return [row.reshape(-1) for row in jnp.split(rows, len(rows))]


class _Program:
    """A traced program without calls: operations that wait, and values that are known, by name."""

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}
        self.waiting: list[_Operation] = []
        self._names = itertools.count()

    def name_all(self, values: Sequence[Any]) -> list[int]:
        """Names for known values."""
        names = [next(self._names) for _ in values]
        self.values.update(zip(names, values, strict=True))
        return names

    def inline(self, jaxpr: Any, inputs: list[int]) -> list[int]:
        """Append the operations of `jaxpr`, of its constants and arguments; the names of its results."""
        names = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))

        def name_of(x: Any) -> int:
            return self.name_all([x.val])[0] if hasattr(x, "val") else names[x]

        for equation in jaxpr.eqns:
            if called := called_program(equation):
                program, constants = called
                operands = [*self.name_all(constants), *map(name_of, equation.invars)]
                results = self.inline(program, operands)
            else:
                variables = [x for x in equation.invars if not hasattr(x, "val")]
                one = jaxpr.replace(
                    constvars=[], invars=variables, outvars=equation.outvars, eqns=[equation]
                )
                results = [next(self._names) for _ in equation.outvars]
                self.waiting.append(_Operation(one, [names[x] for x in variables], results))
            names.update(zip(equation.outvars, results, strict=True))
        return [name_of(x) for x in jaxpr.outvars]

    def evaluate_round(self) -> None:
        """Evaluate all that waits for no sum, and then the sums themselves."""
        waiting: list[_Operation] = []
        sums: list[_Sum] = []
        for operation in self.waiting:
            if any(name not in self.values for name in operation.operands):
                waiting.append(operation)
            elif found := _Sum.of(operation):
                sums.append(found)
            else:
                operands = [self.values[name] for name in operation.operands]
                results = jax.core.eval_jaxpr(_join_within(operation.jaxpr), [], *operands)
                self.values.update(zip(operation.results, results, strict=True))
        self.waiting = waiting
        self._evaluate_rows([x for x in sums if x.gives_few])
        self._evaluate_alike([x for x in sums if not x.gives_few])

    def _evaluate_rows(self, sums: list[_Sum]) -> None:
        """Evaluate sums that give few totals each, of which each is that of one row or of several."""
        for length, group in _group_sums(sums):
            rows = [x.rows(self.values[x.operand], length) for x in group]
            totals = iter(_add_up(list(itertools.chain(*rows)), (0,)))
            for x, own in zip(group, rows, strict=True):
                parts = jnp.stack([next(totals) for _ in own]).reshape(*x.totals, -1)
                self.values[x.result] = jnp.sum(parts, axis=-1)

    def _evaluate_alike(self, sums: list[_Sum]) -> None:
        """Evaluate sums over the same axes of arrays of the same shape."""
        alike: dict[Any, list[_Sum]] = {}
        for x in sums:
            alike.setdefault((x.shape, x.dtype, x.axes), []).append(x)
        for (_, _, axes), group in alike.items():
            results = _add_up([self.values[x.operand] for x in group], axes)
            self.values.update(zip([x.result for x in group], results, strict=True))


def _join_within(jaxpr: Any) -> Any:
    """A program of one equation. Where that is a loop or a choice, sums are joined in its programs."""
    (equation,) = jaxpr.eqns
    name = _PROGRAMS.get(equation.primitive.name)
    if name is None or not has_operation(jaxpr, _SUMS):
        return jaxpr

    def join(closed: Any) -> Any:
        function = functools.partial(jax.core.eval_jaxpr, closed.jaxpr, closed.consts)
        joined = lambda *x: join_sums(lambda *x: list(function(*x)), *x)
        return jax.make_jaxpr(joined)(*(x.aval for x in closed.jaxpr.invars))

    programs = equation.params[name]
    joined = tuple(map(join, programs)) if name == "branches" else join(programs)
    return jaxpr.replace(eqns=[equation.replace(params=equation.params | {name: joined})])


def _group_sums(sums: list[_Sum]) -> list[tuple[int, list[_Sum]]]:
    """Sums whose numbers are rows of one length and dtype, and that length.

    Rows filled up with zeros, where lengths nearly agree, take more launches than they save.
    """
    groups: list[tuple[int, list[_Sum]]] = []
    for x in sorted(sums, key=lambda x: x.length):
        for length, group in groups:
            if x.length % length == 0 and x.length <= _FEW * length and x.dtype == group[0].dtype:
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
