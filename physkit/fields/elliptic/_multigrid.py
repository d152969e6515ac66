"""A geometric multigrid V-cycle, symmetric, as a preconditioner of conjugate gradients."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import Module, data, static
from physkit.geometry import Boundaries, Grid, Parities

from .._ghost_widths import ghost_widths
from ._wall_parities import homogeneous_walls

COARSEST = 8  # cells per axis, up to which smoothing alone solves
SMOOTHING_DEGREE = 2  # degree of the Chebyshev polynomial before and after the correction


class Level(Module):
    """−∇·(a∇φ) + cφ on one grid, with walls of zero value or slope.

    `faces` hold a/h² on all n + 1 faces across each axis; where the box repeats the last is the first.
    """

    grid: Grid
    boundary: Boundaries
    kinds: Parities = static()
    faces: tuple[Array, ...] = data()
    reaction: Array = data()

    @staticmethod
    def of(grid: Grid, kinds: Parities, faces: tuple[Array, ...], reaction: Array) -> "Level":
        """The operator from its coefficients."""
        return Level(grid, homogeneous_walls(grid, kinds, reaction.dtype), kinds, faces, reaction)

    def apply(self, phi: Array) -> Array:
        """−∇·(a∇φ) + cφ."""
        # Stages stay apart: XLA would compute one inside the next, again for every neighbor.
        phi = jax.lax.optimization_barrier(phi)
        return self.reaction * phi - flux_divergence(self.grid, self.boundary, self.faces, phi)

    def diagonal(self) -> Array:
        """The diagonal of the operator's matrix: what multiplies φ of a cell in its own equation."""
        total = self.reaction
        for axis, (face, kind) in enumerate(zip(self.faces, self.kinds, strict=True)):
            n = self.grid.local_shape[axis]
            if kind is not None:
                # Ghosts are ∓φ of their neighbor: the wall's face counts twice, or not at all.
                multiplicity = jnp.ones(n + 1, face.dtype)
                for side, parity in enumerate(kind):
                    has_wall = self.grid.touches_side(axis, side)
                    at_wall = 2.0 * (parity == "odd")
                    at_wall = at_wall if has_wall is True else jnp.where(has_wall, at_wall, 1.0)
                    multiplicity = multiplicity.at[n * side].set(at_wall)
                face = face * multiplicity.reshape(
                    [-1 if k == axis else 1 for k in range(face.ndim)]
                )
            low, high = (jax.lax.slice_in_dim(face, j, n + j, axis=axis) for j in (0, 1))
            total = total + low + high
        return total

    def halved_axes(self) -> tuple[bool, ...]:
        """Along which axes the next level has half as many cells."""
        return tuple(
            local % 2 == 0 and n > COARSEST
            for n, local in zip(self.grid.shape, self.grid.local_shape, strict=True)
        )

    def coarsen(self) -> "Level | None":
        """The same operator on cells twice as long; None where the number of cells is odd or small."""
        halved_axes = self.halved_axes()
        # The hierarchy ends where no axis can be halved.
        if not any(halved_axes):
            return None
        grid = Grid(
            self.grid.space,
            tuple(
                n // 2 if half else n for n, half in zip(self.grid.shape, halved_axes, strict=True)
            ),
        )
        faces = []
        for axis, face in enumerate(self.faces):
            for k, half in enumerate(halved_axes):
                if half and k == axis:
                    # Every other face is one of the coarse cells', and 1/h² a quarter of what it was.
                    face = jax.lax.slice_in_dim(face, 0, None, stride=2, axis=k) * 0.25
                elif half:
                    # Across: a coarse face is two fine ones side by side, with their mean.
                    face = _average_pairs(face, k)
            faces.append(face)
        reaction = self.reaction
        for k, half in enumerate(halved_axes):
            reaction = _average_pairs(reaction, k) if half else reaction
        return Level.of(grid, self.kinds, tuple(faces), reaction)

    def restrict(self, residual: Array) -> Array:
        """The residual for the next level: the transpose of `prolong`, over cells' volumes."""
        for axis, half in enumerate(self.halved_axes()):
            if half:
                n = residual.shape[axis]
                # A barrier as in `apply`.
                residual = jax.lax.optimization_barrier(residual)
                x = _pad_along(self.grid, self.boundary, residual, axis)

                # Every second cell from the j-th of the padded array on: neighbors of coarse cells.
                def every_second(j: int, x: Array = x, n: int = n, axis: int = axis) -> Array:
                    return jax.lax.slice_in_dim(x, j, j + n - 1, stride=2, axis=axis)

                residual = 0.375 * (every_second(1) + every_second(2)) + 0.125 * (
                    every_second(0) + every_second(3)
                )
        return residual

    def prolong(self, correction: Array) -> Array:
        """The correction from the next level, by linear interpolation."""
        for axis, half in enumerate(self.halved_axes()):
            if half:
                n = correction.shape[axis]
                # A barrier as in `apply`.
                correction = jax.lax.optimization_barrier(correction)
                x = _pad_along(self.grid, self.boundary, correction, axis)
                low, high = (jax.lax.slice_in_dim(x, j, j + n, axis=axis) for j in (0, 2))
                pair = [0.75 * correction + 0.25 * low, 0.75 * correction + 0.25 * high]
                # Each coarse cell becomes its lower and its upper half: (…, n, 2, …) → (…, 2n, …).
                shape = [2 * m if k == axis else m for k, m in enumerate(correction.shape)]
                correction = jnp.stack(pair, axis + 1).reshape(shape)
        return correction


