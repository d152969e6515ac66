"""A function that is called some times within a step and traced once."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from physkit.core import PyTree, is_tracing


def trace_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose code runs once for all calls with arguments of one structure and shape.

    For the stages of a step: what takes time in Python, and again where it is differentiated, is the
    physics, which is the same in all of them. To be made anew wherever a step is traced: it keeps nothing
    of what the function reads from outside. Outside of traces it is the function itself.
    """
    programs: dict[Any, tuple[Callable[..., Any], list[Any]]] = {}

    def call(*arguments: Any) -> Any:
        # NumPy's arrays stay what they are: a mask, say, of which one asks where it holds.
        arrays, rest = eqx.partition(arguments, _is_jax_array)
        leaves, structure = jax.tree.flatten(arrays)
        static, static_structure = jax.tree.flatten(rest)
        # By type, too: 1, 1.0 and True are equal, and so are 0.0 and −0.0 but for their text.
        static = [(type(x), repr(x) if isinstance(x, float | complex) else x) for x in static]
        key = structure, static_structure, *static, *map(jax.typeof, leaves)
        if not is_tracing() or not _is_hashable(key):
            return function(*arguments)

        if key not in programs:
            programs[key] = _as_program(function, structure, rest)
        program, template = programs[key]
        flat = program(*leaves)
        structure_of_result, others = template
        return eqx.combine(jax.tree.unflatten(structure_of_result, flat), others)

    return call


def _as_program(
    function: Callable[..., Any], structure: Any, rest: PyTree
) -> tuple[Callable[..., Any], list[Any]]:
    """A program of the arrays among the arguments, and a list in which it says how its result is made up."""
    template: list[Any] = []

    def flat_function(*leaves: Array) -> list[Array]:
        result = function(*eqx.combine(jax.tree.unflatten(structure, leaves), rest))
        arrays, others = eqx.partition(result, _is_jax_array)
        flat, structure_of_result = jax.tree.flatten(arrays)
        template[:] = structure_of_result, others
        return flat

    return jax.jit(flat_function), template


def _is_jax_array(x: Any) -> bool:
    return isinstance(x, jax.Array)


def _is_hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True
