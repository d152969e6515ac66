"""Derivatives carried along with the simulation, one for each number differentiated by."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    ParameterError,
    instantiate_zero_tangents,
    linear_call,
    nonzero_tangents,
    partition_by_tangent,
)

from ._adjoint import AbstractAdjoint, Direct, LoopBody, MemoryEstimate, Program


class Forward(AbstractAdjoint):
    """Carries derivatives along: memory does not grow with the steps, time grows with the parameters.

        d(state)/dθₖ  for every number θₖ, side by side with the state

    `jax.grad` works as with other adjoints; behind it stands one tangent of the whole simulation for
    every number that the simulation and its start depend on. Right for up to some tens of numbers,
    whatever the steps; a start that depends on a parameter counts with all its numbers.

    **Errors:** `ParameterError` for derivatives by complex numbers.

    **Reference:** Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), §3.1.
    """

    cost_per_parameter: ClassVar[bool] = True

    def repeat(self, body: LoopBody, carry: Any, length: int) -> tuple[Any, Any]:
        return Direct().repeat(body, carry, length)

    def call_program(self, program: Program, *inputs: Any) -> Any:
        given, rest = eqx.partition(inputs, eqx.is_array)
        return _run(_Closed(program, rest), given)

    def estimate_memory(self, length: int, carry: float, inner: MemoryEstimate) -> MemoryEstimate:
        del length
        return MemoryEstimate(carry, max(2 * carry, inner.peak), 2.0)


@dataclass(frozen=True, eq=False)
class _Closed:
    """A program without its arrays."""

    program: Program
    rest: Any

    def __call__(self, given: Any) -> Any:
        return self.program(*eqx.combine(given, self.rest))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _run(program: _Closed, given: Any) -> Any:
    return program(given)


@partial(_run.defjvp, symbolic_zeros=True)
def _(program, primals, tangents):
    (given,), dots = primals, nonzero_tangents(tangents[0])
    out = program(given)
    if not jax.tree.leaves(dots):
        return out, instantiate_zero_tangents(out, jax.tree.map(lambda _: None, out))
    if any(jnp.iscomplexobj(dot) for dot in jax.tree.leaves(dots)):
        raise ParameterError("Forward differentiates by real numbers; for complex ones, Binomial")
    rule = _Push(program), _Pull(program)
    return out, instantiate_zero_tangents(
        out, linear_call(*rule, partition_by_tangent(given, dots), dots)
    )


@dataclass(frozen=True)
class _Push:
    """A: tangents of the inputs → tangents of all results."""

    program: _Closed

    def __call__(self, residuals, dots):
        on, off = residuals
        floats = lambda on: eqx.filter(self.program(eqx.combine(on, off)), eqx.is_inexact_array)
        return jax.jvp(floats, (on,), (dots,))[1]


@dataclass(frozen=True)
class _Pull:
    """Aᵀ, a column of A at a time: all columns side by side."""

    program: _Closed

    def __call__(self, residuals, bar):
        leaves, tree = jax.tree.flatten(residuals[0])
        sizes = [leaf.size for leaf in leaves]

        def column(place):
            ends = np.cumsum(sizes)
            dots = [
                (jnp.arange(leaf.size) == place - (end - leaf.size)).astype(leaf.dtype)
                for leaf, end in zip(leaves, ends, strict=True)
            ]
            dots = [dot.reshape(leaf.shape) for dot, leaf in zip(dots, leaves, strict=True)]
            moved = _Push(self.program)(residuals, jax.tree.unflatten(tree, dots))
            parts = jax.tree.map(lambda a, b: jnp.sum(a * b), moved, bar)
            return jnp.stack([jnp.real(p).astype(float) for p in jax.tree.leaves(parts)]).sum()

        total = jax.vmap(column)(jnp.arange(sum(sizes)))
        parts = jnp.split(total, np.cumsum(sizes)[:-1])
        shaped = [p.reshape(x.shape).astype(x.dtype) for p, x in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(tree, shaped)
