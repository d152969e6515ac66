"""Gō models: a chain whose native contacts attract, and nothing else does."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, Int

from physkit.core import PyTree, ShapeError, data, param
from physkit.integrators import BAOAB
from physkit.observe import AbstractQuantity, Every, PotentialEnergy, Snapshot
from physkit.particles import Particles, maxwell_boltzmann
from physkit.particles.forces import (
    BondedEnergy,
    HarmonicAngles,
    HarmonicBonds,
    Pairwise,
    PeriodicTorsions,
    SoftSphere,
)
from physkit.simulate import Simulation

from .._arguments import explain_system

# Å: contacts are pairs that are closer than the first, and beads do not come closer than the second.
_CONTACT, _DIAMETER = 7.0, 4.0


def beta_hairpin(residues: int = 16) -> Float[np.ndarray, "n 3"]:
    """Cα positions of two antiparallel strands and the turn between them, by ideal geometry, in Å.

    Cα atoms are 3.8 Å apart and 3.3 Å along a strand, pleated; strands are 5 Å apart. Two residues make the
    turn. Creighton, Proteins, 2nd ed., table 5.2.
    """
    rise, pleat, width = 3.3, np.sqrt(3.8**2 - 3.3**2) / 2, 5.0
    half = (residues - 2) // 2
    k = np.arange(half)
    # Away from the turn, x < 0; pleats point the same way on both strands where they pair.
    strand = np.stack([-rise * k, 0 * k, pleat * (-1.0) ** k], axis=1)
    aside = np.array([0, width / 2, 0])
    first, second = strand[::-1] - aside, strand + aside
    # The corners of a trapezoid of sides 3.8 Å with the ends of the strands.
    out = np.sqrt(3.8**2 - ((width - 3.8) / 2) ** 2)
    turn = np.array([[out, -1.9, pleat], [out, 1.9, pleat]])
    return np.concatenate([first, turn, second])


@explain_system
def go_model(
    native: Any = None,
    temperature: ArrayLike = 0.5,
    *,
    contact: ArrayLike = 1.0,
    friction: ArrayLike = 0.2,
    dt: ArrayLike = 0.02,
    every: int = 100,
    dtype: DTypeLike = float,
    key: Array | None = None,
) -> tuple[Simulation, Particles]:
    """A protein of one bead a residue that folds, as its energy is lowest in the native structure.

        U = Σ_bonds 50 ε (b − b₀)² + Σ_angles 10 ε (θ − θ₀)²
            + Σ_torsions ε [1 − cos(φ − φ₀)] + ½ ε [1 − cos 3(φ − φ₀)]
            + Σ_native ε [5 (r₀/r)¹² − 6 (r₀/r)¹⁰] + Σ_others ε (4/r)¹²

    Native contacts are residues four or more apart along the chain and within 7 Å. Units: Å and ε, with masses
    of 1. Starts in the native structure. Records `contacts`, the fraction of native contacts that are within
    1.2 of their native lengths, and `energy`.

    **Arguments:**

    - `native`: `[n 3]`, positions of Cα atoms in Å, such as `trp_cage()`; `beta_hairpin()` if left out.
    - `contact`: ε of native contacts, where others have 1.

    **Good values:** the hairpin unfolds between temperatures of 0.4 and 1 ε.

    **Reference:** Clementi, Nymeyer & Onuchic, J. Mol. Biol. 298, 937 (2000).
    """
    x = np.asarray(beta_hairpin() if native is None else native, float)
    if x.ndim != 2 or x.shape[1] != 3 or len(x) < 5:
        raise ShapeError(f"go_model: native is [n 3], at least 5 residues; got shape {x.shape}")
    n = len(x)
    chain = np.arange(n)
    bonds, angles, torsions = (
        np.stack([chain[k : n - size + 1 + k] for k in range(size)], 1) for size in (2, 3, 4)
    )
    i, j = np.triu_indices(n, 4)
    r = np.linalg.norm(x[i] - x[j], axis=1)
    close = r < _CONTACT
    pairs, lengths = np.stack([i, j], 1)[close], r[close]
    # Neither neighbors along the chain nor native contacts repel one another besides.
    near = np.stack(np.triu_indices(n, 1), 1)
    near = near[near[:, 1] - near[:, 0] < 4]
    phi = _torsion(*(x[torsions[:, k]] for k in range(4)))
    others = SoftSphere(1.0, _DIAMETER, 12.0)
    force = (
        HarmonicBonds(bonds, 100.0, np.linalg.norm(x[bonds[:, 1]] - x[bonds[:, 0]], axis=1))
        + HarmonicAngles(angles, 20.0, _angle(*(x[angles[:, k]] for k in range(3))))
        + PeriodicTorsions(torsions, 1.0, 1, phi - np.pi)
        + PeriodicTorsions(torsions, 0.5, 3, 3 * phi - np.pi)
        + BondedEnergy(
            pairs, _contact_energy, {"depth": jnp.asarray(contact, float), "length": lengths}
        ).named("contacts")
        + Pairwise(others, 2.5 * _DIAMETER, exclude=np.concatenate([near, pairs]))
    )
    state = Particles(jnp.asarray(x, dtype))
    state = maxwell_boltzmann(0 if key is None else key, state, temperature)

    record = Every(every, contacts=_NativeFraction(pairs, lengths), energy=PotentialEnergy())
    thermostat = BAOAB(force, temperature=temperature, friction=friction)
    return Simulation(thermostat, dt=dt, observers=record), state


class _NativeFraction(AbstractQuantity):
    """The fraction of native contacts whose residues are within 1.2 of the native distance."""

    pairs: Int[Array, "m 2"] = data()
    lengths: Float[Array, " m"] = param()

    def __call__(self, snapshot: Snapshot) -> Float[Array, ""]:
        i, j = self.pairs.T
        d = snapshot.state.position[i] - snapshot.state.position[j]
        return jnp.mean(jnp.linalg.norm(d, axis=1) < 1.2 * self.lengths)


def _contact_energy(x: Array, p: PyTree) -> Array:
    ratio = p["length"] ** 2 / jnp.sum(x[1] ** 2)
    return p["depth"] * ratio**5 * (5 * ratio - 6)


def _angle(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    u, v = a - b, c - b
    cosine = np.sum(u * v, 1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    return np.arccos(cosine)


def _torsion(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """IUPAC: 0 where the outer bonds are on one side."""
    u, v, w = b - a, c - b, d - c
    m, n = np.cross(u, v), np.cross(v, w)
    y = np.linalg.norm(v, axis=1) * np.sum(u * n, 1)
    return np.arctan2(y, np.sum(m * n, 1))
