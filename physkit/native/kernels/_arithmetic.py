"""Sums of products on tiles: many of them as one operation, and products that are summed rounded once."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ._tile_functions import Tile
from ._tiles import Operation

_SIGNS = {"add": (1, 1), "add_any": (1, 1), "sub": (1, -1)}
_MOST_OPERANDS = 16  # of a formula
_MOST_INSTRUCTIONS = 32


class Instruction(NamedTuple):
    """Of numbers a formula has: its operands, and behind them the results of the instructions before.

    - `kind`: `add`, `mul`, `neg`, `sub`, or `fma`, ± x y ± z with `signs` of product and rest.
    """

    kind: str
    numbers: tuple[int, ...]
    signs: tuple[int, int] = (1, 1)


class Formula(NamedTuple):
    """Instructions of which the last one has the result; of so many operands."""

    num_operands: int
    instructions: tuple[Instruction, ...]


Evaluate = Callable[..., Tile]  # formula, operands


def fuse_products(
    operations: Sequence[Operation], evaluate: Evaluate, results: Iterable[str] = ()
) -> list[Operation]:
    """The same operations, where products that are only used in one sum, and no results, are a part of it."""
    uses = _count_uses(operations, results)
    products: dict[str, Operation] = {}
    fused: dict[str, Operation] = {}
    for operation in operations:
        fused[operation.name] = operation
        if operation.kind in ("mul", "square"):
            products[operation.name] = operation
        if operation.kind not in _SIGNS:
            continue
        signs = _SIGNS[operation.kind]
        for place in (1, 0):  # what is written last is mostly the product
            name, other = operation.operands[place], operation.operands[1 - place]
            if name in products and uses[name] == 1:
                x, y = (products[name].operands * 2)[:2]
                both = signs[place], signs[1 - place]
                formula = Formula(3, (Instruction("fma", (0, 1, 2), both),))
                del fused[name]
                fused[operation.name] = _as_operation(
                    operation.name, formula, (x, y, other), evaluate
                )
                break
    return list(fused.values())


def join_formulas(
    operations: Sequence[Operation], evaluate: Evaluate, results: Iterable[str] = ()
) -> list[Operation]:
    """The same operations, where sums and products that only another one uses are computed along with it.

    Triton takes a time that grows with the square of their number. All tiles have one shape.
    """
    uses = _count_uses(operations, results)
    joined: dict[str, Operation] = {}
    formulas: dict[str, tuple[tuple[str, ...], Formula]] = {}  # with their operands
    for operation in operations:
        joined[operation.name] = operation
        formula = _formula_of(operation)
        if formula is None:
            continue
        operands = tuple(operation.operands)
        for name in operands:
            if name in formulas and uses[name] == 1:
                both = _insert(operands, formula, name, *formulas[name])
                if (
                    len(both[0]) <= _MOST_OPERANDS
                    and len(both[1].instructions) <= _MOST_INSTRUCTIONS
                ):
                    operands, formula = both
                    del joined[name]
        formulas[operation.name] = operands, formula
        joined[operation.name] = _as_operation(operation.name, formula, operands, evaluate)
    return list(joined.values())


def _count_uses(operations: Sequence[Operation], results: Iterable[str]) -> Counter[str]:
    uses = Counter(name for operation in operations for name in operation.operands)
    uses.update(results)
    return uses


def _as_operation(
    name: str, formula: Formula, operands: tuple[str, ...], evaluate: Evaluate
) -> Operation:
    return Operation(name, partial(evaluate, formula), operands, kind="formula")


def _formula_of(operation: Operation) -> Formula | None:
    if operation.kind == "formula":
        assert isinstance(operation.function, partial)
        return operation.function.args[0]
    if operation.kind == "square":
        return Formula(1, (Instruction("mul", (0, 0)),))
    kind = "add" if operation.kind == "add_any" else operation.kind
    if kind not in ("add", "mul", "neg", "sub"):
        return None
    count = len(operation.operands)
    return Formula(count, (Instruction(kind, tuple(range(count))),))


def _insert(
    operands: tuple[str, ...],
    formula: Formula,
    name: str,
    inner_operands: tuple[str, ...],
    inner: Formula,
) -> tuple[tuple[str, ...], Formula]:
    """`formula` with the operand `name` computed within it, by `inner`."""
    merged = tuple(dict.fromkeys([*inner_operands, *(o for o in operands if o != name)]))
    count, first = len(merged), len(inner.instructions)
    result = count + first - 1

    def move(instructions: Sequence[Instruction], numbers: Sequence[int]) -> list[Instruction]:
        return [i._replace(numbers=tuple(numbers[k] for k in i.numbers)) for i in instructions]

    of_inner = [merged.index(o) for o in inner_operands]
    of_outer = [result if o == name else merged.index(o) for o in operands]
    return merged, Formula(
        count,
        (
            *move(inner.instructions, [*of_inner, *range(count, count + first)]),
            *move(
                formula.instructions,
                [*of_outer, *range(count + first, count + first + len(formula.instructions))],
            ),
        ),
    )


def evaluate_in_steps(formula: Formula, *operands: Tile) -> Tile:
    """One operation after the other, for interpreters, which know no instructions."""
    numbers = list(operands)
    for kind, places, (of_product, of_rest) in formula.instructions:
        x, *others = (numbers[k] for k in places)
        if kind == "neg":
            out = -x
        elif kind == "fma":
            y, z = others
            product = x * y if of_product > 0 else -(x * y)
            out = product + z if of_rest > 0 else product - z
        else:
            (y,) = others
            out = {"add": jnp.add, "mul": jnp.multiply, "sub": jnp.subtract}[kind](x, y)
        numbers.append(out)
    return numbers[-1]


def evaluate_by_instructions(formula: Formula, *operands: Tile) -> Tile:
    """By a GPU's instructions: Triton makes none that multiply and add of its own."""
    from jax.experimental.pallas import triton

    first, letter = operands[0], "f" if operands[0].dtype == jnp.float32 else "d"
    (out,) = triton.elementwise_inline_asm(
        assembly(formula, "f32" if letter == "f" else "f64"),
        args=list(operands),
        constraints=",".join([f"={letter}", *[letter] * len(operands)]),
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(first.shape, first.dtype)],
    )
    return out


def assembly(formula: Formula, kind: str) -> str:
    """The instructions in PTX, of `f32` or `f64`: the result is `$0`, operands are `$1`, `$2` …"""
    count, lines, temporary = formula.num_operands, [], []

    def new() -> str:
        temporary.append(f"t{len(temporary)}")
        return temporary[-1]

    names = [f"${k + 1}" for k in range(count)]
    for k, (operation, places, (of_product, of_rest)) in enumerate(formula.instructions):
        numbers = [names[p] for p in places]
        for place, sign in ((0, of_product), (2, of_rest)):
            if sign < 0:
                negative = new()
                lines.append(f"neg.{kind} {negative}, {numbers[place]};")
                numbers[place] = negative
        out = "$0" if k == len(formula.instructions) - 1 else new()
        # Rounded as it is written: without `.rn` the assembler may fuse products and sums.
        rounded = operation if operation == "neg" else f"{operation}.rn"
        lines.append(f"{rounded}.{kind} {', '.join([out, *numbers])};")
        names.append(out)
    if not temporary:
        return " ".join(lines)
    return f"{{ .reg .{kind} {', '.join(temporary)}; {' '.join(lines)} }}"
