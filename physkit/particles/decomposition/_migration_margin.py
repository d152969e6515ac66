"""How far particles may leave their slab before they change devices.

A wide margin makes migrations rare, but widens the halo, in which copies of particles are exchanged in every
step.
"""

import numpy as np
from jaxtyping import Array, Float

from physkit.core import concrete_primal, replace_fields
from physkit.geometry import AbstractSpace

from ._ownership import Ownership

_INITIAL_SPACINGS = 0.5  # the initial margin, in mean distances between particles
_MIN, _MAX = 1 / 32, 1 / 8  # its bounds, in widths of the slab
_STEPS = 8  # how many steps the fastest particle takes across the margin, where speeds are known
_WITHOUT_HALO = 2  # factor on both where no halo is exchanged, so that a wide margin costs little


def initial_margin(
    position: Float[Array, "n d"],
    velocity: Float[Array, "n d"],
    space: AbstractSpace,
    axis: int,
    size: int,
) -> float:
    """The margin for `size` slabs along `axis`, in widths of a slab, from the mean distance of particles."""
    if concrete_primal(velocity) is None:
        # A trace hides the speeds, so that `widen_margin` cannot adapt the margin later: take the widest.
        return _MAX
    n, d = max(position.shape[0], 1), position.shape[1]
    lengths = concrete_primal(space.lengths)
    if lengths is None:
        # Box lengths are hidden, and a slab of a cube is 1/size wide.
        spacing = size / n ** (1 / d)
    else:
        spacing = float((np.prod(lengths) / n) ** (1 / d) / (lengths[axis] / size))
    return min(_MAX, max(_MIN, _INITIAL_SPACINGS * spacing))


def widen_margin(
    ownership: Ownership,
    velocity: Float[Array, "devices n d"],
    space: AbstractSpace,
    dt: Float[Array, ""] | float,
    has_halo: bool,
) -> Ownership:
    """`ownership`, in device layout, with a margin that takes the fastest particle several steps to cross.

    Unchanged where a trace hides velocities, dt or the box.
    """
    speeds, step, lengths = map(concrete_primal, (velocity, dt, space.lengths))
    if speeds is None or step is None or lengths is None:
        return ownership
    axis, mask = ownership.axis, np.asarray(ownership.mask)
    # Empty slots hold copies of other particles' velocities, and do not count.
    fastest = np.max(np.abs(speeds[..., axis]), where=mask, initial=0.0)
    width = lengths.reshape(-1, lengths.shape[-1])[0, axis] / speeds.shape[0]
    margin, factor = ownership.migration_margin, 1 if has_halo else _WITHOUT_HALO
    # By factors of two: the margin is static, and every other value compiles another program.
    while margin < factor * _MAX and margin * width < factor * _STEPS * fastest * float(step):
        margin = min(2 * margin, factor * _MAX)
    return replace_fields(ownership, {"migration_margin": margin})
