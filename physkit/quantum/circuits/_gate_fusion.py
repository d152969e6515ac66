"""Which gates of a circuit are applied together, as one matrix on a few subsystems.

A gate costs a pass over the whole state, whose numbers are few operations each: memory is the limit. One matrix
of sixteen rows for a dozen gates passes once. It also is one instruction to the compiler, which fuses chains of
gates into expressions that grow with their number.
"""

import functools
import math
from typing import NamedTuple

Axes = tuple[int, ...]

_FEW_ROWS, _MOST_ROWS = 8, 16  # beyond, arithmetic takes longer than memory
_LARGE = 2**14  # numbers of a state beside which matrices of most rows, one a gate, are little


class Block(NamedTuple):
    """Some operations, one after the other, on the subsystems `axes`."""

    axes: Axes
    members: tuple[int, ...]


def block_rows(dims: Axes, local: int) -> int:
    """How many rows a block's matrix may have, for `local` numbers of a state of these dimensions."""
    rows = _MOST_ROWS if math.prod(dims) >= _LARGE else _FEW_ROWS
    rows = max(rows, min(max(dims) ** 2, _MOST_ROWS))  # two subsystems of three or four levels
    return min(rows, local)


@functools.lru_cache(maxsize=64)
def plan_blocks(sites: tuple[Axes, ...], dims: Axes, rows: int) -> tuple[Block, ...]:
    """Blocks of operations on `sites`, given in the order of time, of which disjoint ones may change places.

    An operation that is too large for a block of `rows` is one by itself.
    """

    def fits(axes: set[int]) -> bool:
        return math.prod(dims[a] for a in axes) <= rows

    blocks: list[tuple[set[int], list[int]]] = []
    last: dict[int, int] = {}  # the block that acted last on each subsystem
    waiting: dict[
        int, list[int]
    ] = {}  # operations on one subsystem that nothing has acted on before
    for number, axes in enumerate(sites):
        before = sorted({last[a] for a in axes if a in last})
        if len(axes) == 1 and not before:
            waiting.setdefault(axes[0], []).append(number)
            continue
        members = [*(w for a in axes for w in waiting.pop(a, [])), number]
        # Into the last block that acted on any of them, or a later one that it shares a subsystem with.
        place = None
        for k in range(before[-1], len(blocks)) if before else ():
            own = blocks[k][0]
            if own & set(axes) and fits(own | set(axes)):
                place = k
                break
        if place is None:
            place = len(blocks)
            blocks.append((set(), []))
        blocks[place][0].update(axes)
        blocks[place][1].extend(members)
        last |= dict.fromkeys(axes, place)
    blocks += [({axis}, members) for axis, members in waiting.items()]
    joined: list[tuple[set[int], list[int]]] = []
    for axes, members in blocks:
        place = None
        # The earliest that has room, with nothing between on the same subsystems.
        for k in reversed(range(len(joined))):
            if fits(joined[k][0] | axes):
                place = k
            if joined[k][0] & axes:
                break
        if place is None:
            joined.append((set(axes), list(members)))
        else:
            joined[place][0].update(axes)
            joined[place][1].extend(members)
    return tuple(Block(tuple(sorted(axes)), tuple(members)) for axes, members in joined)
