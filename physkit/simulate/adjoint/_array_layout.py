"""Several arrays as one of each dtype."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array

# Arrays of several that are joined, one for each dtype, and those that are not.
Joined: TypeAlias = tuple[list[Array], list[Any]]


@dataclass(frozen=True)
class ArrayLayout:
    """Where each of several arrays lies: within one array of its dtype, or by itself.

    - `groups`: for each group and dtype, (place in the list, shape) of those that are joined.
    - `alone`: places in the list of the others.
    """

    groups: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]
    alone: tuple[int, ...]

    @classmethod
    def of(cls, arrays: Sequence[Any], names: Sequence[str | None]) -> "ArrayLayout":
        """The layout of `arrays`: those with the same name and dtype are joined, those without one are not."""
        groups: dict[Any, list[tuple[int, tuple[int, ...]]]] = {}
        for k, (x, name) in enumerate(zip(arrays, names, strict=True)):
            if name is not None:
                groups.setdefault((name, x.dtype), []).append((k, tuple(x.shape)))
        alone = tuple(k for k, name in enumerate(names) if name is None)
        return cls(tuple(map(tuple, groups.values())), alone)

    def join(self, arrays: Sequence[Any]) -> Joined:
        joined = [jnp.concatenate([arrays[k].ravel() for k, _ in group]) for group in self.groups]
        return joined, [arrays[k] for k in self.alone]

    def split(self, joined: Joined) -> list[Any]:
        """The arrays that were joined."""
        together, alone = joined
        found = dict(zip(self.alone, alone, strict=True))
        for array, group in zip(together, self.groups, strict=True):
            start = 0
            for k, shape in group:
                end = start + math.prod(shape)
                found[k] = jax.lax.slice(array, (start,), (end,)).reshape(shape)
                start = end
        return [found[k] for k in range(len(found))]
