"""Fixed distances between given pairs of particles."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import (
    ParameterError,
    ShapeError,
    as_device_array,
    as_parameter,
    concrete_value,
    data,
    param,
    static,
)

from .._arguments import Numbers
from ..forces.bonded._sharded_tuples import ShardedTuples
from ..forces.bonded._tuples import Tuples, as_places
from ._clusters import ClusterGroup, find_clusters
from ._constraints import AbstractClusterConstraint


class DistanceConstraints(AbstractClusterConstraint):
    """Fixed distances between given pairs of particles (SHAKE and RATTLE).

        |x_i − x_j| = d_ij,    (x_i − x_j)·(v_i − v_j) = 0

        Particles(x, …, constraints=DistanceConstraints(pairs, lengths))

    Stiff bonds without their fast vibrations, so that steps may be two to four times as long. The particles
    carry the constraints: drifts end where they hold, kicks and noise are projected, and temperatures count
    a degree of freedom less for each. Pairs that share particles form clusters, of which all of one
    kind are solved together, to rounding, by Newton's method: three to four steps.

    **Arguments:**

    - `pairs`: `[m 2]` whole numbers: places in the particle arrays.
    - `lengths`: d, length; a scalar, or `[m]` by pair. Differentiable.
    - `max_iterations`: the most steps of Newton's method before a drift counts as failed.

    **Errors:** `ShapeError` for other shapes; `ParameterError` for a pair that is named twice, particles that
    do not exist or are frozen, distances that are more than a tenth off the lengths (overlapping,
    contradictory, split over the box), constraints that depend on one another, and a start where they do
    not hold: `constrain(particles)` makes them. `StepSizeError` for a drift that cannot meet them.

    **Good values:** bonds with hydrogen atoms: dt = 2 fs instead of 1. For rigid water see `RigidWater`.

    **Notes:** for integrators of drifts and kicks: `VelocityVerlet` and its compositions, `Leapfrog`,
    `BAOAB`, `NoseHooverChain`; others raise. Molecules may cross the border of a periodic box. Derivatives are
    those of the exact solution, in both modes: the iteration is not unrolled. The pressure contains the
    constraint forces. Not with `Reversible()`: a solution is not reversed to the last bit. Over devices the
    particles of a cluster must be in the same slab or in two that are next to each other.

    **Reference:** Ryckaert, Ciccotti & Berendsen, J. Comput. Phys. 23, 327 (1977); Andersen, J. Comput.
    Phys. 52, 24 (1983); Barth, Kuczera, Leimkuhler & Skeel, J. Comput. Chem. 16, 1192 (1995).
    """

    groups: tuple[ClusterGroup, ...]
    pairs: Int[Array, "m 2"] = data()
    lengths: Float[Array, "..."] = param()
    max_iterations: int = static(default=30)

    def __init__(self, pairs: Numbers, lengths: Numbers, *, max_iterations: int = 30):
        places = as_places(pairs, 2, "constraints")
        ordered = np.sort(places, axis=1)
        unique, count = np.unique(ordered, axis=0, return_counts=True)
        if np.any(count > 1):
            raise ParameterError(
                f"the pair {unique[np.argmax(count)].tolist()} has {count.max()} constraints; give it one"
            )
        values = as_parameter(lengths)
        m = places.shape[0]
        if values.ndim and values.shape != (m,):
            raise ShapeError(f"lengths must be a scalar or have shape ({m},); got {values.shape}")
        numbers = concrete_value(values)
        if numbers is not None and not np.all(numbers > 0):
            raise ParameterError(f"lengths must be positive; got {np.min(numbers):g}")
        if max_iterations < 0:
            raise ParameterError(f"max_iterations must not be negative; got {max_iterations}")
        self.groups = find_clusters(places)
        self.pairs, self.lengths = as_device_array(places), values
        self.max_iterations = max_iterations

    def group_lengths(
        self, group: ClusterGroup, tables: Tuples | ShardedTuples
    ) -> Float[Array, "k c"]:
        if not self.lengths.ndim:
            return jnp.broadcast_to(self.lengths, (len(group.bonds), 1))
        # By bond of a cluster, then those of this device's clusters.
        by_cluster = self.lengths.at[group.rows].get(mode="promise_in_bounds", unique_indices=True)
        columns = jnp.moveaxis(by_cluster, 1, 0)
        return jnp.stack([tables.local_parameters(column) for column in columns])
