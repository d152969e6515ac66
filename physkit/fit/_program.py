"""Programs that are found again by what they compute, so that a second fit compiles nothing."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from physkit.core import QUICK_COMPILER_OPTIONS, PyTree, is_on_cpu
from physkit.storage import program_digest


class TracedProgram:
    """A traced program, equal to another that computes the same.

    - `digest`: of what it computes, without its constants, which are arguments of what is compiled.
    """

    def __init__(self, closed: Any):
        self.closed = closed
        self.digest = program_digest(closed.jaxpr)

    def __call__(self, constants: list[Any], arrays: list[Any]) -> list[Any]:
        """Its outputs, flat, for flat inputs."""
        return jax.core.eval_jaxpr(self.closed.jaxpr, constants, *arrays)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedProgram) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def _run(program: TracedProgram, constants: list[Any], arrays: list[Any]) -> list[Any]:
    return program(constants, arrays)


_call = jax.jit(_run, static_argnums=0)
_call_quickly = jax.jit(_run, static_argnums=0, compiler_options=QUICK_COMPILER_OPTIONS)


def compile_by_content(
    function: Callable[..., PyTree], *, quickly: bool = False
) -> Callable[..., PyTree]:
    """`eqx.filter_jit(function)` that asks what a function computes, not which object it is.

    It is traced once for each structure of arguments, and compiled only if no function before has computed the
    same: with all that it closes over, which `jax.jit` would take to be what it was.

    - `quickly`: on CPUs with few optimizations, for programs of few numbers, or whose work is linear algebra.
    """
    known: dict[Any, tuple[TracedProgram, list[Any], Any, PyTree]] = {}

    def call(*arguments: PyTree) -> PyTree:
        arrays, rest = eqx.partition(arguments, eqx.is_array)
        leaves, form = jax.tree.flatten(arrays)
        rest_leaves, rest_form = jax.tree.flatten(rest)
        kinds = tuple(jax.typeof(x) for x in leaves)
        key = form, rest_form, tuple(rest_leaves), kinds
        if key not in known:
            closed, out, static = eqx.filter_make_jaxpr(function)(*arguments)
            known[key] = TracedProgram(closed), list(closed.consts), jax.tree.structure(out), static
        traced, constants, out_form, static = known[key]
        run = _call_quickly if quickly and is_on_cpu(leaves) else _call
        flat = run(traced, constants, leaves)
        return eqx.combine(jax.tree.unflatten(out_form, flat), static)

    return call
