"""What terms of an incompressible flow ask of it: a `FlowState`, and sides that are balanced."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    AbstractTerm,
    ComponentError,
    DeclarationError,
    Module,
    ParameterError,
    State,
    StepSizeError,
    concrete_value,
    get_component,
    poison_where,
)
from physkit.geometry import Dirichlet, Outflow

from ..._field import Field
from ...states._flow_state import FlowState
from ..solid._solids import AbstractSolid


def require_flow(state: State, component: str | None, what: str) -> FlowState:
    """The flow called `component`.

    **Errors:** `ComponentError` for anything else.
    """
    flow = get_component(state, component)
    if not isinstance(flow, FlowState):
        raise ComponentError(
            f"{what} acts on a FlowState, not on {type(flow).__name__}: FlowState.of(grid, boundary=…)"
        )
    return flow


def require_balanced_sides(flow: FlowState) -> None:
    """**Errors:** `ParameterError` where all sides are given, and more enters than leaves; at t = 0, where
    numbers can be seen."""
    if _is_open(flow) or not _may_be_unbalanced(flow, constants=True):
        return
    net, gross = _net_flux(tuple(u.at_time(0.0) for u in flow.velocity))
    numbers = concrete_value(net), concrete_value(gross)
    if any(x is None for x in numbers):
        return
    net, gross = (float(np.asarray(x)) for x in numbers)
    if abs(net) > 1e-5 * gross:
        raise ParameterError(
            f"{'more' if net < 0 else 'less'} fluid enters through the sides than leaves, by {abs(net):.6g} of "
            f"{gross:.6g} volume / time, and it cannot be compressed: balance the velocities, or let a side be "
            "Outflow()"
        )


def require_short_step(flow: FlowState, viscosity: Array, dt: Array, implicit: bool) -> None:
    """**Errors:** `StepSizeError` where a step is far too long, as far as numbers can be seen."""
    grid = flow.grid
    if any(concrete_value(x) is None for x in (viscosity, dt, grid.spacing, flow.velocity_x.data)):
        return
    h, step, nu = np.asarray(grid.spacing, float), float(dt), float(viscosity)
    speeds = [float(np.max(np.abs(np.asarray(u.data)))) for u in flow.velocity]
    courant = step * sum(u / size for u, size in zip(speeds, h, strict=True))
    diffused = step * nu * float(np.sum(1 / h**2))
    # Creeping flows bear more: viscosity damps what advection would make grow.
    if courant > 2 and courant > diffused:
        raise StepSizeError(
            f"dt = {step:.3g} is {courant:.3g} times what the flow takes to cross a cell: take dt ≤ "
            f"{0.7 * step / courant:.3g}, or CFLSubsteps"
        )
    if not implicit and diffused > 0.75:
        raise StepSizeError(
            f"dt = {step:.3g} is beyond the limit of explicit viscosity: take dt ≤ "
            f"{0.5 * step / diffused:.3g}, or implicit=True"
        )


def require_motion(solids: Sequence[AbstractSolid], others: Sequence[AbstractTerm]) -> None:
    """**Errors:** `DeclarationError` for bodies that a flow moves where no term knows it."""
    for name in dict.fromkeys(solid.moved_component for solid in solids):
        if name is None:
            continue
        movers = [kind for term in others for kind, part in term.drifts if part == name]
        if movers != ["ImmersedMotion"]:
            raise DeclarationError(
                f"{name!r} are bodies in a flow, which ImmersedMotion(bodies, …) moves beside it, and nothing "
                f"else; here {' and '.join(movers) or 'nothing'} moves them"
            )


def poison_unbalanced(flow: FlowState, velocity: Sequence[Field]) -> list[Field]:
    """`velocity`; NaN where all sides are given, and functions of time let more enter than leave."""
    if _is_open(flow) or not _may_be_unbalanced(flow, constants=False):
        return list(velocity)
    net, gross = _net_flux(velocity)
    bad = jnp.abs(net) > 1e-4 * gross
    return [u.replace(data=poison_where(u.data, bad)) for u in velocity]


def _net_flux(velocity: Sequence[Field]) -> tuple[Array, Array]:
    """What leaves through all sides less what enters, and the sum of both; volume / time."""
    net, gross = [], []
    grid = velocity[0].grid
    for k, u in enumerate(velocity):
        if grid.periodic[k]:
            continue
        for side in (0, 1):
            wall = jnp.take(u.data, -side, axis=k)
            wall = jnp.where(grid.touches_side(k, side), wall, 0.0) * (2 * side - 1)
            area = grid.cell_volume / grid.spacing[k]
            net.append(grid.space.comm.psum(jnp.sum(wall)) * area)
            gross.append(grid.space.comm.psum(jnp.sum(jnp.abs(wall))) * area)
    return sum(net[1:], net[0]), sum(gross[1:], gross[0])


def _is_open(flow: FlowState) -> bool:
    return all(flow.grid.periodic) or any(isinstance(side, Outflow) for side in _normal_sides(flow))


def _may_be_unbalanced(flow: FlowState, *, constants: bool) -> bool:
    """Whether fluid may pass a side: by a function of time, or (`constants`) a number other than 0."""
    for side in _normal_sides(flow):
        if not isinstance(side, Dirichlet):
            continue
        if isinstance(side.value, Module):
            return True
        number = concrete_value(side.value)
        if constants and (number is None or np.any(number != 0)):
            return True
    return False


def _normal_sides(flow: FlowState) -> list:
    """The sides of every component along its own axis."""
    return [
        side
        for k, u in enumerate(flow.velocity)
        if not flow.grid.periodic[k]
        for side in u.boundary[k] or ()
    ]
