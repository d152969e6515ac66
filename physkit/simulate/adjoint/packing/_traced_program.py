"""A traced program as a list of operations without calls, to be evaluated in another order or in parts."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax

from physkit.core import called_program, is_literal, mark_results, programs_of

Marks = set[int]  # names
FEW_TERMS = 8  # numbers whose sum takes no launch of its own; totals of a sum that may each be one
# Operations that read their operands as they are in memory.
_IN_MEMORY = frozenset({"scan", "while", "pallas_call"})


class SumSize(NamedTuple):
    """How many numbers a sum adds up, and how many totals it gives."""

    count: int
    totals: int

    @property
    def length(self) -> int:
        """How many numbers each total adds up."""
        return self.count // self.totals


class Operation(NamedTuple):
    """An operation of a `TracedProgram`, a traced program of one equation; operands and results by name."""

    jaxpr: Any
    operands: list[int]
    results: list[int]

    @property
    def equation(self) -> Any:
        return self.jaxpr.eqns[0]

    @property
    def sum_size(self) -> SumSize | None:
        """Of a sum that gives any totals; None of other operations."""
        equation = self.equation
        if equation.primitive.name != "reduce_sum":
            return None
        count, totals = equation.invars[0].aval.size, equation.outvars[0].aval.size
        return SumSize(count, totals) if totals else None

    def mark(self, marks: Marks) -> None:
        """Add to `marks` those of its results that depend on what is marked."""
        given = [x in marks for x in self.operands]
        if any(given):
            found = mark_results(self.jaxpr, given)
            marks.update(x for x, mark in zip(self.results, found, strict=True) if mark)

    def evaluate(self, values: dict[int, Any]) -> None:
        """Add its results to `values`."""
        results = jax.core.eval_jaxpr(self.jaxpr, [], *(values[x] for x in self.operands))
        values.update(zip(self.results, results, strict=True))


class TracedProgram:
    """A function as a list of operations; calls within it are replaced by what they call.

    - `calls`: names of the calls that are; if left out, all. Some calls have derivatives of their own.

    **Attributes:**

    - `constants`: values that are known, by name; names are numbers.
    - `inputs`, `results`: names of the leaves of its arguments and of what it returns.
    - `operations`: in an order in which they can be evaluated.
    """

    def __init__(self, closed: Any, calls: frozenset[str] | None = None) -> None:
        self._calls = calls
        self.constants: dict[int, Any] = {}
        self.operations: list[Operation] = []
        self._names = itertools.count()
        self.inputs = [next(self._names) for _ in closed.in_avals]
        self.results = self._inline(closed.jaxpr, [*self._name_all(closed.consts), *self.inputs])

    @classmethod
    def trace(cls, function: Callable[..., Sequence[Any]], *args: Any) -> "TracedProgram":
        """Of arguments or their shapes."""
        return cls(jax.make_jaxpr(function)(*args))

    def append(self, function: Callable[..., Any], operands: Sequence[int], shapes: Any) -> int:
        """Append the operations of a function of operands of these shapes; the name of its one result."""
        closed = jax.make_jaxpr(function)(*shapes)
        (result,) = self._inline(closed.jaxpr, [*self._name_all(closed.consts), *operands])
        return result

    def values(self, given: Sequence[Any], names: Sequence[int] | None = None) -> dict[int, Any]:
        """Values by name: of constants, and what is given for these names, those of the inputs if left out."""
        names = self.inputs if names is None else names
        return self.constants | dict(zip(names, given, strict=True))

    def _name_all(self, constants: Sequence[Any]) -> list[int]:
        names = [next(self._names) for _ in constants]
        self.constants.update(zip(names, constants, strict=True))
        return names

    def _inline(self, jaxpr: Any, inputs: list[int]) -> list[int]:
        """Append the operations of `jaxpr`, of its constants and arguments; the names of its results."""
        names = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))

        def name_of(x: Any) -> int:
            return self._name_all([x.val])[0] if is_literal(x) else names[x]

        for equation in jaxpr.eqns:
            is_open = self._calls is None or equation.primitive.name in self._calls
            if is_open and (called := called_program(equation)):
                program, constants = called
                operands = [*self._name_all(constants), *map(name_of, equation.invars)]
                results = self._inline(program, operands)
            else:
                variables = [x for x in equation.invars if not is_literal(x)]
                one = jaxpr.replace(
                    constvars=[], invars=variables, outvars=equation.outvars, eqns=[equation]
                )
                results = [next(self._names) for _ in equation.outvars]
                self.operations.append(Operation(one, [names[x] for x in variables], results))
            names.update(zip(equation.outvars, results, strict=True))
        return [name_of(x) for x in jaxpr.outvars]


def evaluate_all(operations: Iterable[Operation], values: dict[int, Any]) -> None:
    """Add the results of operations, in this order, to `values`."""
    for operation in operations:
        operation.evaluate(values)


def reads_memory(equation: Any) -> bool:
    """Whether loops or kernels, which read arrays as they are in memory, are in an operation."""
    called = called_program(equation)
    programs = [called[0]] if called else programs_of(equation)
    return equation.primitive.name in _IN_MEMORY or any(
        reads_memory(inner) for program in programs for inner in program.eqns
    )
