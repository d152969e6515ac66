"""How long the next chunk should be."""

# Long enough that the host's work between chunks takes a small part, short enough that progress, signals and
# checkpoints need not wait.
CHUNK_SECONDS = 0.5


class ChunkScheduler:
    """Chooses the number of blocks of the next chunk from the time that the last one took.

    - `max_blocks`: the longest chunk that the program takes.
    - `seconds`: the wanted duration of a chunk.
    """

    def __init__(self, max_blocks: int, seconds: float = CHUNK_SECONDS):
        self.max_blocks, self.seconds = max_blocks, seconds
        self.blocks = 1  # the first chunk: its duration is not known
        self.seconds_per_block: float | None = None

    @property
    def next_seconds(self) -> float:
        """Expected duration of the next chunk; 0 while nothing is known."""
        return self.blocks * (self.seconds_per_block or 0.0)

    def update(self, blocks: int, seconds: float) -> None:
        """Record that `blocks` took `seconds`; change the length towards the wanted duration."""
        self.seconds_per_block = seconds / blocks
        # At most fourfold at once: the time of a very short chunk is mostly overhead, and says little.
        wanted = int(self.seconds / max(self.seconds_per_block, 1e-9))
        self.blocks = max(1, min(wanted, 4 * self.blocks, self.max_blocks))
