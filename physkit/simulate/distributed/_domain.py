"""A simulation whose domain is cut over devices: the loop of one device, run by each on its part."""

import math
import time
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from physkit.core import (
    Health,
    ParameterError,
    PhyskitError,
    ShapeError,
    cast_floats,
    concrete_value,
    float_dtype,
    replicate,
    shard,
    unshard,
)
from physkit.geometry import with_comm
from physkit.observe import Frame
from physkit.parallel import AbstractComm, SerialComm, Spmd, gather_to_host, resolve_devices
from physkit.particles import Particles
from physkit.storage import FrameSharding

from ..loop._advance import advance_chunk, observe_initial
from ..loop._carry import Carry, init, state_faults, summary
from ..loop._chunk_program import (
    ChunkAttempt,
    CompiledKinds,
    frame_bytes_per_block,
    max_blocks_per_chunk,
)
from ..loop._simulation import Simulation
from ._capacity import (
    add_migration_margins,
    fit_capacities,
    for_shape_inference,
    grow_carry,
    match_num_slots,
    zeros_like_shape,
)
from ._consensus import combine_health, slowest_process
from ._gather import differs_across_devices, gather, replicated_leaves, require_replicated
from ._local_frames import LocalFrames
from ._reshard import reshard_observers
from ._shape_errors import explain_shape_mismatch
from ._sharded_carry import ShardedCarry


@dataclass(frozen=True)
class SpmdFunction:
    """`function(…)` of Modules as a program for one device of many: spaces get its communicator.

    **Errors:** `ShapeError` where arrays of the whole domain meet those of a device's part.
    """

    function: Any
    fixed: tuple[Any, ...] = ()

    def __call__(self, comm: AbstractComm, *parts: Any) -> Any:
        parts = with_comm(parts, comm)
        try:
            out = self.function(*self.fixed, *parts)
        except (TypeError, ValueError) as error:
            own = isinstance(error, PhyskitError) and not isinstance(error, ShapeError)
            meant = None if own else explain_shape_mismatch(error, parts, comm)
            if meant is None:
                raise
            raise meant from error
        return with_comm(out, SerialComm())


def _begun(sim: Simulation, state: Any, key: Array | None) -> Carry:
    return init(sim, state, key=key)


def _first(sim: Simulation, carry: Carry) -> tuple[Carry, Frame]:
    return observe_initial(sim, carry)


def _chunk(max_blocks: int, sim: Simulation, carry: Carry, blocks: Array):
    return advance_chunk((sim, carry), blocks, max_blocks)


def _summed(sim: Simulation, carry: Carry) -> Frame:
    return summary(sim, carry)


