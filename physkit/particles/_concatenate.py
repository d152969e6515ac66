"""Several sets of particles as one, as a force sees them that acts on all."""

from collections.abc import Sequence
from itertools import pairwise

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import DeclarationError, ParameterError, replace_fields

from ._particles import Particles
from .decomposition._ownership import Ownership


def concatenate_particles(parts: Sequence[Particles], what: Sequence[str]) -> Particles:
    """All particles of `parts`, in this order, in the space of the first.

    - `what`: what each of the parts is, for the error.

    **Errors:** `ParameterError` where only some of them have charges, or species; `DeclarationError` where only
    some are cut into slabs over devices.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
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
    joined["id"] = _distinct_ids(parts)
    joined["ownership"] = _ownership(parts, what)
    return replace_fields(first, {**joined, "fixed_point": None, "constraints": None})


def _frozen(parts: Sequence[Particles]) -> list[Array | None]:
    if all(part.frozen is None for part in parts):
        return [None]
    return [
        jnp.zeros(part.num_slots, bool) if part.frozen is None else part.frozen for part in parts
    ]


def _distinct_ids(parts: Sequence[Particles]) -> Array:
    """Those of the first as they are; of the others, counted on."""
    distinct, begin = [parts[0].id], 0
    for before, part in pairwise(parts):
        # A device need not hold the last of them.
        present = before.mask_empty(before.id + 1)
        begin = begin + before.space.max(jnp.max(present, initial=0))
        distinct.append(part.id + begin)
    return jnp.concatenate(distinct)


def _ownership(parts: Sequence[Particles], what: Sequence[str]) -> Ownership | None:
    owned = [part.ownership for part in parts]
    whole = [name for name, x in zip(what, owned, strict=True) if x is None]
    if len(whole) == len(parts):
        return None
    first, *others = (x for x in owned if x is not None)
    if whole or any(x.axis != first.axis for x in others):
        raise DeclarationError(
            "components that one force acts on are cut over devices alike: in a Box each, and along the same "
            f"axis; {', '.join(whole) or 'these'} are not"
        )
    return first.joined(others)
