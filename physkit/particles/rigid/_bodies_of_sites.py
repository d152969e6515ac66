"""Rigid bodies made of their sites: centers of mass, principal axes, and the motion that sites have."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import Module, ParameterError, ShapeError, concrete_value, data, einsum, ratio
from physkit.geometry import AbstractSpace, Free

from .._arguments import Numbers, as_argument, as_float_array
from ._checks import as_masses, as_orientation, require_moments_in_range
from ._principal_axes import principal_axes
from ._quaternions import from_matrix, multiply


class BodiesOfSites(Module):
    """What sites say about their bodies; see the fields of `RigidBodies`."""

    position: Float[Array, "n 3"] = data()
    velocity: Float[Array, "n 3"] = data()
    orientation: Float[Array, "n 4"] = data()
    angular_momentum: Float[Array, "n 3"] = data()
    mass: Float[Array, " n"] = data()
    inertia: Float[Array, "n 3"] = data()
    image: Int[Array, "n 3"] = data()
    offset: Float[Array, "n s 3"] = data()
    site_mass: Float[Array, "n s"] = data()


def bodies_of_sites(
    position: Numbers, mass: Numbers, space: AbstractSpace, velocity: Numbers | None
) -> BodiesOfSites:
    """The bodies of sites at these places, `[n s 3]`.

    **Errors:** as of `RigidBodies.from_sites`.
    """
    x = as_float_array(position)
    if x.ndim != 3 or x.shape[2] != 3:
        raise ShapeError(
            f"sites of rigid bodies are [n s 3], body by body; got shape {x.shape}. For motion in a plane, "
            "give z = 0"
        )
    n, count = x.shape[:2]
    masses = as_masses(mass, n, count, x.dtype)
    v = as_argument(0.0 if velocity is None else velocity, x.shape, x.dtype, "velocity")
    made, longest, per_mass = _reduce(x, v, masses, space)
    _check_extent(longest, space)
    _check_shape(per_mass, made.mass, count)
    return made


def copies_of_molecule(
    molecule: Numbers, position: Numbers, mass: Numbers, orientation: Numbers | None
) -> BodiesOfSites:
    """Copies of one molecule, `[s 3]`, with their centers of mass at `position`, `[n 3]`."""
    sites, centers = as_float_array(molecule), as_float_array(position)
    if sites.ndim != 2 or centers.ndim != 2 or centers.shape[1] != 3:
        raise ShapeError(
            f"a molecule is [s 3] and its centers are [n 3]; got shapes {sites.shape} and {centers.shape}"
        )
    one = bodies_of_sites(sites[None].astype(centers.dtype), mass, Free(), None)
    turned = as_orientation(orientation, centers.shape[0], centers.dtype)
    return _copy(one, centers, turned)


@eqx.filter_jit
def _copy(
    one: BodiesOfSites, centers: Float[Array, "n 3"], turned: Float[Array, "n 4"]
) -> BodiesOfSites:
    all_of_one = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(centers), *x.shape[1:])), one)
    orientation = multiply(turned, all_of_one.orientation)
    return BodiesOfSites(
        centers,
        all_of_one.velocity,
        orientation,
        all_of_one.angular_momentum,
        all_of_one.mass,
        all_of_one.inertia,
        all_of_one.image,
        all_of_one.offset,
        all_of_one.site_mass,
    )


@eqx.filter_jit
def _reduce(
    x: Float[Array, "n s 3"],
    v: Float[Array, "n s 3"],
    mass: Float[Array, "n s"],
    space: AbstractSpace,
) -> tuple[BodiesOfSites, Float[Array, ""], Float[Array, "n 3"]]:
    """The bodies, the largest distance of a site from the first of its body, and moments of inertia / mass."""
    # By the nearest image to the first site: a body may stand across the border of the box.
    from_first = space.displacement(x, x[:, :1])
    total = jnp.sum(mass, axis=1)
    share = ratio(mass, total[:, None])
    center = jnp.sum(share[..., None] * from_first, axis=1)
    arm = from_first - center[:, None]
    per_mass, axes = principal_axes(arm, share)
    inertia = total[:, None] * per_mass
    drift = jnp.sum(share[..., None] * v, axis=1)
    spin = jnp.sum(mass[..., None] * jnp.cross(arm, v - drift[:, None]), axis=1)
    position, image = space.wrap_with_image(x[:, 0] + center)
    momentum = jnp.where(inertia > 0, einsum("nik,ni->nk", axes, spin), 0)
    made = BodiesOfSites(
        position,
        drift,
        from_matrix(axes),
        momentum,
        total,
        inertia,
        image,
        einsum("nik,nsi->nsk", axes, arm),
        mass,
    )
    return made, jnp.sqrt(jnp.max(jnp.sum(from_first**2, axis=-1), initial=0)), per_mass


def _check_extent(longest: Array, space: AbstractSpace) -> None:
    reach = concrete_value(longest)
    limit = concrete_value(space.max_cutoff(3)) if any(space.periodic_axes(3)) else None
    if reach is not None and limit is not None and reach > 0.98 * limit:
        raise ParameterError(
            f"a rigid body reaches over {reach:.4g}, by the nearest image, in a box whose half is {limit:.4g}: "
            "its sites are split over the border of another box than space=…, or belong to several bodies"
        )


def _check_shape(per_mass: Array, mass: Array, count: int) -> None:
    moments, masses = concrete_value(per_mass), concrete_value(mass)
    if moments is None or masses is None or not len(moments):
        return
    if not (moments[:, 1:] > 0).all():
        b = int(np.argmin(moments[:, 2]))
        raise ParameterError(
            f"the {count} sites of body {b} have all their mass at one point, which does not turn: use "
            "Particles"
        )
    require_moments_in_range(moments.astype(float) * masses[:, None], moments.dtype)
