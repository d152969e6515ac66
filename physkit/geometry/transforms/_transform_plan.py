"""The plan of a transform over devices: exchanges, and transforms along single axes.

A transform along an axis needs the whole of that axis. So the axes that are not sharded are transformed
first; then, for each sharded axis, the devices in line along it exchange parts (one all-to-all): every one
gets the whole of that axis and gives away a part of an axis that is done. Nothing is sent back afterwards:
the coefficients stay where they are, *transposed*, and everyone asks the grid which modes it holds. A slab
takes one all-to-all each way, a pencil two.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from ._cosine_sine import Parities


@dataclasses.dataclass(frozen=True)
class AllToAll:
    """One all-to-all among the devices in line along an axis of space.

    `split` is the axis that is in parts afterwards, `join` the one that was before. What does not divide is
    padded: `before` and `padded` are lengths of `split`; `whole` and `kept` those of `join` afterwards.
    """

    devices: int
    split: int
    join: int
    before: int
    padded: int
    whole: int
    kept: int


@dataclasses.dataclass(frozen=True)
class TransformPlan:
    """Steps from values to coefficients: exchanges, and transforms (by the index of their axis).

    - `half`: the axis of which only modes with k ≥ 0 are kept; None for complex values, or if no axis is
      periodic.
    - `owners`: per axis of space, the axes of the devices that its modes are sharded over, outer first.
    - `stored`: number of modes per axis, of all devices together, with padding.
    """

    steps: tuple[AllToAll | int, ...]
    half: int | None
    owners: tuple[tuple[int, ...], ...]
    stored: tuple[int, ...]


@functools.lru_cache(maxsize=256)
def plan_transform(
    shape: tuple[int, ...], devices: tuple[int, ...], kinds: Parities, real: bool
) -> TransformPlan:
    """The plan for `devices` along every axis, on a grid with two axes or three."""
    d = len(shape)
    periodic = [k for k in range(d) if kinds[k] is None]
    half = min(periodic, key=lambda k: (devices[k] > 1, -k)) if real and periodic else None
    order = sorted(range(d), key=lambda k: (devices[k] > 1, k != half, -k))
    modes = [n // 2 + 1 if k == half else n for k, n in enumerate(shape)]
    owners: list[list[int]] = [[k] if p > 1 else [] for k, p in enumerate(devices)]
    lengths = [n // p for n, p in zip(shape, devices, strict=True)]
    done: list[int] = []
    moves: list[Any] = []
    # Lengths of axes of which a part was given away before they were transformed.
    lent: dict[tuple[int, int], int] = {}
    for axis in order:
        while owners[axis]:
            k = owners[axis].pop()
            ready = done or [t for t in range(d) if t != axis]
            # Parts of the half axis first: modes and their mirror images then stay on one device.
            split = min(ready, key=lambda t: (len(owners[t]), t != half, -lengths[t]))
            whole = lengths[axis] * devices[k]
            lengths[axis] = lent.pop((axis, k), whole)
            if split not in done:
                lent[split, k] = lengths[split]
            moves.append([k, split, axis, lengths[split], whole, lengths[axis], split in done])
            lengths[split] = -(-lengths[split] // devices[k])
            owners[split].append(k)
        moves.append(axis)
        lengths[axis] = modes[axis]
        done.append(axis)
    over = [math.prod(devices[k] for k in owner) for owner in owners]
    stored = tuple(-(-m // p) * p for m, p in zip(modes, over, strict=True))
    return TransformPlan(
        tuple(_exchanges(moves, devices, modes, stored)),
        half,
        tuple(tuple(owner) for owner in owners),
        stored,
    )


def _exchanges(
    moves: Sequence[Any], devices: tuple[int, ...], modes: Sequence[int], stored: tuple[int, ...]
) -> Iterator[AllToAll | int]:
    """Exchanges with their lengths: an axis of modes is padded once, for all devices it is sharded over."""
    lengths = list(modes)
    for move in moves:
        if isinstance(move, int):
            yield move
            continue
        k, split, join, before, whole, kept, final = move
        padded = -(-before // devices[k]) * devices[k]
        if final:
            before = lengths[split]
            padded = stored[split] if before == modes[split] else before
            lengths[split] = padded // devices[k]
        yield AllToAll(k, split, join, before, padded, whole, kept)
