"""The chunk driver: advance a chunk; where a cache overflowed, grow it and replay the chunk."""

from collections.abc import Callable
from typing import Generic

from ..loop._chunk_program import C, ChunkAttempt
from ..loop._chunk_scheduler import ChunkScheduler

MAX_GROWTHS = 12  # in a row, for one and the same chunk


class ChunkDriver(Generic[C]):
    """Runs chunks through a program, and replays those that overflowed with larger caches.

    A run, a run over devices and a batch of ensemble members all use it.

        attempt = program(carry, blocks)
        while attempt.overflowed:                       # all of it is void
            carry, events = grow(carry, attempt.after)  # the start of the chunk, with larger caches
            attempt = program(carry, blocks)            # replayed

    **Arguments:**

    - `program`: computes a chunk with the capacities that a carry has: on one device, over a domain,
      or of a batch of members.
    - `grow`: (start, end) of a chunk → the start with capacities for what the end required, and what has
      grown, in words.
    - `give_up`: called when growing does not help (nothing has grown, or `MAX_GROWTHS` times in a row), with
      the start, the attempt and the last growth. It returns another start to replay from, or None to
      accept the void attempt; it may raise.
    - `scheduler`: learns how long chunks take; `scheduler.blocks` is the length of the next one.
    - `on_growth`: called at every growth, with the start of the chunk and what has grown.
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
        """`blocks` blocks on: the start that was replayed last, and the chunk computed from it.

        The returned start has the grown caches: continue from it or from the chunk's end, not from `carry`.
        """
        while True:
            # The start must survive the attempt, to be replayed: a second copy of the state, never donated.
            attempt = self._program(carry, blocks)
            if attempt.compiled:
                self.compile_seconds += attempt.seconds
            if not attempt.overflowed:
                self.replays = 0
                break
            self.replays += 1
            # Requirements are counted up to the end of the void chunk, mostly of NaN forces: they may be too
            # small, and then the replay overflows again.
            larger, events = self._grow(carry, attempt.after)
            if events and self.replays <= MAX_GROWTHS:
                self._on_growth(carry, events)
                carry = larger
                continue
            start = self._give_up(carry, attempt, events)
            if start is None:
                break
            carry = start
        if not attempt.compiled:  # compilation says nothing about the next chunk
            self.scheduler.update(blocks, attempt.seconds)
        return carry, attempt
