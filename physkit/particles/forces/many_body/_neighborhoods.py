"""What the energy of a particle depends on: its neighbors, block by block."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data, einsum, linear_call, safe_divide, safe_sqrt

from ..pairs._sum_of_partners import sum_of_partners
from ._partners import Components


class Neighborhoods(Module):
    """A block of `c` particles, each with places for `k` neighbors, of which some are empty.

    - `components`: the components of x_j − x_i by the nearest image, `[c k]` each.
    - `distance`: `[c k]`; where there is no neighbor, the cutoff.
    - `present`: `[c k]`, which places hold a neighbor closer than the cutoff. What is computed in the others
      means nothing: `sum` leaves it out.
    - `species`, `neighbor_species`: `[c]` and `[c k]`; None where particles have no species.
    - `features`, `neighbor_features`: `[c f]` and `[c k f]`, what the potential's last pass gave to these
      particles and to their neighbors; None before the first.
    """

    components: tuple[Float[Array, "c k"], ...]
    distance: Float[Array, "c k"] = data()
    present: Bool[Array, "c k"] = data()
    species: Int[Array, " c"] | None = data()
    neighbor_species: Int[Array, "c k"] | None = data()
    features: Float[Array, "c f"] | None = data(None)
    neighbor_features: Float[Array, "c k f"] | None = data(None)

    @staticmethod
    def of(
        components: Components,
        present: Bool[Array, "c k"],
        cutoff: float,
        species: Int[Array, " c"] | None,
        neighbor_species: Int[Array, "c k"] | None,
        features: Float[Array, "c f"] | None,
        neighbor_features: Float[Array, "c k f"] | None,
    ) -> "Neighborhoods":
        """The neighborhoods of a block, without neighbors beyond the cutoff."""
        r2 = sum(x * x for x in components)
        inside = present & (r2 < cutoff**2)
        # Elsewhere a vector of the cutoff's length: functions and their derivatives are finite there.
        first, *rest = components
        first = jnp.where(inside, first, cutoff)
        rest = [jnp.where(inside, x, 0) for x in rest]
        distance = safe_sqrt(jnp.where(inside, r2, cutoff**2))
        seen = species, neighbor_species, features, neighbor_features
        return Neighborhoods((first, *rest), distance, inside, *seen)

    @property
    def displacement(self) -> Float[Array, "c k d"]:
        """x_j − x_i by the nearest image."""
        return jnp.stack(self.components, axis=-1)

    @property
    def direction(self) -> Float[Array, "c k d"]:
        """The unit vectors from i to j."""
        return safe_divide(self.displacement, self.distance[..., None])

    def sum(self, x: Float[Array, "c k ..."]) -> Float[Array, "c ..."]:
        """The sum of `x` over the neighbors of each particle."""
        present = self.present.reshape(*self.present.shape, *(1,) * (x.ndim - 2))
        return jnp.sum(jnp.where(present, x, 0), axis=1)

    def sums(self, *x: Float[Array, "c k"]) -> tuple[Float[Array, " c"], ...]:
        """Several such sums in one pass: faster than one after the other."""
        terms = tuple(jnp.where(self.present, y, 0) for y in x)
        k = self.present.shape[1]
        return linear_call(_SumAtOnce(), _Spread(k), (), terms)

    # --- pairs of neighbors ------------------------------------------------------------------------

    @property
    def cosine(self) -> Float[Array, "c k k"]:
        """cos θ of the angle at i between neighbors j and l."""
        u = self.direction
        return einsum("cjd,cld->cjl", u, u)

    def sum_pairs(self, x: Float[Array, "c k k"]) -> Float[Array, " c"]:
        """The sum of `x`, which is symmetric, over all pairs j < l of neighbors of each particle."""
        k = self.present.shape[1]
        both = self.present[:, :, None] & self.present[:, None, :] & ~jnp.eye(k, dtype=bool)[None]
        return jnp.sum(jnp.where(both, x, 0), axis=(1, 2)) / 2


# A reduction of several operands has no transpose of its own.


@dataclass(frozen=True)
class _SumAtOnce:
    def __call__(
        self, _: tuple[()], terms: tuple[Float[Array, "c k"], ...]
    ) -> tuple[Float[Array, " c"], ...]:
        return sum_of_partners(terms)


@dataclass(frozen=True)
class _Spread:
    k: int

    def __call__(
        self, _: tuple[()], sums: tuple[Float[Array, " c"], ...]
    ) -> tuple[Float[Array, "c k"], ...]:
        return tuple(jnp.broadcast_to(x[:, None], (len(x), self.k)) for x in sums)
