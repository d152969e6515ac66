"""Arrays of the whole domain that meet those of one device's part: said in the words of the domain."""

import re
from collections.abc import Iterator
from typing import Any

import jax

from physkit.core import ShapeError
from physkit.geometry import AXES, Grid
from physkit.parallel import AbstractComm
from physkit.particles import Particles

_SHAPE = re.compile(r"[(\[](\d+(?:, ?\d+)*),?[)\]]")


def explain_shape_mismatch(error: Exception, parts: Any, comm: AbstractComm) -> ShapeError | None:
    """What `error`, raised by a program on one device's `parts`, means; None if it is about something else."""
    shapes = [tuple(map(int, found.split(","))) for found in _SHAPE.findall(str(error))]
    for advice, axis, whole, here in _lengths(parts, comm):
        along = {shape[axis] for shape in shapes if -axis <= len(shape) and shape}
        if along & whole and along & here:
            first = str(error).strip().splitlines()[0].rstrip(".")
            return ShapeError(
                f"an array of the whole domain meets one of a device's part: {first}. {advice}"
            )
    return None


def _lengths(parts: Any, comm: AbstractComm) -> Iterator[tuple[str, int, set[int], set[int]]]:
    """What to say, the axis of arrays, and its lengths in the whole domain and in a part."""
    known = lambda x: isinstance(x, Grid | Particles)
    for one in jax.tree.leaves(parts, is_leaf=known):
        if isinstance(one, Grid):
            for k, (n, m) in enumerate(zip(one.shape, one.local_shape, strict=True)):
                advice = (
                    f"Over devices={comm.shape} each has {m} of the {n} cells along {AXES[k]}: take what "
                    "belongs to them by grid.local(x), and shapes from grid.local_shape or "
                    "grid.local_shape_at(location), not from grid.shape"
                )
                if n != m:
                    yield advice, k - one.dimension, {n, n + 1}, {m, m + 1}
        elif isinstance(one, Particles) and one.num_slots != one.num_particles:
            advice = (
                f"Over devices={comm.shape} each has {one.num_slots} rows for some of the {one.num_particles} particles: "
                "take theirs by particles.local_rows(x), and lengths from particles.num_slots, not from "
                "particles.num_particles"
            )
            yield advice, 0, {one.num_particles}, {one.num_slots}
