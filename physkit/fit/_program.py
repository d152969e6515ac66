"""Programs that are found again by what they compute, so that a second fit compiles nothing."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from physkit.core import (
    PLAIN_KERNELS,
    QUICK_COMPILER_OPTIONS,
    PyTree,
    array_bytes,
    gpu_compiler_options,
    is_on_cpu,
    split_arrays,
)
from physkit.simulate import without_garbage_collection
from physkit.storage import program_digest


class ProgramByContent:
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
        return isinstance(other, ProgramByContent) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def _run(program: ProgramByContent, constants: list[Any], arrays: list[Any]) -> list[Any]:
    return program(constants, arrays)


_call = jax.jit(_run, static_argnums=0)
_call_quickly = jax.jit(_run, static_argnums=0, compiler_options=QUICK_COMPILER_OPTIONS)
_call_plainly = jax.jit(_run, static_argnums=0, compiler_options=PLAIN_KERNELS)


@functools.cache
def _call_on_accelerator() -> Callable:
    return jax.jit(_run, static_argnums=0, compiler_options=gpu_compiler_options())


_SMALL_BYTES = 2**18  # of all that a program reads


def compile_by_content(
    function: Callable[..., PyTree], *, quickly: bool = False, is_small: bool = False
) -> Callable[..., PyTree]:
    """`eqx.filter_jit(function)` that asks what a function computes, not which object it is.

    It is traced once for each structure of arguments, and compiled only if no function before has computed the
    same: with all that it closes over, which `jax.jit` would take to be what it was.

    - `quickly`: on CPUs with few optimizations, for programs of few numbers, or whose work is linear algebra.
    - `is_small`: whether arrays inside of it are as small as those of a run of a small state, whose kernels are
      faster, and made in less time, in JAX 0.10's older way.
    """
    known: dict[Any, tuple[ProgramByContent, list[Any], Any, PyTree]] = {}

    def call(*arguments: PyTree) -> PyTree:
        arrays, static_arguments = split_arrays(arguments)
        leaves, form = jax.tree.flatten(arrays)
        key = form, static_arguments, *map(jax.typeof, leaves)
        with without_garbage_collection(key not in known):
            if key not in known:
                closed, out, static = eqx.filter_make_jaxpr(function)(*arguments)
                out_form = jax.tree.structure(out)
                known[key] = ProgramByContent(closed), list(closed.consts), out_form, static
            traced, constants, out_form, static = known[key]
            run = _call
            if not is_on_cpu(leaves):
                run = _call_on_accelerator()
            elif quickly:
                run = _call_quickly
            elif is_small and array_bytes((leaves, constants)) < _SMALL_BYTES:
                run = _call_plainly
            flat = run(traced, constants, leaves)
        return eqx.combine(jax.tree.unflatten(out_form, flat), static)

    return call
