"""A turn of a loop without what is the same in all turns: few numbers, computed once before the loop."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from physkit.core import FEW_NUMBERS, ArrayLayout, Joined

from ._traced_program import Marks, Operation, evaluate_all, reads_memory

# Of what is computed before a loop, what each turn reads by itself, and what it reads from one array.
Early: TypeAlias = tuple[list[Any], Joined]

_MAX_READ = 2**12  # numbers of an array that each turn reads rather than computes
# What costs nothing where its result is read; and choices between platforms, which must stay where they are.
_FREE = frozenset(
    {"broadcast_in_dim", "reshape", "squeeze", "slice", "convert_element_type"}
    | {"bitcast_convert_type", "ne", "eq", "iota", "platform_index"}
)


@dataclass(frozen=True, eq=False)
class TurnParts:
    """The operations of a turn: those that are done before the loop, and those that are left.

    XLA makes one kernel of operations that read the same array of several numbers, not of those that read the
    same number. So numbers that no turn changes are one array, and turns read them from it.

    - `early`, `turn`: the operations of each part.
    - `alone`: names of what the first part gives to each turn as it is.
    - `shared`: names of few numbers each, which are one array; in a turn they have the names −1, −2, ….
    """

    early: list[Operation]
    turn: list[Operation]
    alone: list[int]
    shared: list[int]
    _layout: ArrayLayout

    @classmethod
    def of(
        cls,
        operations: Sequence[Operation],
        inputs: Iterable[int],
        changing: Marks,
        results: Iterable[int],
    ) -> "TurnParts":
        """Of operations in an order in which they can be done.

        - `inputs`: names of what all turns are given. `changing`: of all that is not the same in all turns.
        - `results`: names of what a turn is done for.
        """
        as_inputs, fixed = _depend_on(operations, set(inputs) - changing, changing)
        needed, needed_early, in_memory = set(results), set(), set()
        early, turn, alone = [], [], []
        shared: dict[int, Any] = {}
        aliases: dict[int, int] = {}
        for operation in reversed(operations):
            found = [x for x in operation.results if x in needed]
            is_steady = not any(x in changing for x in operation.results)
            is_given = is_steady and not as_inputs.intersection(found) and _gives_some(operation)
            if found and is_given:
                alone += found
                needed_early.update(found)
            elif found:
                reads = reads_memory(operation.equation)
                if reads or (is_steady and in_memory.intersection(found)):
                    in_memory.update(operation.operands)
                    can_share = frozenset()
                else:
                    can_share = fixed
                operands = []
                for x, variable in zip(operation.operands, operation.jaxpr.invars, strict=True):
                    if x in can_share and _is_few(variable.aval):
                        shared[x] = variable.aval
                        needed_early.add(x)
                        operands.append(aliases.setdefault(x, -1 - len(aliases)))
                    else:
                        needed.add(x)
                        operands.append(x)
                turn.append(operation._replace(operands=operands))
            if needed_early.intersection(operation.results):
                early.append(operation)
                needed_early.update(operation.operands)
        layout = ArrayLayout.of(list(shared.values()), ["shared"] * len(shared))
        return cls(early[::-1], turn[::-1], alone[::-1], list(shared), layout)

    @property
    def reads(self) -> Marks:
        """Names of what the first part reads."""
        operands = itertools.chain.from_iterable(x.operands for x in self.early)
        return {*operands, *self.shared}

    def prepare(self, values: dict[int, Any]) -> Early:
        """What is computed before the loop; the results are added to `values`."""
        evaluate_all(self.early, values)
        joined = self._layout.join([values[x] for x in self.shared])
        return [values[x] for x in self.alone], joined

    def take(self, early: Early, values: dict[int, Any], moving: Any) -> None:
        """Add what a turn is given to its `values`.

        - `moving`: an array that turns change. Without a part of it XLA would take the one array apart again.
        """
        alone, joined = early
        values.update(zip(self.alone, alone, strict=True))
        if not self.shared:
            return
        joined, _ = jax.lax.optimization_barrier((joined, moving))
        names = [-1 - k for k in range(len(self.shared))]
        values.update(zip(names, self._layout.split(joined), strict=True))


def _depend_on(
    operations: Sequence[Operation], inputs: Marks, changing: Marks
) -> tuple[Marks, Marks]:
    """What has the numbers of these inputs, at other places or of other types; what depends on them alone."""
    as_inputs, fixed = set(inputs), set(inputs)
    for operation in operations:
        if not changing.isdisjoint(operation.results):
            continue
        if not fixed.isdisjoint(operation.operands):
            fixed.update(operation.results)
        if operation.equation.primitive.name in _FREE and as_inputs.issuperset(operation.operands):
            as_inputs.update(operation.results)
    return as_inputs, fixed


def _gives_some(operation: Operation) -> bool:
    """Whether it gives so few numbers that to read them takes no longer than to compute them."""
    return all(x.aval.size <= _MAX_READ for x in operation.equation.outvars)


def _is_few(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact) and x.size <= FEW_NUMBERS
