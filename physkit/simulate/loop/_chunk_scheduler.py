"""How long the next chunk should be."""

CHUNK_SECONDS = 0.5


class ChunkScheduler:
    """Chooses the number of blocks of the next chunk from the time that the last one took.

    - `max_blocks`: the longest chunk that the program takes.
    - `seconds`: the wanted duration of a chunk.
    """

    def __init__(self, max_blocks: int, seconds: float = CHUNK_SECONDS):
        self.max_blocks, self.seconds = max_blocks, seconds
        self.blocks = 1
        self.seconds_per_block: float | None = None

    @property
    def next_seconds(self) -> float:
        """Expected duration of the next chunk; 0 while nothing is known."""
        return self.blocks * (self.seconds_per_block or 0.0)

    def update(self, blocks: int, seconds: float) -> None:
        """Record that `blocks` took `seconds`; approach the wanted duration, fourfold at most."""
        self.seconds_per_block = seconds / blocks
        wanted = int(self.seconds / max(self.seconds_per_block, 1e-9))
        self.blocks = max(1, min(wanted, 4 * self.blocks, self.max_blocks))
