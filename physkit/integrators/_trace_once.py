"""A function that is called some times within a step and traced once."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from physkit.core import StaticPart, is_tracing, split_arrays


def trace_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose code runs once for all calls with arguments of one structure and shape.

    For the stages of a step: what takes time in Python, and again where it is differentiated, is the
    physics, which is the same in all of them. To be made anew wherever a step is traced: it keeps nothing
    of what the function reads from outside. Outside of traces it is the function itself.
    """
    programs: dict[Any, tuple[Callable[..., Any], list[Any]]] = {}

    def call(*arguments: Any) -> Any:
        # NumPy's arrays stay what they are: a mask, say, of which one asks where it holds.
        arrays, static = split_arrays(arguments, _is_jax_array)
        if not is_tracing() or not static.is_hashable:
            return function(*arguments)

        leaves, structure = jax.tree.flatten(arrays)
        key = structure, static, *map(jax.typeof, leaves)
        if key not in programs:
            programs[key] = _as_program(function, structure, static)
        program, template = programs[key]
        flat = program(*leaves)
        structure_of_result, others = template
        return eqx.combine(jax.tree.unflatten(structure_of_result, flat), others)

    return call


def _as_program(
    function: Callable[..., Any], structure: Any, static: StaticPart
) -> tuple[Callable[..., Any], list[Any]]:
    """A program of the arrays among the arguments, and a list in which it says how its result is made up."""
    template: list[Any] = []

    def flat_function(*leaves: Array) -> list[Array]:
        result = function(*static.combine(jax.tree.unflatten(structure, leaves)))
        arrays, others = eqx.partition(result, _is_jax_array)
        flat, structure_of_result = jax.tree.flatten(arrays)
        template[:] = structure_of_result, others
        return flat

    return jax.jit(flat_function), template


def _is_jax_array(x: Any) -> bool:
    return isinstance(x, jax.Array)
