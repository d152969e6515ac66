"""Solve the constraints of many small clusters at once; every array has the clusters as its last axis."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import ratio, recomputed, safe_divide
from physkit.geometry import AbstractSpace

from ._clusters import Bonds

# Up to this many constraints, elimination is written out: one operation for all clusters at once.
_MAX_WRITTEN_OUT = 10
# Newton's steps double the correct digits: from here two more reach rounding in float64.
_LOOSE = 1e-4


class Clusters(NamedTuple):
    """Clusters of one topology, as one device sees them.

    - `bonds`: pairs of members. `vectors`, `velocities`: `[k d c]`, of each bond.
    - `inverse_masses`: `[a c]`, of the members, in units of 1/`mass`. `lengths`: `[k c]` or `[k 1]`.
    - `mass`: `[c]`, the unit of masses in each cluster, a power of two: impulses of atoms in SI units are
      beyond float32. Multipliers are in units of it.
    - `is_used`: `[c]`, which of these are clusters at all; the rest fills arrays.
    """

    bonds: Bonds
    vectors: Float[Array, "k d c"]
    velocities: Float[Array, "k d c"]
    inverse_masses: Float[Array, "a c"]
    lengths: Float[Array, "k c"]
    mass: Float[Array, " c"]
    is_used: Bool[Array, " c"]

    @property
    def mobility(self) -> Float[Array, "k k c"]:
        """B M⁻¹ Bᵀ: how an impulse along one bond moves the ends of another apart; B is +1 and −1."""
        ends = _incidence(self.bonds, self.inverse_masses.shape[0])
        # (k, 1, a) · (1, k, a) of the two bonds, by the masses: (k, k, a) @ (a, c)
        both = jnp.asarray(ends[:, None] * ends[None], self.inverse_masses.dtype)
        return sum_written_out(both[..., None] * self.inverse_masses[None, None], axis=2)


def bond_vectors(
    bonds: Bonds, packed: Float[Array, "a c f"], space: AbstractSpace
) -> tuple[Float[Array, "k d c"], Float[Array, "k d c"], Float[Array, "a c"]]:
    """Vectors and velocities of bonds and inverse masses, from members' (x, v, 1/m)."""
    d = packed.shape[2] // 2
    # Slices, whose transpose adds whole arrays; that of a gather along the members would scatter.
    first, second = (jnp.stack([packed[bond[end]] for bond in bonds]) for end in (0, 1))
    vectors = space.displacement(first[..., :d], second[..., :d])
    velocities = first[..., d : 2 * d] - second[..., d : 2 * d]
    return _clusters_last(vectors), _clusters_last(velocities), packed[..., 2 * d]


def member_impulses(clusters: Clusters, along: Float[Array, "k c"]) -> Float[Array, "a c d"]:
    """Impulses on the members, from those along the bonds in units of their vectors."""
    incidence = _incidence(clusters.bonds, clusters.inverse_masses.shape[0])
    ends = jnp.asarray(incidence.astype(along.dtype))  # no program of float32 computes in float64
    weighted = along[:, None] * clusters.vectors
    each = sum_written_out(ends[:, :, None, None] * weighted[:, None], axis=0)
    return jnp.moveaxis(each, 1, 2)


def member_changes(clusters: Clusters, along: Float[Array, "k c"]) -> Float[Array, "a c d"]:
    """Changes of the members' velocities, by impulses along the bonds."""
    return member_impulses(clusters, along) * clusters.inverse_masses[..., None]


def velocity_multipliers(clusters: Clusters, rates: Float[Array, "k c"]) -> Float[Array, "k c"]:
    """μ with which s·(u + W s μ) = 0, where `rates` are s·u."""
    s = clusters.vectors
    matrix = sum_written_out(s[:, None] * s[None], axis=2) * clusters.mobility
    return solve_small(matrix, -rates)


