"""The check of species that all forces with tables share."""

from physkit.core import ParameterError, concrete_value

from .._particles import Particles


def require_species(particles: Particles, name: str, count: int | None) -> None:
    """**Errors:** `ParameterError` where `name` has tables for `count` species and the particles lack such."""
    if count is None:
        return
    if particles.species is None:
        raise ParameterError(f"{name} has tables for {count} species: give Particles(…, species=…)")
    numbers = concrete_value(particles.species)
    if numbers is not None and numbers.size and numbers.max() >= count:
        raise ParameterError(
            f"{name} has tables for {count} species, numbered from 0; a particle has species "
            f"{numbers.max()}"
        )
