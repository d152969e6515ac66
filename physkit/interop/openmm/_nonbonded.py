"""Lennard-Jones and Coulomb forces of an OpenMM system, with its exceptions."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import ParameterError, PyTree
from physkit.coupling import ParticleMeshEwald
from physkit.particles.forces import (
    AbstractEwaldSum,
    AbstractForce,
    BondedEnergy,
    Coulomb,
    Ewald,
    Forces,
    LennardJones,
    Pairwise,
    ReactionField,
    SpecialPairs,
    lorentz_berthelot,
)

from ._quantities import Converter, plain, rows
from ._sites import Numbering

# Beyond every molecule, in nm: OpenMM's NoCutoff, with a list that leaves excluded pairs out.
_WITHOUT_CUTOFF = 1e3


class Nonbonded(NamedTuple):
    """A `NonbondedForce` taken apart.

    - `forces`: by name. `species`, `charge`: `[m]`, of particles and then of sites; species are rows of the
      Lennard-Jones tables.
    """

    forces: dict[str, AbstractForce]
    species: np.ndarray
    charge: np.ndarray


def nonbonded_forces(
    force: Any, elements: list[str], numbering: Numbering, background: bool, to: Converter
) -> Nonbonded:
    """Lennard-Jones, electrostatics and exceptions of an OpenMM `NonbondedForce`.

    - `background`: of Ewald sums.

    **Errors:** `ParameterError` for what has no counterpart, by name.
    """
    if force.getNumGlobalParameters() or force.getNumParticleParameterOffsets():
        raise ParameterError(
            "NonbondedForce with parameter offsets (alchemy) has no counterpart here"
        )
    table = np.array(rows(force.getNumParticles(), force.getParticleParameters))[numbering.order]
    charge = table[:, 0] * to.charge
    # Particles without a well have no use for their diameter: one species for all of an element.
    kinds = [
        (element, float(s) if e else 0.0, float(e))
        for element, s, e in zip(elements, table[:, 1], table[:, 2], strict=True)
    ]
    distinct = list(dict.fromkeys(kinds))
    species = np.array([distinct.index(kind) for kind in kinds])
    sigma = np.array([kind[1] for kind in distinct]) * to.length
    epsilon = np.array([kind[2] for kind in distinct]) * to.energy
    tables = lorentz_berthelot(
        epsilon=epsilon, sigma=np.where(epsilon > 0, sigma, 1e-3 * to.length)
    )
    exceptions = np.array(rows(force.getNumExceptions(), force.getExceptionParameters)).reshape(
        -1, 5
    )
    exceptions[:, :2] = numbering.place[exceptions[:, :2].astype(int)]
    pairs = exceptions[:, :2].astype(int)
    exclude = pairs if len(pairs) else None
    coulomb_constant = to.units.coulomb_constant
    forces = {
        **_near_and_far(
            _lennard_jones(force, LennardJones(**tables), exclude, to),
            _electrostatics(force, charge, exclude, background, to),
        ),
        **_exceptions(exceptions, tables, species, charge, coulomb_constant, to),
    }
    seen = {name: numbering.with_sites(f, charge, species) for name, f in forces.items()}
    return Nonbonded(seen, species, charge)


def _lennard_jones(
    force: Any, potential: LennardJones, exclude: np.ndarray | None, to: Converter
) -> dict[str, Pairwise]:
    if not np.any(np.asarray(potential.epsilon) > 0):
        return {}
    method = force.getNonbondedMethod()
    if method == force.LJPME:
        raise ParameterError(
            "NonbondedForce with LJPME: lattice sums of r⁻⁶ have no counterpart here"
        )
    if method == force.NoCutoff:
        cutoff = _WITHOUT_CUTOFF * to.length
        return {"lennard_jones": Pairwise(potential, cutoff, truncation="plain", exclude=exclude)}
    cutoff = plain(force.getCutoffDistance()) * to.length
    tail = force.getUseDispersionCorrection() and method != force.CutoffNonPeriodic
    kind = {"truncation": "plain"}
    if force.getUseSwitchingFunction():
        start = plain(force.getSwitchingDistance()) * to.length
        kind = {"truncation": "switch", "switch_start": start}
    return {"lennard_jones": Pairwise(potential, cutoff, tail=tail, exclude=exclude, **kind)}


def _near_and_far(
    wells: dict[str, Pairwise], electrostatics: dict[str, Pairwise | AbstractEwaldSum]
) -> dict[str, AbstractForce]:
    """Both, by name; an Ewald sum takes the wells along, in one pass over the pairs."""
    coulomb = electrostatics.get("coulomb")
    if wells and isinstance(coulomb, AbstractEwaldSum):
        return {"coulomb": coulomb.with_short_range(Forces(tuple(wells.values()), tuple(wells)))}
    return {**wells, **electrostatics}


def _electrostatics(
    force: Any, charge: np.ndarray, exclude: np.ndarray | None, background: bool, to: Converter
) -> dict[str, Pairwise | AbstractEwaldSum]:
    if not np.any(charge):
        return {}
    method, constant = force.getNonbondedMethod(), to.units.coulomb_constant
    if method == force.NoCutoff:
        cutoff = _WITHOUT_CUTOFF * to.length
        near = Pairwise(Coulomb(constant), cutoff, truncation="plain", exclude=exclude)
        return {"coulomb": near}
    cutoff = plain(force.getCutoffDistance()) * to.length
    if method in (force.CutoffPeriodic, force.CutoffNonPeriodic):
        field = ReactionField(cutoff, force.getReactionFieldDielectric(), constant)
        return {"coulomb": Pairwise(field, cutoff, truncation="plain", exclude=exclude)}
    sums = ParticleMeshEwald if method == force.PME else Ewald
    tolerance = force.getEwaldErrorTolerance()
    ewald = sums(
        cutoff, tolerance, coulomb_constant=constant, exclude=exclude, background=background
    )
    return {"coulomb": ewald}


def _exceptions(
    exceptions: np.ndarray,
    tables: dict[str, Array],
    species: np.ndarray,
    charge: np.ndarray,
    constant: float,
    to: Converter,
) -> dict[str, AbstractForce]:
    """What excluded pairs still have: 1–4 interactions, scaled or with numbers of their own."""
    kept = exceptions[(exceptions[:, 2] != 0) | (exceptions[:, 4] != 0)]
    if not len(kept):
        return {}
    i, j = kept[:, :2].astype(int).T
    product, sigma = kept[:, 2] * to.charge**2, kept[:, 3] * to.length
    epsilon = kept[:, 4] * to.energy
    whole = charge[i] * charge[j]
    mixed = {name: np.asarray(x, float)[species[i], species[j]] for name, x in tables.items()}
    # Scaled from the particles' own numbers where they can be, so that derivatives by these are whole.
    with np.errstate(divide="ignore", invalid="ignore"):
        scale_charge = np.where(whole != 0, product / whole, 0.0)
        scale_well = np.where(mixed["epsilon"] > 0, epsilon / mixed["epsilon"], 0.0)
    is_scaled = (
        np.isclose(scale_charge * whole, product, rtol=1e-9, atol=0)
        & np.isclose(scale_well * mixed["epsilon"], epsilon, rtol=1e-9, atol=0)
        & ((epsilon == 0) | np.isclose(sigma, mixed["sigma"], rtol=1e-6))
    )
    forces: dict[str, AbstractForce] = {}
    if is_scaled.any():
        pairs = kept[is_scaled, :2].astype(int)
        well, charges = scale_well[is_scaled], scale_charge[is_scaled]
        if well.any():
            forces["lennard_jones_14"] = SpecialPairs(pairs, LennardJones(**tables), well)
        if charges.any():
            forces["coulomb_14"] = SpecialPairs(pairs, Coulomb(constant), charges)
    others = ~is_scaled
    if others.any():
        parameters = {
            "charges": constant * product[others], "sigma": sigma[others], "epsilon": epsilon[others],
        }  # fmt: skip
        forces["exceptions"] = BondedEnergy(kept[others, :2].astype(int), _pair_energy, parameters)
    return forces


def _pair_energy(x: Array, p: PyTree) -> Array:
    """Lennard-Jones and Coulomb energy of one pair with numbers of its own."""
    r = jnp.sqrt(jnp.sum(x[1] ** 2))
    s6 = (p["sigma"] / r) ** 6
    return 4 * p["epsilon"] * s6 * (s6 - 1) + p["charges"] / r
