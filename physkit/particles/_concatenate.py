"""Several sets of particles as one, as a force sees them that acts on all."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ParameterError, replace_fields

from ._particles import Particles


def concatenate_particles(parts: Sequence[Particles], what: Sequence[str]) -> Particles:
    """All particles of `parts`, in this order, in the space of the first.

    - `what`: what each of the parts is, for the error.

    **Errors:** `ParameterError` where only some of them have charges, or species.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts:
        part.require_single_device("a force on several components at once")
    rows = {name: [getattr(part, name) for part in parts] for name in first.row_names}
    for name in ("charge", "species"):
        missing = [x is None for x in rows[name]]
        if any(missing) and not all(missing):
            without, with_it = what[missing.index(True)], what[missing.index(False)]
            raise ParameterError(
                f"{with_it} have {name}, {without} do not: give it to both, or to neither"
            )
    rows["frozen"] = _frozen(parts)
    joined = {name: None if x[0] is None else jnp.concatenate(x) for name, x in rows.items() if x}
    joined["id"] = _distinct_ids(rows["id"])
    return replace_fields(first, {**joined, "fixed_point": None, "constraints": None})


def _frozen(parts: Sequence[Particles]) -> list[Array | None]:
    if all(part.frozen is None for part in parts):
        return [None]
    return [
        jnp.zeros(part.num_slots, bool) if part.frozen is None else part.frozen for part in parts
    ]


def _distinct_ids(ids: Sequence[Array]) -> Array:
    """Those of the first as they are; of the others, counted on."""
    distinct = [ids[0]]
    for more in ids[1:]:
        distinct.append(more + jnp.max(distinct[-1], initial=-1) + 1)
    return jnp.concatenate(distinct)
