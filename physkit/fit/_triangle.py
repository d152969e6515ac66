"""Triangular factors of tall matrices."""

from typing import TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

Matrix = TypeVar("Matrix", jax.Array, np.ndarray)

_ROWS_PER_BLOCK = 64  # at least


def triangle(matrix: Matrix) -> Matrix:
    """R of QR of `[n p]`, by blocks of rows: R of the triangles of all blocks, one below the other.

    So RᵀR = MᵀM. In blocks that stay in a core's cache the factorization of a tall matrix is several times as
    fast. NumPy's arrays are factored on the host.
    """
    array = np if isinstance(matrix, np.ndarray) else jnp
    n, p = matrix.shape
    rows = max(_ROWS_PER_BLOCK, 3 * p)
    while n > 2 * rows:
        blocks = -(-n // rows)
        # Rows of zeros change no R.
        padded = array.pad(matrix, ((0, blocks * rows - n), (0, 0))).reshape(blocks, rows, p)
        matrix = cast(Matrix, array.linalg.qr(padded, mode="r").reshape(blocks * p, p))
        n = len(matrix)
    return cast(Matrix, array.linalg.qr(matrix, mode="r"))
