"""Gravity of every body on every other, summed directly."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Clock, Fault, Faults, NotReversible, ParameterError, param, static

from ..._particles import Particles
from ...neighbors import PAIRS_PER_BLOCK
from .._force import AbstractForce
from ._pair_sum import direct_sum

Components = tuple[Array, ...]

_TOGETHER = 4  # bodies j at once: few enough that all their temporaries stay in registers
_FEW = 100  # bodies for which a loop over j costs more than it saves
_MANY = 512  # bodies for which a step of that loop costs more than a small matrix product


class DirectGravity(AbstractForce):
    """Newtonian gravity between all pairs of particles, with Plummer softening.

        Fᵢ = −G mᵢ Σⱼ mⱼ (xᵢ − xⱼ) / (rᵢⱼ² + ε²)^(3/2),   U = −G Σ_{i<j} mᵢ mⱼ / (rᵢⱼ² + ε²)^½

    Exact: n² pairs a step, at 2 to 3·10⁹ (float32) or 10⁹ (float64) pairs a second on one core.
    Memory is of order n, in derivatives too. Masses are differentiable: bodies can be weighed by
    the motion of others.

    **Arguments:**

    - `constant`: G, length³ / (mass · time²); 1 in N-body units, 2.9591220828559093e-4 in au, days
      and solar masses.
    - `softening`: ε, length; 0 for point masses. Some 1 to 4 % of the system's size for star
      clusters without close binaries.
    - `of`: name of the particle component; None where the state is one component.

    **Errors:** `ParameterError` in a periodic space, where the sum over images does not converge
    (use a particle mesh). Two bodies on one spot without softening: `OverlapError`.

    **Notes:** the same law in one and two dimensions: bodies of our space that stay on a line or
    in a plane. In float32 forces are good to some 10⁻⁷ of themselves; positions relative to a
    distant origin are not: put the origin near the bodies. Over devices (in a `Box` that does not
    repeat) each sums the pull on its own bodies, and is told of all of them in every step.

    **Reference:** Aarseth, Gravitational N-Body Simulations (2003), eq. 1.1 and section 2.2.
    """

    conserves_momentum: ClassVar[bool] = True

    constant: Float[Array, ""] = param(1.0)
    softening: Float[Array, ""] = param(0.0)
    component: str | None = static(default=None)

    @property
    def needs_halo(self) -> bool:
        return False  # over devices every one is sent all bodies

    def init(self, state: Any) -> Faults:
        _check(self.particles(state))
        return Faults.none()

    def __call__(self, clock: Clock, state: Any, cache: Faults):
        force = self.force(clock, state)
        bodies = self.particles(state)
        sane = jnp.all(jnp.isfinite(bodies.position)) & jnp.all(jnp.isfinite(bodies.mass))
        return force, cache.set_if(Fault.OVERLAP, sane & ~jnp.all(jnp.isfinite(force)))

    def require_reversible(self, state: Any) -> None:
        """**Errors:** `NotReversible` over devices, where rows are added in an order that is theirs."""
        if self.particles(state).is_distributed:
            raise NotReversible(
                "DirectGravity over devices adds in an order that depends on who holds a body, which is "
                "another matter on the way back: use adjoint=NestedCheckpoint() or Binomial(n)"
            )

    def force(self, clock: Clock, state: Any) -> Float[Array, "n d"]:
        del clock
        bodies = self.particles(state)
        _check(bodies)
        if bodies.is_distributed:
            pull = _own_rows(_pull, bodies, self.softening**2)
        else:
            pull = _attraction(_components(bodies), bodies.mass, self.softening**2)
        return self.constant * jnp.stack(pull, axis=1)

    def energy(self, clock: Clock, state: Any, cache: Any = None) -> Float[Array, ""]:
        del clock, cache
        bodies = self.particles(state)
        _check(bodies)
        if bodies.is_distributed:
            each = _own_rows(_depth, bodies, self.softening**2)
        else:
            each = direct_sum(_depth, (_components(bodies), bodies.mass), self.softening**2, 1)
        return -0.5 * self.constant * bodies.space.sum(jnp.sum(each))

    def virial(self, clock: Clock, state: Any, cache: Any = None) -> Float[Array, "d d"]:
        del cache
        # Σ over pairs of r ⊗ f is Σ over bodies of x ⊗ F, from any origin: no total force.
        bodies = self.particles(state)
        middle = bodies.sum(bodies.position) / bodies.num_particles
        x = bodies.position - middle[None]
        return bodies.space.sum(jnp.matmul(x.T, self.force(clock, state), precision="highest"))


def _own_rows(kernel: Any, bodies: Particles, softening2: Float[Array, ""]) -> Any:
    """Sums of `kernel` over all bodies of the domain, for those of this device.

    Every device is told of every body: the one message whose size does not shrink with their number.
    """
    share, d = bodies.ownership, bodies.dimension
    assert share is not None
    own = jnp.concatenate([bodies.position, bodies.mass[:, None]], axis=1)
    everyone = bodies.all_rows(own)
    others = tuple(everyone[:, k] for k in range(d)), everyone[:, d]
    number = jnp.arange(share.num_particles, dtype=jnp.int32)

    def row(body):
        own, place, alive = body
        mine = tuple(own[k] for k in range(d)), own[d]
        terms = kernel(mine, others, softening2, alive & (number != place))
        return jax.tree.map(jnp.sum, terms)

    together = max(1, PAIRS_PER_BLOCK // max(share.num_particles, 1))
    rows = own, share.global_index, share.mask
    return jax.lax.map(jax.checkpoint(row), rows, batch_size=min(together, bodies.num_slots))


@jax.custom_jvp
def _attraction(x: Components, mass: Float[Array, " n"], softening2: Float[Array, ""]):
    """mᵢ Σⱼ mⱼ (xⱼ − xᵢ)/(r² + ε²)^(3/2), by components."""
    # On a CPU a loop over j with all i as one vector is twice as fast as blocks of pairs; on
    # other devices blocks keep many more of their cores busy.
    if mass.shape[0] <= _FEW:
        return _in_blocks(x, mass, softening2)
    return jax.lax.platform_dependent(x, mass, softening2, cpu=_one_by_one, default=_in_blocks)


def _attraction_jvp(primals, tangents):
    # Only what moves is differentiated: a zero tangent would cost as much as any other.
    values, tree = jax.tree.flatten(primals)
    dots = tree.flatten_up_to(tangents)
    moving = [not isinstance(t, jax.custom_derivatives.SymbolicZero) for t in dots]

    def blocks(*moved):
        rest = iter(moved)
        merged = [next(rest) if m else v for v, m in zip(values, moving, strict=True)]
        return _in_blocks(*tree.unflatten(merged))

    chosen = [v for v, m in zip(values, moving, strict=True) if m]
    _, out = jax.jvp(blocks, chosen, [t for t, m in zip(dots, moving, strict=True) if m])
    return _attraction(*primals), out


_attraction.defjvp(_attraction_jvp, symbolic_zeros=True)


def _in_blocks(x: Components, mass: Array, softening2: Array) -> Components:
    return direct_sum(_pull, (x, mass), softening2, -1)


def _pull(own, other, softening2, present):
    (xi, mi), (xj, mj) = own, other
    d = tuple(b - a for a, b in zip(xi, xj, strict=True))
    inverse = _inverse_distance(d, softening2, present)
    weight = jnp.where(present, mi * mj * inverse * inverse * inverse, 0)
    return tuple(weight * c for c in d)


def _depth(own, other, softening2, present):
    (xi, mi), (xj, mj) = own, other
    d = tuple(b - a for a, b in zip(xi, xj, strict=True))
    return jnp.where(present, mi * mj * _inverse_distance(d, softening2, present), 0)


def _inverse_distance(d: Components, softening2: Array, present: Array) -> Array:
    return jax.lax.rsqrt(jnp.where(present, sum(c * c for c in d) + softening2, 1))


def _one_by_one(x: Components, mass: Array, softening2: Array) -> Components:
    n = mass.shape[0]
    here = jnp.arange(n, dtype=jnp.int32)
    bodies = jnp.stack([*x, mass])
    unit = jnp.eye(_TOGETHER, dtype=mass.dtype)

    def pulled_by(first, group, total):
        for q in range(group.shape[1]):
            d = tuple(place[q] - c for place, c in zip(group[:-1], x, strict=True))
            inverse = _inverse_distance(d, softening2, here != first + q)
            pull = group[-1, q] * inverse * inverse * inverse
            total = tuple(t + pull * c for t, c in zip(total, d, strict=True))
        return total

    def step(k, total):
        group = jax.lax.dynamic_slice_in_dim(bodies, _TOGETHER * k, _TOGETHER, axis=1)
        if n >= _MANY:
            # XLA (JAX ≥ 0.12) takes this loop for a small one and compiles it two to three times
            # slower, unless there is a matrix product in it: one with the unit matrix is exact.
            group = jnp.matmul(group, unit, precision="highest")
        return pulled_by(_TOGETHER * k, group, total)

    groups, rest = divmod(n, _TOGETHER)
    total = tuple(jnp.zeros_like(c) for c in x)
    total = jax.lax.fori_loop(0, groups, step, total)
    if rest:
        total = pulled_by(n - rest, bodies[:, n - rest :], total)
    return tuple(mass * t for t in total)


def _components(bodies: Particles) -> Components:
    return tuple(bodies.position[:, k] for k in range(bodies.dimension))


def _check(bodies: Particles) -> None:
    if any(bodies.space.periodic_axes(bodies.dimension)):
        raise ParameterError(
            "DirectGravity needs a space without periodic axes: give Particles(space=Free()); "
            "in a periodic box gravity is summed on a mesh"
        )
