"""Gravity of every body on every other, summed directly."""

import functools
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import (
    Cache,
    Clock,
    Fault,
    Faults,
    NotReversible,
    ParameterError,
    PyTree,
    State,
    custom_jvp,
    matmul,
    param,
    require_nonnegative,
    static,
)
from physkit.native import native_code_is_used

from ..._particles import Particles
from ...neighbors import PAIRS_PER_BLOCK
from .._force import AbstractForce
from ._pair_sum import direct_sum
from ._units_of_sums import has_wide_range, largest, power_of_two_above

Components = tuple[Array, ...]
Bodies = tuple[Components, Array]  # positions by components, masses

_MASS_BITS = 20  # the heaviest body is as many binades above 1 in the units of the sums
_GROUP = 4  # bodies j per turn of the loop: few enough that all temporaries stay in registers
_MIN_BODIES_FOR_LOOP = 101  # below this, a loop over j costs more than it saves
_MIN_BODIES_FOR_PRODUCT = (
    512  # from here on, a turn of that loop costs more than a small matrix product
)


class DirectGravity(AbstractForce):
    """Newtonian gravity between all pairs of particles, with Plummer softening.

        Fᵢ = −G mᵢ Σⱼ mⱼ (xᵢ − xⱼ) / (rᵢⱼ² + ε²)^(3/2),   U = −G Σ_{i<j} mᵢ mⱼ / (rᵢⱼ² + ε²)^½

    Exact: n² pairs a step, at 2 to 3·10⁹ (float32) or 10⁹ (float64) pairs a second on one core.
    Memory is of order n, also in derivatives. Masses are differentiable, so that a fit can weigh bodies by
    the motion of others.

    **Arguments:**

    - `constant`: G, length³ / (mass · time²); 1 in N-body units, 2.9591220828559093e-4 in au, days
      and solar masses.
    - `softening`: ε, length; 0 for point masses. Some 1 to 4 % of the system's size for star
      clusters without close binaries.
    - `component`: name of the particle component; None where the state is one component.

    **Errors:** `ParameterError` in a periodic space, where the sum over images does not converge
    (use a particle mesh). Two bodies on one spot without softening: `OverlapError`.

    **Notes:** the same law in one and two dimensions: bodies in three-dimensional space that stay on a line
    or in a plane. In float32, forces have a relative error of some 10⁻⁷, in SI units as in any others (a force
    beyond 10³⁸ or below 10⁻³⁸ is `RangeError`); positions far from the origin lose digits, so put the origin
    near the bodies. Over devices (in a `Box` that is not periodic) each device
    sums the forces on its own bodies, and receives all bodies in every step.

    **Reference:** Aarseth, Gravitational N-Body Simulations (2003), eq. 1.1 and section 2.2.
    """

    conserves_momentum: ClassVar[bool] = True
    ignores_velocities: ClassVar[bool] = True

    constant: Float[Array, ""] = param(1.0)
    softening: Float[Array, ""] = param(0.0)
    component: str | None = static(default=None)

    def __check_init__(self):
        require_nonnegative(self, "softening")

    @property
    def needs_halo(self) -> bool:
        return False  # every device receives all bodies

    def init(self, state: State) -> Faults:
        _check(self.particles(state))
        return Faults.none()

    def __call__(self, clock: Clock, state: State, cache: Faults) -> tuple[Array, Faults]:
        force, scaled = self._force(state)
        bodies = self.particles(state)
        wrong = _any_component(~jnp.isfinite(bodies.position)) | ~jnp.isfinite(bodies.mass)
        overlap = _any_component(~jnp.isfinite(scaled))
        # Too large for the precision, or so small that all components of a body's force are lost.
        lost = _any_component(scaled != 0) & ~_any_component(force != 0) & (self.constant != 0)
        out_of_range = _any_component(~jnp.isfinite(force)) | lost
        # What is found first explains the rest. One reduction for all, because each is a kernel.
        first = jnp.max(jnp.where(wrong, 3, jnp.where(overlap, 2, jnp.where(out_of_range, 1, 0))))
        return force, cache.set_if(Fault.OVERLAP, first == 2).set_if(Fault.FORCE_RANGE, first == 1)

    def require_reversible(self, state: State) -> None:
        """**Errors:** `NotReversible` over devices, where the order of addition depends on the sharding."""
        if self.particles(state).is_distributed:
            raise NotReversible(
                "DirectGravity over devices adds in an order that depends on which device holds a body, and "
                "in the backward pass another device may hold it: use adjoint=NestedCheckpoint() or Binomial(n)"
            )

    def force(self, clock: Clock, state: State) -> Float[Array, "n d"]:
        del clock
        return self._force(state)[0]

    def _force(self, state: State) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
        """The force, and the same without G in units of order 1."""
        bodies = self.particles(state)
        _check(bodies)
        units = _Units.of(bodies, self.softening)
        bodies, softening2 = units.scale(bodies, self.softening)
        if bodies.is_distributed:
            forces = _sum_local_rows(_pair_force, bodies, softening2)
        else:
            forces = _attraction(_components(bodies), bodies.mass, softening2)
        scaled = jnp.stack(forces, axis=1)
        return units.force(self.constant, scaled), scaled

    def energy(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, ""]:
        del clock, cache
        bodies = self.particles(state)
        _check(bodies)
        units = _Units.of(bodies, self.softening)
        bodies, softening2 = units.scale(bodies, self.softening)
        if bodies.is_distributed:
            potentials = _sum_local_rows(_pair_energy, bodies, softening2)
        else:
            potentials = direct_sum(_pair_energy, (_components(bodies), bodies.mass), softening2, 1)
        total = bodies.space.sum(jnp.sum(potentials))
        return units.energy(-0.5 * self.constant, total)

    def virial(self, clock: Clock, state: State, cache: Cache = None) -> Float[Array, "d d"]:
        del cache
        # Σ over pairs of r ⊗ f is Σ over bodies of x ⊗ F, from any origin, because the total force is 0. The
        # mean position as origin loses the fewest digits.
        bodies = self.particles(state)
        center = bodies.sum(bodies.position) / bodies.num_particles
        x = bodies.position - center[None]
        return bodies.space.sum(matmul(x.T, self.force(clock, state)))


