"""The plan of a transform over devices: exchanges, and transforms along single axes.

A transform along an axis needs all of its points on one device. So the axes that are not sharded are
transformed first. Then, for each sharded axis, the devices in line along it exchange parts by one all-to-all:
each gets the whole of that axis, and gives away a part of an axis that is transformed already. Nothing is sent
back afterwards. The coefficients stay *transposed*, and the grid tells which modes a device holds. A slab takes
one all-to-all each way, a pencil two.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ._cosine_sine import Parities


@dataclasses.dataclass(frozen=True)
class AllToAll:
    """One all-to-all among the devices in line along an axis of space.

    Lengths that the devices do not divide are padded before, and the padding of `join` is dropped afterwards.

    - `devices`: the axis of space along which the devices are in line.
    - `split`: the axis that is sharded afterwards; its length before the exchange, and with padding, are
      `before` and `padded`.
    - `join`: the axis that was sharded before; its length after the exchange, and without padding, are
      `whole` and `kept`.
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

    - `half`: the axis along which only modes with k ≥ 0 are kept; None for complex values, or if no axis is
      periodic.
    - `owners`: per axis of space, the axes of devices over which its modes are sharded, outer first.
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
    """The plan for `devices` along every axis, on a grid with two axes or three.

    - `kinds`: None for each periodic axis, parities for each axis between walls.
    - `real`: whether values are real, so that half of the Fourier modes suffices.
    """
    d = len(shape)
    # The half axis is transformed first, while values are still real: an axis that is not sharded, if possible,
    # and the last of those, as on one device.
    periodic = [k for k in range(d) if kinds[k] is None]
    half = min(periodic, key=lambda k: (devices[k] > 1, -k)) if real and periodic else None
    # Axes that are not sharded first, and among equals the half axis.
    order = sorted(range(d), key=lambda k: (devices[k] > 1, k != half, -k))
    modes = [n // 2 + 1 if k == half else n for k, n in enumerate(shape)]
    owners: list[list[int]] = [[k] if p > 1 else [] for k, p in enumerate(devices)]
    lengths = [n // p for n, p in zip(shape, devices, strict=True)]
    done: list[int] = []
    # Axes to transform, and exchanges whose lengths are not final yet.
    moves: list[int | _Exchange] = []
    # Lengths of axes that were split before they were transformed, to restore them when they are joined again.
    lengths_before_split: dict[tuple[int, int], int] = {}
    for axis in order:
        while owners[axis]:
            k = owners[axis].pop()
            ready = done or [t for t in range(d) if t != axis]
            # The axis that is sharded least, of those the half axis (modes and their mirror images then stay on
            # one device), else the longest.
            split = min(ready, key=lambda t: (len(owners[t]), t != half, -lengths[t]))
            whole = lengths[axis] * devices[k]
            lengths[axis] = lengths_before_split.pop((axis, k), whole)
            is_final = split in done
            if not is_final:
                lengths_before_split[split, k] = lengths[split]
            moves.append(_Exchange(k, split, axis, lengths[split], whole, lengths[axis], is_final))
            lengths[split] = -(-lengths[split] // devices[k])
            owners[split].append(k)
        moves.append(axis)
        lengths[axis] = modes[axis]
        done.append(axis)
    num_owners = [math.prod(devices[k] for k in owner) for owner in owners]
    stored = tuple(-(-m // p) * p for m, p in zip(modes, num_owners, strict=True))
    return TransformPlan(
        tuple(_with_final_lengths(moves, devices, modes, stored)),
        half,
        tuple(tuple(owner) for owner in owners),
        stored,
    )


class _Exchange(NamedTuple):
    """An `AllToAll` without padding; `is_final`: whether `split` is transformed already, and stays so."""

    devices: int
    split: int
    join: int
    before: int
    whole: int
    kept: int
    is_final: bool


def _with_final_lengths(
    moves: Sequence[int | _Exchange],
    devices: tuple[int, ...],
    modes: Sequence[int],
    stored: tuple[int, ...],
) -> Iterator[AllToAll | int]:
    """Exchanges with padding: an axis of modes is padded once, for all devices that it is sharded over."""
    lengths = list(modes)
    for move in moves:
        if isinstance(move, int):
            yield move
            continue
        k, split, join, before, whole, kept, is_final = move
        padded = -(-before // devices[k]) * devices[k]
        if is_final:
            before = lengths[split]
            padded = stored[split] if before == modes[split] else before
            lengths[split] = padded // devices[k]
        yield AllToAll(k, split, join, before, padded, whole, kept)
