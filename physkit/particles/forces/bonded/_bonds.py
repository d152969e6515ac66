"""Bonds: energies of the distance of given pairs of particles."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    ParameterError,
    concrete_value,
    param,
    ratio,
    require_nonnegative,
    require_positive,
    safe_divide,
    safe_norm,
    static,
    warn,
)

from ..._arguments import Numbers
from ..._particles import Particles
from ._bonded import AbstractBonded, Differences, Vectors
from ._local_tuples import LocalTuples
from ._start_checks import check_lengths
from ._tuples import Tuples, as_places


class AbstractBonds(AbstractBonded):
    """A force along bonds: `energies` of the vector from the second to the first of each pair."""

    tuple_name: ClassVar[str] = "bonds"

    @property
    def differences(self) -> Differences:
        return ((0, 1),)

    def _set(self, places: Numbers, parameters: dict[str, Numbers], component: str | None) -> None:
        super()._set(places, parameters, component)
        pairs = np.sort(as_places(places, 2, self.tuple_name), axis=1)  # numbers, in a trace, too
        _, first, counts = np.unique(pairs, axis=0, return_index=True, return_counts=True)
        if np.any(counts > 1):
            # Lists of neighbors name every pair from both of its ends.
            warn(
                f"{np.sum(counts > 1)} of {len(counts)} bonds are given more than once, such as "
                f"{pairs[first[np.argmax(counts > 1)]].tolist()}: each counts, as if the bond were stronger"
            )


class AbstractBondsWithLength(AbstractBonds):
    """Bonds with a length at which they are at rest.

    - `length`: r₀ ≥ 0.
    """

    length: eqx.AbstractVar[Float[Array, "..."]]

    def check_start(self, vectors: Float[np.ndarray, "v m d"], particles: Particles) -> None:
        rest = concrete_value(self.length)
        if rest is not None:
            rest = np.broadcast_to(rest, vectors.shape[1:2]).astype(float)
            check_lengths(vectors[0], rest, self.tuples, particles)


class HarmonicBonds(AbstractBondsWithLength):
    """Springs between given pairs of particles.

        U = ½ Σ k (r − r₀)²

    The two ends vibrate with √(k/μ), μ their reduced mass.

    **Arguments:**

    - `pairs`: `[m 2]` whole numbers: the places of the two ends in the particle arrays.
    - `stiffness`: k, energy / length²; a scalar, or `[m]` by bond.
    - `length`: r₀ ≥ 0, length; a scalar, or `[m]` by bond.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ShapeError` for other shapes; `ParameterError` for places that do not exist, a particle
    bonded to itself, r₀ beyond the image limit, and a molecule that starts split over the border of a box that
    the particles do not have.

    **Good values:** dt below a tenth of the shortest period 2π √(μ/k).

    **Notes:** bonds take the nearest image, and must stay shorter than the image limit of the box. Each
    particle reads its bonds from a table, so that neither the force nor its derivatives scatter; the table
    is made from the numbers in `pairs`, which must not be traced. Over devices, bonded particles must be
    in the same slab or in two that are next to each other.

    **Reference:** Allen & Tildesley, Computer Simulation of Liquids, 2nd ed., section 1.3.3.
    """

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
        self._set(pairs, {"stiffness": stiffness, "length": length}, component)
        require_nonnegative(self, "stiffness")

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        stretch = safe_norm(vectors[0]) - local.parameters(self.length)
        return 0.5 * local.parameters(self.stiffness) * stretch**2

    def vector_forces(self, local: LocalTuples, vectors: Vectors) -> Vectors:
        (d,) = vectors
        r = safe_norm(d)
        stiffness = local.parameters(self.stiffness)
        length = local.parameters(self.length)
        # Two ends on one spot have no direction: the force is 0 there, and so is its derivative.
        return (safe_divide(stiffness * (length - r), r)[:, None] * d,)


class FENEBonds(AbstractBonds):
    """Bonds that cannot be stretched beyond a length: finitely extensible, nonlinear, elastic.

        U = −½ Σ k R² ln(1 − (r/R)²)

    **Arguments:**

    - `pairs`: `[m 2]` whole numbers: the places of the two ends in the particle arrays.
    - `stiffness`: k, energy / length²; a scalar, or `[m]` by bond.
    - `max_length`: R, length; a scalar, or `[m]` by bond.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** as `HarmonicBonds`; `ParameterError` for a length that is not positive, and for a bond of R or
    more at the start. Later such a bond is a fault: energy and force are NaN.

    **Good values:** Kremer–Grest chains: k = 30 ε/σ², R = 1.5 σ, beside `Pairwise(WCA(), cutoff=2**(1/6))`
    between all beads, bonded ones as well; bonds are then 0.97 σ long.

    **Reference:** Kremer & Grest, J. Chem. Phys. 92, 5057 (1990), eq. 3.
    """

    tuples: Tuples
    stiffness: Float[Array, "..."] = param()
    max_length: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self,
        pairs: Numbers,
        stiffness: Numbers = 30.0,
        max_length: Numbers = 1.5,
        component: str | None = None,
    ):
        self._set(pairs, {"stiffness": stiffness, "max_length": max_length}, component)
        require_nonnegative(self, "stiffness")
        require_positive(self, "max_length")

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        longest = jnp.broadcast_to(local.parameters(self.max_length), len(vectors[0]))
        ratio2 = jnp.sum(ratio(vectors[0], longest[:, None]) ** 2, axis=1)
        # log1p: accurate for short bonds, too; beyond the limit it is NaN.
        return -0.5 * local.parameters(self.stiffness) * longest**2 * jnp.log1p(-ratio2)

    def check_start(self, vectors: Float[np.ndarray, "v m d"], particles: Particles) -> None:
        del particles
        longest, distance = concrete_value(self.max_length), np.linalg.norm(vectors[0], axis=-1)
        if longest is not None and np.any(distance >= longest):
            worst = int(np.argmax(distance / longest))
            members = np.asarray(self.tuples.places)[worst].tolist()
            raise ParameterError(
                f"the bond between particles {members} cannot be longer than "
                f"{np.broadcast_to(longest, distance.shape)[worst]:g}; at the start it is {distance[worst]:g}"
            )


class MorseBonds(AbstractBondsWithLength):
    """Bonds that break: a well of finite depth.

        U = Σ D [1 − e^(−a(r − r₀))]²

    0 at r₀, D at infinity; the frequency of small vibrations is a √(2D/μ).

    **Arguments:**

    - `pairs`: `[m 2]` whole numbers: the places of the two ends in the particle arrays.
    - `depth`: D, energy. `steepness`: a, inverse length. `length`: r₀. Each a scalar, or `[m]` by bond.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** as `HarmonicBonds`.

    **Good values:** a = √(k/2D) where k is the stiffness of the harmonic bond that it replaces.

    **Reference:** Morse, Phys. Rev. 34, 57 (1929), eq. 4.
    """

    tuples: Tuples
    depth: Float[Array, "..."] = param()
    steepness: Float[Array, "..."] = param()
    length: Float[Array, "..."] = param()
    component: str | None = static(default=None)

    def __init__(
        self,
        pairs: Numbers,
        depth: Numbers,
        steepness: Numbers,
        length: Numbers,
        component: str | None = None,
    ):
        self._set(pairs, {"depth": depth, "steepness": steepness, "length": length}, component)
        require_nonnegative(self, "depth", "length")
        require_positive(self, "steepness")

    def energies(self, local: LocalTuples, vectors: Vectors) -> Float[Array, " m"]:
        stretch = safe_norm(vectors[0]) - local.parameters(self.length)
        decay = jnp.exp(-local.parameters(self.steepness) * stretch)
        return local.parameters(self.depth) * (1 - decay) ** 2
