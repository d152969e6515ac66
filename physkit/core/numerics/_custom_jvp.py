"""Functions with derivatives of their own, also in second derivatives of loops.

Before JAX 0.12 a scan takes parts that all its turns have in common out of the loop, and on the way forgets the
rules of `jax.custom_jvp`. The next derivative is then that of the function's own operations: of a rounded value
0, of foreign code none at all. A call that is a primitive of its own keeps its rule.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.extend as jex
import jax.numpy as jnp
from jax.interpreters import ad, batching, mlir

_FORGETS_RULES = jax.__version_info__ < (0, 12)


def custom_jvp(
    function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()
) -> "jax.custom_jvp[Any]":
    """`jax.custom_jvp` whose rule every derivative uses, of whatever order, in loops, too."""
    kind = _RememberedRule if _FORGETS_RULES else jax.custom_jvp
    return kind(function, nondiff_argnums=tuple(nondiff_argnums))


class _RememberedRule(jax.custom_jvp):
    """As its base class; of traced arguments its call is one operation."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        differentiable = [x for k, x in enumerate(args) if k not in self.nondiff_argnums]
        leaves, structure = jax.tree.flatten(differentiable)
        if kwargs or not any(isinstance(x, jax.core.Tracer) for x in leaves):
            return super().__call__(*args, **kwargs)
        forms = []

        def on_leaves(call: Callable[..., Any], *leaves: Any) -> list[Any]:
            rest = iter(structure.unflatten(leaves))
            every = (x if k in self.nondiff_argnums else next(rest) for k, x in enumerate(args))
            results, form = jax.tree.flatten(call(*every))
            forms.append(form)
            return results

        program = jax.make_jaxpr(partial(on_leaves, self.fun))(*leaves)
        if program.effects or any(isinstance(x, jax.core.Tracer) for x in program.consts):
            return super().__call__(*args)
        function = partial(on_leaves, super().__call__)
        return forms[0].unflatten(_call.bind(*leaves, call_jaxpr=program, function=function))


# Of this name, so that what reads traced programs takes it for what it stands for.
_call = jex.core.Primitive("custom_jvp_call")
_call.multiple_results = True


def _evaluate(*args: Any, call_jaxpr: Any, function: Callable[..., Any]) -> list[Any]:
    del function
    return jex.core.jaxpr_as_fun(call_jaxpr)(*args)


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    call_jaxpr: Any,
    function: Callable[..., Any],
) -> tuple[list[Any], list[Any]]:
    """By JAX's own `custom_jvp`, which knows its rule; by arguments alone that have a tangent."""
    varying = [k for k, t in enumerate(tangents) if not isinstance(t, ad.Zero)]
    # Numbers in the text of a program are no arrays, which rules expect.
    primals = [
        x if isinstance(x, jax.Array) or aval.weak_type else jnp.asarray(x, aval.dtype)
        for x, aval in zip(primals, call_jaxpr.in_avals, strict=True)
    ]

    def of_varying(*values: Any) -> list[Any]:
        every = list(primals)
        for k, value in zip(varying, values, strict=True):
            every[k] = value
        return function(*every)

    values, directions = (tuple(xs[k] for k in varying) for xs in (primals, tangents))
    results, dots = jax.jvp(of_varying, values, directions)
    return results, [
        ad.Zero(jax.typeof(x).to_tangent_aval()) if dot.dtype == jax.dtypes.float0 else dot
        for x, dot in zip(results, dots, strict=True)
    ]


def _transpose(
    cotangents: Sequence[Any],
    *args: Any,
    call_jaxpr: Any,
    function: Callable[..., Any],
) -> list[Any]:
    """Of a function of tangents, which are linear in it: as JAX does, by its own operations."""
    del function
    linear = [k for k, x in enumerate(args) if ad.is_undefined_primal(x)]
    floating = [
        k for k, x in enumerate(call_jaxpr.out_avals) if jnp.issubdtype(x.dtype, jnp.inexact)
    ]

    def of_linear(*values: Any) -> list[Any]:
        every = list(args)
        for k, value in zip(linear, values, strict=True):
            every[k] = value
        results = jex.core.jaxpr_as_fun(call_jaxpr)(*every)
        return [results[k] for k in floating]

    pull = jax.linear_transpose(of_linear, *(args[k].aval for k in linear))
    found = pull([ad.instantiate_zeros(cotangents[k]) for k in floating])
    return [found[linear.index(k)] if k in linear else None for k in range(len(args))]


def _batch(
    args: Sequence[Any],
    axes: Sequence[int | None],
    *,
    call_jaxpr: Any,
    function: Callable[..., Any],
) -> tuple[list[Any], list[int]]:
    size = next(x.shape[k] for x, k in zip(args, axes, strict=True) if k is not None)
    args = [x if k is None else jnp.moveaxis(x, k, 0) for x, k in zip(args, axes, strict=True)]
    over_members = partial(
        jax.vmap, in_axes=[None if k is None else 0 for k in axes], axis_size=size
    )
    program = jax.make_jaxpr(over_members(jex.core.jaxpr_as_fun(call_jaxpr)))(*args)
    results = _call.bind(*args, call_jaxpr=program, function=over_members(function))
    return results, [0] * len(results)


_call.def_impl(_evaluate)
_call.def_abstract_eval(lambda *args, call_jaxpr, function: call_jaxpr.out_avals)
mlir.register_lowering(_call, mlir.lower_fun(_evaluate, multiple_results=True))
ad.primitive_jvps[_call] = _jvp
ad.primitive_transposes[_call] = _transpose
batching.primitive_batchers[_call] = _batch
