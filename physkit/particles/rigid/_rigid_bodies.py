"""Rigid bodies: the component whose members move and turn."""

from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    ParameterError,
    ShapeError,
    cast_floats,
    concrete_primal,
    concrete_value,
    data,
    is_concrete,
    static,
)
from physkit.geometry import AbstractSpace, Free

from .._arguments import (
    Numbers,
    as_argument,
    as_float_array,
    as_integers,
    as_species,
    check_numbers,
)
from .._particles import Particles
from ..decomposition._ownership import Ownership
from ._bodies_of_sites import BodiesOfSites, bodies_of_sites, copies_of_molecule
from ._checks import (
    as_orientation,
    check_inertia,
    check_site_mass,
    is_linear,
    per_body,
    require_moments_in_range,
)
from ._fixed_point_bodies import FixedPointBodies
from ._rigid_motion import AbstractRigidMotion
from ._site_particles import site_particles


class RigidBodies(AbstractRigidMotion):
    """`n` rigid bodies in three dimensions: molecules, clusters, rods, with the sites on which forces act.

        m dv/dt = F,   dL/dt = τ,   x_site = x + R(q) offset

    `drift` moves the centers and turns the bodies freely (NO_SQUISH). `kick` takes a *wrench* on each body,
    `[n 6]`: the force and, about the center, the torque, both in space. So every integrator of drifts and
    kicks moves rigid bodies: `VelocityVerlet` and its compositions, `Leapfrog`, `BAOAB`, `NoseHooverChain`, and
    the heat baths around them.

    `SiteForce(force)` makes such a wrench of any force on particles. Most bodies are built by
    `RigidBodies.from_sites`, `from_particles` or `from_molecule`, which find center and principal axes.

    **Arguments:**

    - `position`: `[n 3]`, centers of mass, length.
    - `inertia`: `[n 3]`, or `[3]` for all: principal moments of inertia I, mass · length². Of a linear body
      the first is 0.
    - `mass`: `[n]`, or one for all; 1 if left out.
    - `space`: `Free()` if left out.
    - `orientation`: `[n 4]` or `[4]`: unit quaternions (w, x, y, z) that turn body axes, which are the
      principal axes, into space; (1, 0, 0, 0) if left out.
    - `velocity`: `[n 3]`, of the centers. `angular_velocity`: `[n 3]`, ω in body axes, or in its place
      `angular_momentum`, L = I ω in body axes. At rest if left out.
    - `sites`: `[n s 3]` or `[s 3]`: places of the sites in body axes, from the center; one at the center if
      left out. All bodies of a component have the same number of them.
    - `site_mass`, `site_charge`, `site_species`: `[n s]`, `[s]` or one for all. Masses of sites share out that
      of the body if left out: only forces on masses, such as gravity, read them.
    - `id`, `image`, `frozen`: as for `Particles`. `species_names`: of the sites.
    - `linear`: whether the bodies are lines; found from the inertia, which a trace may hide.

    Over devices, bodies in a `Box` are cut into slabs, their sites with them; those in `Free()` space are on
    all of them, and each device moves all.

    All numbers are differentiable. In two dimensions, give z = 0 to everything: the motion stays in the plane.

    **Errors:** `ShapeError`; `ParameterError` for masses and moments that are not positive or that no body has
    (I₁ + I₂ < I₃), masses of sites that do not add up to that of the body, quaternions that are not
    normalized, lines beside other bodies.

    **Good values:** a step in which the fastest turns by 0.1 or less; 2 fs for water.

    **Reference:** Miller et al., J. Chem. Phys. 116, 8649 (2002).
    """

    position: Float[Array, "n 3"] = data()
    velocity: Float[Array, "n 3"] = data()
    orientation: Float[Array, "n 4"] = data()
    angular_momentum: Float[Array, "n 3"] = data()
    mass: Float[Array, " n"] = data()
    inertia: Float[Array, "n 3"] = data()
    image: Int[Array, "n 3"] = data()
    id: Int[Array, " n"] = data()
    space: AbstractSpace
    site_offset: Float[Array, "n s 3"] = data()
    site_mass: Float[Array, "n s"] = data()
    site_charge: Float[Array, "n s"] | None = data(None)
    site_species: Int[Array, "n s"] | None = data(None)
    frozen: Bool[Array, " n"] | None = data(None)
    species_names: tuple[str, ...] | None = static(default=None)
    linear: bool = static(default=False)
    fixed_point: FixedPointBodies | None = None  # exact numbers, for Reversible
    ownership: Ownership | None = None  # over devices: which of all bodies these are
    row_names: ClassVar[tuple[str, ...]] = (
        "position", "velocity", "orientation", "angular_momentum", "mass", "inertia", "image", "id",
        "site_offset", "site_mass", "site_charge", "site_species", "frozen",
    )  # fmt: skip

    def __init__(
        self,
        position: Numbers,
        inertia: Numbers,
        mass: Numbers = 1.0,
        space: AbstractSpace | None = None,
        *,
        orientation: Numbers | None = None,
        velocity: Numbers | None = None,
        angular_velocity: Numbers | None = None,
        angular_momentum: Numbers | None = None,
        sites: Numbers | None = None,
        site_mass: Numbers | None = None,
        site_charge: Numbers | None = None,
        site_species: Numbers | None = None,
        species_names: Sequence[str] | None = None,
        id: Numbers | None = None,
        image: Numbers | None = None,
        frozen: Numbers | None = None,
        linear: bool | None = None,
    ):
        x = as_float_array(position)
        if x.ndim != 2 or x.shape[1] != 3:
            raise ShapeError(
                f"centers of rigid bodies are [n 3]; got shape {x.shape}. For motion in a plane, give z = 0"
            )
        n, dtype = x.shape[0], x.dtype
        space = Free() if space is None else space
        space.periodic_axes(3)
        self.position, self.space = x, cast_floats(space, dtype)
        self.mass = as_argument(mass, (n,), dtype, "mass")
        self.inertia = per_body(inertia, (n, 3), dtype, "inertia")
        if not isinstance(inertia, jax.Array) and is_concrete(inertia):
            require_moments_in_range(np.asarray(inertia, float), dtype)
        check_inertia(self.inertia)
        self.linear = is_linear(self.inertia) if linear is None else linear
        self.orientation = as_orientation(orientation, n, dtype)
        self.velocity = as_argument(
            0.0 if velocity is None else velocity, (n, 3), dtype, "velocity"
        )
        if angular_velocity is not None and angular_momentum is not None:
            raise ParameterError("give angular_velocity or angular_momentum, not both")
        if angular_velocity is not None:
            omega = per_body(angular_velocity, (n, 3), dtype, "angular_velocity")
            self.angular_momentum = self.inertia * omega
        else:
            momentum = 0.0 if angular_momentum is None else angular_momentum
            self.angular_momentum = per_body(momentum, (n, 3), dtype, "angular_momentum")
        count = 1 if sites is None else np.shape(sites)[-2]
        offsets = np.zeros((1, 3)) if sites is None else sites
        self.site_offset = per_body(offsets, (n, count, 3), dtype, "sites")
        if site_mass is None:
            self.site_mass = jnp.broadcast_to(self.mass[:, None] / count, (n, count))
        else:
            self.site_mass = per_body(site_mass, (n, count), dtype, "site_mass")
            check_site_mass(self.site_mass, self.mass)
        charge = site_charge
        self.site_charge = (
            None if charge is None else per_body(charge, (n, count), dtype, "site_charge")
        )
        numbers, names = site_species, None if species_names is None else tuple(species_names)
        if np.ndim(site_species) < 2:
            numbers, names = as_species(site_species, species_names, count)
        self.species_names = names
        self.site_species = (
            None if numbers is None else per_body(numbers, (n, count), jnp.int32, "site_species")
        )
        self.id = as_integers(np.arange(n) if id is None else id, n, "id")
        self.image = as_argument(0 if image is None else image, (n, 3), jnp.int32, "image")
        self.frozen = None if frozen is None else as_argument(frozen, (n,), bool, "frozen")
        self.fixed_point, self.ownership = None, None
        check_numbers(self.mass, self.id, None)

    # --- built from sites --------------------------------------------------------------------------

    @staticmethod
    def from_sites(
        position: Numbers,
        mass: Numbers,
        space: AbstractSpace | None = None,
        *,
        velocity: Numbers | None = None,
        **options: Any,
    ) -> "RigidBodies":
        """Bodies made of the places and masses of their sites, with their center of mass and principal axes.

        **Arguments:**

        - `position`: `[n s 3]`, of the sites of each body. In a periodic box the sites of a body are taken by
          the nearest image to its first.
        - `mass`: `[s]` or `[n s]`, of the sites.
        - `velocity`: `[n s 3]`, of the sites; bodies get their momentum and angular momentum.
        - `options`: those of `RigidBodies`: `site_charge`, `site_species`, `id`, …

        **Errors:** `ParameterError` for a body that reaches over half of the box, or of which all mass is at
        one point.

        **Notes:** derivatives by places and masses are exact, also of symmetric bodies as long as they stay so.
        Principal axes of bodies of one shape are alike, unless moments are equal, as in methane: then
        `from_molecule` gives all the same axes.
        """
        made = bodies_of_sites(position, mass, Free() if space is None else space, velocity)
        return _from_made(made, space, options)

    @staticmethod
    def from_particles(particles: Particles, bodies: Numbers, **options: Any) -> "RigidBodies":
        """Bodies of particles that are rigidly joined.

        **Arguments:**

        - `particles`: with masses, velocities, charges and species, which the sites keep.
        - `bodies`: `[n s]` whole numbers: the particles of each body, all frozen or none.

        **Notes:** bodies are numbered anew and start in the first image of their space. Constraints among the
        particles are left behind, since a body needs none.
        """
        rows = np.asarray(bodies)
        if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.integer):
            raise ShapeError(f"bodies is [n s], the numbers of particles; got shape {rows.shape}")
        if rows.size and not 0 <= rows.min() <= rows.max() < particles.num_particles:
            raise ParameterError(
                f"bodies name particles {rows.min()} … {rows.max()}; there are {particles.num_particles}"
            )
        named, counts = np.unique(rows, return_counts=True)
        if rows.size and counts.max() > 1:
            raise ParameterError(
                f"bodies name particle {named[counts.argmax()]} more than once: it belongs to one body"
            )
        frozen = None
        if particles.frozen is not None:
            each = particles.frozen[rows]
            frozen = jnp.any(each, axis=1)
            is_mixed = concrete_value(frozen & ~jnp.all(each, axis=1))
            if is_mixed is not None and np.any(is_mixed):
                raise ParameterError(
                    f"body {np.argmax(is_mixed)} has frozen particles and others: it is frozen as a whole, or "
                    "not at all"
                )
        options = {
            "frozen": frozen,
            "site_charge": None if particles.charge is None else particles.charge[rows],
            "site_species": None if particles.species is None else particles.species[rows],
            "species_names": particles.species_names,
            **options,
        }
        x, v = particles.position[rows], particles.velocity[rows]
        return RigidBodies.from_sites(
            x, particles.mass[rows], particles.space, velocity=v, **options
        )

    @staticmethod
    def from_molecule(
        molecule: Numbers,
        position: Numbers,
        mass: Numbers,
        space: AbstractSpace | None = None,
        *,
        orientation: Numbers | None = None,
        **options: Any,
    ) -> "RigidBodies":
        """Copies of one molecule.

        **Arguments:**

        - `molecule`: `[s 3]`, places of its sites. `mass`: `[s]`.
        - `position`: `[n 3]`, where the centers of mass go.
        - `orientation`: `[n 4]`, quaternions that turn the molecule from how it is given; as given if left out.
          `random_orientations(key, n)` are any.
        - `options`: those of `RigidBodies`.
        """
        made = copies_of_molecule(molecule, position, mass, orientation)
        return _from_made(made, space, options)

    # --- over devices ------------------------------------------------------------------------------

    @property
    def is_everywhere(self) -> bool:
        # Bodies are few. Without a box there are no parts of one to divide them by.
        return isinstance(self.space, Free)

    @property
    def part_reach(self) -> float | None:
        offsets = concrete_primal(self.site_offset)
        return None if offsets is None else float(np.linalg.norm(offsets, axis=-1).max(initial=0.0))

    # --- sites -------------------------------------------------------------------------------------

    @property
    def num_sites(self) -> int:
        """Number of sites of each body."""
        return self.site_offset.shape[-2]

    def site_particles(self) -> Particles:
        """The sites as particles, body after body: site k of body b is particle b·s + k."""
        return site_particles(self)

    @property
    def site_pairs(self) -> Int[np.ndarray, "p 2"]:
        """All pairs of sites of one body, by number: `exclude=` of forces that do not act within a body."""
        first, second = np.triu_indices(self.num_sites, 1)
        pairs = np.stack([first, second], axis=1)
        return (np.arange(self.num_particles)[:, None, None] * self.num_sites + pairs).reshape(
            -1, 2
        )


def _from_made(
    made: BodiesOfSites, space: AbstractSpace | None, options: dict[str, Any]
) -> RigidBodies:
    momentum = None if "angular_velocity" in options else made.angular_momentum
    return RigidBodies(
        made.position,
        made.inertia,
        made.mass,
        space,
        **{
            "orientation": made.orientation,
            "velocity": made.velocity,
            "angular_momentum": momentum,
            "image": made.image,
            "sites": made.offset,
            "site_mass": made.site_mass,
            **options,
        },
    )
