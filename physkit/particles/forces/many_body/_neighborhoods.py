"""What the energy of a particle depends on: its neighbors, block by block."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from physkit.core import Module, data, safe_divide, safe_sqrt

from ._partners import Components


class Neighborhoods(Module):
    """A block of `c` particles, each with places for `k` neighbors, of which some are empty.

    Places come first and particles last: what belongs to a particle, `[c]`, multiplies what belongs to its
    pairs, `[k c]`, as it is.

    - `components`: the components of x_j − x_i by the nearest image, `[k c]` each.
    - `distance`: `[k c]`; where there is no neighbor, the cutoff.
    - `present`: `[k c]`, which places hold a neighbor closer than the cutoff. What is computed in the others
      means nothing: `sum` leaves it out.
    - `species`, `neighbor_species`: `[c]` and `[k c]`; None where particles have no species.
    - `features`, `neighbor_features`: `[c f]` and `[k c f]`, what the potential's last pass gave to these
      particles and to their neighbors; None before the first.
    """

    components: tuple[Float[Array, "k c"], ...]
    distance: Float[Array, "k c"] = data()
    present: Bool[Array, "k c"] = data()
    species: Int[Array, " c"] | None = data()
    neighbor_species: Int[Array, "k c"] | None = data()
    features: Float[Array, "c f"] | None = data(None)
    neighbor_features: Float[Array, "k c f"] | None = data(None)

    @staticmethod
    def of(
        components: Components,
        present: Bool[Array, "k c"],
        neighbor_species: Int[Array, "k c"] | None,
        neighbor_features: Float[Array, "k c f"] | None,
        species: Int[Array, " c"] | None,
        features: Float[Array, "c f"] | None,
        cutoff: float | Float[Array, ""],
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
        # Barrier: derivatives by distances would be computed again for each component.
        components, distance = jax.lax.optimization_barrier(((first, *rest), distance))
        return Neighborhoods(components, distance, inside, *seen)

    @property
    def displacement(self) -> Float[Array, "k c d"]:
        """x_j − x_i by the nearest image."""
        return jnp.stack(self.components, axis=-1)

    @property
    def direction(self) -> Float[Array, "k c d"]:
        """The unit vectors from i to j."""
        return safe_divide(self.displacement, self.distance[..., None])

    def sum(self, x: Float[Array, "k c ..."]) -> Float[Array, "c ..."]:
        """The sum of `x` over the neighbors of each particle."""
        present = self.present.reshape(*self.present.shape, *(1,) * (x.ndim - 2))
        return jnp.sum(jnp.where(present, x, 0), axis=0)

    def sums(self, *x: Float[Array, "k c"]) -> tuple[Float[Array, " c"], ...]:
        """Several such sums."""
        return tuple(map(self.sum, x))

    # --- pairs of neighbors ------------------------------------------------------------------------

    @property
    def cosine(self) -> Float[Array, "k k c"]:
        """cos θ of the angle at i between neighbors j and l."""
        # Axis by axis: `einsum` would turn [k k c] around, and make a small product for each particle.
        axes = [safe_divide(x, self.distance) for x in self.components]
        return sum((u[:, None] * u[None] for u in axes[1:]), axes[0][:, None] * axes[0][None])

    def sum_pairs(self, x: Float[Array, "k k c"]) -> Float[Array, " c"]:
        """The sum of `x`, which is symmetric, over all pairs j < l of neighbors of each particle."""
        return jnp.sum(jnp.where(self.both_present, x, 0), axis=(0, 1)) / 2

    @property
    def both_present(self) -> Bool[Array, "k k c"]:
        """Which places j and l hold two different neighbors."""
        different = ~jnp.eye(self.present.shape[0], dtype=bool)[:, :, None]
        return self.present[:, None] & self.present[None] & different