class Multigrid(Module):
    """A V-cycle: smoothing, correction from the grid of half as many cells, smoothing again.

    Chebyshev polynomials smooth, the same ones before and after, so that the cycle is a symmetric
    positive operator, as conjugate gradients ask for.

    **Notes:** iterations do not grow with the grid where cells halve down to a few per axis (powers of two
    times a small odd number), and cells are about as long as wide. Over devices blocks must halve, too:
    where a block is odd, its axis stays as it is on all levels below.

    **Reference:** Briggs, Henson & McCormick, A Multigrid Tutorial, 2nd ed. (2000); Adams et al., J.
    Comput. Phys. 188, 593 (2003) for the smoother.
    """

    levels: tuple[Level, ...]
    inverses: tuple[Array, ...] = data()

    @staticmethod
    def of(finest: Level) -> "Multigrid":
        """The hierarchy below an operator."""
        levels = [finest]
        while (below := levels[-1].coarsen()) is not None:
            levels.append(below)
        inverses = tuple(1 / level.diagonal() for level in levels)
        # Computed once: XLA would fuse these means and divisions into every use of them.
        return Multigrid(*jax.lax.optimization_barrier((tuple(levels), inverses)))

    def __call__(self, residual: Array, depth: int = 0) -> Array:
        """An approximate solution φ of the operator's equation with `residual` on the right."""
        level, inverse = self.levels[depth], self.inverses[depth]
        d = level.grid.dimension
        if depth == len(self.levels) - 1:
            longest = max(level.grid.shape)
            if longest == 1:
                return inverse * residual
            # Nearly solved: the polynomial reaches down to the smallest eigenvalue of D⁻¹A, which is about
            # π²/(2 d n²) with n cells along the longest axis, by a degree of 2n.
            return _chebyshev(level, inverse, None, residual, 2 * longest, 4 / (d * longest**2))
        # Waves that the next level cannot hold have eigenvalues of 1/d and more: they are smoothed away.
        phi = _chebyshev(level, inverse, None, residual, SMOOTHING_DEGREE, 1 / d)
        remaining = residual - level.apply(phi)
        phi = phi + level.prolong(self(level.restrict(remaining), depth + 1))
        return _chebyshev(level, inverse, phi, residual, SMOOTHING_DEGREE, 1 / d)


def flux_divergence(
    grid: Grid, boundary: Boundaries, faces: tuple[Array, ...], phi: Array
) -> Array:
    """∇·(a∇φ) with `faces` holding a/h²."""
    total = None
    for axis, face in enumerate(faces):
        n = phi.shape[axis]
        x = _pad_along(grid, boundary, phi, axis)
        # n + 2 cells with ghosts, n + 1 faces, n differences of fluxes.
        above, below = (jax.lax.slice_in_dim(x, j, n + 1 + j, axis=axis) for j in (1, 0))
        flux = face * (above - below)
        high, low = (jax.lax.slice_in_dim(flux, j, n + j, axis=axis) for j in (1, 0))
        part = high - low
        total = part if total is None else total + part
    assert total is not None
    return total


def _chebyshev(
    level: Level, inverse: Array, phi: Array | None, residual: Array, degree: int, lowest: float
) -> Array:
    """`degree` steps of Chebyshev iteration for the eigenvalues of D⁻¹A in [lowest, 2] (Gershgorin)."""
    # Saad, Iterative Methods for Sparse Linear Systems, 2nd ed. (2003), algorithm 12.1.
    highest = 2.0
    middle, half = (highest + lowest) / 2, (highest - lowest) / 2
    sigma = middle / half
    remaining = residual if phi is None else residual - level.apply(phi)
    step = (inverse / middle) * remaining
    phi = step if phi is None else phi + step

    def iterate(_: Array | int, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        phi, remaining, step, rho = carry
        remaining = remaining - level.apply(step)
        next_rho = 1 / (2 * sigma - rho)
        step = (next_rho * rho) * step + (2 * next_rho / half) * (inverse * remaining)
        return phi + step, remaining, step, next_rho

    carry = (phi, remaining, step, jnp.asarray(1 / sigma, residual.dtype))
    # The smoother's single iteration needs no loop.
    if degree == 2:
        return iterate(0, carry)[0]
    return jax.lax.fori_loop(0, degree - 1, iterate, carry)[0]


def _pad_along(grid: Grid, boundary: Boundaries, x: Array, axis: int) -> Array:
    return grid.pad(x, ghost_widths(axis, x.ndim, 1), boundary)


def _average_pairs(x: Array, axis: int) -> Array:
    """Means of neighbors, two by two."""
    shape = (*x.shape[:axis], x.shape[axis] // 2, 2, *x.shape[axis + 1 :])
    low, high = (
        jax.lax.index_in_dim(x.reshape(shape), j, axis + 1, keepdims=False) for j in (0, 1)
    )
    return 0.5 * (low + high)
