"""Sums and products that kernels compute along with what uses them, in steps and by a GPU's instructions."""

import math
import re

import numpy as np
import pytest
from jax import lax

from physkit.native.kernels._arithmetic import (
    Formula,
    Instruction,
    assembly,
    evaluate_in_steps,
    fuse_products,
    join_formulas,
)
from physkit.native.kernels._tiles import Operation, evaluate_tiles

FUNCTIONS = {"add": lax.add, "mul": lax.mul, "neg": lax.neg, "sub": lax.sub, "div": lax.div}


def operation(name, kind, *operands):
    return Operation(name, FUNCTIONS[kind], operands, kind=kind)


# z = (−(a b + c) − a) (b / c) + d d, of which the sum s is a result, too.
OPERATIONS = [
    operation("p", "mul", "a", "b"),
    operation("s", "add", "p", "c"),
    operation("m", "neg", "s"),
    operation("u", "sub", "m", "a"),
    operation("r", "div", "b", "c"),
    operation("v", "mul", "u", "r"),
    operation("w", "mul", "d", "d"),
    operation("z", "add", "v", "w"),
]
RESULTS = ["s", "z"]


def no_tables(constant, places):
    raise AssertionError


def values(operations):
    tiles = {name: np.float64(x) for name, x in zip("abcd", (1.7, -0.3, 2.9, 0.6), strict=True)}
    evaluate_tiles(operations, tiles, no_tables)
    return [float(tiles[name]) for name in RESULTS]


def joined(operations):
    fused = fuse_products(operations, evaluate_in_steps, RESULTS)
    return join_formulas(fused, evaluate_in_steps, RESULTS)


def test_what_is_used_once_is_computed_with_what_uses_it():
    operations = joined(OPERATIONS)
    assert [o.name for o in operations] == ["s", "r", "z"]
    assert values(operations) == pytest.approx(values(OPERATIONS), rel=1e-15)


def test_a_formula_has_so_many_operands_at_most():
    numbers = [f"x{k}" for k in range(100)]
    operations = [operation("s0", "add", "x0", "x1")]
    operations += [operation(f"s{k}", "add", f"s{k - 1}", f"x{k + 1}") for k in range(1, 99)]
    shorter = join_formulas(operations, evaluate_in_steps, ["s98"])
    assert max(len(o.operands) for o in shorter) == 16
    assert len(shorter) < 10
    tiles = {name: np.float64(k) for k, name in enumerate(numbers)}
    evaluate_tiles(shorter, tiles, no_tables)
    assert float(tiles["s98"]) == sum(range(100))


INSTRUCTIONS = {
    "add.rn.f64": lambda x, y: x + y,
    "sub.rn.f64": lambda x, y: x - y,
    "mul.rn.f64": lambda x, y: x * y,
    "fma.rn.f64": lambda x, y, z: x * y + z,
    "neg.f64": lambda x: -x,
}


def run(text, operands):
    """What instructions in PTX compute."""
    numbers = {f"${k + 1}": x for k, x in enumerate(operands)}
    body = re.fullmatch(r"\{ \.reg \.f64 [^;]*; (.*) \}", text)
    for line in (body[1] if body else text).rstrip(";").split(";"):
        name, out, *used = line.replace(",", " ").split()
        assert out not in numbers  # each register is written once
        numbers[out] = INSTRUCTIONS[name](*(numbers[place] for place in used))
    return numbers["$0"]


def test_instructions_compute_what_steps_do():
    (formula,) = (o.function.args[0] for o in joined(OPERATIONS) if o.name == "z")
    operands = tuple(map(np.float64, (0.9, 1.7, -0.4, 0.6)))
    assert len(operands) == formula.num_operands
    steps = float(evaluate_in_steps(formula, *operands))
    assert run(assembly(formula, "f64"), operands) == pytest.approx(steps, rel=1e-15)
    kinds = [instruction.kind for instruction in formula.instructions]
    assert sorted(kinds) == ["fma", "mul", "neg", "sub"]


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_signs_of_products_that_are_summed(signs):
    formula = Formula(3, (Instruction("fma", (0, 1, 2), signs),))
    x, y, z = map(np.float64, (1.25, -3.0, 0.5))
    expected = signs[0] * x * y + signs[1] * z
    assert math.isclose(run(assembly(formula, "f64"), (x, y, z)), expected)
    assert math.isclose(evaluate_in_steps(formula, x, y, z), expected)
