"""The projection of a staggered flow onto those without divergence."""

from collections.abc import Sequence
from typing import TypeAlias

import jax.numpy as jnp

from physkit.core import ShapeError, explain_call
from physkit.geometry import AbstractBoundary, Dirichlet, Mirror, Neumann, NoSlip, Outflow

from .._field import Field
from ..operators import Central, difference, staggered_divergence
from ._poisson import solve_by_transforms
from ._wall_parities import solution_template

# One field per axis, each on the faces across its axis: a sequence, or a dict in the order of axes.
StaggeredVelocity: TypeAlias = Sequence[Field] | dict[str, Field]


@explain_call
def project(velocity: StaggeredVelocity) -> tuple[StaggeredVelocity, Field]:
    """The nearest flow without divergence, and the potential that was taken out.

        u ← u − ∇φ,   ∇²φ = ∇·u

    On a staggered grid, to rounding: `staggered_divergence` of the result vanishes.

    **Arguments:**

    - `velocity`: one field per axis, each on the faces across its axis, as a tuple or a dict (by axis, in
      order). Through walls with `Dirichlet`, `Mirror` or `NoSlip` the flow stays as it is; at `Outflow`
      and `Neumann` sides φ is zero and the flow adjusts.

    **Returns:** the velocity in the form it came in, with its boundaries, and φ; pressure is φ·ρ/dt.

    **Errors:** `ShapeError` for fields elsewhere than on faces; `ParameterError` where no side is open and
    more enters than leaves.

    **Reference:** Chorin, Math. Comput. 22, 745 (1968); Harlow & Welch, Phys. Fluids 8, 2182 (1965).
    """
    parts = tuple(velocity.values()) if isinstance(velocity, dict) else tuple(velocity)
    grid = parts[0].grid
    if len(parts) != grid.dimension or any(
        u.location != grid.face(k) or u.components for k, u in enumerate(parts)
    ):
        raise ShapeError(
            f"a staggered velocity has one scalar field per axis, on the faces across it; got "
            f"{[repr(u.location) for u in parts]} in a box with {grid.dimension} axes"
        )
    boundary = {
        axis: tuple(_boundary_of_potential(side) for side in pair)
        for axis, u in enumerate(parts)
        if not grid.periodic[axis] and (pair := u.boundary[axis]) is not None
    }
    source = staggered_divergence(parts)
    template = solution_template(source, boundary, 0.0)
    # The divergence is a sum that nearly cancels: its rounding is that of what was summed.
    magnitudes = sum(grid.sum(jnp.abs(u.data)) / grid.spacing[k] for k, u in enumerate(parts))
    potential = template.replace(
        data=solve_by_transforms(source.data, template, None, Central(2), magnitudes)
    )
    # `difference` is minus the transpose of `staggered_divergence`, and their product the stencil that was
    # solved for: the divergence vanishes to rounding, not to the order of the scheme.
    projected = tuple(
        u.replace(data=u.data - difference(potential, k).data) for k, u in enumerate(parts)
    )
    if isinstance(velocity, dict):
        return dict(zip(velocity, projected, strict=True)), potential
    return projected, potential


def _boundary_of_potential(side: AbstractBoundary) -> AbstractBoundary:
    """Zero slope where the flow is given, zero value where it adjusts."""
    if isinstance(side, Dirichlet | Mirror | NoSlip):
        return Neumann(0.0)
    if isinstance(side, Outflow | Neumann):
        return Dirichlet(0.0)
    raise ShapeError(f"no projection at a side with {side!r}")