class DistributedDomain:
    """One simulation over a grid of devices: what the host asks of it.

    Simulation and states go in whole and come out whole; carries are `ShardedCarry`s.

    - `devices`: what `placed` understands: `(2, 2)`, `"gpu"`, JAX devices.
    """

    def __init__(self, sim: Simulation, devices: Any, backend: str | None = None):
        self.sim, self.backend = sim, backend
        self.devices, self._which = resolve_devices(devices)
        self.sharded_sim = shard(sim, self.devices)
        self._shapes: Frame | None = None
        self._apart: LocalFrames | None = None
        self.job = self.spmd(_begun).process_group

    def spmd(self, function: Any, *fixed: Any) -> Spmd:
        """`function` on every device."""
        return Spmd(SpmdFunction(function, fixed), self.devices, self.backend, self._which)

    def init(self, state: Any, key: Array | None = None) -> ShardedCarry:
        """The carry of step 0."""
        bits = state_faults(state)
        if concrete_value(bits) is not None:
            Health(bits).check("at the start")
        if math.prod(self.devices) == 1:
            # Outside of a program, lists see what room they need.
            alone = init(self.sim, state, key=key)
            widened = lambda x: replicate(x, self.devices) if eqx.is_array(x) else x
            return ShardedCarry(jax.tree.map(widened, alone), self.devices)
        key = None if key is None else replicate(key, self.devices)
        parts = add_migration_margins(shard(state, self.devices), self.sim)
        begun = self.spmd(_begun)(self.sharded_sim, parts, key)
        return fit_capacities(ShardedCarry(begun, self.devices), self.sharded_sim, self.spmd)

    def grow(self, carry: ShardedCarry, after: ShardedCarry) -> tuple[ShardedCarry, list[str]]:
        """`carry` with room for what was required up to `after`, and what has grown."""
        return grow_carry(carry, after, self.sharded_sim, self.spmd)

    def observe_initial(self, carry: ShardedCarry) -> tuple[ShardedCarry, Frame]:
        """Step 0 looked at, with its frames."""
        looked, frames = self.spmd(_first)(self.sharded_sim, carry.carry)
        return ShardedCarry(looked, self.devices), self.gather(frames, carry, 1)

    def program(self, carry: ShardedCarry) -> "ShardedChunkProgram":
        """What advances a carry by chunks."""
        return ShardedChunkProgram(self, carry)

    def as_carry(self, carry_or_state: Any, key: Array | None) -> ShardedCarry:
        """What a run goes on from."""
        return as_sharded_carry(self, carry_or_state, key)

    def to_single_device(self, carry: ShardedCarry) -> Carry:
        """The carry as one device would have it: caches built anew."""
        begun = init(self.sim, carry.state, key=carry.key)
        return begun.replace(step=carry.step, is_initial=carry.is_initial)

    def gather(self, frames: Frame, carry: ShardedCarry, lead: int) -> Frame:
        """Frames of the whole domain from those of the devices, which have `lead` axes of time."""
        if self._apart is not None:
            return self._apart.part(frames, lead)
        return gather(gather_to_host(frames), self.frame_shapes(carry), self.devices, lead)

    def keep_frames_local(self, carry: ShardedCarry) -> FrameSharding:
        """From now on, leave frames with the processes that have them; how they are cut."""
        _, frames = self.spmd(_first)(self.sharded_sim, carry.carry)
        self._apart = LocalFrames(self.frame_shapes(carry), self.devices, frames)
        return self._apart.cutting

    def frame_shapes(self, carry: ShardedCarry) -> Frame:
        """Shapes of one frame of each name, recorded on one device."""
        if self._shapes is None:
            self._shapes = frame_shapes(self.sim, *_whole(carry))
        return self._shapes

    def differs(self, frames: Frame, state: Any, carry: ShardedCarry) -> Any:
        """Whether, inside a trace, frames or the state differ from device to device where they should not."""
        recorded = differs_across_devices(frames, self.frame_shapes(carry), 1)
        parts = replicated_leaves(state, _whole(carry)[0]).values()
        return recorded | differs_across_devices(
            [x for x, _ in parts], [shape for _, shape in parts], 0
        )

    def summary(self, carry: ShardedCarry) -> Frame:
        """Results of accumulating observers for the whole domain."""
        if not jax.tree.leaves(eqx.filter_eval_shape(_summarised, self.sim, *_whole(carry))):
            return {}  # and of a program without results, JAX's pmap of several processes makes an error
        return self.gather_summary(self.spmd(_summed)(self.sharded_sim, carry.carry), carry)

    def gather_summary(self, found: Frame, carry: ShardedCarry) -> Frame:
        """Results for the whole domain from those of the devices."""
        shapes = eqx.filter_eval_shape(_summarised, self.sim, *_whole(carry))
        return gather(gather_to_host(found), shapes, self.devices, 0)


class ShardedChunkProgram:
    """Runs chunks of any number of blocks on every device, through one compiled program per structure."""

    def __init__(self, domain: DistributedDomain, carry: ShardedCarry):
        self._domain, self._kinds = domain, CompiledKinds()
        frame_bytes = frame_bytes_per_block(domain.sim, domain.frame_shapes(carry))
        self.max_blocks = max_blocks_per_chunk(frame_bytes)
        self._whole = _whole(carry)[0]

    @property
    def compilations(self) -> int:
        """How many different programs this run has needed so far."""
        return len(self._kinds)

    def __call__(self, carry: ShardedCarry, blocks: int) -> ChunkAttempt[ShardedCarry]:
        """`blocks` (at most `max_blocks`) blocks on; returns when the numbers are there.

        Health and time are those of all processes, so that each goes on in the same way.
        """
        began, domain = time.monotonic(), self._domain
        compiled = self._kinds.is_new(carry)
        count = replicate(np.int32(blocks), domain.devices)
        program = domain.spmd(_chunk, self.max_blocks)
        # Awaited: a few cores with many dispatched collectives may wait for one another for ever.
        after, frames, health = jax.block_until_ready(
            program(domain.sharded_sim, carry.carry, count)
        )
        require_replicated(after.state, self._whole)
        return ChunkAttempt(
            ShardedCarry(after, domain.devices),
            domain.gather(frames, carry, 2),
            seconds=slowest_process(domain.job, time.monotonic() - began),
            health=combine_health(domain.job, health),
            compiled=compiled,
        )


