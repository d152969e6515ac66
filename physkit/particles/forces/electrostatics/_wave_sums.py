"""Structure factors by direct sums, as matrix products, block by block of the charges."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import PyTree, matmul

_BLOCK = 2**19  # numbers that a block of charges may take

Counts = tuple[int, int, int]  # largest mode number along each axis


def mode_numbers(counts: Counts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mode numbers along each axis, ready to broadcast; along the last from 0, as waves come in pairs."""
    a, b, c = counts
    return (
        np.arange(-a, a + 1).reshape(-1, 1, 1),
        np.arange(-b, b + 1).reshape(1, -1, 1),
        np.arange(c + 1).reshape(1, 1, -1),
    )


def structure_factors(
    fraction: Float[Array, "n 3"], charge: Float[Array, " n"], counts: Counts
) -> Float[Array, "2 p q r"]:
    """S_m = Σ qᵢ exp(2πi m·sᵢ), real and imaginary parts, for charges at fractions s of the cell.

    exp(2πi m·s) is a product over axes: the sum over charges is a product of matrices.
    """

    def block(fraction: Float[Array, "rows 3"], charge: Float[Array, " rows"]) -> Array:
        return _structure_factors_at_once(fraction, charge, counts)

    zero = jnp.zeros((2, *(n.size for n in mode_numbers(counts))), fraction.dtype)
    blocks = _blocks((fraction, charge), counts)
    if blocks is None:
        return block(fraction, charge)

    def add(total: Array, rows: PyTree) -> tuple[Array, None]:
        # The total stays outside of the checkpoint: its derivative does not need it.
        return total + jax.checkpoint(block)(*rows), None

    return jax.lax.scan(add, zero, blocks)[0]


def slopes_by_fraction(
    weight: Float[Array, "2 p q r"],
    fraction: Float[Array, "n 3"],
    charge: Float[Array, " n"],
    counts: Counts,
) -> Float[Array, "n 3"]:
    """∂/∂sᵢ of Σ_m (weight_m · S_m)."""

    def paired(fraction: Float[Array, "rows 3"], charge: Float[Array, " rows"]) -> Array:
        return jnp.sum(weight * _structure_factors_at_once(fraction, charge, counts))

    slope: Callable[..., Array] = jax.grad(paired)
    blocks = _blocks((fraction, charge), counts)
    if blocks is None:
        return slope(fraction, charge)
    slopes = jax.lax.map(lambda rows: jax.checkpoint(slope)(*rows), blocks)
    return slopes.reshape(-1, 3)[: fraction.shape[0]]


def _structure_factors_at_once(
    fraction: Float[Array, "rows 3"], charge: Float[Array, " rows"], counts: Counts
) -> Float[Array, "2 p q r"]:
    (c1, s1), (c2, s2), (c3, s3) = (
        _waves(fraction[:, k], n) for k, n in enumerate(mode_numbers(counts))
    )
    rows, p, q, r = fraction.shape[0], c1.shape[1], c2.shape[1], c3.shape[1]

    def outer(x: Array, y: Array) -> Array:
        return (x[:, :, None] * y[:, None, :]).reshape(rows, p * q)

    # exp along two axes, all pairs of modes side by side; real, then imaginary parts.
    plane = jnp.concatenate([outer(c1, c2) - outer(s1, s2), outer(c1, s2) + outer(s1, c2)], axis=1)
    line = charge[:, None] * jnp.concatenate([c3, s3], axis=1)
    # (2 parts of the plane, 2 parts of the line)
    products = matmul(plane.T, line).reshape(2, p, q, 2, r)
    real = products[0, :, :, 0] - products[1, :, :, 1]
    imaginary = products[0, :, :, 1] + products[1, :, :, 0]
    return jnp.stack([real, imaginary])


def _waves(along: Float[Array, " rows"], numbers: np.ndarray) -> tuple[Array, Array]:
    """cos and sin of 2π m s, `[b modes]`."""
    turns = along[:, None] * jnp.asarray(numbers.reshape(1, -1), along.dtype)
    # Whole turns are left out, so that large mode numbers lose no digits in single precision.
    angle = 2 * math.pi * (turns - jnp.round(turns))
    return jnp.cos(angle), jnp.sin(angle)


def _blocks(arrays: PyTree, counts: Counts) -> PyTree | None:
    """`arrays`, `[n …]`, as `[blocks rows …]`, filled with zeros; None where one block is enough."""
    n = jax.tree.leaves(arrays)[0].shape[0]
    per_row = 2 * (2 * counts[0] + 1) * (2 * counts[1] + 1)
    rows = max(16, _BLOCK // per_row)
    if n <= rows:
        return None
    number = -(-n // rows)
    rows = -(-n // number)

    def split(x: Array) -> Array:
        filled = jnp.pad(x, ((0, number * rows - n), *((0, 0),) * (x.ndim - 1)))
        return filled.reshape(number, rows, *x.shape[1:])

    return jax.tree.map(split, arrays)
