"""Random positions without overlap."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import ParameterError, ShapeError, as_generator, concrete_value
from physkit.geometry import AbstractSpace

ATTEMPTS = 200  # mean number of tries per particle after which the density counts as out of reach


def random_positions(
    key: Array | int | np.integer, count: int, space: AbstractSpace, *, distance: ArrayLike = 0.0
) -> Float[Array, "n d"]:
    """Uniformly random positions in a cell, no two closer than `distance`.

    Random sequential insertion: a place is drawn, and kept if it is free. Runs on the host.

    **Arguments:**

    - `key`: a JAX random key or a whole number; the same key gives the same positions.
    - `count`: how many.
    - `space`: a `Box` (positions fill open axes too) or `Triclinic` cell.
    - `distance`: shortest distance between two positions by nearest image, length; none if 0.

    **Errors:** `ParameterError` where the space has no cell, where `distance` is not positive or
    zero, or where the density is out of reach: random insertion jams at 0.38 of the volume covered
    by spheres of that diameter, 0.547 of the area by discs, 0.748 of a line by rods, and becomes
    slow well before.

    **Notes:** for dense systems start from a lattice, or place with a smaller `distance` and call
    `minimize`.

    **Reference:** Widom, J. Chem. Phys. 44, 3888 (1966); limits: Torquato & Jiao, Phys. Rev. E 73,
    031106 (2006).
    """
    cell = _cell(space)
    d, gap = cell.shape[0], float(distance)
    if count < 0 or not gap >= 0:
        raise ParameterError(f"count and distance must not be negative; got {count}, {distance}")
    generator = as_generator(key)
    if gap == 0:
        fractions = generator.random((count, d))
    else:
        fractions = _insert(generator, count, cell, space.periodic_axes(d), gap)
    dtype = jnp.result_type(*jax.tree.leaves(space))
    return jnp.asarray(fractions @ cell, dtype)


def _insert(
    generator: np.random.Generator,
    count: int,
    cell: np.ndarray,
    periodic: tuple[bool, ...],
    gap: float,
) -> np.ndarray:
    """Fractional coordinates of `count` places at least `gap` apart, found with a grid of bins."""
    d = len(cell)
    # Bins at least `gap` wide between their faces, so that only neighboring bins can hold a conflict.
    # In a cell narrower than `gap`, its one bin is searched through several images.
    width = 1 / np.linalg.norm(np.linalg.inv(cell), axis=0)
    bins = np.maximum(np.floor(width / gap), 1).astype(int).tolist()
    reach = np.where(periodic, np.ceil(gap / width), 0).astype(int)
    images = np.array(list(itertools.product(*(range(-r, r + 1) for r in reach))))
    if np.sum(np.sum((images @ cell) ** 2, axis=1) < gap * gap) > 1:
        raise ParameterError(f"the cell is so small that a particle overlaps its image at {gap:g}")
    reach = np.maximum(np.ceil(gap / width * bins), 1).astype(int)
    steps = list(itertools.product(*(range(-r, r + 1) for r in reach)))
    members: dict[tuple[int, ...], list[np.ndarray]] = {}
    places: list[np.ndarray] = []
    for _ in range(ATTEMPTS * max(count, 1)):
        if len(places) == count:
            break
        place = generator.random(d)
        home = [min(int(x * n), n - 1) for x, n in zip(place.tolist(), bins)]
        near = []
        for step in steps:
            # How often a bin lies across each end of the cell, and the bin that it is an image of.
            crossings, bin_index = zip(*(divmod(h + s, n) for h, s, n in zip(home, step, bins)))
            if bin_index in members and not any(c and not p for c, p in zip(crossings, periodic)):
                near.extend(other + crossings for other in members[bin_index])
        if near and np.min(np.sum(((np.array(near) - place) @ cell) ** 2, axis=1)) < gap * gap:
            continue
        members.setdefault(tuple(home), []).append(place)
        places.append(place)
    if len(places) < count:
        raise ParameterError(
            f"placed only {len(places)} of {count} particles at distance {gap:g}: the density is "
            "out of reach of random insertion. Start from a lattice, or use a smaller distance and "
            "call minimize."
        )
    return np.array(places).reshape(count, d)


def _cell(space: AbstractSpace) -> np.ndarray:
    """The vectors of the cell that `space` repeats or bounds, as rows."""
    # The space does not tell its dimension: a cell of another one raises.
    for d in (1, 2, 3):
        try:
            cell = concrete_value(space.cell(d))
        except ShapeError:
            continue
        if cell is not None:
            return np.asarray(cell, float)
    raise ParameterError(f"random positions need a cell to fill, a Box or Triclinic; got {space!r}")
