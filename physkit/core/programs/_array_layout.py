"""Several arrays as one, or as one of each dtype."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

FEW_NUMBERS = (
    128  # numbers of an array that is still a few: a profile of a layer, factors of degrees
)
# Arrays of several that are joined, one for each group and dtype, and those that are not.
Joined: TypeAlias = tuple[list[Array], list[Any]]


class _Part(NamedTuple):
    """An array within a joined one."""

    place: int  # in the list of all
    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True)
class ArrayLayout:
    """Where each of several arrays lies: within one array of its dtype, or by itself.

    A few whole numbers and bools are joined with numbers of single precision, if there are any, as their bits.

    - `groups`: for each group and dtype, the arrays that are joined.
    - `alone`: places in the list of the others.
    """

    groups: tuple[tuple[_Part, ...], ...]
    alone: tuple[int, ...]

    @classmethod
    def of(cls, arrays: Sequence[Any], names: Sequence[str | None]) -> "ArrayLayout":
        """Those of the same name and dtype are joined; what has no name may be anything."""
        given = [(x, name) for x, name in zip(arrays, names, strict=True) if name is not None]
        singles = {name for x, name in given if x.dtype == np.float32}
        groups: dict[Any, list[_Part]] = {}
        for k, (x, name) in enumerate(zip(arrays, names, strict=True)):
            if name is not None:
                is_bits = name in singles and _can_be_bits(x)
                key = name, np.dtype(np.float32) if is_bits else x.dtype
                groups.setdefault(key, []).append(_Part(k, tuple(x.shape), x.dtype))
        alone = tuple(k for k, name in enumerate(names) if name is None)
        return cls(tuple(map(tuple, groups.values())), alone)

    def join(self, arrays: Sequence[Any]) -> Joined:
        joined = []
        for group in self.groups:
            has_bits = len({part.dtype for part in group}) > 1
            # Numbers that a program holds are no arrays of JAX's yet.
            flat = [jnp.ravel(arrays[part.place]) for part in group]
            joined.append(jnp.concatenate([_to_bits(x) for x in flat] if has_bits else flat))
        return joined, [arrays[k] for k in self.alone]

    def split(self, joined: Joined) -> list[Any]:
        """The arrays that were joined."""
        together, alone = joined
        found = dict(zip(self.alone, alone, strict=True))
        for array, group in zip(together, self.groups, strict=True):
            start = 0
            for part in group:
                end = start + math.prod(part.shape)
                flat = jax.lax.slice(array, (start,), (end,))
                found[part.place] = _from_bits(flat, part.dtype).reshape(part.shape)
                start = end
        return [found[k] for k in range(len(found))]


def _can_be_bits(x: Any) -> bool:
    is_short = jnp.issubdtype(x.dtype, np.integer) and x.dtype.itemsize == 4
    return (x.dtype == np.bool_ or is_short) and math.prod(x.shape) <= FEW_NUMBERS


def _to_bits(x: Array) -> Array:
    """32 bits of anything as a number of single precision, which is not computed with."""
    x = x.astype(np.int32) if x.dtype == np.bool_ else x
    return x if x.dtype == np.float32 else jax.lax.bitcast_convert_type(x, np.float32)


def _from_bits(x: Array, dtype: Any) -> Array:
    if x.dtype == dtype:
        return x
    if dtype == np.bool_:
        return jax.lax.bitcast_convert_type(x, np.int32) != 0
    return jax.lax.bitcast_convert_type(x, dtype)
