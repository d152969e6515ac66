"""The sites of rigid bodies as particles: what forces see of them."""

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import build_unchecked

from .._particles import Particles
from ._quaternions import rotate

# Bodies make particles of their sites: at run time only one knows the other's class.
if TYPE_CHECKING:
    from ._rigid_bodies import RigidBodies
else:
    RigidBodies = Any


def site_arms(bodies: RigidBodies) -> Float[Array, "n s 3"]:
    """From the centers to the sites, in space."""
    return rotate(bodies.orientation[:, None], bodies.site_offset)


def site_particles(bodies: RigidBodies) -> Particles:
    """The sites as particles, body after body, with the motion that they have."""
    count = bodies.num_sites
    arms = site_arms(bodies)

    def repeat(x: Array) -> Array:
        return jnp.repeat(x, count, axis=0, total_repeat_length=count * x.shape[0])

    def flatten(x: Array | None) -> Array | None:
        return None if x is None else x.reshape(-1, *x.shape[2:])

    position, crossed = bodies.space.wrap_with_image(flatten(bodies.position[:, None] + arms))
    turning = jnp.cross(bodies.angular_velocity[:, None], arms)
    number = jnp.arange(count, dtype=bodies.id.dtype)
    return build_unchecked(
        Particles,
        {
            "position": position,
            "velocity": flatten(bodies.velocity[:, None] + turning),
            "mass": flatten(bodies.site_mass),
            "image": repeat(bodies.image) + crossed,
            "id": flatten(bodies.id[:, None] * count + number[None]),
            "space": bodies.space,
            "charge": flatten(bodies.site_charge),
            "species": flatten(bodies.site_species),
            "frozen": None if bodies.frozen is None else repeat(bodies.frozen),
            "species_names": bodies.species_names,
            "fixed_point": None,
            "ownership": None if bodies.ownership is None else bodies.ownership.of_parts(count),
            "constraints": None,
        },
    )
