"""A geometric multigrid V-cycle, symmetric, as a preconditioner of conjugate gradients."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import Module, data, static
from physkit.geometry import Boundaries, Grid, Parities

from ._wall_parities import homogeneous

SMALL = 8  # cells per axis that smoothing alone solves for
SMOOTHING = 2  # degree of the Chebyshev polynomial before and after the correction


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
        return Level(grid, homogeneous(grid, kinds, reaction.dtype), kinds, faces, reaction)

    def apply(self, phi: Array) -> Array:
        """−∇·(a∇φ) + cφ."""
        # Stages stay apart: XLA would compute one inside the next, again for every neighbor.
        phi = jax.lax.optimization_barrier(phi)
        return self.reaction * phi - flux_divergence(self.grid, self.boundary, self.faces, phi)

    def diagonal(self) -> Array:
        """What multiplies φ of a cell in the equation of that cell."""
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

    def halved(self) -> tuple[bool, ...]:
        """Along which axes the next level has half as many cells."""
        return tuple(
            local % 2 == 0 and n > SMALL
            for n, local in zip(self.grid.shape, self.grid.local_shape, strict=True)
        )

    def coarse(self) -> "Level | None":
        """The same operator on cells twice as long; None where the number of cells is odd or small."""
        halved = self.halved()
        if not any(halved):
            return None
        grid = Grid(
            self.grid.space,
            tuple(n // 2 if half else n for n, half in zip(self.grid.shape, halved, strict=True)),
        )
        faces = []
        for axis, face in enumerate(self.faces):
            for k, half in enumerate(halved):
                if (
                    half and k == axis
                ):  # every other face is one of the coarse cells', 1/h² a quarter
                    face = jax.lax.slice_in_dim(face, 0, None, stride=2, axis=k) * 0.25
                elif half:
                    face = _pairs(face, k)
            faces.append(face)
        reaction = self.reaction
        for k, half in enumerate(halved):
            reaction = _pairs(reaction, k) if half else reaction
        return Level.of(grid, self.kinds, tuple(faces), reaction)

    def restrict(self, residual: Array) -> Array:
        """The residual for the next level: the transpose of `prolong`, over cells' volumes."""
        for axis, half in enumerate(self.halved()):
            if half:
                n = residual.shape[axis]
                residual = jax.lax.optimization_barrier(residual)  # as in `apply`
                x = _ghosts(self.grid, self.boundary, residual, axis)
                cut = lambda j, x=x, n=n, axis=axis: jax.lax.slice_in_dim(
                    x, j, j + n - 1, stride=2, axis=axis
                )
                residual = 0.375 * (cut(1) + cut(2)) + 0.125 * (cut(0) + cut(3))
        return residual

    def prolong(self, correction: Array) -> Array:
        """The correction from the next level, by linear interpolation."""
        for axis, half in enumerate(self.halved()):
            if half:
                n = correction.shape[axis]
                correction = jax.lax.optimization_barrier(correction)  # as in `apply`
                x = _ghosts(self.grid, self.boundary, correction, axis)
                low, high = (jax.lax.slice_in_dim(x, j, j + n, axis=axis) for j in (0, 2))
                pair = [0.75 * correction + 0.25 * low, 0.75 * correction + 0.25 * high]
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
        while (below := levels[-1].coarse()) is not None:
            levels.append(below)
        inverses = tuple(1 / level.diagonal() for level in levels)
        return Multigrid(*jax.lax.optimization_barrier((tuple(levels), inverses)))

    def __call__(self, residual: Array, depth: int = 0) -> Array:
        """About the φ that has this residual."""
        level, inverse = self.levels[depth], self.inverses[depth]
        d = level.grid.dimension
        if depth == len(self.levels) - 1:
            most = max(level.grid.shape)
            if most == 1:
                return inverse * residual
            return _chebyshev(level, inverse, None, residual, 2 * most, 4 / (d * most**2))
        phi = _chebyshev(level, inverse, None, residual, SMOOTHING, 1 / d)
        left = residual - level.apply(phi)
        phi = phi + level.prolong(self(level.restrict(left), depth + 1))
        return _chebyshev(level, inverse, phi, residual, SMOOTHING, 1 / d)


def flux_divergence(
    grid: Grid, boundary: Boundaries, faces: tuple[Array, ...], phi: Array
) -> Array:
    """∇·(a∇φ) with `faces` holding a/h²."""
    total = None
    for axis, face in enumerate(faces):
        n = phi.shape[axis]
        x = _ghosts(grid, boundary, phi, axis)
        cut = lambda x, j, m, axis=axis: jax.lax.slice_in_dim(x, j, j + m, axis=axis)
        flux = face * (cut(x, 1, n + 1) - cut(x, 0, n + 1))
        part = cut(flux, 1, n) - cut(flux, 0, n)
        total = part if total is None else total + part
    assert total is not None
    return total


def _chebyshev(
    level: Level, inverse: Array, phi: Array | None, residual: Array, degree: int, lowest: float
) -> Array:
    """`degree` steps of Chebyshev iteration for the eigenvalues of D⁻¹A in [lowest, 2] (Gershgorin)."""
    highest = 2.0
    middle, half = (highest + lowest) / 2, (highest - lowest) / 2
    sigma = middle / half
    left = residual if phi is None else residual - level.apply(phi)
    step = (inverse / middle) * left
    phi = step if phi is None else phi + step

    def once(_: Array | int, carried: tuple[Array, ...]) -> tuple[Array, ...]:
        phi, left, step, rho = carried
        left = left - level.apply(step)
        after = 1 / (2 * sigma - rho)
        step = (after * rho) * step + (2 * after / half) * (inverse * left)
        return phi + step, left, step, after

    carried = (phi, left, step, jnp.asarray(1 / sigma, residual.dtype))
    if degree == 2:
        return once(0, carried)[0]
    return jax.lax.fori_loop(0, degree - 1, once, carried)[0]


def _ghosts(grid: Grid, boundary: Boundaries, x: Array, axis: int) -> Array:
    return grid.pad(x, tuple((1, 1) if k == axis else (0, 0) for k in range(x.ndim)), boundary)


def _pairs(x: Array, axis: int) -> Array:
    """Means of neighbors, two by two."""
    shape = (*x.shape[:axis], x.shape[axis] // 2, 2, *x.shape[axis + 1 :])
    low, high = (
        jax.lax.index_in_dim(x.reshape(shape), j, axis + 1, keepdims=False) for j in (0, 1)
    )
    return 0.5 * (low + high)
