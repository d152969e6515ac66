"""One compiled program for chunks of every length, and how long a chunk should be."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from physkit.core import Health
from physkit.observe import Frame

from ._advance import advance_chunk, observe_initial
from ._carry import Carry
from ._simulation import Simulation

FRAME_BYTES = 2**26  # frames that a chunk may hold back
MOST_BLOCKS = 2**20
CHUNK_SECONDS = 0.5
# JAX ≥ 0.12 mistakes big CPU loops for small ones and runs their bodies on one core; without the
# pass truly small loops are slower, hence the size of state from which it is left out.
LARGE_STATE_BYTES = 2**18
CPU_COMPILER_OPTIONS = {"xla_disable_hlo_passes": "small-while-loop-hoisting"}


class ChunkProgram:
    """Runs chunks of any number of blocks through one compiled program per carry structure."""

    def __init__(self, sim: Simulation, carry: Carry):
        self.room = max_blocks_per_chunk(sim, eqx.filter_eval_shape(observe_initial, sim, carry)[1])
        self._sim = sim
        self._kinds: set[Any] = set()

    @property
    def compilations(self) -> int:
        """How many different programs this run has needed so far.

        Those that another run of the same simulation needed in this process come from JAX's cache.
        """
        return len(self._kinds)

    def __call__(self, carry: Carry, blocks: int) -> tuple[Carry, Frame, Health]:
        """`blocks` (at most `room`) blocks on; returns when the numbers are there."""
        program, dynamic, rest = self._program(carry)
        arrays, tree = jax.tree.flatten(dynamic)
        self._kinds.add((tree, tuple((x.shape, x.dtype) for x in arrays)))
        return jax.block_until_ready(program(dynamic, np.int32(blocks), rest, self.room))

    def memory(self, carry: Carry) -> tuple[int, int]:
        """Bytes that the program needs in all, and of them as scratch space, as XLA says."""
        program, dynamic, rest = self._program(carry)
        compiled = program.lower(dynamic, np.int32(1), rest, self.room).compile()
        found = compiled.memory_analysis()
        whole = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
        return whole - found.alias_size_in_bytes, found.temp_size_in_bytes

    def _program(self, carry: Carry) -> tuple[Any, Any, Any]:
        """The program for a carry, with its numbers and what it is compiled for."""
        dynamic, rest = eqx.partition((self._sim, carry), eqx.is_array)
        others, form = jax.tree.flatten(rest)
        program = _on_all_cores if _is_large(carry) else _as_compiled
        return program, dynamic, (tuple(others), form)


def max_blocks_per_chunk(sim: Simulation, frames: Any) -> int:
    """Blocks that a chunk may have, by the size of the frames that it holds back."""
    leaves = jax.tree.leaves(frames)
    each = sum(x.size * np.dtype(x.dtype).itemsize for x in leaves) * _frames_per_block(sim)
    fit = MOST_BLOCKS if each == 0 else max(1, FRAME_BYTES // max(each, 1))
    return min(MOST_BLOCKS if each == 0 else 4096, fit)


def _chunk(dynamic: Any, blocks: jax.Array, rest: tuple[Any, Any], room: int):
    others, form = rest
    sim, carry = eqx.combine(dynamic, jax.tree.unflatten(form, others))
    return advance_chunk(sim, carry, blocks, room)


_as_compiled = jax.jit(_chunk, static_argnums=(2, 3))
_on_all_cores = jax.jit(_chunk, static_argnums=(2, 3), compiler_options=CPU_COMPILER_OPTIONS)


def _is_large(carry: Carry) -> bool:
    size = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(carry.state))
    return jax.default_backend() == "cpu" and size >= LARGE_STATE_BYTES


def _frames_per_block(sim: Simulation) -> int:
    return sim.observation_period // min(sim.intervals, default=1)


class ChunkScheduler:
    """Chooses the number of blocks of the next chunk from the time that the last one took."""

    def __init__(self, room: int, seconds: float = CHUNK_SECONDS):
        self.room, self.seconds = room, seconds
        self.blocks = 1
        self.seconds_per_block: float | None = None

    def note(self, blocks: int, seconds: float) -> None:
        """A chunk of `blocks` took `seconds`; grow towards the wanted length, fourfold at most."""
        self.seconds_per_block = seconds / blocks
        wanted = int(self.seconds / max(self.seconds_per_block, 1e-9))
        self.blocks = max(1, min(wanted, 4 * self.blocks, self.room))
