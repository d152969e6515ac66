"""Springs between given pairs of particles."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import param, require_nonnegative, safe_divide, safe_norm, static
from physkit.geometry import AbstractSpace

from ..._arguments import Numbers
from ._bonded import AbstractBonded, LocalTuples, Vectors, parameter_by_tuple
from ._tuples import Tuples


class HarmonicBonds(AbstractBonded):
    """Springs between given pairs of particles.

        U = ½ Σ k (r − r₀)²

    The two ends vibrate with √(k/μ), μ their reduced mass.

    **Arguments:**

    - `pairs`: `[m 2]` whole numbers: the places of the two ends in the particle arrays.
    - `stiffness`: k, energy / length²; a scalar, or `[m]` by bond.
    - `length`: r₀ ≥ 0, length; a scalar, or `[m]` by bond.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for other shapes; `ParameterError` for places that do not exist, or a
    particle bonded to itself.

    **Good values:** dt below a tenth of the shortest period 2π √(μ/k).

    **Notes:** bonds take the nearest image, and must stay shorter than the image limit of the box. Each
    particle reads its bonds from a table, so that neither the force nor its derivatives scatter; the table
    is made from the numbers in `pairs`, which must not be traced. Over devices, bonded particles must be
    in the same slab or in two that are next to each other.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 1.3.3.
    """

    tuple_name: ClassVar[str] = "bonds"

    tuples: Tuples
    stiffness: Float[Array, "..."] = param()
    length: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self,
        pairs: Numbers,
        stiffness: Numbers = 1.0,
        length: Numbers = 0.0,
        component: str | None = None,
    ):
        self.tuples = Tuples.of(pairs, 2, self.tuple_name)
        self.stiffness = parameter_by_tuple(stiffness, self.tuples, "stiffness")
        self.length = parameter_by_tuple(length, self.tuples, "length")
        self.component = component
        require_nonnegative(self, "stiffness")

    def vectors(self, space: AbstractSpace, members: Float[Array, "2 m d"]) -> Vectors:
        first, second = members
        return (space.displacement(first, second),)

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        stretch = safe_norm(vectors[0]) - local.local_parameters(self.length)
        return 0.5 * local.local_parameters(self.stiffness) * stretch**2

    def vector_forces(self, local: LocalTuples, vectors: Vectors) -> Vectors:
        (d,) = vectors
        r = safe_norm(d)
        stiffness = local.local_parameters(self.stiffness)
        length = local.local_parameters(self.length)
        # Two ends on one spot have no direction: the force is 0 there, and so is its derivative.
        return (safe_divide(stiffness * (length - r), r)[:, None] * d,)

    def member_forces(self, forces: Vectors) -> Float[Array, "2 m d"]:
        (force,) = forces
        return jnp.stack([force, -force])
