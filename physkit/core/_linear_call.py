"""Linear maps that bring their own transpose. The only file that touches JAX's private interfaces."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.extend as jex
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

_linear = jex.core.Primitive("physkit_linear_call")
_linear.multiple_results = True


def linear_call(forward: Callable, transpose: Callable, residuals: Any, linear: Any) -> Any:
    """y = forward(residuals, linear), a map linear in `linear` whose transpose is written by hand.

    `transpose(residuals, ȳ)` must return the cotangent of `linear`. Unlike
    `jax.custom_derivatives.linear_call` the result is differentiable in everything, any number of
    times, in both modes, and stays itself under `vmap`, so that the transpose of a batched map is
    the batched hand-written transpose.

    **Arguments:**

    - `forward`, `transpose`: hashable functions of pytrees that close over no traced value. One with a
      method `many(residuals, linear)` is asked that for many linear arguments at once, which have an
      axis in front.
    - `residuals`: what the map depends on; arrays of any dtype, differentiable where floating.
    - `linear`: floating arrays.
    """
    given, given_tree = jax.tree.flatten(residuals)
    moved, moved_tree = jax.tree.flatten(linear)
    result = jax.eval_shape(forward, residuals, linear)
    result_tree = jax.tree.structure(result)
    out = _linear.bind(
        *given,
        *moved,
        forward=_Flat(forward, given_tree, moved_tree, result_tree),
        transpose=_Flat(transpose, given_tree, result_tree, moved_tree),
        given=len(given),
    )
    return jax.tree.unflatten(result_tree, out)


def nonzero_tangents(tangents: Any) -> Any:
    """Tangents that a rule with `symbolic_zeros` gets, None for those that are zero by structure."""

    def keep(t):
        is_zero = isinstance(t, jax.custom_derivatives.SymbolicZero)
        return None if is_zero or t.dtype == jax.dtypes.float0 else t

    return jax.tree.map(keep, tangents, is_leaf=lambda t: hasattr(t, "dtype"))


def partition_by_tangent(tree: Any, dots: Any) -> tuple[Any, Any]:
    """The leaves of `tree` that have a tangent in `dots`, and the others; None elsewhere."""
    pick = lambda wanted: jax.tree.map(
        lambda d, x: x if (d is not None) == wanted else None,
        dots,
        tree,
        is_leaf=lambda d: d is None,
    )
    return pick(True), pick(False)


def instantiate_zero_tangents(out: Any, dots: Any) -> Any:
    """`dots`, and where it has None what JAX takes for the tangent of something that cannot move."""

    def tangent(x, dot):
        if dot is not None or x is None:
            return dot
        is_float = jnp.issubdtype(x.dtype, jnp.inexact)
        return np.zeros(x.shape, x.dtype if is_float else jax.dtypes.float0)

    return jax.tree.map(tangent, out, dots, is_leaf=lambda x: x is None)


@dataclass(frozen=True)
class _Flat:
    """A function of two pytrees as a function of two lists of leaves."""

    function: Callable
    first: Any
    second: Any
    result: Any

    def __call__(self, given, moved):
        out = self.function(self.first.unflatten(given), self.second.unflatten(moved))
        leaves, tree = jax.tree.flatten(out)
        if tree != self.result:
            raise TypeError(f"a linear map and its transpose disagree: {self.result} and {tree}")
        return leaves

    @property
    def many(self) -> "_Flat | None":
        """The same for many of the second, if the function knows how."""
        many = getattr(self.function, "many", None)
        return None if many is None else replace(self, function=many)


@dataclass(frozen=True)
class _Mapped:
    """`inner` over a batch: linear arguments carry the batch axis, residuals where `axes` says 0."""

    inner: Callable
    axes: tuple[int | None, ...]
    size: int

    def __call__(self, given, moved):
        many = getattr(self.inner, "many", None)
        if many is not None and not any(axis == 0 for axis in self.axes):
            return many(list(given), list(moved))
        in_axes = (list(self.axes), 0)
        return jax.vmap(self.inner, in_axes=in_axes, axis_size=self.size)(list(given), list(moved))


@partial(jax.jit, static_argnums=0)
def _apply(function, given, moved):
    return function(given, moved)


def _run(*args, forward, transpose, given):
    del transpose
    return forward(list(args[:given]), list(args[given:]))


def _impl(*args, forward, transpose, given):
    del transpose
    return _apply(forward, list(args[:given]), list(args[given:]))


def _abstract(*args, **params):
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in args]
    out = jax.eval_shape(partial(_run, **params), *shapes)
    return [jax.core.ShapedArray(o.shape, o.dtype) for o in out]


def _jvp(primals, tangents, *, forward, transpose, given):
    known, moved = primals[:given], primals[given:]
    known_dot, moved_dot = tangents[:given], tangents[given:]
    out = _linear.bind(*primals, forward=forward, transpose=transpose, given=given)
    parts = []
    if not all(map(_is_zero, moved_dot)):
        dots = [jnp.zeros_like(x) if _is_zero(t) else t for x, t in zip(moved, moved_dot)]
        parts.append(_linear.bind(*known, *dots, forward=forward, transpose=transpose, given=given))
    moving = [k for k, t in enumerate(known_dot) if not _is_zero(t)]
    if moving:

        def of_moving(some):
            full = list(known)
            for k, value in zip(moving, some):
                full[k] = value
            return forward(full, list(moved))

        at, along = [known[k] for k in moving], [known_dot[k] for k in moving]
        parts.append(jax.jvp(of_moving, (at,), (along,))[1])
    if not parts:
        return out, [ad.Zero.from_primal_value(o) for o in out]
    return out, [sum(leaves[1:], leaves[0]) for leaves in zip(*parts)]


def _is_zero(tangent) -> bool:
    return isinstance(tangent, ad.Zero) or jax.dtypes.float0 == getattr(tangent, "dtype", None)


def _transpose(cotangents, *args, forward, transpose, given):
    known, moved = args[:given], args[given:]
    bars = [ad.instantiate_zeros(c) for c in cotangents]
    out = _linear.bind(*known, *bars, forward=transpose, transpose=forward, given=given)
    wanted = [o if ad.is_undefined_primal(m) else None for o, m in zip(out, moved)]
    return [None] * given + wanted


def _batch(args, axes, *, forward, transpose, given):
    size = next(a.shape[k] for a, k in zip(args, axes) if k is not None)
    known = [
        (a, None) if k is None else (jnp.moveaxis(a, k, 0), 0)
        for a, k in zip(args[:given], axes[:given])
    ]
    moved = [
        jnp.broadcast_to(a, (size, *a.shape)) if k is None else jnp.moveaxis(a, k, 0)
        for a, k in zip(args[given:], axes[given:])
    ]
    over = tuple(k for _, k in known)
    out = _linear.bind(
        *(a for a, _ in known),
        *moved,
        forward=_Mapped(forward, over, size),
        transpose=_Mapped(transpose, over, size),
        given=given,
    )
    return out, [0] * len(out)


_linear.def_impl(_impl)
_linear.def_abstract_eval(_abstract)
mlir.register_lowering(_linear, mlir.lower_fun(_run, multiple_results=True))
ad.primitive_jvps[_linear] = _jvp
ad.primitive_transposes[_linear] = _transpose
batching.primitive_batchers[_linear] = _batch
