"""The least that a derivative can keep: arrays from which formulas of each number alone give all others.

A step keeps what its derivative reads: positions, what fraction of a cell they are at, and weights, say. The
last two are formulas of the first, computed again in less time than it takes to store and to read them. What
arrays are the least is found as a minimal cut: each array that may be kept is a pipe as wide as it has bytes,
and what flows from all that takes long to compute to all that the derivative reads is as much as passes
through the narrowest place.
"""

import itertools
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from physkit.core import programs_of

from ._traced_program import Operation, TracedProgram, evaluate_all

_LEAST_BYTES = 2**21  # of arrays that change: fewer are joined, and take no launch
_LEAST_GAIN = 1 / 3  # of the bytes
_UNLIMITED = 2**30
_SOURCE, _SINK = 0, 1
_SPREAD = frozenset({"broadcast_in_dim", "iota"})
# Formulas of each number alone, and numbers at other places.
_FORMULAS = frozenset(
    {"add", "add_any", "sub", "mul", "div", "rem", "neg", "sign", "abs", "max", "min", "square", "clamp"}
    | {"exp", "exp2", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt", "cbrt"}
    | {"pow", "integer_pow", "logistic", "atan2", "floor", "ceil", "round", "is_finite", "nextafter"}
    | {"eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not", "select_n", "stop_gradient"}
    | {"shift_left", "shift_right_logical", "shift_right_arithmetic"}
    | {"real", "imag", "complex", "conj", "convert_element_type", "bitcast_convert_type", "copy"}
    | {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "slice", "transpose", "rev", "iota"}
    | {"split", "unstack", "custom_jvp_call"}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class KeptArrays:
    """A traced function whose last results are given as fewer arrays, and what computes them from those.

    - `forward`: traced: inputs → the first results, what is kept.
    - `again`: traced: what is kept → the last results.
    """

    forward: Any
    again: Any

    @classmethod
    def find(cls, closed: Any, first: int, changing: Sequence[bool]) -> "KeptArrays | None":
        """For the results of a traced function from `first` on; None if little would be gained.

        - `changing`: which inputs are not the same in all turns of a loop. What depends on the others alone is
          kept once, and counts nothing.
        """
        program = TracedProgram(closed, calls=frozenset({"jit", "pjit"}))
        asked = program.results[first:]
        graph = _Formulas(program, closed, changing)
        before = graph.count_bytes(asked)
        if before <= _LEAST_BYTES:
            return None
        kept = graph.find_least(asked)
        if graph.count_bytes(kept) > (1 - _LEAST_GAIN) * before:
            return None

        def forward(*inputs: Any) -> list[Any]:
            values = program.values(inputs)
            evaluate_all(program.operations, values)
            return [values[x] for x in (*program.results[:first], *kept)]

        def again(*arrays: Any) -> list[Any]:
            values = program.values(arrays, kept)
            evaluate_all(graph.between(kept, asked), values)
            return [values[x] for x in asked]

        traced = jax.make_jaxpr(forward)(*closed.in_avals)
        return cls(traced, jax.make_jaxpr(again)(*traced.out_avals[first:]))

    def put_before(self, jaxpr: Any, inputs: Sequence[Any]) -> Any:
        """A program with constants, which are the last results, as one whose constants are what is kept."""

        def program(kept: list[Any], inputs: list[Any]) -> list[Any]:
            constants = jax.core.eval_jaxpr(self.again.jaxpr, self.again.consts, *kept)
            return jax.core.eval_jaxpr(jaxpr, constants, *inputs)

        closed = jax.make_jaxpr(program)(self.again.in_avals, list(inputs))
        assert not closed.consts, "a formula holds arrays"
        whole, num_kept = closed.jaxpr, len(self.again.in_avals)
        return whole.replace(constvars=whole.invars[:num_kept], invars=whole.invars[num_kept:])


class _Formulas:
    """The arrays of a program, by name, and which formulas give them."""

    def __init__(self, program: TracedProgram, closed: Any, changing: Sequence[bool]) -> None:
        self._program = program
        self._made_by: dict[int, Operation] = {}
        self._is_formula: dict[int, bool] = {}
        changes = set(itertools.compress(program.inputs, changing))
        avals = dict(zip(program.inputs, closed.in_avals, strict=True))
        for operation in program.operations:
            operation.mark(changes)
            results = operation.results
            self._made_by.update(dict.fromkeys(results, operation))
            self._is_formula.update(dict.fromkeys(results, _is_formula(operation.equation)))
            avals.update(zip(results, (x.aval for x in operation.equation.outvars), strict=True))
        # Numbers that the program holds are at hand; arrays are kept, of one number, too.
        self._numbers = {
            k
            for k, x in program.constants.items()
            if np.ndim(x) == 0 and not isinstance(x, jax.Array)
        }
        self._bytes = {x: _count_bytes(avals[x]) for x in changes}  # of all that changes

    def count_bytes(self, names: Iterable[int]) -> int:
        return sum(self._bytes.get(x, 0) for x in set(names))

    def find_least(self, asked: Sequence[int]) -> list[int]:
        """The names of what is kept: fewest bytes that what is asked for can be computed from."""
        cut = self._minimal_cut(asked)
        needed = self._needed(asked, cut)
        # What is the same in all turns, and arrays that the program holds.
        steady = [x for x in needed if x not in cut and self._operands(x) is None]
        return [*cut, *steady]

    def between(self, kept: Sequence[int], asked: Sequence[int]) -> list[Operation]:
        """The formulas that give what is asked for, in order."""
        needed = set(self._needed(asked, set(kept))) - set(kept)
        return [x for x in self._program.operations if not needed.isdisjoint(x.results)]

    def _operands(self, name: int) -> list[int] | None:
        """What a formula gives an array from; None if it cannot be computed again, or need not."""
        if not self._is_formula.get(name, False):
            return None
        operation = self._made_by[name]
        # What turns do not change is kept, but for numbers that are only spread.
        if name not in self._bytes and operation.equation.primitive.name not in _SPREAD:
            return None
        return [x for x in operation.operands if x not in self._numbers]

    def _needed(self, asked: Sequence[int], given: Container[int]) -> list[int]:
        """All that is computed for what is asked, from what is given or cannot be computed again."""
        found = dict.fromkeys(x for x in asked if x not in self._numbers)
        names = list(found)
        while names:
            name = names.pop()
            for x in () if name in given else self._operands(name) or ():
                if x not in found:
                    found[x] = None
                    names.append(x)
        return list(found)

    def _minimal_cut(self, asked: Sequence[int]) -> dict[int, None]:
        """The arrays at the narrowest place; of several such places the last."""
        # Slow to import, for those alone who ask for such a derivative.
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        names = [x for x in self._needed(asked, ()) if x in self._bytes]
        starts = {name: 2 + 2 * k for k, name in enumerate(names)}
        ends = {name: start + 1 for name, start in starts.items()}
        unit = -(-self.count_bytes(asked) // 2**28)  # flows are of 32 bits
        pipes = {(starts[x], ends[x]): min(-(-self._bytes[x] // unit), _UNLIMITED) for x in names}
        for name in names:
            operands = self._operands(name)
            before = [_SOURCE] if operands is None else [ends[x] for x in operands if x in ends]
            pipes |= {(x, starts[name]): _UNLIMITED for x in before}
        pipes |= {(ends[x], _SINK): _UNLIMITED for x in asked if x in ends}
        shape = (2 + 2 * len(names),) * 2
        graph = coo_array((np.int32([*pipes.values()]), np.int32([*pipes]).T), shape=shape).tocsr()
        left = graph - maximum_flow(graph, _SOURCE, _SINK).flow
        left.eliminate_zeros()
        found = breadth_first_order(left.T.tocsr(), _SINK, return_predecessors=False)
        beyond = set(found.tolist())
        return dict.fromkeys(x for x in names if ends[x] in beyond and starts[x] not in beyond)


def _is_formula(equation: Any) -> bool:
    """Whether an operation computes each number from few others, wherever it is done."""
    return equation.primitive.name in _FORMULAS and all(
        _is_formula(inner) for program in programs_of(equation) for inner in program.eqns
    )


def _count_bytes(aval: Any) -> int:
    return aval.size * aval.dtype.itemsize
