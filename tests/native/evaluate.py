"""A function of pairs by native code, and operation by operation by JAX."""

import jax
import jax.numpy as jnp
import numpy as np

from physkit.native import sum_over_partners


def by_native_code(function, x, y, context=()):
    """`function(x, y, context)`, a pytree of floats: of row k of `x` and row k of `y`, its only partner."""

    def terms(a, b, context, present):
        def masked(term):
            return jnp.where(present.reshape(present.shape + (1,) * (term.ndim - 2)), term, 0)

        return jax.tree.map(masked, function(a, b, context))

    @jax.jit
    def evaluate(x, y, context):
        rows = len(jax.tree.leaves(x)[0])
        index = jnp.arange(rows, dtype=jnp.int32)[:, None]
        return sum_over_partners(terms, x, y, context, index, exact=True)

    return jax.tree.map(np.asarray, evaluate(x, y, context))


def by_jax(function, x, y, context=()):
    """The same. Each operation is a program of its own, so that none is fused with another."""
    x, y = (jax.tree.map(lambda a: jnp.asarray(a)[:, None], z) for z in (x, y))
    with jax.disable_jit():
        out = function(x, y, context)
    return jax.tree.map(lambda term: np.asarray(term)[:, 0], out)


def primitives(jaxpr):
    """The names of all operations of a jaxpr, and of those that it calls."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from primitives(inner)
