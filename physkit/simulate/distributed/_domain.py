"""A simulation over a grid of devices: every device runs the loop of one device on its part of the domain."""

import math
import time
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool

from physkit.core import (
    Aux,
    Clock,
    Frame,
    Key,
    PyTree,
    State,
    StepCount,
    cast_floats,
    float_dtype,
    invalidate_caches,
    replicate,
    shard,
)
from physkit.geometry import Grid
from physkit.integrators import warn_before_sharding
from physkit.parallel import (
    DevicesLike,
    Spmd,
    gather_to_host,
    gather_to_host_memory,
    replicated_row,
    resolve_devices,
    to_default_device,
)
from physkit.particles import AbstractShardedCache
from physkit.storage import FrameSharding

from ..loop._advance import advance_chunk, observe_initial
from ..loop._carry import (
    Carry,
    check_state,
    follow_parameters,
    refresh_aux,
    require_no_key,
    summary,
)
from ..loop._carry_parameters import has_parameters_of
from ..loop._chunk_program import (
    ChunkAttempt,
    CompiledKinds,
    frame_bytes_per_block,
    max_blocks_per_chunk,
)
from ..loop._init import init
from ..loop._simulation import Simulation
from ._capacity import add_migration_margins, fit_capacities, for_shape_inference, grow_carry
from ._consensus import combine_health, slowest_process
from ._gather import differs_across_devices, gather, replicated_leaves, require_replicated
from ._local_frames import LocalFrames
from ._part_results import require_no_part_results
from ._reshard import reshard_observers
from ._shape_errors import explain_shape_errors
from ._sharded_carry import ShardedCarry
from ._spmd_function import SpmdFunction
from ._whole_domain import result_shapes, whole_state_and_key


def with_own_tables(aux: Aux) -> Aux:
    """`aux` whose tables of what a simulation was given, bonds, are made anew: another one may have made it."""

    def is_table(x: PyTree) -> bool:
        return isinstance(x, AbstractShardedCache) and x.holds_parameters

    return jax.tree.map(lambda x: x.invalidate() if is_table(x) else x, aux, is_leaf=is_table)


def _init_part(sim: Simulation, state: State, key: Key | None) -> Carry:
    return init(sim, state, key=key)


def _advance_part(max_blocks: int, sim: Simulation, carry: Carry, blocks: Array):
    return advance_chunk((sim, carry), blocks, max_blocks)


def _is_grid(x: PyTree) -> bool:
    return isinstance(x, Grid)


