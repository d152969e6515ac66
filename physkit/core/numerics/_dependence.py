"""Which results of a function depend on which of its arguments, from its traced program."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax

from .._types import PyTree
from ._linear_call import LINEAR_CALL, trace_linear_call

Jaxpr: TypeAlias = Any  # JAX's own types of programs are private
Marks: TypeAlias = list[bool]

# Operations that do what their program does. Some have derivatives of their own.
_CALLS = frozenset(
    {"jit", "pjit", "checkpoint", "remat2", "closed_call", "core_call"}
    | {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
)


def depends_on(function: Callable[..., PyTree], marked: PyTree, *args: PyTree) -> bool:
    """Whether any result of `function(*args)` is computed from an argument that is marked.

    Only traced: no number is computed and nothing compiled. True where it may depend: x − x depends on x.

    - `marked`: a tree of bools with the structure of `args`, arrays or shapes all of them.
    """
    leaves, marks = jax.tree.leaves(args), jax.tree.leaves(marked)
    assert len(leaves) == len(marks)
    closed = jax.make_jaxpr(function)(*args)
    return any(mark_results(closed.jaxpr, marks))


def is_literal(x: Any) -> bool:
    """Whether an operand or result of a traced program is a number in its text; literals have no hash."""
    return hasattr(x, "val")


def mark_results(
    jaxpr: Jaxpr, marks: Sequence[bool], clearing: frozenset[str] = frozenset()
) -> Marks:
    """Which results of a program depend on its marked arguments.

    - `clearing`: names of operations whose results count as not marked, whatever their operands are.
    """
    known = dict(zip(jaxpr.invars, marks, strict=True))

    def is_marked(x: Any) -> bool:
        # Constants are not marked.
        return not is_literal(x) and known.get(x, False)

    for equation in jaxpr.eqns:
        inputs = [is_marked(x) for x in equation.invars]
        outputs = [False] * len(equation.outvars)
        if any(inputs):
            outputs = _mark_outputs(equation, inputs, clearing)
        known.update(zip(equation.outvars, outputs, strict=True))
    return [is_marked(x) for x in jaxpr.outvars]


def _mark_outputs(equation: Any, inputs: Marks, clearing: frozenset[str]) -> Marks:
    """Which results of one operation depend on its marked operands, some of which are."""
    name, params, count = equation.primitive.name, equation.params, len(equation.outvars)
    if name in clearing:
        return [False] * count
    if name == "optimization_barrier":
        return inputs
    if name == "cond":
        if inputs[0]:
            return [True] * count
        branches = [mark_results(_open(b), inputs[1:], clearing) for b in params["branches"]]
        return [any(marks) for marks in zip(*branches, strict=True)]
    if name == "while":
        split = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        test, body, carry = inputs[: split[0]], inputs[split[0] : split[1]], inputs[split[1] :]
        turned = _open(params["body_jaxpr"])
        carry = _fixed_point(carry, lambda c: mark_results(turned, body + c, clearing))
        # The number of turns may depend on what is marked, and then everything does.
        is_test_marked = any(mark_results(_open(params["cond_jaxpr"]), test + carry, clearing))
        return [True] * count if is_test_marked else carry
    if name == "scan":
        consts, carry, rows = _scan_groups(params, inputs)

        def turn(carry: Marks) -> Marks:
            return mark_results(_open(params["jaxpr"]), consts + carry + rows, clearing)

        return turn(_fixed_point(carry, lambda c: turn(c)[: len(c)]))
    inner = [_open(p) for p in params.values() if hasattr(_open(p), "eqns")]
    if len(inner) == 1 and len(inner[0].invars) == len(inputs) and len(inner[0].outvars) == count:
        # Calls of every kind: jit, remat, functions with derivative rules of their own.
        return mark_results(inner[0], inputs, clearing)
    # What is not known here and clears somewhere within may clear all: in doubt it is not marked.
    within = programs_of(equation) if clearing else []
    return [not any(has_operation(program, clearing) for program in within)] * count


def has_operation(jaxpr: Jaxpr, names: frozenset[str]) -> bool:
    """Whether a program, or one within it, has an operation of one of these names."""
    return any(
        equation.primitive.name in names
        or any(has_operation(inner, names) for inner in programs_of(equation))
        for equation in jaxpr.eqns
    )


def called_program(equation: Any) -> tuple[Jaxpr, Sequence[Any]] | None:
    """The program of an operation, and its constants, if all that the operation computes is that program."""
    if equation.primitive.name == LINEAR_CALL:
        closed = trace_linear_call(equation)
        return closed.jaxpr, closed.consts
    if equation.primitive.name not in _CALLS:
        return None
    params = equation.params
    called = params["jaxpr"] if "jaxpr" in params else params["call_jaxpr"]
    return _open(called), getattr(called, "consts", ())


def programs_of(equation: Any) -> list[Jaxpr]:
    """The programs in the settings of an operation: what calls and loops do."""

    def is_program(x: Any) -> bool:
        return hasattr(_open(x), "eqns")

    settings = jax.tree.leaves(list(equation.params.values()), is_leaf=is_program)
    return [_open(p) for p in settings if is_program(p)]


def num_scan_constants(equation: Any) -> int:
    """How many of the inputs of a `lax.scan` all its turns have in common: the first of them."""
    return len(_scan_groups(equation.params, [False] * len(equation.invars))[0])


def _fixed_point(carry: Marks, turn: Callable[[Marks], Marks]) -> Marks:
    """The marks of a loop's carry after any number of turns."""
    while True:
        wider = [a or b for a, b in zip(carry, turn(carry), strict=True)]
        if wider == carry:
            return carry
        carry = wider


def _scan_groups(params: dict[str, Any], inputs: Marks) -> tuple[Marks, Marks, Marks]:
    """The marks of a scan's constants, of its carry, and of what it scans over."""
    if "num_consts" in params:
        consts, end = params["num_consts"], params["num_consts"] + params["num_carry"]
        return inputs[:consts], inputs[consts:end], inputs[end:]
    # From JAX 0.12 on the three groups are one flat tree.
    consts, carry, rows = params["ft_in"].update(inputs).unpack()
    return list(consts), list(carry), list(rows)


def _open(jaxpr: Any) -> Jaxpr:
    return getattr(jaxpr, "jaxpr", jaxpr)
