"""Forces that share the pass over near pairs of an Ewald sum."""

import numpy as np
from jaxtyping import Array

from physkit.core import ParameterError, describe

from .._force import Forces
from ..pairs._pairwise import Pairwise
from ..pairs._potential_sum import PotentialSum
from ..potentials import DampedCoulomb


def sum_of_potentials(
    coulomb: DampedCoulomb, short_range: Pairwise | Forces, near: Pairwise
) -> PotentialSum:
    """`coulomb` and the potentials of `short_range`.

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
    return PotentialSum(coulomb, tuple(others), tuple(names))


def _pairs(exclude: Array | None) -> set[tuple[int, int]]:
    rows = [] if exclude is None else np.sort(np.asarray(exclude), axis=1).tolist()
    return {(i, j) for i, j in rows}
