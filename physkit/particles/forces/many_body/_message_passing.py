"""A graph network as a potential: particles tell their neighbors what they see."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    KeyLike,
    Network,
    ParameterError,
    ShapeError,
    as_count,
    as_key,
    data,
    einsum,
    param,
    static,
)

from ._neighborhoods import Neighborhoods
from ._potential import AbstractManyBodyPotential


class MessagePassing(AbstractManyBodyPotential):
    """A message-passing graph network as a many-body potential.

        s_i = Σ_j w₀(r_ij),   v_i = Σ_j w₁(r_ij) r̂_ij,   t_i = Σ_j w₂(r_ij) (r̂_ij ⊗ r̂_ij − 1/d)
        h_i = MLP(s_i, |v_i|², |t_i|²)                   what a particle sees
        h_i ← h_i + MLP(h_i, Σ_j w(r_ij) ⊙ h_j)          messages, `passes` times
        U = Σ_i [E₀ + readout(h_i)]

    w are sums of Gaussians with a smooth cutoff, a set for each species of the neighbor. The energy is
    invariant under translations, rotations, reflections and renumbering by construction, and extensive;
    forces, virials and all derivatives are exact, so that energy is conserved as by any other potential.
    After `passes` messages a particle knows of others (1 + passes) cutoffs away.

    **Arguments:**

    - `cutoff`: length.
    - `width`: numbers h of each particle.
    - `passes`: how often messages are sent.
    - `num_gaussians`, `shortest`: Gaussians stand at equal distances from `shortest` (length; 0.4 of the
      cutoff if left out) to the cutoff.
    - `hidden`: width of the layers of the networks, two in each.
    - `num_species`: of the particles; None where species do not matter.
    - `key`: a random key, or a seed, for the first weights.

    **Errors:** `ParameterError` for a cutoff or counts that are not positive, and `shortest` beyond the cutoff.

    **Good values:** the cutoff between the first and the second shell of neighbors, one or two passes, width
    16. Before training, `standardized`: without inputs of variance 1 training crawls.

    **Notes:** it knows nothing of what is not in its data, above all not that particles repel: train it on
    frames up to the highest temperature of use. `mean` and `deviation` of inputs are constants of a training,
    without derivatives: an audit takes `ignore=(".mean", ".deviation")`. Heat flux is not known, since
    energies depend on particles beyond the cutoff. For equivariant networks of other packages see
    `EnergyFunction`.

    **Reference:** Schütt et al., SchNet, J. Chem. Phys. 148, 241722 (2018), for messages; Schütt, Unke &
    Gastegger, PaiNN, ICML (2021), for vectors.
    """

    radial: Float[Array, "s k f"] = param()
    messages: Float[Array, "p s k w"] = param()
    start: Network
    updates: tuple[Network, ...]
    readout: Network
    energy: Float[Array, " s"] = param()
    mean: Float[Array, " g"] = data()
    deviation: Float[Array, " g"] = data()
    reach: float = static(converter=float)
    shortest: float = static(converter=float)
    species_count: int | None = static()

    def __init__(
        self,
        cutoff: float,
        width: int = 16,
        passes: int = 1,
        *,
        key: KeyLike,
        num_gaussians: int = 10,
        shortest: float | None = None,
        hidden: int = 32,
        num_species: int | None = None,
    ):
        self.reach = float(cutoff)
        if not self.reach > 0:
            raise ParameterError(f"a cutoff must be positive; got {self.reach:g}")
        self.shortest = 0.4 * self.reach if shortest is None else float(shortest)
        if not 0 <= self.shortest < self.reach:
            raise ParameterError(
                f"shortest must be between 0 and the cutoff, {self.reach:g}; got {self.shortest:g}"
            )
        counts = {
            "width": width,
            "passes": passes,
            "hidden": hidden,
            "num_gaussians": num_gaussians,
        }
        w, p, h, k = (as_count(x, name, ParameterError) for name, x in counts.items())
        if k < 2:
            raise ParameterError("num_gaussians must be at least 2")
        self.species_count, s = num_species, num_species or 1
        keys = jax.random.split(as_key(key), 4 + p)
        own = 0 if num_species is None else s  # a particle knows its own species

        def network(inputs: int, outputs: int | str, key: Array) -> Network:
            return Network(eqx.nn.MLP(inputs, outputs, h, 2, jax.nn.silu, key=key))

        self.radial = 0.5 * jax.random.normal(keys[0], (s, k, 3 * w))
        self.messages = 0.3 * jax.random.normal(keys[1], (p, s, k, w))
        self.start = network(3 * w + own, w, keys[2])
        self.updates = tuple(network(2 * w, w, key) for key in keys[4:])
        self.readout = network(w, "scalar", keys[3])
        self.energy = jnp.zeros(s)
        self.mean, self.deviation = jnp.zeros(3 * w), jnp.ones(3 * w)

    @property
    def cutoff(self) -> float:
        return self.reach

    @property
    def num_species(self) -> int | None:
        return self.species_count

    @property
    def num_passes(self) -> int:
        return 1 + len(self.updates)

    @property
    def uses_pairs_of_neighbors(self) -> bool:
        return False

    def standardized(
        self, invariants: Float[Array, "m g"], energy: Float[Array, " s"] | float
    ) -> "MessagePassing":
        """This potential with inputs of mean 0 and variance 1, and with an energy to begin with.

        - `invariants`: of particles of typical frames,
          `ManyBody(potential).map_neighborhoods(potential.invariants, particles)`.
        - `energy`: E₀ of a particle, by species: the mean energy of a particle over the frames.

        **Errors:** `ShapeError` for invariants of another width.
        """
        if invariants.ndim != 2 or invariants.shape[1] != self.mean.shape[0]:
            raise ShapeError(
                f"invariants of this potential are [m {self.mean.shape[0]}]; got {list(invariants.shape)}"
            )
        deviation = jnp.std(invariants, axis=0)
        found = (
            jnp.broadcast_to(jnp.asarray(energy, self.energy.dtype), self.energy.shape),
            jnp.mean(invariants, axis=0),
            jnp.where(deviation > 0, deviation, 1),
        )
        return eqx.tree_at(lambda m: (m.energy, m.mean, m.deviation), self, found)

    def invariants(self, near: Neighborhoods) -> Float[Array, "c g"]:
        """s, |v|² and |t|² of each particle: what no rotation changes."""
        u = near.direction
        k, c, d = u.shape
        scalar, vector, tensor = jnp.split(self._filter(near, self.radial), 3, axis=-1)
        second = u[..., :, None] * u[..., None, :] - jnp.eye(d, dtype=u.dtype)[None, None] / d
        vector = near.sum(vector[..., None] * u[:, :, None, :])
        tensor = near.sum(tensor[..., None] * second.reshape(k, c, 1, d * d))
        # Sums of directions turn with the particles, their squares do not.
        squares = (jnp.sum(x**2, axis=-1) for x in (vector, tensor))
        return jnp.concatenate([near.sum(scalar), *squares], axis=-1)

    def features(self, near: Neighborhoods, number: int) -> Float[Array, "c w"]:
        if number == 0:
            mean, deviation = jax.lax.stop_gradient((self.mean, self.deviation))
            seen = (self.invariants(near) - mean[None]) / deviation[None]
            if self.species_count is not None:
                own = jax.nn.one_hot(near.species, self.species_count, dtype=seen.dtype)
                seen = jnp.concatenate([seen, own], axis=-1)
            return jax.vmap(self.start)(seen)
        assert near.features is not None
        assert near.neighbor_features is not None
        heard = near.sum(self._filter(near, self.messages[number - 1]) * near.neighbor_features)
        both = jnp.concatenate([near.features, heard], axis=-1)
        return near.features + jax.vmap(self.updates[number - 1])(both)

    def site_energies(self, near: Neighborhoods) -> Float[Array, " c"]:
        assert near.features is not None
        learned = jax.vmap(self.readout)(near.features)
        return learned + (
            self.energy[0] if self.species_count is None else self.energy[near.species]
        )

    def _filter(self, near: Neighborhoods, weights: Float[Array, "s g f"]) -> Float[Array, "k c f"]:
        """Functions of the distances, each a sum of Gaussians that ends smoothly at the cutoff."""
        s = near.distance[:, :, None] / self.reach
        window = 1 - s**3 * (10 - 15 * s + 6 * s**2)
        centers = jnp.linspace(self.shortest, self.reach, weights.shape[1], dtype=s.dtype)
        width = (self.reach - self.shortest) / (weights.shape[1] - 1)
        x = (near.distance[:, :, None] - centers[None, None]) / width
        gaussians = window * jnp.exp(-0.5 * x**2)
        if self.species_count is None:
            return einsum("kcg,gf->kcf", gaussians, weights[0])
        of_species = jax.nn.one_hot(near.neighbor_species, self.species_count, dtype=s.dtype)
        return einsum("kcg,kcs,sgf->kcf", gaussians, of_species, weights)
