"""Terms of sums over pairs, from a pair potential: force, energy, virial."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool

from physkit.core import ParameterError, PyTree, concrete_value
from physkit.geometry import AbstractSpace

from ..._particles import Particles
from ..potentials import AbstractPairPotential
from ._truncation import AbstractTruncated

PairArrays = dict[str, PyTree]  # "x": a tuple of position components; "charge", "species" if needed
PairContext = tuple[AbstractTruncated, AbstractSpace]  # what all pairs depend on


def pair_arrays(particles: Particles, potential: AbstractPairPotential) -> PairArrays:
    """What `potential` is a function of, for each particle: position by components, charge, species.

    **Errors:** `ParameterError` when the potential needs charges or species that are not there.
    """
    name = type(potential).__name__
    position = particles.position
    arrays: PairArrays = {"x": tuple(position[:, k] for k in range(particles.dimension))}
    if potential.charged:
        if particles.charge is None:
            raise ParameterError(f"{name} acts between charges: give Particles(…, charge=…)")
        arrays["charge"] = particles.charge
    tables = potential.species
    own_rule = type(potential).between is not AbstractPairPotential.between
    if tables is not None and particles.species is None:
        raise ParameterError(
            f"{name} has tables for {tables} species: give Particles(…, species=…)"
        )
    numbers = concrete_value(particles.species)
    if tables is not None and numbers is not None and numbers.size and numbers.max() >= tables:
        raise ParameterError(
            f"{name} has tables for {tables} species, numbered from 0; a particle has species "
            f"{numbers.max()}"
        )
    if particles.species is not None and (tables is not None or own_rule):
        arrays["species"] = particles.species
    return arrays


@dataclass(frozen=True)
class PairKernel:
    """Terms of a sum over pairs closer than `cutoff`.

    - `quantity`: `"energy"`; `"force"` on i, by components; `"magnitude"` of the force; `"virial"`, by pairs
      of axes.
    """

    quantity: str
    cutoff: float | None

    def __call__(
        self,
        own: PairArrays,
        other: PairArrays,
        context: PairContext,
        present: Bool[Array, "c k"],
    ) -> PyTree:
        potential, space = context
        d = space.minimum_image(tuple(a - b for a, b in zip(own["x"], other["x"], strict=True)))
        r2 = sum(x * x for x in d)
        inside = present if self.cutoff is None else present & (r2 < self.cutoff**2)
        # Outside, the potential is shown a harmless distance: a NaN there would survive in derivatives.
        r2 = jnp.where(inside, r2, 1.0 if self.cutoff is None else self.cutoff**2)
        if "species" in own:
            potential = potential.between(own["species"], other["species"])
        is_energy = self.quantity == "energy"
        term = potential.energy(r2) if is_energy else potential.force_over_distance(r2)
        if "charge" in own:
            term = term * (own["charge"] * other["charge"])
        term = jnp.where(inside, term, 0)
        if is_energy:
            return term
        if self.quantity == "magnitude":
            return jnp.abs(term) * jnp.sqrt(r2)
        force = tuple(term * x for x in d)
        if self.quantity == "force":
            return force
        return {(a, b): d[a] * force[b] for a in range(len(d)) for b in range(a, len(d))}
