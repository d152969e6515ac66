"""`Forward`: tangents carried along with the simulation, one for each number differentiated by."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    ParameterError,
    PyTree,
    custom_jvp,
    instantiate_zero_tangents,
    linear_call,
    nonzero_tangents,
    partition_by_tangent,
)

from ._adjoint import AbstractAdjoint, Direct, LoopBody, MemoryEstimate, Program


class Forward(AbstractAdjoint):
    """Carries tangents along: memory does not grow with the steps, time grows with the parameters.

        d(state)/dθₖ  for every number θₖ, side by side with the state

    `jax.grad` works as with other adjoints; behind it stands one tangent of the whole simulation for
    every number that the simulation and its start depend on. Right for up to some tens of numbers,
    whatever the steps; a start that depends on a parameter counts with all its numbers.

    **Errors:** `ParameterError` for derivatives by complex numbers.

    **Reference:** Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), §3.1.
    """

    cost_per_parameter: ClassVar[bool] = True

    def repeat(self, body: LoopBody, carry: PyTree, length: int) -> tuple[PyTree, PyTree]:
        return Direct().repeat(body, carry, length)

    def call_program(self, program: Program, *inputs: PyTree) -> PyTree:
        # Of the whole program at once: loop by loop, each state would count as parameters.
        arrays, rest = eqx.partition(inputs, eqx.is_array)
        return _call(_Closed(program, rest), arrays)

    def estimate_memory(self, length: int, carry: float, inner: MemoryEstimate) -> MemoryEstimate:
        del length
        return MemoryEstimate(carry, max(2 * carry, inner.peak), 2.0)


@dataclass(frozen=True, eq=False)
class _Closed:
    """A program without its arrays."""

    program: Program
    rest: Any

    def __call__(self, arrays: PyTree) -> PyTree:
        return self.program(*eqx.combine(arrays, self.rest))


@partial(custom_jvp, nondiff_argnums=(0,))
def _call(program: _Closed, arrays: PyTree) -> PyTree:
    return program(arrays)


@partial(_call.defjvp, symbolic_zeros=True)
def _(program, primals, tangents):
    (arrays,), tangents = primals, nonzero_tangents(tangents[0])
    out = program(arrays)
    if not jax.tree.leaves(tangents):  # all tangents are symbolic zeros
        return out, instantiate_zero_tangents(out, jax.tree.map(lambda _: None, out))
    if any(jnp.iscomplexobj(tangent) for tangent in jax.tree.leaves(tangents)):
        raise ParameterError("Forward differentiates by real numbers; for complex ones, Binomial")
    residuals = partition_by_tangent(arrays, tangents)
    maps, floats = (_Tangent(program), _Cotangent(program)), eqx.filter(out, eqx.is_inexact_array)
    out_tangents = linear_call(*maps, residuals, tangents, result=floats)
    return out, instantiate_zero_tangents(out, out_tangents)


@dataclass(frozen=True)
class _Tangent:
    """A: tangents of the inputs → tangents of all results."""

    program: _Closed

    def __call__(self, residuals, tangents):
        differentiated, fixed = residuals

        def results(differentiated):
            out = self.program(eqx.combine(differentiated, fixed))
            return eqx.filter(out, eqx.is_inexact_array)

        return jax.jvp(results, (differentiated,), (tangents,))[1]


@dataclass(frozen=True)
class _Cotangent:
    """Aᵀ by columns of A, all side by side: x̄ₖ = ȳ · A eₖ."""

    program: _Closed

    def __call__(self, residuals, cotangents):
        leaves, tree = jax.tree.flatten(residuals[0])
        sizes = [leaf.size for leaf in leaves]

        def component(k):
            # eₖ: 1 at the k-th number of all leaves laid end to end.
            ends = np.cumsum(sizes)
            unit = [
                (jnp.arange(leaf.size) == k - (end - leaf.size)).astype(leaf.dtype)
                for leaf, end in zip(leaves, ends, strict=True)
            ]
            unit = [x.reshape(leaf.shape) for x, leaf in zip(unit, leaves, strict=True)]
            column = _Tangent(self.program)(residuals, jax.tree.unflatten(tree, unit))
            products = jax.tree.map(lambda a, b: jnp.sum(a * b), column, cotangents)
            # In the default precision: leaves of several dtypes are summed.
            return jnp.stack([jnp.real(p).astype(float) for p in jax.tree.leaves(products)]).sum()

        flat = jax.vmap(component)(jnp.arange(sum(sizes)))
        parts = jnp.split(flat, np.cumsum(sizes)[:-1])
        shaped = [p.reshape(x.shape).astype(x.dtype) for p, x in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(tree, shaped)
