"""The schedule of binomial checkpointing: which states are kept, and when their slots are used again."""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np


class Schedule(NamedTuple):
    """How `length` steps are reversed with `slots` states kept at a time.

    - `keep`: `[length]`, the slot into which the first forward pass puts the state before each step;
      `slots` (one more than there is) for none.
    - `is_backward`: `[a]`, whether the action is the backward pass of a step; otherwise it is one step
      forward.
    - `step`: `[a]`, of the state that it starts from. `load`: `[a]`, the slot to load that from, −1
      for none. `save`: `[a]`, the slot to save it in, `slots` for none.
    """

    keep: np.ndarray
    is_backward: np.ndarray
    step: np.ndarray
    load: np.ndarray
    save: np.ndarray

    @property
    def forward_steps(self) -> int:
        """Steps computed again to get to where a backward step begins."""
        return int(np.sum(~self.is_backward))


@lru_cache(maxsize=64)
def build_schedule(length: int, slots: int) -> Schedule:
    """The schedule with the fewest steps computed again.

    **Reference:** Griewank & Walther, ACM Trans. Math. Softw. 26, 19 (2000), `revolve`.
    """
    keep = np.full(length, slots, np.int32)
    kept = [0, *_place_checkpoints(0, length, slots - 1)]
    keep[kept] = np.arange(len(kept))
    actions = np.array(list(_actions(kept, length, slots)), np.int32).reshape(-1, 4)
    is_backward, step, load, save = (np.ascontiguousarray(column) for column in actions.T)
    return Schedule(keep, is_backward.astype(bool), step, load, save)


def _actions(kept: list[int], end: int, slots: int) -> Iterator[tuple[bool, int, int, int]]:
    """(is_backward, step, load, save) one by one, from the states `kept` of the first forward pass."""
    # `end` counts down the steps that are not reversed yet; `kept` is a stack, whose last state is the nearest.
    while end > 0:
        at, load = kept[-1], len(kept) - 1
        # From the last checkpoint to the last step not reversed yet, with new checkpoints on the way.
        for place in [*_place_checkpoints(at, end, slots - len(kept)), end - 1]:
            save = slots
            if at != kept[-1]:
                kept.append(at)
                save = len(kept) - 1
            # The first action from here loads or saves; those after it only advance.
            for step in range(at, place):
                yield False, step, load, save
                load, save = -1, slots
            at = place
            if at == end - 1:
                yield True, at, load, save
                break
        end -= 1
        # The state before a reversed step is not needed again: its slot is free.
        if kept[-1] == end:
            kept.pop()


def _place_checkpoints(start: int, end: int, free: int) -> list[int]:
    """The steps at which to keep a state between a kept `start` and `end`, with `free` slots."""
    places = []
    while free > 0 and end - start > 1:
        start += _stride(end - start, free + 1)
        places.append(start)
        free -= 1
    return places


def _stride(length: int, kept: int) -> int:
    """How far from its start to keep the next state, with `kept` states in all, the start's included."""
    # With r the fewest repeats for c states, a split costs least where the front needs at most r − 1 (it is
    # advanced over once more) and the rest at least what c − 1 states do with r − 1: take the longest front.
    repeats = 1
    while _reach(kept, repeats) < length:
        repeats += 1
    return max(1, min(_reach(kept, repeats - 1), length - _reach(kept - 1, repeats - 1)))


def _reach(kept: int, repeats: int) -> int:
    """The most steps that can be reversed with `kept` states if none is computed more than `repeats` times."""
    return math.comb(kept + repeats, kept)
