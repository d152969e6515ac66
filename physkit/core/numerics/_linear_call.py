"""Linear maps with a hand-written transpose. Only this file and `_custom_jvp.py` use JAX's internal interfaces.

`jax.custom_vjp` is enough for one reverse derivative, but it forbids forward mode, and so Jacobians by
columns and Hessian-vector products. Here is a primitive that is linear, and whose transpose is the same
primitive with the two maps exchanged. It has derivatives of every kind and order.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.extend as jex
import jax.numpy as jnp
from jax.interpreters import ad, batching, mlir

from .._types import PyTree

Leaves: TypeAlias = list[Any]

LINEAR_CALL = "physkit_linear_call"  # what its operation is called in a traced program
_linear = jex.core.Primitive(LINEAR_CALL)
_linear.multiple_results = True


def linear_call(
    forward: Callable,
    transpose: Callable,
    residuals: PyTree,
    linear: PyTree,
    result: PyTree | None = None,
) -> PyTree:
    """y = forward(residuals, linear): a map that is linear in `linear`, with a hand-written transpose.

    `transpose(residuals, ȳ)` must return the cotangent of `linear`. Unlike that of
    `jax.custom_derivatives.linear_call`, the result is differentiable by everything, any number of times, in
    both modes. Under `vmap` it stays one primitive, so that the transpose of a batched map is the batched
    hand-written transpose.

    **Arguments:**

    - `forward`, `transpose`: hashable functions of pytrees that close over no traced value. If one has a
      method `many(residuals, linear)`, that is called for many linear arguments at once, which have an
      additional first axis.
    - `residuals`: what the map depends on; arrays of any dtype, differentiable where floating.
    - `linear`: floating arrays.
    - `result`: arrays like the result, or their shapes, where they are known: then `forward` is traced only
      where it is used, and not for a gradient.

    **Errors:** `TypeError`, when it is differentiated, for a transpose whose result has another structure
    than `linear`.
    """
    residual_leaves, residual_tree = jax.tree.flatten(residuals)
    linear_leaves, linear_tree = jax.tree.flatten(linear)
    if result is None:
        result = jax.eval_shape(forward, residuals, linear)
    shapes, result_tree = jax.tree.flatten(result)
    # A primitive takes a flat list of arrays: the trees travel in its parameters.
    out = _linear.bind(
        *vary_alike([*residual_leaves, *linear_leaves]),
        forward=_OnLeaves(forward, residual_tree, linear_tree, result_tree),
        transpose=_OnLeaves(transpose, residual_tree, result_tree, linear_tree),
        num_residuals=len(residual_leaves),
        shapes=_shapes(shapes),
    )
    return jax.tree.unflatten(result_tree, out)


@dataclass(frozen=True)
class _OnLeaves:
    """A function of two pytrees as a function of two lists of leaves."""

    function: Callable
    residual_tree: jax.tree_util.PyTreeDef
    linear_tree: jax.tree_util.PyTreeDef
    result_tree: jax.tree_util.PyTreeDef

    def __call__(self, residuals: Leaves, linear: Leaves) -> Leaves:
        out = self.function(
            self.residual_tree.unflatten(residuals), self.linear_tree.unflatten(linear)
        )
        leaves, tree = jax.tree.flatten(out)
        if tree != self.result_tree:
            raise TypeError(
                f"a linear map and its transpose disagree: {self.result_tree} and {tree}"
            )
        return leaves

    @property
    def many(self) -> "_OnLeaves | None":
        """The same for many linear arguments at once, if the function has a method for that."""
        many = getattr(self.function, "many", None)
        return None if many is None else replace(self, function=many)


@dataclass(frozen=True)
class _Batched:
    """`inner` over a batch: linear arguments carry the batch axis, residuals where `axes` says 0."""

    inner: Callable
    axes: tuple[int | None, ...]
    size: int

    def __call__(self, residuals: Leaves, linear: Leaves) -> Leaves:
        many = getattr(self.inner, "many", None)
        # With common residuals the work that depends on them alone, a list of pairs say, is done once.
        if many is not None and not any(axis == 0 for axis in self.axes):
            return many(list(residuals), list(linear))
        batched = jax.vmap(self.inner, in_axes=(list(self.axes), 0), axis_size=self.size)
        return batched(list(residuals), list(linear))


@partial(jax.jit, static_argnums=0)
def _apply_jitted(function, residuals, linear):
    return function(residuals, linear)


def vary_alike(leaves: Leaves, others: Leaves | None = None) -> Leaves:
    """`leaves` as arrays that differ along the axes of a mesh along which any of them or of `others` does.

    Where `jax.shard_map` keeps account of that. Of one that is equal everywhere cotangents are summed.
    """
    own = [varying_axes(jax.typeof(x)) for x in leaves]
    union = frozenset().union(*own, *(varying_axes(jax.typeof(x)) for x in others or ()))
    missing = [tuple(sorted(union - axes)) for axes in own]
    return [
        jax.lax.pcast(x, axes, to="varying") if axes else x
        for x, axes in zip(leaves, missing, strict=True)
    ]


def varying_axes(aval: Any) -> frozenset:
    """The axes of a mesh along which an array differs, where `jax.shard_map` keeps account of that."""
    return getattr(getattr(aval, "manual_axis_type", None), "varying", frozenset())


def _shapes(leaves: Leaves) -> tuple[tuple[tuple[int, ...], Any], ...]:
    """Shapes and dtypes of arrays, of the result as a parameter of the primitive."""
    return tuple((tuple(x.shape), jnp.dtype(x.dtype)) for x in leaves)


# --- the rules of the primitive: residuals first, linear arguments after them -----------------------


def _lower(*args, forward, transpose, num_residuals, shapes):
    """What the primitive means to the compiler: `forward` inlined."""
    del transpose, shapes
    return forward(list(args[:num_residuals]), list(args[num_residuals:]))


def trace_linear_call(equation: Any) -> Any:
    """The closed program of an operation `LINEAR_CALL` in a traced program."""
    operands = [x.val if hasattr(x, "val") else x.aval for x in equation.invars]
    return jax.make_jaxpr(partial(_lower, **equation.params))(*operands)


def _evaluate(*args, forward, transpose, num_residuals, shapes):
    """The primitive outside of any trace: compiled, not operation by operation."""
    del transpose, shapes
    return _apply_jitted(forward, list(args[:num_residuals]), list(args[num_residuals:]))


def _abstract_eval(*args, shapes, **params):
    del params
    if not varying_axes(args[0]):
        return [jax.core.ShapedArray(*shape) for shape in shapes]
    mesh, varying = args[0].sharding, args[0].manual_axis_type
    return [
        jax.core.ShapedArray(
            shape,
            dtype,
            sharding=mesh.update(spec=jax.sharding.PartitionSpec(*(None for _ in shape))),
            manual_axis_type=varying,
        )
        for shape, dtype in shapes
    ]


def _jvp(primals, tangents, *, forward, transpose, num_residuals, shapes):
    """The same map of the linear arguments' tangents, and JAX's derivative of `forward` by the residuals."""
    residuals, linear = primals[:num_residuals], primals[num_residuals:]
    residual_tangents, linear_tangents = tangents[:num_residuals], tangents[num_residuals:]
    params = {
        "forward": forward,
        "transpose": transpose,
        "num_residuals": num_residuals,
        "shapes": shapes,
    }
    out = _linear.bind(*primals, **params)
    terms = []
    if not all(map(_is_zero, linear_tangents)):
        full = [jnp.zeros_like(x) if _is_zero(t) else t for x, t in zip(linear, linear_tangents)]
        # The primitive again: that of the tangent is what the transpose rule will see.
        terms.append(_linear.bind(*residuals, *full, **params))
    # Only by residuals that vary: tangents of zeros would cost as much as others.
    varying = [k for k, t in enumerate(residual_tangents) if not _is_zero(t)]
    if varying:

        def of_varying(values):
            full = list(residuals)
            for k, value in zip(varying, values):
                full[k] = value
            return forward(full, list(linear))

        values = [residuals[k] for k in varying]
        directions = [residual_tangents[k] for k in varying]
        terms.append(jax.jvp(of_varying, (values,), (directions,))[1])
    if not terms:
        return out, [ad.Zero(jax.typeof(o).to_tangent_aval()) for o in out]
    return out, [sum(leaves[1:], leaves[0]) for leaves in zip(*terms)]


def _is_zero(tangent: PyTree) -> bool:
    """Whether a tangent is a symbolic zero, or that of an integer."""
    return isinstance(tangent, ad.Zero) or jax.dtypes.float0 == getattr(tangent, "dtype", None)


def _transpose(cotangents, *args, forward, transpose, num_residuals, shapes):
    """The primitive with both maps exchanged, at the cotangents."""
    residuals, linear = args[:num_residuals], args[num_residuals:]
    del shapes
    full = [ad.instantiate_zeros(c) for c in cotangents]
    # A cotangent is an array like what it is the cotangent of.
    like = [x.aval if ad.is_undefined_primal(x) else x for x in linear]
    out = _linear.bind(
        *residuals,
        *full,
        forward=transpose,
        transpose=forward,
        num_residuals=num_residuals,
        shapes=_shapes(like),
    )
    # JAX wants cotangents of those arguments only by which the map is transposed.
    linear_cotangents = [o if ad.is_undefined_primal(x) else None for o, x in zip(out, linear)]
    return [None] * num_residuals + linear_cotangents


def _batch(args, axes, *, forward, transpose, num_residuals, shapes):
    """The primitive with both maps batched. Batch axes go to the front; residuals without one stay so."""
    size = next(a.shape[k] for a, k in zip(args, axes) if k is not None)
    residuals = [
        (a, None) if k is None else (jnp.moveaxis(a, k, 0), 0)
        for a, k in zip(args[:num_residuals], axes[:num_residuals])
    ]
    # Linear arguments all get the batch axis: their cotangents differ from member to member in any case.
    linear = [
        jnp.broadcast_to(a, (size, *a.shape)) if k is None else jnp.moveaxis(a, k, 0)
        for a, k in zip(args[num_residuals:], axes[num_residuals:])
    ]
    residual_axes = tuple(axis for _, axis in residuals)
    out = _linear.bind(
        *(a for a, _ in residuals),
        *linear,
        forward=_Batched(forward, residual_axes, size),
        transpose=_Batched(transpose, residual_axes, size),
        num_residuals=num_residuals,
        shapes=tuple(((size, *shape), dtype) for shape, dtype in shapes),
    )
    return out, [0] * len(out)


_linear.def_impl(_evaluate)
_linear.def_abstract_eval(_abstract_eval)
mlir.register_lowering(_linear, mlir.lower_fun(_lower, multiple_results=True))
ad.primitive_jvps[_linear] = _jvp
ad.primitive_transposes[_linear] = _transpose
batching.primitive_batchers[_linear] = _batch
