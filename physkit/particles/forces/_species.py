"""The check of species that all forces with tables share."""

from jaxtyping import Array, Int

from physkit.core import ParameterError, PyTree, concrete_value, poison_where

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


def poison_unknown_species(
    tree: PyTree, species: Int[Array, " n"] | None, count: int | None
) -> PyTree:
    """`tree` by particle or tuple, NaN where the species is none of `count`.

    In a trace, which hides species from `require_species`, tables give a number for any.
    """
    if species is None or count is None:
        return tree
    return poison_where(tree, (species < 0) | (species >= count))


def require_species_names(
    particles: Particles, name: str, elements: tuple[str, ...] | None
) -> None:
    """**Errors:** `ParameterError` where the tables of `name` are of other elements."""
    names = particles.species_names
    if elements is None or names is None:
        return
    # `C:2` is carbon, too.
    given = tuple(x.split(":")[0] for x in names)
    wanted = elements * len(given) if len(elements) == 1 else elements
    if given != wanted[: len(given)]:
        raise ParameterError(
            f"{name} has tables for {', '.join(elements)} in this order, the particles are "
            f"{', '.join(names)} (species_names): read_setfl(path, elements=({', '.join(map(repr, given))},)) "
            "takes the tables by name, where the file has them"
        )
