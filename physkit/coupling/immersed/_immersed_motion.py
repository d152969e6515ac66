"""The motion of rigid bodies in an incompressible flow under forces of other kinds."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    AbstractTerm,
    Cache,
    Clock,
    DeclarationError,
    Rate,
    State,
    combine_rates,
    describe,
    einsum,
    get_component,
    matmul,
    ratio,
    safe_divide,
    static,
)
from physkit.fields import FieldIncrement, FlowState
from physkit.fields.equations import as_solids
from physkit.geometry import AXES
from physkit.particles.forces import Forces

from ._displaced_fluid import among_all, covered_volumes, displaced_inertia, motions
from ._immersed_body import ImmersedBody


class ImmersedMotion(AbstractTerm):
    """How bodies in a flow move and turn, and what forces beside the flow do to them.

        dx/dt = v,   dv/dt = F/m,   dq/dt = ½ q ⊗ ω,   dL/dt = τ

    Goes beside `IncompressibleFlow(…, solids=bodies)`, which adds what the flow does. The fluid that stands in
    the place of a body is accelerated with it.

    **Arguments:**

    - `bodies`: the `ImmersedBody` that move, all of those of the flow.
    - `flow`: the name of the `FlowState`.
    - `force`: on the rigid bodies: `ExternalWrench`, `SiteForce`, or a sum; none if left out. Weight is
      that which buoyancy leaves, (m − ρV)g.

    **Errors:** `DeclarationError` for bodies of the flow that nothing moves, or that `EquationsOfMotion` moves,
    too: there the fluid in their place would hold them back.
    """

    bodies: tuple[ImmersedBody, ...] = eqx.field(converter=as_solids)
    flow: str = static(default="flow")
    force: Forces = eqx.field(default=(), converter=lambda f: Forces.of(*([f] if f != () else [])))

    def __check_init__(self):
        for body in self.bodies:
            if not isinstance(body, ImmersedBody):
                raise DeclarationError(
                    f"ImmersedMotion moves ImmersedBody(…); got {describe(body)}"
                )

    @property
    def drifts(self) -> tuple[tuple[str, str | None], ...]:
        names = dict.fromkeys(body.bodies for body in self.bodies)
        return tuple((type(self).__name__, name) for name in names)

    def init(self, state: State) -> Cache:
        return self.force.init(state)

    def __call__(self, clock: Clock, state: State, cache: Cache) -> tuple[Rate, Cache]:
        forces, cache = self.force(clock, state, cache)
        for body in self.bodies:
            still = jnp.zeros_like(body.body(state).generalized_velocity)
            forces = {body.bodies: still, **forces}
        rates: dict[str | None, State] = {
            name: get_component(state, name).rate(force) for name, force in forces.items()
        }
        flow = get_component(state, self.flow).at_time(clock.t)
        parts = [
            self._of_fluid(body, clock, state, flow, forces[body.bodies]) for body in self.bodies
        ]
        rates[self.flow] = combine_rates([1] * len(parts), parts)
        return rates, cache

    def _of_fluid(
        self, body: ImmersedBody, clock: Clock, state: State, flow: FlowState, force: Array
    ) -> dict[str, FieldIncrement]:
        """The acceleration by the force, of the fluid in the place of a body."""
        grid, bodies, placed = flow.grid, body.body(state), body.place(state, flow.grid)
        turned, moments = placed.turned, body.own(bodies, bodies.inertia)
        wrench = body.own(bodies, force)
        torque = matmul(turned, wrench[3:])
        turning = matmul(turned.T, safe_divide(torque, moments))
        push = ratio(wrench[:3], body.own(bodies, bodies.mass))
        d = grid.dimension
        wanted = jnp.concatenate([push[:d], turning if d == 3 else turning[2:]])
        shares, units, places, covered = [], [], [], []
        for k, u in enumerate(flow.velocity):
            x = tuple(u.coordinates)
            distance = jnp.broadcast_to(placed.distance(clock.t, x), u.data.shape)
            around, inside = covered_volumes(u, distance)
            which, here = motions(k, placed.from_center(x))
            place = among_all(which, d, u.data)
            products = grid.sum(here[:, None] * (inside[None] * here)[None])
            covered.append(einsum("qi,qr,rj->ij", place, products, place))
            shares.append(inside / around)
            units.append(here)
            places.append(place)
        # The cells that it covers are not quite its volume: they get the momentum that its volume should have.
        total = matmul(displaced_inertia(placed), wanted)
        motion = jnp.linalg.solve(sum(covered[1:], covered[0]), total)
        out = {}
        for k, u in enumerate(flow.velocity):
            each = matmul(places[k], motion).reshape(-1, *[1] * d)
            values = (shares[k] * jnp.sum(units[k] * each, axis=0)).astype(u.data.dtype)
            out[f"velocity_{AXES[k]}"] = FieldIncrement(values, u.location)
        return out
