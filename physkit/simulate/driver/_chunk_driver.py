"""Advance, grow what overflowed, replay: the one way in which the host runs chunks."""

from collections.abc import Callable
from typing import Generic

from ..loop._chunk_program import C, ChunkAttempt
from ..loop._chunk_scheduler import ChunkScheduler

MAX_GROWTHS = 12  # in a row, for one and the same chunk


class ChunkDriver(Generic[C]):
    """Runs chunks through a program, and heals overflows.

        attempt = program(carry, blocks)
        while attempt.overflowed:                       # all of it is void
            carry, events = grow(carry, attempt.after)  # the start of the chunk, with larger caches
            attempt = program(carry, blocks)            # replayed

    **Arguments:**

    - `program`: computes a chunk with the capacities that a carry has: on one device, over a domain,
      or of a batch of members.
    - `grow`: the first carry with capacities for what the second one required, and what has grown.
    - `give_up`: what to go on from when growing does not help (nothing has grown, or `MAX_GROWTHS` times
      in a row): another start to replay from, or None to let the void attempt stand. It may raise.
    - `scheduler`: learns how long chunks take; `scheduler.blocks` is the length to ask for next.
    - `on_growth`: told of every growth, with the start of the chunk.
    """

    def __init__(
        self,
        program: Callable[[C, int], ChunkAttempt[C]],
        grow: Callable[[C, C], tuple[C, list[str]]],
        give_up: Callable[[C, ChunkAttempt[C], list[str]], C | None],
        scheduler: ChunkScheduler,
        on_growth: Callable[[C, list[str]], None] = lambda carry, events: None,
    ):
        self.scheduler = scheduler
        self.compile_seconds = 0.0
        self.replays = 0  # in a row
        self._program, self._grow, self._give_up = program, grow, give_up
        self._on_growth = on_growth

    def advance(self, carry: C, blocks: int) -> tuple[C, ChunkAttempt[C]]:
        """`blocks` blocks on: the start as it was replayed from, and the chunk that did not overflow."""
        while True:
            attempt = self._program(carry, blocks)
            if attempt.compiled:
                self.compile_seconds += attempt.seconds
            if not attempt.overflowed:
                self.replays = 0
                break
            self.replays += 1
            larger, events = self._grow(carry, attempt.after)
            if events and self.replays <= MAX_GROWTHS:
                self._on_growth(carry, events)
                carry = larger
                continue
            start = self._give_up(carry, attempt, events)
            if start is None:
                break
            carry = start
        if not attempt.compiled:
            self.scheduler.update(blocks, attempt.seconds)
        return carry, attempt
