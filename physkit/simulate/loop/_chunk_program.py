"""One compiled program for chunks of every length."""

import dataclasses
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import numpy as np

from physkit.core import (
    PLAIN_KERNELS,
    Fault,
    Frame,
    Health,
    PyTree,
    StaticPart,
    array_bytes,
    find_growables,
    gpu_compiler_options,
    is_on_cpu,
    split_arrays,
)

from ._advance import advance_chunk, observe_initial
from ._carry import Carry
from ._garbage import without_garbage_collection
from ._simulation import Simulation

FRAME_BYTES = 2**26  # of frames that a chunk may hold back on the device
MAX_BLOCKS = 4096  # of a chunk with frames: each has its row in the buffer
MAX_BLOCKS_WITHOUT_FRAMES = 2**20
# JAX ≥ 0.12 makes one kernel, which runs on one core, of loops that it takes for small. Those over large states
# are none; without the pass truly small loops are slower.
LARGE_STATE_BYTES = 2**18
_ALL_CORES = {"xla_disable_hlo_passes": "small-while-loop-hoisting"}
# Kernels of JAX 0.10's older way are made in half the time. Of so small states, and of pairs of so short lists,
# they are also faster, up to three times; of larger ones some are, and others take half as long again.
_SMALL_STATE_BYTES = 20_000
# The sums over so few pairs are such a kernel. On two cores they take as long as on one.
_SHORT_LISTS_BYTES, _LARGE_STATE_WITH_SHORT_LISTS_BYTES = 2**22, 2**20
# Members of a batch with so few numbers each gain more by one kernel than by more cores.
_SMALL_MEMBER_BYTES = 2**13

C = TypeVar("C")


@dataclasses.dataclass(frozen=True)
class ChunkAttempt(Generic[C]):
    """A chunk computed with the capacities of the carry that it began with.

    - `after`: the carry at its end; `frames`: its frames, one row per block, on the device.
    - `health`: what went wrong. After an overflow nothing of the chunk is valid.
    - `seconds`: how long it took; `compiled`: whether a compilation is part of that.
    """

    after: C
    frames: Frame
    health: Health
    seconds: float
    compiled: bool

    @property
    def overflowed(self) -> bool:
        """Whether a cache was too small."""
        return Fault.OVERFLOW in self.health.faults()


class CompiledKinds:
    """Counts the different programs that were needed: one per structure, shapes and dtypes.

    JAX's own cache cannot be asked: other runs of this process use it, too.
    """

    def __init__(self) -> None:
        self._kinds: set[tuple] = set()

    def __len__(self) -> int:
        return len(self._kinds)

    def is_new(self, tree: PyTree) -> bool:
        """Whether no arguments of this structure, shapes and dtypes were passed to it before."""
        arrays, form = jax.tree.flatten(tree)
        before = len(self._kinds)
        self._kinds.add((form, tuple((x.shape, x.dtype) for x in arrays)))
        return len(self._kinds) > before


class ChunkProgram:
    """Runs chunks of any number of blocks through one compiled program per carry structure.

    - `frames`: of one observation, or their shapes, where they are known.
    """

    def __init__(self, sim: Simulation, carry: Carry, frames: Frame | None = None):
        if frames is None:
            # Shapes alone count: what caches hold need not be traced.
            frames = eqx.filter_eval_shape(observe_initial, sim, carry, True)[1]
        self.max_blocks = max_blocks_per_chunk(frame_bytes_per_block(sim, frames))
        self._sim = sim
        self._kinds = CompiledKinds()

    @property
    def compilations(self) -> int:
        """How many different programs this run has needed so far.

        Those that another run of the same simulation needed in this process come from JAX's cache.
        """
        return len(self._kinds)

    def __call__(self, carry: Carry, blocks: int) -> ChunkAttempt[Carry]:
        """`blocks` (at most `max_blocks`) blocks on; returns when the numbers are there."""
        start_time = time.monotonic()
        program, arrays, static = self._program(carry)
        compiled = self._kinds.is_new(arrays)
        with without_garbage_collection(compiled):
            results = program(arrays, np.int32(blocks), self.max_blocks, static)
        # A call returns before its numbers are there; time and health are those of the finished chunk.
        after, frames, health = jax.block_until_ready(results)
        return ChunkAttempt(after, frames, health, time.monotonic() - start_time, compiled)

    def trace(self, carry: Carry) -> Any:
        """The jaxpr of the program for a carry; calls with such a carry need no other trace."""
        program, arrays, static = self._program(carry)
        return program.trace(arrays, np.int32(1), self.max_blocks, static).jaxpr

    def memory(self, carry: Carry) -> tuple[int, int]:
        """Bytes that the program needs in all, and of them as scratch space, as XLA says."""
        program, arrays, static = self._program(carry)
        return compiled_bytes(program.lower(arrays, np.int32(1), self.max_blocks, static).compile())

    def _program(self, carry: Carry) -> tuple[Callable, PyTree, StaticPart]:
        """The program for a carry, its arrays, and what it is compiled for."""
        # Where what is not an array changes, `jax.jit` compiles another program.
        return program_of(carry), *split_arrays((self._sim, carry))


def program_of(carry: Carry) -> Callable:
    """`advance_chunk`, compiled as suits the sizes in `carry` and where its arrays are."""
    return _program_with(tuple(compiler_options(carry).items()))


@cache  # the same jitted object each time, so that JAX finds its compiled programs again
def _program_with(options: tuple[tuple[str, Any], ...]) -> Callable:
    return jax.jit(advance_chunk, static_argnums=(2, 3), compiler_options=dict(options))


def compiler_options(carry: Carry, members: int = 1) -> dict[str, Any]:
    """XLA's options that suit the sizes in a carry, or in a batch of carries of so many members."""
    if not is_on_cpu(carry.state):
        return gpu_compiler_options()
    state_bytes = array_bytes(carry.state)
    member_bytes, cache_bytes = state_bytes // members, array_bytes(carry.aux) // members
    if find_growables(carry.aux) and cache_bytes < _SHORT_LISTS_BYTES:
        return PLAIN_KERNELS if member_bytes < _LARGE_STATE_WITH_SHORT_LISTS_BYTES else _ALL_CORES
    if state_bytes >= LARGE_STATE_BYTES and (members == 1 or member_bytes >= _SMALL_MEMBER_BYTES):
        return _ALL_CORES
    return PLAIN_KERNELS if member_bytes < _SMALL_STATE_BYTES else {}


def compiled_bytes(compiled: jax.stages.Compiled) -> tuple[int, int]:
    """Bytes that a compiled program needs in all, and of them as scratch space, as XLA says."""
    memory = compiled.memory_analysis()
    total = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    # Outputs that share memory with arguments were counted twice.
    return total - memory.alias_size_in_bytes, memory.temp_size_in_bytes


def frame_bytes_per_block(sim: Simulation, frames: Frame) -> int:
    """An upper bound of the bytes of frames in a block, from the frames (or shapes) of one observation."""
    # As if all were recorded at the shortest interval.
    leaves = jax.tree.leaves(frames)
    each = sum(x.size * np.dtype(x.dtype).itemsize for x in leaves)
    return each * (sim.observation_period // min(sim.intervals, default=1))


def max_blocks_per_chunk(frame_bytes: float | int) -> int:
    """How many blocks with so many bytes of frames each a chunk may have."""
    if frame_bytes == 0:
        return MAX_BLOCKS_WITHOUT_FRAMES
    return min(MAX_BLOCKS, max(1, int(FRAME_BYTES // frame_bytes)))