def _whole(carry: ShardedCarry) -> tuple[Any, Any]:
    """The state of the whole domain and the random key, shapes only."""
    first = lambda key: None if key is None else key[0]
    both = lambda state, key: (unshard(state, carry.devices), first(key))
    return eqx.filter_eval_shape(both, carry.carry.state, carry.carry.key)


def frame_shapes(sim: Simulation, state: Any, key: Any = None) -> Frame:
    """Shapes of one frame of each name, recorded on one device."""
    return _one_look(eqx.filter_eval_shape(_looked, sim, state, key))


def recorded_shapes(sim: Simulation, carry: Carry | ShardedCarry) -> Frame:
    """Shapes of one frame of each name that a run from `carry` records."""
    if isinstance(carry, ShardedCarry):
        return frame_shapes(sim, *_whole(carry))
    return _one_look(eqx.filter_eval_shape(observe_initial, sim, carry)[1])


def _one_look(frames: Frame) -> Frame:
    """The shapes of one frame, from those of frames with time first."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], np.dtype(x.dtype)), frames)


def _summarised(sim: Simulation, state: Any, key: Any) -> Frame:
    return summary(sim, _begun_unseen(sim, state, key))


def _looked(sim: Simulation, state: Any, key: Any) -> Frame:
    return observe_initial(sim, _begun_unseen(sim, state, key))[1]


def _begun_unseen(sim: Simulation, state: Any, key: Any) -> Carry:
    # How much room caches have changes no frame; inside a trace it cannot be estimated.
    return init(for_shape_inference(sim), state, key=key, capacity=1)


def as_sharded_carry(
    domain: DistributedDomain, carry_or_state: Any, key: Array | None
) -> ShardedCarry:
    """The carry that a run over these devices goes on from.

    **Errors:** `ParameterError` for a carry that cannot change devices.
    """
    if not isinstance(carry_or_state, Carry | ShardedCarry):
        return domain.init(carry_or_state, key)
    if key is not None:
        raise ParameterError(
            "a carry brings its own key; give key= only when starting from a state"
        )
    devices = getattr(carry_or_state, "devices", None)
    if devices == domain.devices:
        return carry_or_state
    return reshard(domain, carry_or_state)


def reshard(domain: DistributedDomain, carry: Carry | ShardedCarry) -> ShardedCarry:
    """A carry of one device, or of another grid of devices, over these: caches are built anew."""
    begun = domain.init(carry.state, carry.key)
    step = jax.tree.map(lambda x: replicate(x, domain.devices), carry.step)
    return reshard_observers(
        domain.sim, carry, begun.replace(step=step, is_initial=carry.is_initial)
    )


def cast_to_state_precision(sim: Simulation, carry_or_state: Any) -> Simulation:
    """`sim` in the precision of a state or carry."""
    return cast_floats(sim, float_dtype(getattr(carry_or_state, "state", carry_or_state)))


def carry_template(
    sim: Simulation,
    carry: Carry | ShardedCarry,
    here: tuple[int, ...],
    devices: tuple[int, ...],
    shapes: dict[str, tuple[int, ...]],
) -> Carry | ShardedCarry:
    """A carry like `carry`, which is over the devices `here`, over others: its form, not its numbers.

    `shapes`, by path, tell how many particles there is room for.
    """
    found = _template(sim, carry, here, devices)
    if not isinstance(found, ShardedCarry):
        return found
    domain = DistributedDomain(sim, devices, "vmap")
    return match_num_slots(found, shapes, domain.sharded_sim, domain.spmd)


def _template(
    sim: Simulation, carry: Carry | ShardedCarry, here: tuple[int, ...], devices: tuple[int, ...]
) -> Carry | ShardedCarry:
    if devices == here:
        return carry.replace(is_initial=False)
    state, key = _whole(carry) if isinstance(carry, ShardedCarry) else (carry.state, carry.key)
    domain = DistributedDomain(sim, devices, "vmap") if devices else None

    def begun(state: Any, key: Array | None) -> Carry | ShardedCarry:
        if domain is None:
            return init(sim, state, key=key, capacity=1)
        return domain.init(state, key)

    is_particles = lambda x: isinstance(x, Particles)
    if any(map(is_particles, jax.tree.leaves(carry.state, is_leaf=is_particles))):
        # How they are shared out, and what room their lists need, only numbers tell.
        return begun(carry.state, carry.key).replace(is_initial=False)
    form = eqx.filter_eval_shape(begun, state, key)
    return jax.tree.map(zeros_like_shape, form).replace(is_initial=False)
