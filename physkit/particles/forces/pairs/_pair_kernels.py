"""Terms of pair sums from a pair law: force, energy, virial."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from physkit.core import ParameterError, concrete_value

from ..._particles import Particles
from ..potentials import AbstractPairPotential


def pair_arrays(particles: Particles, potential: AbstractPairPotential) -> dict[str, Any]:
    """What a pair of `particles` is to `potential`: position by components, charge, species.

    **Errors:** `ParameterError` when the potential needs charges or species that are not there.
    """
    name = type(potential).__name__
    position = particles.position
    arrays: dict[str, Any] = {"x": tuple(position[:, k] for k in range(particles.dimension))}
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
    """Terms of a sum over pairs closer than `cutoff`, from `shared` = (truncated law, space)."""

    quantity: str
    cutoff: float | None

    def __call__(self, own, other, shared, present):
        law, space = shared
        d = space.minimum_image(tuple(a - b for a, b in zip(own["x"], other["x"], strict=True)))
        r2 = sum(x * x for x in d)
        inside = present if self.cutoff is None else present & (r2 < self.cutoff**2)
        # Outside, the law is shown a harmless distance: a NaN there would survive in derivatives.
        r2 = jnp.where(inside, r2, 1.0 if self.cutoff is None else self.cutoff**2)
        if "species" in own:
            law = law.between(own["species"], other["species"])
        strength = law.energy(r2) if self.quantity == "energy" else law.force_over_distance(r2)
        if "charge" in own:
            strength = strength * (own["charge"] * other["charge"])
        strength = jnp.where(inside, strength, 0)
        if self.quantity == "energy":
            return strength
        if self.quantity == "size":
            return jnp.abs(strength) * jnp.sqrt(r2)
        pull = tuple(strength * x for x in d)
        if self.quantity == "force":
            return pull
        return {(a, b): d[a] * pull[b] for a in range(len(d)) for b in range(a, len(d))}
