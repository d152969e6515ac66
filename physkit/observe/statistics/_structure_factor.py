"""The static structure factor, and the wavevectors that fit a cell."""

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import Frame, Module, ObserverError, data, explain_call, matmul, static
from physkit.geometry import inverse_matrix
from physkit.particles import Particles

from .._observer import AbstractObserver, check_interval
from .._selection import require_volume, select_particles, species_mask
from .._snapshot import Snapshot
from ._curve_mean import CurveMean

# Rows of integers, which may be written as floats; and a vector of numbers.
IntegerRows: TypeAlias = Sequence[Sequence[int | float]] | np.ndarray | Array
Numbers: TypeAlias = Sequence[int | float] | np.ndarray | Array

_BLOCK_PHASES = 2**18  # computed at a time, so that temporaries stay in the processor's cache


class StructureFactorState(Module):
    """The mean of S so far, and the wavevectors in the cell of the last sample."""

    curve: CurveMean
    vectors: Float[Array, "m d"] = data()


class StructureFactor(AbstractObserver):
    """Static structure factor at wavevectors that fit the cell.

        S(k) = ⟨|Σⱼ exp(−i k·rⱼ)|²⟩ / N,   k = 2π (integers)·(lattice vectors)⁻¹

    1 for an ideal gas, Bragg peaks of height N for a crystal; a liquid has its first peak near
    2π / (distance of neighbors), and S(k → 0) = ρ k_B T κ_T (compressibility).

    Summary, under `name`: `k` (lengths), `vectors` `[m d]`, `value`, `error` (from blocks of time),
    `blocks` and `weights`. `shell_average` averages over directions.

    **Arguments:**

    - `interval`: steps between observations.
    - `wavevectors`: `[m d]` integers; `wavevectors_within(particles, k_max)` lists all up to a length.
    - `component`: which component, where there are several.
    - `species`: count only particles of this species.
    - `name`: of the summary.

    **Errors:** `ObserverError` for open axes, wavevectors of another dimension, zero or not whole.

    **Notes:** k and −k give the same: list one of them. Differentiable in the positions.

    **Reference:** Hansen & McDonald, Theory of Simple Liquids, 4th ed., eq. 4.1.3.
    """

    interval: int = static()
    wavevectors: tuple[tuple[int, ...], ...] = static()
    component: str | None = static()
    species: int | None = static()
    name: str = static()

    def __init__(
        self,
        interval: int,
        wavevectors: IntegerRows,
        *,
        component: str | None = None,
        species: int | None = None,
        name: str = "structure_factor",
    ):
        self.interval = check_interval(interval)
        self.wavevectors = _integer_rows(wavevectors)
        self.component, self.species, self.name = component, species, name

    def init(self, snapshot: Snapshot) -> StructureFactorState:
        particles = select_particles(snapshot, self.component)
        require_volume(particles, "S(k)")
        if len(self.wavevectors[0]) != particles.dimension:
            raise ObserverError(
                f"wavevectors have {len(self.wavevectors[0])} axes, the particles "
                f"{particles.dimension}"
            )
        if self.species is not None:
            species_mask(particles, self.species)  # raises where there are no species
        curve = CurveMean.zero((len(self.wavevectors),), particles.position.dtype)
        return StructureFactorState(curve, self._vectors(particles))

    def __call__(self, snapshot: Snapshot, observer_state: StructureFactorState):
        particles = select_particles(snapshot, self.component)
        s = self._structure(particles)
        curve = observer_state.curve.plus(s, jnp.ones(s.shape, bool))
        return {}, StructureFactorState(curve, self._vectors(particles))

    def summary(self, observer_state: StructureFactorState) -> Frame:
        k = jnp.sqrt(jnp.sum(observer_state.vectors**2, axis=-1))
        return {
            self.name: {"k": k, "vectors": observer_state.vectors, **observer_state.curve.summary()}
        }

    def _vectors(self, particles: Particles) -> Float[Array, "m d"]:
        """The wavevectors in the cell of this moment, which a barostat may change."""
        return matmul(self._integers(particles), (2 * jnp.pi * _inverse_cell(particles)).T)

    def _integers(self, particles: Particles) -> Float[Array, "m d"]:
        return jnp.asarray(np.array(self.wavevectors), particles.position.dtype)

    def _structure(self, particles: Particles) -> Float[Array, " m"]:
        """S of this moment, at each wavevector."""
        fractions = matmul(particles.position, _inverse_cell(particles))  # (particles, dim)
        weight = particles.mask_empty(jnp.ones(particles.num_slots, particles.position.dtype))
        if self.species is not None:
            weight = species_mask(particles, self.species).astype(weight.dtype)
        num_selected = particles.space.sum(jnp.sum(weight))

        def structure_at(integers: Float[Array, " d"]) -> Float[Array, ""]:
            # Remove whole turns before multiplying by 2π, so that float32 keeps its digits. They are
            # constants of the derivative: that of the phase is 2π times that of the turns.
            turns = matmul(fractions, integers)
            phase = 2 * jnp.pi * (turns - jax.lax.stop_gradient(jnp.round(turns)))
            cosine = particles.space.sum(jnp.sum(weight * jnp.cos(phase)))
            sine = particles.space.sum(jnp.sum(weight * jnp.sin(phase)))
            return (cosine**2 + sine**2) / num_selected

        block = max(1, _BLOCK_PHASES // max(particles.num_slots, 1))
        return jax.lax.map(structure_at, self._integers(particles), batch_size=block)


@explain_call
def wavevectors_within(particles: Particles, k_max: float) -> tuple[tuple[int, ...], ...]:
    """Integers of all wavevectors up to the length `k_max` that fit the cell, one of each pair k and −k.

    **Arguments:**

    - `particles`: in a space that is periodic along every axis. Its lengths must be known: call it outside
      of traces.
    - `k_max`: 1 / length, 2π included.

    **Returns:** for `StructureFactor`, shortest first.

    **Errors:** `ObserverError` when the space is open, or when no wavevector is that short.
    """
    require_volume(particles, "a list of wavevectors")
    d = particles.dimension
    cell = np.asarray(particles.space.cell(d), float)
    reciprocal = 2 * np.pi * np.linalg.inv(cell)
    # |k·aᵢ| = 2π|nᵢ| ≤ k_max |aᵢ| bounds the integers.
    bounds = [int(np.floor(k_max * np.linalg.norm(a) / (2 * np.pi) + 1e-9)) for a in cell]
    rows = np.array(list(itertools.product(*(range(-m, m + 1) for m in bounds))), int)
    rows = rows.reshape(-1, d)
    length = np.linalg.norm(rows @ reciprocal.T, axis=1)
    # Of k and −k keep the one whose first integer that is not 0 is positive.
    is_representative = np.array([next((n for n in row if n), 0) > 0 for row in rows], bool)
    keep = is_representative & (length <= k_max * (1 + 1e-9))
    if not np.any(keep):
        shortest = np.linalg.norm(reciprocal, axis=0).min()
        raise ObserverError(
            f"no wavevector of this cell is shorter than {k_max:g}; the first is near {shortest:g}"
        )
    # Lengths that differ by rounding only are equal: then the integers decide, on every machine alike.
    order = np.lexsort((*rows[keep].T[::-1], (length[keep] / k_max).round(9)))
    return tuple(map(tuple, rows[keep][order].tolist()))


@explain_call
def shell_average(k: Numbers, values: Numbers, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean of `values` over shells of |k| of this width: `(k, value)` of the shells that are not empty.

    **Arguments:**

    - `k`: `[m]` lengths of wavevectors; `values`: `[m]`.
    - `width`: of a shell, 1 / length.
    """
    k, values = np.asarray(k, float), np.asarray(values, float)
    shell = np.floor(k / width).astype(int)
    counts = np.bincount(shell)
    is_filled = counts > 0
    means = (np.bincount(shell, weights=x)[is_filled] / counts[is_filled] for x in (k, values))
    return tuple(means)


def _inverse_cell(particles: Particles) -> Float[Array, "d d"]:
    """The matrix from positions to fractions of the edges: positions are rows, multiplied from the left."""
    return inverse_matrix(particles.space.cell(particles.dimension))


def _integer_rows(wavevectors: IntegerRows) -> tuple[tuple[int, ...], ...]:
    """Wavevectors as a static field: hashable, of Python's integers.

    **Errors:** `ObserverError` for another shape, fractions, or the wavevector 0.
    """
    rows = np.asarray(wavevectors)
    if rows.ndim != 2 or not len(rows) or not np.all(rows == np.round(rows)):
        raise ObserverError(
            "wavevectors are rows of integers, e.g. [[1, 0, 0], [1, 1, 0]], or "
            f"wavevectors_within(particles, k_max); got shape {rows.shape}"
        )
    if not np.all(np.any(rows != 0, axis=1)):
        raise ObserverError("the wavevector 0 says nothing but N; leave it out")
    return tuple(tuple(int(n) for n in row) for row in rows)
