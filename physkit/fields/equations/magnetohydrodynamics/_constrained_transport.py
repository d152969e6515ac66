"""Electric fields on the edges of cells, from the fluxes through their faces."""

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ratio, safe_clip, safe_maximum
from physkit.geometry import Boundaries, Dirichlet, Mirror

from ..._field import Field
from ...finite_volume import Variables
from ...operators import half_cell_neighbors


def edge_field(
    electric: tuple[Field, Field], flow: tuple[Field, Field], cell: Field, axes: tuple[int, int]
) -> Field:
    """The electric field along the edges across two axes: the mean of four faces, corrected from upstream.

        E = ¼ Σ E_face + ¼ Σ (E_face − E_cell)_{upstream}

    For a flow along the grid it is the one-dimensional solver's, so that nothing decouples.

    **Arguments:**

    - `electric`: the component along the edges, on the faces across either axis.
    - `flow`: on those faces, which way the gas goes: from −1 to 1, as `flow_direction` says.
    - `cell`: the component in the cells.
    - `axes`: the two.

    **Reference:** Gardiner & Stone, J. Comput. Phys. 205, 509 (2005), eqs. 41, 45 and 50; 227, 4123 (2008).
    """
    total = None
    for own, (a, b) in enumerate((axes, axes[::-1])):
        faces = half_cell_neighbors(electric[own], b)
        signs = half_cell_neighbors(flow[own], b)
        # What the faces across b have over the cells on either side of them, taken from upstream along a.
        across = electric[1 - own]
        for face, sign, inner in zip(faces, signs, half_cell_neighbors(cell, b), strict=True):
            excess = across.replace(data=across.data - inner)
            before, after = half_cell_neighbors(excess, a)
            upstream = 0.5 * ((before + after) + sign * (before - after))
            part = face + upstream
            total = part if total is None else total + part
    location = electric[0].location.staggered_along(axes[1])
    assert total is not None
    return electric[0].with_values(0.25 * total, location=location)


def odd_at_mirrors(boundary: Boundaries) -> Boundaries:
    """Sides of an electric field along a wall: a mirror, which conducts, holds it at 0."""
    return tuple(
        sides and tuple(Dirichlet(0.0) if isinstance(s, Mirror) else s for s in sides)
        for sides in boundary
    )


def electric_fields(velocity: tuple[Array, ...], magnetic: tuple[Array, ...], k: int) -> Array:
    """The component k of E = −u×B."""
    i, j = (k + 1) % 3, (k + 2) % 3
    return velocity[j] * magnetic[i] - velocity[i] * magnetic[j]


def face_electric_field(fluxes: tuple[Array, ...], axis: int, k: int) -> Array:
    """The component k of E at faces across `axis`, from the fluxes (f_x, f_y, f_z) of B through them."""
    other = 3 - axis - k
    # ε of (axis, other, k): 1 for a cyclic order.
    return -fluxes[other] if (other - axis) % 3 == 1 else fluxes[other]


def flow_direction(mass_flux: Array, left: Variables, right: Variables, axis: int) -> Array:
    """The way that mass goes through a face: ±1 in a stream, 0 where both sides are at rest or meet.

    Not its sign, which next to a wall is that of rounding.
    """
    (rho, *u, p), (sigma, *v, q) = left[:5], right[:5]
    stream = 0.5 * (rho * jnp.abs(u[axis]) + sigma * jnp.abs(v[axis]))
    # Slower than this part of sound is at rest.
    impedances = (jnp.sqrt(a) * jnp.sqrt(b) for a, b in ((p, rho), (q, sigma)))
    rest = jnp.finfo(rho.dtype).eps ** 0.5 * safe_maximum(*impedances)
    return safe_clip(ratio(mass_flux, stream + rest), -1, 1)
