"""One vector as the arrays that it is made of."""

import math
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import TypeVar

import jax
import numpy as np

Vector = TypeVar("Vector", jax.Array, np.ndarray)


def split_flat(flat: Vector, shapes: Iterable[tuple[int, ...]]) -> list[Vector]:
    """The parts of `flat`, `[n, …]`, one after the other, of shapes `[*shape, …]`; n is their size."""
    shapes = list(shapes)
    ends = accumulate(map(math.prod, shapes), initial=0)
    return [
        flat[a:b].reshape((*shape, *flat.shape[1:]))
        for shape, (a, b) in zip(shapes, pairwise(ends), strict=True)
    ]
