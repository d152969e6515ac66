"""Virtual sites: points that follow their parents, on which forces act as on particles."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import (
    Cache,
    Clock,
    DeclarationError,
    ShapeError,
    State,
    as_parameter,
    concrete_value,
    data,
    describe,
    matmul,
    param,
    put_component,
    replace_fields,
)

from .._arguments import Numbers, as_integers
from .._concatenate import concatenate_particles
from .._particles import Particles
from ._force import AbstractForce, acts_from_outside
from ._wrapped import AbstractWrappedForce
from .bonded._tuples import Tuples

Vectors = Float[Array, "k s d"]


class VirtualSites(AbstractWrappedForce):
    """A force that also acts on points which follow their parents: the charge of TIP4P, lone pairs.

        x_s = x₁ + Σ w_k (x_k − x₁) + c (x₂ − x₁) × (x₃ − x₁),   F_k += (∂x_s/∂x_k)ᵀ F_s

    The sites exist for `inner` alone: it sees them after the particles, in the order given, as particles
    n, n + 1, … What they feel is spread to their parents, so that energy, total force and torque are kept. They
    have no mass, no velocity, and no degrees of freedom.

        VirtualSites(coulomb, parents=molecules, weights=[0.1281, 0.1281], charge=-1.04)

    **Arguments:**

    - `inner`: a force on one component, such as `Pairwise`. Its `exclude` names sites by their numbers.
    - `parents`: `[s k]` whole numbers: places of the k ≥ 2 parents of each site.
    - `weights`: `[k − 1]`, or `[s k − 1]` by site: w of the second, third, … parent.
    - `out_of_plane`: c, 1 / length, a number or `[s]`; of sites with three parents in three dimensions.
    - `charge`, `species`: of the sites, one for all or `[s]`; where the particles have them.

    **Errors:** `ShapeError` and `ParameterError` for other shapes, parents that do not exist, sites without
    the charge or species that the particles have; `DeclarationError` over several devices.

    **Good values:** TIP4P: w = 0.128 012 065 twice; TIP5P has out-of-plane sites.

    **Notes:** parents may be rigid (`RigidWater`) or not. Molecules may cross the border of the box. Weights,
    charges and `out_of_plane` are differentiable.

    **Reference:** Jorgensen et al., J. Chem. Phys. 79, 926 (1983); Berendsen & van Gunsteren, in Molecular
    Liquids (1984), for the forces.
    """

    inner: AbstractForce
    parents: Tuples
    weights: Float[Array, "..."] = param()
    out_of_plane: Float[Array, "..."] | None = param(None)
    charge: Float[Array, "..."] | None = param(None)
    species: Int[Array, " s"] | None = data(None)

    def __init__(
        self,
        inner: AbstractForce,
        parents: Numbers,
        weights: Numbers,
        *,
        out_of_plane: Numbers | None = None,
        charge: Numbers | None = None,
        species: Numbers | None = None,
    ):
        if not isinstance(inner, AbstractForce) or len(inner.components) != 1:
            raise DeclarationError(
                f"VirtualSites takes one force on one component; got {describe(inner)}. Wrap each force that "
                "acts on sites"
            )
        width = np.shape(concrete_value(parents))[-1] if np.ndim(parents) == 2 else 0
        if width < 2:
            raise ShapeError("parents must be [s k] with k of 2 or more: all sites of one kind")
        self.inner, self.parents = inner, Tuples.of(parents, width, "parents of sites")
        count = self.parents.places.shape[0]
        self.weights = as_parameter(weights)
        if self.weights.shape not in ((width - 1,), (count, width - 1)):
            raise ShapeError(
                f"weights must be [{width - 1}] or [{count} {width - 1}], of all parents but the first; got "
                f"{self.weights.shape}"
            )
        self.out_of_plane = None if out_of_plane is None else as_parameter(out_of_plane)
        self.charge = None if charge is None else as_parameter(charge)
        for name in ("out_of_plane", "charge"):
            value = getattr(self, name)
            if value is not None and value.shape not in ((), (count,)):
                raise ShapeError(
                    f"{name} must be a scalar or have shape ({count},); got {value.shape}"
                )
        if self.out_of_plane is not None and width != 3:
            raise ShapeError(f"sites out of a plane have 3 parents; these have {width}")
        numbers = None if species is None else np.broadcast_to(np.asarray(species), (count,))
        self.species = None if numbers is None else as_integers(numbers, count, "species of sites")

    @property
    def needs_halo(self) -> bool:
        return True

    def site_positions(self, particles: Particles) -> Float[Array, "s d"]:
        """Where the sites are, inside the cell."""
        return self._wrapped_sites(particles)[0]

    def _wrapped_sites(self, particles: Particles) -> tuple[Float[Array, "s d"], Int[Array, "s d"]]:
        """Where the sites are, inside the cell, and its borders between them and their first parents."""
        first, vectors = self._seen_from_first(particles, particles.position)
        return particles.space.wrap_with_image(first + self._offsets(vectors))

    # --- the inner force, of particles and sites ---------------------------------------------------

    def __call__(
        self, clock: Clock, state: State, cache: Cache
    ) -> tuple[Float[Array, "n d"], Cache]:
        force, cache = self.inner(clock, self.seen_state(state), cache)
        particles = self.particles(state)
        return self._spread(particles, force), cache

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        return self(clock, state, self.init(state))[0]

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        extended = self.seen_state(state)
        total = self.inner.virial(clock, extended, cache)
        # Sites in a plane follow a strain like particles; forces from outside have no virial.
        if self.out_of_plane is None or acts_from_outside(self.inner):
            return total
        particles = self.particles(state)
        cache = self.inner.init(extended) if cache is None else cache
        on_sites = self.inner(clock, extended, cache)[0][particles.num_slots :]
        _, vectors = self._seen_from_first(particles, particles.position)
        offsets, pull_back = jax.vjp(self._offsets, vectors)
        (on_vectors,) = pull_back(on_sites)
        # What their parents feel, at their places, instead of what the sites feel at theirs.
        d = particles.dimension
        spread = matmul(vectors.reshape(-1, d).T, on_vectors.reshape(-1, d))
        return total + spread - matmul(offsets.T, on_sites)

    def _spread(self, particles: Particles, force: Float[Array, "m d"]) -> Float[Array, "n d"]:
        """Forces on particles and sites as forces on particles."""
        n = particles.num_slots

        def unwrapped_sites(position: Float[Array, "n d"]) -> Float[Array, "s d"]:
            first, vectors = self._seen_from_first(particles, position)
            return first + self._offsets(vectors)

        _, pull_back = jax.vjp(unwrapped_sites, particles.position)
        return force[:n] + pull_back(force[n:])[0]

    def _seen_from_first(
        self, particles: Particles, position: Float[Array, "n d"]
    ) -> tuple[Float[Array, "s d"], Vectors]:
        """The first parent of each site, and the vectors from it to the others."""
        members = self.parents.gather(position)
        return members[0], particles.space.displacement(members[1:], members[:1])

    def _offsets(self, vectors: Vectors) -> Float[Array, "s d"]:
        """From the first parent to the site."""
        weights = jnp.broadcast_to(self.weights, (vectors.shape[1], vectors.shape[0]))
        offset = jnp.sum(weights.T[..., None] * vectors, axis=0)
        if self.out_of_plane is None:
            return offset
        height = jnp.broadcast_to(self.out_of_plane, offset.shape[:1])
        return offset + height[:, None] * jnp.cross(vectors[0], vectors[1])

    def seen_state(self, state: State) -> State:
        """`state` with the sites as more particles of the component."""
        particles = self.particles(state)
        particles.require_single_device("VirtualSites")
        self.parents.require_inside(particles, "parents of virtual sites")
        if self.out_of_plane is not None and particles.dimension != 3:
            raise ShapeError("sites out of a plane need three dimensions")
        count = self.parents.places.shape[0]
        position, crossed = self._wrapped_sites(particles)
        rows = {
            "position": position,
            "velocity": jnp.zeros((count, particles.dimension), particles.velocity.dtype),
            "mass": jnp.zeros(count, particles.mass.dtype),
            "image": particles.image[self.parents.places[:, 0]] + crossed,
            "id": jnp.arange(count, dtype=particles.id.dtype),
            "charge": self._of_sites(self.charge, particles.charge),
            "species": self._of_sites(self.species, particles.species),
            "frozen": None,
        }
        sites = replace_fields(particles, rows)
        everyone = concatenate_particles((particles, sites), ("particles", "virtual sites"))
        return put_component(state, self.component, everyone)

    def _of_sites(self, value: Array | None, present: Array | None) -> Array | None:
        if value is None:
            return None
        dtype = value.dtype if present is None else present.dtype
        return jnp.broadcast_to(value, self.parents.places.shape[:1]).astype(dtype)