class DistributedDomain:
    """One simulation over a grid of devices: what the host's driver calls.

    Takes and returns the simulation and states of the whole domain; carries are `ShardedCarry`s.
    `SingleDevice` has the same methods for one device.

    - `devices`: what `resolve_devices` takes: `(2, 2)`, `"gpu"`, JAX devices.
    - `backend`: of `Spmd`; the environment's choice if left out.
    """

    def __init__(self, sim: Simulation, devices: DevicesLike, backend: str | None = None):
        self.sim, self.backend = sim, backend
        self.devices, self._which = resolve_devices(devices)
        for grid in jax.tree.leaves(sim, is_leaf=_is_grid):
            if _is_grid(grid):
                grid.require_shardable(self.devices)
        self.sharded_sim = shard(sim, self.devices)
        self._shapes: tuple[Frame, Frame] | None = None
        self._local_frames: LocalFrames | None = None
        self.process_group = self.spmd(_init_part).process_group

    def spmd(self, function: Callable, *fixed: object) -> Spmd:
        """`function` on every device."""
        return Spmd(SpmdFunction(function, fixed), self.devices, self.backend, self._which)

    def spmd_from(self, carry: ShardedCarry, function: Callable, *fixed: object) -> Callable:
        """`function(sim, carry, …)` on every device; errors about shapes are those of the domain."""
        program = self.spmd(function, *fixed)

        # The state of the whole domain is needed only to explain an error.
        def call(*args: PyTree) -> PyTree:
            with explain_shape_errors(
                self.sim, self.devices, carry.carry.state, lambda: whole_state_and_key(carry)
            ):
                return program(self.sharded_sim, carry.carry, *args)

        return call

    # --- carries --------------------------------------------------------------------------------

    def init(
        self, state: State, key: Key | None = None, *, checks_step: bool = True
    ) -> ShardedCarry:
        """The carry of step 0. `checks_step`: as of `check_terms`."""
        check_state(self.sim, state, checks_step=checks_step)
        if math.prod(self.devices) == 1:
            # Not as an SPMD program: outside of a trace, lists can see which capacity they need.
            carry = init(self.sim, state, key=key)

            def add_device_axis(x: PyTree) -> PyTree:
                return replicate(x, self.devices) if eqx.is_array(x) else x

            return ShardedCarry(jax.tree.map(add_device_axis, carry), self.devices)
        # Traced: how long lists are cannot be seen there, and does not matter.
        sim = for_shape_inference(cast_to_state_precision(self.sim, state))
        clock = Clock.at(StepCount.of(0), sim.t0, sim.dt, key)
        warn_before_sharding(sim.integrator, clock, state)
        keys = None if key is None else replicate(key, self.devices)
        state, on_host = gather_to_host_memory(state)
        with on_host:
            parts = add_migration_margins(shard(state, self.devices), self.sim)
        with explain_shape_errors(self.sim, self.devices, parts, lambda: (state, key)):
            carry = self.spmd(_init_part)(self.sharded_sim, parts, keys)
        return fit_capacities(ShardedCarry(carry, self.devices), self.sharded_sim, self.spmd)

    def as_carry(
        self, carry_or_state: State | Carry | ShardedCarry, key: Key | None
    ) -> ShardedCarry:
        """The carry that a run over these devices continues from.

        **Errors:** `ParameterError` for a carry that cannot change devices.
        """
        if not isinstance(carry_or_state, Carry | ShardedCarry):
            return self.init(carry_or_state, key)
        require_no_key(key)
        if isinstance(carry_or_state, ShardedCarry) and carry_or_state.devices == self.devices:
            return carry_or_state
        return self.reshard(carry_or_state)

    def reshard(self, carry: Carry | ShardedCarry) -> ShardedCarry:
        """A carry of one device, or of another grid of devices, over these: caches are built anew."""
        resharded = self.init(carry.state, carry.key)
        step = jax.tree.map(lambda x: replicate(x, self.devices), carry.step)
        memory = jax.tree.map(lambda x: replicate(x, self.devices), self._memory(carry))
        resharded = resharded.replace(
            step=step,
            is_initial=carry.is_initial,
            aux=self.sim.integrator.with_memory(resharded.aux, memory),
        )
        # At the time of the carry: `init` has computed forces at that of step 0.
        return reshard_observers(self.sim, carry, self._refresh(resharded))

    def follow_parameters(self, carry: ShardedCarry) -> ShardedCarry:
        """`carry`, made by whatever simulation, with the forces of this one."""
        if has_parameters_of(self.sim, carry.carry):
            return carry
        carry = carry.replace(aux=with_own_tables(carry.aux))
        parts = self.spmd(follow_parameters)(self.sharded_sim, carry.carry)
        # Other bonds may need more room.
        return fit_capacities(ShardedCarry(parts, self.devices), self.sharded_sim, self.spmd)

    def rebuild_caches(self, carry: ShardedCarry) -> ShardedCarry:
        """`carry` with lists and forces made anew, with the capacity that they need."""
        carry = self._refresh(carry.replace(aux=invalidate_caches(carry.aux)))
        return fit_capacities(carry, self.sharded_sim, self.spmd)

    def _refresh(self, carry: ShardedCarry) -> ShardedCarry:
        return ShardedCarry(self.spmd(refresh_aux)(self.sharded_sim, carry.carry), self.devices)

    def _memory(self, carry: Carry | ShardedCarry) -> PyTree:
        """What the integrator remembers beside the state, as one device has it."""
        memory = self.sim.integrator.memory(carry.aux)
        if isinstance(carry, Carry):
            return memory
        return to_default_device(jax.tree.map(replicated_row, memory))

    def to_single_device(self, carry: ShardedCarry) -> Carry:
        """The carry as one device would have it: caches built anew, observers begun anew."""
        single = init(self.sim, carry.state, key=carry.key)
        aux = self.sim.integrator.with_memory(single.aux, self._memory(carry))
        single = single.replace(step=carry.step, is_initial=carry.is_initial, aux=aux)
        return eqx.filter_jit(refresh_aux)(self.sim, single)

    def grow(self, carry: ShardedCarry, after: ShardedCarry) -> tuple[ShardedCarry, list[str]]:
        """`carry` with capacities for what was required up to `after`, and what has grown."""
        return grow_carry(carry, after, self.sharded_sim, self.spmd)

    def program(self, carry: ShardedCarry) -> "ShardedChunkProgram":
        """What advances a carry by chunks."""
        return ShardedChunkProgram(self, carry)

    # --- frames ---------------------------------------------------------------------------------

    def observe_initial(self, carry: ShardedCarry) -> tuple[ShardedCarry, Frame]:
        """Observe step 0: the carry, and its frames."""
        observed, frames = self.spmd_from(carry, observe_initial)()
        return ShardedCarry(observed, self.devices), self.gather(frames, carry, 1)

    def gather(self, frames: Frame, carry: ShardedCarry, time_axes: int) -> Frame:
        """Frames of the whole domain from those of the devices, `[devices, time …, …]`; in the host's memory.

        - `time_axes`: how many axes of time there are: 1, or 2 in the buffer of a chunk (blocks, within one).
        """
        if self._local_frames is not None:
            return self._local_frames.part(frames, time_axes)
        shapes = self.frame_shapes(carry)
        parts, on_host = gather_to_host_memory(frames)
        with on_host:
            return gather(parts, shapes, self.devices, time_axes)

    def keep_frames_local(self, carry: ShardedCarry) -> FrameSharding:
        """From now on `gather` returns only what this process's devices hold; how frames are sharded."""
        # Observed once, since the layout of some frames can only be told from their numbers.
        _, frames = self.spmd_from(carry, observe_initial)()
        self._local_frames = LocalFrames(self.frame_shapes(carry), self.devices, frames)
        return self._local_frames.sharding

    def frame_shapes(self, carry: ShardedCarry) -> Frame:
        """Shapes of one frame of each name, recorded on one device.

        **Errors:** `ObserverError` for a plain function that sums a device's part of the domain.
        """
        return self._result_shapes(carry)[0]

    def _result_shapes(self, carry: ShardedCarry) -> tuple[Frame, Frame]:
        """Shapes of frames and of summaries; all is traced once."""
        if self._shapes is None:
            whole, key = whole_state_and_key(carry)
            shapes = result_shapes(self.sim, whole, key)
            if math.prod(self.devices) > 1:
                parts = carry.carry
                with explain_shape_errors(
                    self.sim, self.devices, parts.state, lambda: (whole, key)
                ):
                    require_no_part_results(self.sharded_sim, parts, whole, shapes[0], self.devices)
            self._shapes = shapes
        return self._shapes

    def differs(self, frames: Frame, state: State, carry: ShardedCarry) -> Bool[Array, ""]:
        """Whether, inside a trace, frames or the state differ from device to device where they should not."""
        recorded = differs_across_devices(frames, self.frame_shapes(carry), 1)
        parts = replicated_leaves(state, whole_state_and_key(carry)[0]).values()
        return recorded | differs_across_devices(
            [x for x, _ in parts], [shape for _, shape in parts], 0
        )

    def summary(self, carry: ShardedCarry) -> Frame:
        """Results of accumulating observers for the whole domain."""
        if not jax.tree.leaves(self._result_shapes(carry)[1]):
            return {}  # over several processes, JAX's pmap fails for a program without results
        return self.gather_summary(self.spmd(summary)(self.sharded_sim, carry.carry), carry)

    def gather_summary(self, parts: Frame, carry: ShardedCarry) -> Frame:
        """Results for the whole domain from those of the devices."""
        return gather(gather_to_host(parts), self._result_shapes(carry)[1], self.devices, 0)


