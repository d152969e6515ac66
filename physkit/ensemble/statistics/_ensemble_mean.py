"""The mean over an ensemble and its derivative, in the memory of a few members."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from physkit.core import ParameterError, ShapeError


def ensemble_mean(
    objective: Callable[[Any], Any], members: Any, *, chunk: int | None = None
) -> Any:
    """The mean of `objective` over members, a chunk of them at a time.

        ⟨f⟩ = (1/n) Σᵢ f(memberᵢ)

    What it depends on besides the member – parameters – it takes from around it, so that

        jax.grad(lambda p: ensemble_mean(lambda key: loss(p, key), keys, chunk=64))(p)

    is the derivative of the ensemble's mean. Members of a chunk run beside one another (`vmap`), chunks
    one after the other, and the backward pass computes each chunk again: memory is that of one chunk,
    however many members there are. A loss that is not itself a mean – the square of a mean's distance
    from data – needs all members in every step; this is how they fit.

    **Arguments:**

    - `objective`: one member → number or array, or a pytree of them; usually calls `simulate`.
    - `members`: a pytree of arrays with the members first: keys, states, parameters.
    - `chunk`: how many members at a time; None: all.

    **Returns:** what `objective` returns, averaged. Pure: `jit`, `grad`, `jvp`, `vmap` it.

    **Errors:** `ShapeError` where numbers of members differ; `ParameterError` for none, or a chunk below 1.

    **Good values:** for stochastic gradient descent draw fresh keys in each step,
    `jax.random.split(jax.random.fold_in(key, step), n)`.

    **Notes:** chunks are made equal, members that fill up the last count nothing. A member that
    diverges makes mean and derivative NaN: neither can honestly leave it out. In chaos the derivative of
    a mean is not the mean of derivatives over long times: see `gradient_audit`.
    """
    count = _count(members)
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
        raise ParameterError(f"chunk is a number of members, 1 or more; got {chunk!r}")
    parts = 1 if chunk is None else math.ceil(count / chunk)
    size = math.ceil(count / parts)
    # No part may consist of members that fill up alone.
    parts = math.ceil(count / size)

    def added(part: Any, weight: jax.Array) -> Any:
        values = jax.vmap(objective)(part)
        scale = lambda x: weight.astype(x.dtype).reshape(-1, *[1] * (x.ndim - 1))
        return jax.tree.map(lambda x: jnp.sum(x * scale(_floating(x)), axis=0), values)

    if parts == 1:
        return added(members, jnp.full(count, 1 / count))
    place = jnp.minimum(jnp.arange(parts * size), count - 1).reshape(parts, size)
    weight = jnp.where(jnp.arange(parts * size) < count, 1 / count, 0.0).reshape(parts, size)

    # Only members and parameters are kept for the way back, not sums so far.
    again = jax.checkpoint(
        lambda place, weight: added(jax.tree.map(lambda x: x[place], members), weight),
        prevent_cse=False,
    )

    def body(total: Any, part: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, again(*part)), None

    shapes = jax.eval_shape(again, place[0], weight[0])
    zero = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    return jax.lax.scan(body, zero, (place, weight))[0]


def _floating(x: Any) -> Any:
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise ParameterError(f"an objective returns floating numbers; got {x.dtype}")
    return x


def _count(members: Any) -> int:
    leaves = jax.tree.leaves(members)
    counts = {jnp.shape(x)[:1] for x in leaves}
    if len(counts) != 1 or () in counts:
        shapes = [jnp.shape(x) for x in leaves]
        raise ShapeError(f"members come first in every array, equally many; got shapes {shapes}")
    ((count,),) = counts
    if count == 0:
        raise ParameterError("an ensemble's mean needs members; got none")
    return count