def position_multipliers(
    clusters: Clusters, dt: Float[Array, ""], max_iterations: int
) -> tuple[Float[Array, "k c"], Float[Array, " c"]]:
    """λ with which |s + dt u + W s λ| is the length of each bond, by Newton's method; the errors left.

    Differentiable in both modes. The iteration itself has no derivative: the last two of Newton's steps,
    from the multipliers that it found, have that of the solution, dλ = −A⁻¹ ∂g, up to the third order.
    """
    held = jax.tree.map(jax.lax.stop_gradient, _equations(clusters, dt))
    start = jnp.zeros_like(clusters.vectors[:, 0])

    def is_loose(carry: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        _, error, turn = carry
        return (turn < max_iterations) & (jnp.max(error) > _LOOSE)

    def improve(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        multipliers = _newton_step(held, carry[0])
        return multipliers, _errors(held, multipliers), carry[2] + 1

    first: Int[Array, ""] = jnp.zeros((), jnp.int32)
    found, _, _ = jax.lax.while_loop(is_loose, improve, (start, _errors(held, start), first))
    multipliers = recomputed(_step_twice)(_equations(clusters, dt), jax.lax.stop_gradient(found))
    return multipliers, _errors(held, jax.lax.stop_gradient(multipliers))


class _Equations(NamedTuple):
    """g(λ) = |r(λ)|² − L² with r(λ) = r₀ + W s λ."""

    start: Float[Array, "k d c"]  # r₀
    vectors: Float[Array, "k d c"]  # s
    mobility: Float[Array, "k k c"]  # W
    squares: Float[Array, "k c"]  # L²
    is_used: Bool[Array, " c"]

    def reached(self, multipliers: Float[Array, "k c"]) -> Float[Array, "k d c"]:
        impulses = multipliers[:, None] * self.vectors
        # (k, l, 1, c) · (1, l, d, c), summed over l
        return self.start + sum_written_out(self.mobility[:, :, None] * impulses[None], axis=1)


def _equations(clusters: Clusters, dt: Float[Array, ""]) -> _Equations:
    start = clusters.vectors + dt * clusters.velocities
    squares = jnp.broadcast_to(clusters.lengths**2, start[:, 0].shape)
    return _Equations(start, clusters.vectors, clusters.mobility, squares, clusters.is_used)


def _step_twice(equations: _Equations, multipliers: Float[Array, "k c"]) -> Float[Array, "k c"]:
    return _newton_step(equations, _newton_step(equations, multipliers))


def _newton_step(equations: _Equations, multipliers: Float[Array, "k c"]) -> Float[Array, "k c"]:
    r = equations.reached(multipliers)
    slopes = 2 * sum_written_out(r[:, None] * equations.vectors[None], axis=2) * equations.mobility
    return multipliers - solve_small(slopes, sum_written_out(r * r, axis=1) - equations.squares)


def _errors(equations: _Equations, multipliers: Float[Array, "k c"]) -> Float[Array, " c"]:
    """The largest relative error of a length in each cluster; infinite where a bond has turned around."""
    r = equations.reached(multipliers)
    error = jnp.abs(safe_divide(sum_written_out(r * r, axis=1), equations.squares) - 1) / 2
    # Newton's method may find the solution on the other side, from steps that are much too long.
    has_turned = sum_written_out(r * equations.vectors, axis=1) <= 0
    error = jnp.max(jnp.where(has_turned, jnp.inf, error), axis=0)
    return jnp.where(equations.is_used, error, 0)


def solve_small(matrix: Float[Array, "k k c"], right: Float[Array, "k c"]) -> Float[Array, "k c"]:
    """x of `matrix` x = `right`, of matrices that are near to symmetric and positive."""
    k = right.shape[0]
    if k > _MAX_WRITTEN_OUT:
        solved = jnp.linalg.solve(jnp.moveaxis(matrix, 2, 0), jnp.moveaxis(right, 1, 0)[..., None])
        return jnp.moveaxis(solved[..., 0], 0, 1)
    # Elimination without pivots, which such matrices need not.
    rows = [[matrix[i, j] for j in range(k)] + [right[i]] for i in range(k)]
    for i in range(k):
        for below in range(i + 1, k):
            factor = ratio(rows[below][i], rows[i][i])
            for j in range(i + 1, k + 1):
                rows[below][j] = rows[below][j] - factor * rows[i][j]
    solution: list[Array] = []
    for i in reversed(range(k)):
        known = sum(rows[i][j] * solution[k - 1 - j] for j in range(i + 1, k))
        solution.append(ratio(rows[i][k] - known, rows[i][i]))
    return jnp.stack(solution[::-1])


def _incidence(bonds: Bonds, count: int) -> np.ndarray:
    """B, `[k a]`: +1 at the first and −1 at the second member of each bond."""
    ends = np.zeros((len(bonds), count))
    for k, (a, b) in enumerate(bonds):
        ends[k, a], ends[k, b] = 1, -1
    return ends


def sum_written_out(x: Array, axis: int) -> Array:
    """The sum over an axis of few entries, by additions of whole arrays.

    XLA hands reductions over such an axis to a library on CPUs, where each takes ten times as long.
    """
    count = x.shape[axis]
    if count > _MAX_WRITTEN_OUT:
        return jnp.sum(x, axis=axis)
    parts = [jax.lax.index_in_dim(x, k, axis, keepdims=False) for k in range(count)]
    return functools.reduce(jnp.add, parts)


def _clusters_last(x: Float[Array, "k c d"]) -> Float[Array, "k d c"]:
    return jnp.moveaxis(x, 1, 2)
