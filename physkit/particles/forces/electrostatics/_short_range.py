"""Forces that share the pass over near pairs of an Ewald sum."""

import numpy as np
from jaxtyping import Array

from physkit.core import ParameterError, describe, replace_fields

from .._force import Forces
from ..pairs._pairwise import Pairwise
from ..pairs._potential_sum import PotentialSum
from ..potentials import DampedCoulomb


def with_others(near: Pairwise, short_range: Pairwise | Forces) -> Pairwise:
    """`near` with the potentials of `short_range` beside its own.

    **Errors:** `ParameterError` for forces that are not between the same pairs.
    """
    others = short_range.terms if isinstance(short_range, Forces) else (short_range,)
    names = short_range.term_names if isinstance(short_range, Forces) else ()
    for other in others:
        if not isinstance(other, Pairwise) or other.potential.charged:
            raise ParameterError(
                "short_range is a Pairwise force without charges, such as Pairwise(LennardJones(), 9.0); got "
                f"{describe(other)}"
            )
        if other.cutoff != near.cutoff or other.component != near.component:
            raise ParameterError(
                "short_range acts between the near pairs of the Ewald sum, cutoff "
                f"{near.cutoff}, component {near.component!r}; this one has {other.cutoff} and "
                f"{other.component!r}: give both the same, or add the forces, a + b"
            )
        if near.exact or other.exact:
            raise ParameterError("short_range has no exact sums: add the forces instead, a + b")
        if other.exclude is not None and _pairs(other.exclude) != _pairs(near.exclude):
            raise ParameterError(
                "short_range excludes other pairs than the Ewald sum: leave its exclude=… out, or add the "
                "forces, a + b"
            )
    together = PotentialSum(coulomb_part(near), tuple(others), tuple(names))
    return replace_fields(near, {"potential": together})


def _pairs(exclude: Array | None) -> set[tuple[int, int]]:
    rows = [] if exclude is None else np.sort(np.asarray(exclude), axis=1).tolist()
    return {(i, j) for i, j in rows}


def coulomb_part(near: Pairwise) -> DampedCoulomb:
    """The potential between charges."""
    potential = near.potential
    potential = potential.coulomb if isinstance(potential, PotentialSum) else potential
    assert isinstance(potential, DampedCoulomb)
    return potential


def other_parts(near: Pairwise) -> tuple[Pairwise, ...]:
    """The forces that share the pass."""
    return near.potential.others if isinstance(near.potential, PotentialSum) else ()