class ShardedChunkProgram:
    """Runs chunks of any number of blocks on every device, through one compiled program per structure."""

    def __init__(self, domain: DistributedDomain, carry: ShardedCarry):
        self._domain, self._kinds = domain, CompiledKinds()
        frame_bytes = frame_bytes_per_block(domain.sim, domain.frame_shapes(carry))
        self.max_blocks = max_blocks_per_chunk(frame_bytes)
        self._whole = whole_state_and_key(carry)[0]

    @property
    def compilations(self) -> int:
        """How many different programs this run has needed so far."""
        return len(self._kinds)

    def __call__(self, carry: ShardedCarry, blocks: int) -> ChunkAttempt[ShardedCarry]:
        """`blocks` (at most `max_blocks`) blocks on; returns when the numbers are there.

        Health and time are those of all processes: from equal numbers each decides alike on growth, the length
        of the next chunk and checkpoints.
        """
        start_time, domain = time.monotonic(), self._domain
        compiled = self._kinds.is_new(carry)
        count = replicate(np.int32(blocks), domain.devices)
        program = domain.spmd_from(carry, _advance_part, self.max_blocks)
        # Wait before the next call: on few cores, many dispatched collectives can deadlock in the thread pool.
        after, frames, health = jax.block_until_ready(program(count))
        require_replicated(after.state, self._whole)
        return ChunkAttempt(
            ShardedCarry(after, domain.devices),
            domain.gather(frames, carry, 2),
            seconds=slowest_process(domain.process_group, time.monotonic() - start_time),
            health=combine_health(domain.process_group, health),
            compiled=compiled,
        )


def cast_to_state_precision(
    sim: Simulation, carry_or_state: State | Carry | ShardedCarry
) -> Simulation:
    """`sim` in the precision of a state or carry."""
    return cast_floats(sim, float_dtype(getattr(carry_or_state, "state", carry_or_state)))