class _Units(NamedTuple):
    """Units in which masses and positions are of order 1, so that m·m and r⁻³ stay in range: SI in float32.

    Powers of two: multiplying by them is exact, so that no other result changes by a bit. In float64 they
    are 1: its range is wide enough for m·m and r⁻³ of anything in any units.
    """

    mass: Float[Array, ""]
    length: Float[Array, ""]

    @staticmethod
    def of(bodies: Particles, softening: Float[Array, ""]) -> "_Units":
        if has_wide_range(bodies.position.dtype):
            return _Units(jnp.ones_like(softening), jnp.ones_like(softening))
        sizes = jnp.stack([largest(bodies.mass), largest(bodies.position)])
        mass, extent = bodies.space.max(sizes)
        length = jnp.maximum(extent, jnp.abs(jax.lax.stop_gradient(softening)))
        # Light bodies beside heavy ones must not be lost either: the heaviest are 2²⁰.
        return _Units(power_of_two_above(mass, -_MASS_BITS), power_of_two_above(length))

    def scale(
        self, bodies: Particles, softening: Float[Array, ""]
    ) -> tuple[Particles, Float[Array, ""]]:
        """The bodies and ε² in these units."""
        position, mass = bodies.position * (1 / self.length), bodies.mass * (1 / self.mass)
        return bodies.replace(position=position, mass=mass), (softening * (1 / self.length)) ** 2

    def force(self, constant: Float[Array, ""], x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """G·x in the user's units. (M/L)², factor by factor: their product may be out of range."""
        ratio = self.mass / self.length
        return constant * x * ratio * ratio

    def energy(self, constant: Float[Array, ""], x: Float[Array, ""]) -> Float[Array, ""]:
        """G·x in the user's units: M²/L."""
        return constant * x * (self.mass / self.length) * self.mass


def _sum_local_rows(
    kernel: Callable[..., PyTree], bodies: Particles, softening2: Float[Array, ""]
) -> PyTree:
    """Sums of `kernel` over all bodies of the domain, for each body of this device.

    Every device receives every body: a message whose size does not shrink with more devices.
    """
    ownership, d = bodies.ownership, bodies.dimension
    assert ownership is not None
    local = jnp.concatenate([bodies.position, bodies.mass[:, None]], axis=1)
    # (bodies of the domain, d + 1), in the order of global indices
    gathered = bodies.all_rows(local)
    bodies_j = tuple(gathered[:, k] for k in range(d)), gathered[:, d]
    number = jnp.arange(ownership.num_particles, dtype=jnp.int32)

    def row(body: tuple[Array, Array, Array]) -> PyTree:
        body_i, index, is_present = body
        body_i = tuple(body_i[k] for k in range(d)), body_i[d]
        terms = kernel(body_i, bodies_j, softening2, is_present & (number != index))
        return jax.tree.map(jnp.sum, terms)

    rows_at_once = max(1, PAIRS_PER_BLOCK // max(ownership.num_particles, 1))
    rows = local, ownership.global_index, ownership.mask
    # Without the checkpoint the backward pass would hold every pair's temporaries at once.
    return jax.lax.map(jax.checkpoint(row), rows, batch_size=min(rows_at_once, bodies.num_slots))


@custom_jvp
def _attraction(
    x: Components, mass: Float[Array, " n"], softening2: Float[Array, ""]
) -> Components:
    """mᵢ Σⱼ mⱼ (xⱼ − xᵢ)/(r² + ε²)^(3/2), by components."""
    # Without native code a CPU is twice as fast by a loop over j with all i as one vector as by blocks of
    # pairs; on other devices blocks keep many more of their cores busy.
    if native_code_is_used() or mass.shape[0] < _MIN_BODIES_FOR_LOOP:
        return _attraction_by_blocks(x, mass, softening2)
    return jax.lax.platform_dependent(
        x, mass, softening2, cpu=_attraction_by_loop, default=_attraction_by_blocks
    )


def _attraction_jvp(primals: PyTree, tangents: PyTree) -> tuple[Components, Components]:
    # Differentiate only inputs that have a tangent: a zero tangent would cost as much as any other.
    values, tree = jax.tree.flatten(primals)
    tangent_leaves = tree.flatten_up_to(tangents)
    has_tangent = [not isinstance(t, jax.custom_derivatives.SymbolicZero) for t in tangent_leaves]

    def blocks(*varying_values: Array) -> Components:
        remaining = iter(varying_values)
        merged = [next(remaining) if m else v for v, m in zip(values, has_tangent, strict=True)]
        return _attraction_by_blocks(*tree.unflatten(merged))

    varying = [v for v, m in zip(values, has_tangent, strict=True) if m]
    # In blocks on all kinds of device: reverse mode through the loop over j would store what every turn read.
    _, out = jax.jvp(
        blocks, varying, [t for t, m in zip(tangent_leaves, has_tangent, strict=True) if m]
    )
    return _attraction(*primals), out


_attraction.defjvp(_attraction_jvp, symbolic_zeros=True)


def _attraction_by_blocks(x: Components, mass: Array, softening2: Array) -> Components:
    return direct_sum(_pair_force, (x, mass), softening2, -1)


def _pair_force(body_i: Bodies, body_j: Bodies, softening2: Array, present: Array) -> Components:
    """Force on i, without G."""
    (xi, mi), (xj, mj) = body_i, body_j
    d = tuple(b - a for a, b in zip(xi, xj, strict=True))
    inverse = _inverse_distance(d, softening2, present)
    weight = jnp.where(present, mi * mj * inverse * inverse * inverse, 0)
    return tuple(weight * c for c in d)


def _pair_energy(body_i: Bodies, body_j: Bodies, softening2: Array, present: Array) -> Array:
    """The binding energy of a pair, without G."""
    (xi, mi), (xj, mj) = body_i, body_j
    d = tuple(b - a for a, b in zip(xi, xj, strict=True))
    return jnp.where(present, mi * mj * _inverse_distance(d, softening2, present), 0)


def _inverse_distance(d: Components, softening2: Array, present: Array) -> Array:
    # For a body with itself take the root of 1: an infinity would become NaN in derivatives, though masked.
    return jax.lax.rsqrt(jnp.where(present, sum(c * c for c in d) + softening2, 1))


def _attraction_by_loop(x: Components, mass: Array, softening2: Array) -> Components:
    """A loop over j, a group at a time, with all i as one vector."""
    n = mass.shape[0]
    number = jnp.arange(n, dtype=jnp.int32)
    bodies = jnp.stack([*x, mass])
    unit = jnp.eye(_GROUP, dtype=mass.dtype)

    def add_group(first: int | Array, group: Array, total: Components) -> Components:
        for q in range(group.shape[1]):
            d = tuple(xj[q] - c for xj, c in zip(group[:-1], x, strict=True))
            inverse = _inverse_distance(d, softening2, number != first + q)
            weight = group[-1, q] * inverse * inverse * inverse
            total = tuple(t + weight * c for t, c in zip(total, d, strict=True))
        return total

    def step(k: Array, total: Components) -> Components:
        group = jax.lax.dynamic_slice_in_dim(bodies, _GROUP * k, _GROUP, axis=1)
        if n >= _MIN_BODIES_FOR_PRODUCT:
            # XLA (JAX ≥ 0.12) mistakes this loop for a small one and compiles it to code two to three times
            # slower, unless it contains a matrix product. A product with the unit matrix is exact.
            group = matmul(group, unit)
        return add_group(_GROUP * k, group, total)

    # The rest that does not fill a group comes after the loop.
    groups, remaining = divmod(n, _GROUP)
    total = tuple(jnp.zeros_like(c) for c in x)
    total = jax.lax.fori_loop(0, groups, step, total)
    if remaining:
        total = add_group(n - remaining, bodies[:, n - remaining :], total)
    return tuple(mass * t for t in total)


def _any_component(condition: Bool[Array, "n d"]) -> Bool[Array, " n"]:
    """`jnp.any(condition, axis=1)` without a reduction."""
    return functools.reduce(jnp.logical_or, [condition[:, k] for k in range(condition.shape[1])])


def _components(bodies: Particles) -> Components:
    return tuple(bodies.position[:, k] for k in range(bodies.dimension))


def _check(bodies: Particles) -> None:
    if any(bodies.space.periodic_axes(bodies.dimension)):
        raise ParameterError(
            "DirectGravity needs a space without periodic axes: give Particles(space=Free()); "
            "in a periodic box use ParticleMesh with Gravity, which sums on a mesh"
        )
