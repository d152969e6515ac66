"""The mean over an ensemble and its derivative, in the memory of a few members."""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    Count,
    ParameterError,
    PyTree,
    ShapeError,
    as_arrays,
    as_count,
    explain_call,
)


@explain_call
def ensemble_mean(
    objective: Callable[[PyTree], PyTree], members: PyTree, *, chunk_size: Count | None = None
) -> PyTree:
    """The mean of `objective` over members, a chunk of them at a time.

        ⟨f⟩ = (1/n) Σᵢ f(memberᵢ)

    Parameters, what it depends on besides the member, it takes from its closure, so that

        jax.grad(lambda p: ensemble_mean(lambda key: loss(p, key), keys, chunk_size=64))(p)

    is the derivative of the ensemble's mean. Members of a chunk run beside one another (`vmap`), chunks
    one after the other, and the backward pass computes each chunk again: memory is that of one chunk,
    however many members there are. A loss that is not itself a mean – the square of a mean's distance
    from data – needs all members in every step; this is how they fit.

    **Arguments:**

    - `objective`: one member → number or array, or a pytree of them; usually calls `simulate`.
    - `members`: a pytree of arrays with the members first: keys, states, parameters.
    - `chunk_size`: how many members at a time; None: all.

    **Returns:** what `objective` returns, averaged. Pure: `jit`, `grad`, `jvp`, `vmap` it.

    **Errors:** `ShapeError` where numbers of members differ; `ParameterError` for no members, or a chunk
    size below 1.

    **Good values:** for stochastic gradient descent draw fresh keys in each step,
    `jax.random.split(jax.random.fold_in(key, step), n)`.

    **Notes:** chunks are made equal, members that fill up the last count nothing. A member that
    diverges makes mean and derivative NaN: neither can honestly leave it out. In chaos the derivative of
    a mean is not the mean of derivatives over long times: see `gradient_audit`.
    """
    members = as_arrays(members)
    count = _count_members(members)
    if chunk_size is not None:
        chunk_size = as_count(chunk_size, "chunk_size", ParameterError)
    num_chunks = 1 if chunk_size is None else math.ceil(count / chunk_size)
    size = math.ceil(count / num_chunks)
    # Equal chunks can need fewer of them: no chunk may consist of padding alone.
    num_chunks = math.ceil(count / size)

    def weighted_sum(chunk: PyTree, weight: Array) -> PyTree:
        values = jax.vmap(objective)(chunk)

        def sum_over_members(x):  # (size, …) → (…)
            scale = weight.astype(_require_floating(x).dtype).reshape(-1, *[1] * (x.ndim - 1))
            return jnp.sum(x * scale, axis=0)

        return jax.tree.map(sum_over_members, values)

    if num_chunks == 1:
        return weighted_sum(members, jnp.full(count, 1 / count))
    # The last chunk is padded with the last member, of weight 0. A member and not zeros: of zeros the objective
    # might be NaN, and 0 · NaN is NaN.
    indices = jnp.arange(num_chunks * size)
    member = jnp.minimum(indices, count - 1).reshape(num_chunks, size)
    weight = jnp.where(indices < count, 1 / count, 0.0).reshape(num_chunks, size)

    # Rematerialized: the backward pass keeps members and parameters, nothing of what a chunk computes.
    # The scan separates the two evaluations by itself, hence prevent_cse=False.
    @partial(jax.checkpoint, prevent_cse=False)
    def chunk_sum(member: Array, weight: Array) -> PyTree:
        return weighted_sum(jax.tree.map(lambda x: x[member], members), weight)

    def add_chunk(total: PyTree, chunk: tuple[Array, Array]) -> tuple[PyTree, None]:
        return jax.tree.map(jnp.add, total, chunk_sum(*chunk)), None

    shapes = jax.eval_shape(chunk_sum, member[0], weight[0])
    zero = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    return jax.lax.scan(add_chunk, zero, (member, weight))[0]


def _require_floating(x: Array) -> Array:
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise ParameterError(f"the objective must return floating-point numbers; got {x.dtype}")
    return x


def _count_members(members: PyTree) -> int:
    leaves = jax.tree.leaves(members)
    counts = {jnp.shape(x)[:1] for x in leaves}
    if len(counts) != 1 or () in counts:
        shapes = [jnp.shape(x) for x in leaves]
        raise ShapeError(
            f"members must be the first axis of every array, equally many; got shapes {shapes}"
        )
    ((count,),) = counts
    if count == 0:
        raise ParameterError("the mean of an ensemble needs members; got none")
    return count
