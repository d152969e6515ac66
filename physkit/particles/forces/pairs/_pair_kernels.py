"""The kernels of pair sums: force, energy or virial of each pair, from a pair potential."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from physkit.core import ParameterError, PyTree
from physkit.geometry import AbstractSpace

from ..._particles import Particles
from .._species import poison_unknown_species, require_species
from ..potentials import AbstractPairPotential
from ._potential_sum import PotentialSum
from ._truncation import AbstractTruncated
from ._units_of_sums import has_wide_range, largest, power_of_two_above

# By particle. "x": a tuple of position components, since gathers and arithmetic on one array per component are
# faster than on `[n d]`; "charge", "species" if needed.
PairArrays = dict[str, PyTree]
PairContext = tuple[AbstractTruncated, AbstractSpace]  # what all pairs depend on


def require_pair_properties(particles: Particles, potential: AbstractPairPotential) -> None:
    """**Errors:** `ParameterError` when the potential needs charges or species that the particles lack."""
    if isinstance(potential, PotentialSum):
        for part in potential.parts:
            require_pair_properties(particles, part)
        return
    name, num_species = type(potential).__name__, potential.species
    if potential.charged and particles.charge is None:
        raise ParameterError(f"{name} acts between charges: give Particles(…, charge=…)")
    require_species(particles, name, num_species)


def poison_without_table(
    sums: PyTree, particles: Particles, potential: AbstractPairPotential
) -> PyTree:
    """`sums` by particle, NaN for those of a species that `potential` has no table for."""
    parts = potential.parts if isinstance(potential, PotentialSum) else (potential,)
    for part in parts:
        sums = poison_unknown_species(sums, particles.species, part.species)
    return sums


def depends_on_species(potential: AbstractPairPotential) -> bool:
    """Whether it has tables by species, or a rule of its own for pairs of them."""
    if isinstance(potential, PotentialSum):
        return any(map(depends_on_species, potential.parts))
    has_own_rule = type(potential).between is not AbstractPairPotential.between
    return potential.species is not None or has_own_rule


def pair_arrays(particles: Particles, potential: AbstractPairPotential) -> PairArrays:
    """The arrays that `potential` depends on, by particle: position by components, charge, species.

    **Errors:** those of `require_pair_properties`.
    """
    require_pair_properties(particles, potential)
    position = particles.position
    arrays: PairArrays = {"x": tuple(position[:, k] for k in range(particles.dimension))}
    if potential.charged:
        charge, (_, unit) = particles.charge, with_charge_unit(potential, particles)
        assert charge is not None  # checked above
        arrays["charge"] = charge if unit is None else charge * (1 / unit)
    # Species that nothing depends on are left out, so that no pair gathers them.
    if particles.species is not None and depends_on_species(potential):
        arrays["species"] = particles.species
    return arrays


def with_charge_unit(
    potential: AbstractPairPotential, particles: Particles
) -> tuple[AbstractPairPotential, Float[Array, ""] | None]:
    """The potential for charges of order 1, and their unit; None for the user's own unit."""
    charge = particles.charge
    if not potential.charged or charge is None or has_wide_range(charge.dtype):
        return potential, None
    top = particles.space.max(largest(charge))
    # What is all neutral takes the smallest unit: in the user's own the potential may be out of range.
    unit = power_of_two_above(jnp.where(top > 0, top, jnp.finfo(top.dtype).tiny))
    scaled = potential.in_charge_unit(unit)
    return (potential, None) if scaled is None else (scaled, unit)


def charges_are_lost(potential: AbstractPairPotential, particles: Particles) -> Bool[Array, ""]:
    """Whether the potential is below all numbers of its precision where charges are of order 1."""
    scaled, unit = with_charge_unit(potential, particles)
    if unit is None:
        return jnp.array(False)
    assert particles.charge is not None  # there is a unit
    tiny, is_charged = jnp.finfo(unit.dtype).tiny, largest(particles.charge) > 0
    numbers = (jax.tree.leaves(eqx.filter(p, eqx.is_inexact_array)) for p in (potential, scaled))
    pairs = zip(*numbers, strict=True)
    lost = [jnp.any((old != 0) & (jnp.abs(new) < tiny)) for old, new in pairs]
    return jnp.any(jnp.stack(lost)) & is_charged


@dataclass(frozen=True)
class PairKernel:
    """Terms of a sum over pairs closer than `cutoff`.

    - `quantity`: `"energy"`; `"force"` on i, by components; `"magnitude"` of the force; `"virial"`, by pairs
      of axes; `"heat"`, r F·(vᵢ + vⱼ) by components, of particles with velocities "v".
    """

    quantity: str
    cutoff: float | None

    def __call__(
        self,
        arrays_i: PairArrays,
        arrays_j: PairArrays,
        context: PairContext,
        present: Bool[Array, "c k"],
    ) -> PyTree:
        potential, space = context
        d = space.minimum_image(
            tuple(a - b for a, b in zip(arrays_i["x"], arrays_j["x"], strict=True))
        )
        r2 = sum(x * x for x in d)
        inside = present if self.cutoff is None else present & (r2 < self.cutoff**2)
        # Outside, the potential gets a harmless distance: a NaN there would survive in derivatives, though
        # the term itself is masked below.
        r2 = jnp.where(inside, r2, 1.0 if self.cutoff is None else self.cutoff**2)
        if "species" in arrays_i:
            potential = potential.between(arrays_i["species"], arrays_j["species"])
        is_energy = self.quantity == "energy"
        charges = arrays_i["charge"] * arrays_j["charge"] if "charge" in arrays_i else None
        term = jnp.where(inside, potential.term(is_energy, r2, charges), 0)
        if is_energy:
            return term
        if self.quantity == "magnitude":
            return jnp.abs(term) * jnp.sqrt(r2)
        force = tuple(term * x for x in d)
        if self.quantity == "force":
            return force
        if self.quantity == "heat":
            velocities = zip(force, arrays_i["v"], arrays_j["v"], strict=True)
            work = sum(f * (a + b) for f, a, b in velocities)
            return tuple(x * work for x in d)
        # The virial is symmetric: only the upper triangle is summed.
        return {(a, b): d[a] * force[b] for a in range(len(d)) for b in range(a, len(d))}
