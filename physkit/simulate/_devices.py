"""A simulation whose domain is cut over devices: the loop of one device, run by each on its part."""

import math
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
    concrete,
    cut,
    float_dtype,
    gathered,
    on_each,
)
from physkit.geometry import on_devices
from physkit.observe import Frame
from physkit.parallel import AbstractComm, Serial, Spmd, on_host, placed
from physkit.particles import Particles
from physkit.storage import Cutting

from ._apart import Apart
from ._carry import Carry, start, state_faults, summary
from ._chunk import frames_room
from ._cut_carry import CutCarry
from ._joined import differs, joined, need_alike, shared
from ._loop import advance_chunk, first_look
from ._moved import moved
from ._part_and_whole import mismatch
from ._room import (
    fitted,
    grown_carry,
    numbers_like,
    shown_to_shapes,
    with_margins,
    with_rows_of,
)
from ._simulation import Simulation


@dataclass(frozen=True)
class OnEach:
    """`function(…)` of Modules as a program for one device of many: spaces get its communicator.

    **Errors:** `ShapeError` where arrays of the whole domain meet those of a device's part.
    """

    function: Any
    fixed: tuple[Any, ...] = ()

    def __call__(self, comm: AbstractComm, *parts: Any) -> Any:
        parts = on_devices(parts, comm)
        try:
            out = self.function(*self.fixed, *parts)
        except (TypeError, ValueError) as error:
            own = isinstance(error, PhyskitError) and not isinstance(error, ShapeError)
            meant = None if own else mismatch(error, parts, comm)
            if meant is None:
                raise
            raise meant from error
        return on_devices(out, Serial())


def _begun(sim: Simulation, state: Any, key: Array | None) -> Carry:
    return start(sim, state, key=key)


def _first(sim: Simulation, carry: Carry) -> tuple[Carry, Frame]:
    return first_look(sim, carry)


def _chunk(room: int, sim: Simulation, carry: Carry, blocks: Array):
    return advance_chunk(sim, carry, blocks, room)


def _summed(sim: Simulation, carry: Carry) -> Frame:
    return summary(sim, carry)


class Domain:
    """One simulation over a grid of devices: what the host asks of it.

    Simulation and states go in whole and come out whole; carries are `CutCarry`s.

    - `devices`: what `placed` understands: `(2, 2)`, `"gpu"`, JAX devices.
    """

    def __init__(self, sim: Simulation, devices: Any, backend: str | None = None):
        self.sim, self.backend = sim, backend
        self.devices, self._which = placed(devices)
        self.cut_sim = cut(sim, self.devices)
        self._shapes: Frame | None = None
        self._apart: Apart | None = None
        self.job = self.on_each(_begun).job

    def on_each(self, function: Any, *fixed: Any) -> Spmd:
        """`function` on every device."""
        return Spmd(OnEach(function, fixed), self.devices, self.backend, self._which)

    def start(self, state: Any, key: Array | None = None) -> CutCarry:
        """The carry of step 0."""
        bits = state_faults(state)
        if concrete(bits) is not None:
            Health(bits).check("at the start")
        if math.prod(self.devices) == 1:
            # Outside of a program, lists see what room they need.
            alone = start(self.sim, state, key=key)
            widened = lambda x: on_each(x, self.devices) if eqx.is_array(x) else x
            return CutCarry(jax.tree.map(widened, alone), self.devices)
        key = None if key is None else on_each(key, self.devices)
        parts = with_margins(cut(state, self.devices), self.sim)
        begun = self.on_each(_begun)(self.cut_sim, parts, key)
        return fitted(CutCarry(begun, self.devices), self.cut_sim, self.on_each)

    def grown(self, carry: CutCarry, after: CutCarry) -> tuple[CutCarry, list[str]]:
        """`carry` with room for what was required up to `after`, and what has grown."""
        return grown_carry(carry, after, self.cut_sim, self.on_each)

    def first_look(self, carry: CutCarry) -> tuple[CutCarry, Frame]:
        """Step 0 looked at, with its frames."""
        looked, frames = self.on_each(_first)(self.cut_sim, carry.carry)
        return CutCarry(looked, self.devices), self.joined(frames, carry, 1)

    def program(self, carry: CutCarry) -> "CutProgram":
        """What advances a carry by chunks."""
        return CutProgram(self, carry)

    def carry_on(self, carry_or_state: Any, key: Array | None) -> CutCarry:
        """What a run goes on from."""
        return carry_on(self, carry_or_state, key)

    def alone(self, carry: CutCarry) -> Carry:
        """The carry as one device would have it: caches built anew."""
        begun = start(self.sim, carry.state, key=carry.key)
        return begun.replace(step=carry.step, fresh=carry.fresh)

    def joined(self, frames: Frame, carry: CutCarry, lead: int) -> Frame:
        """Frames of the whole domain from those of the devices, which have `lead` axes of time."""
        if self._apart is not None:
            return self._apart.part(frames, lead)
        return joined(on_host(frames), self.frame_shapes(carry), self.devices, lead)

    def apart(self, carry: CutCarry) -> Cutting:
        """From now on, leave frames with the processes that have them; how they are cut."""
        _, frames = self.on_each(_first)(self.cut_sim, carry.carry)
        self._apart = Apart(self.frame_shapes(carry), self.devices, frames)
        return self._apart.cutting

    def frame_shapes(self, carry: CutCarry) -> Frame:
        """Shapes of one frame of each name, recorded on one device."""
        if self._shapes is None:
            self._shapes = frame_shapes(self.sim, *_whole(carry))
        return self._shapes

    def differs(self, frames: Frame, state: Any, carry: CutCarry) -> Any:
        """Whether, inside a trace, frames or the state differ from device to device where they should not."""
        recorded = differs(frames, self.frame_shapes(carry), 1)
        parts = shared(state, _whole(carry)[0]).values()
        return recorded | differs([x for x, _ in parts], [shape for _, shape in parts], 0)

    def summary(self, carry: CutCarry) -> Frame:
        """Results of accumulating observers for the whole domain."""
        if not jax.tree.leaves(eqx.filter_eval_shape(_summarised, self.sim, *_whole(carry))):
            return {}  # and of a program without results, JAX's pmap of several processes makes an error
        return self.joined_summary(self.on_each(_summed)(self.cut_sim, carry.carry), carry)

    def joined_summary(self, found: Frame, carry: CutCarry) -> Frame:
        """Results for the whole domain from those of the devices."""
        shapes = eqx.filter_eval_shape(_summarised, self.sim, *_whole(carry))
        return joined(on_host(found), shapes, self.devices, 0)


class CutProgram:
    """Runs chunks of any number of blocks on every device, through one compiled program per structure."""

    def __init__(self, domain: Domain, carry: CutCarry):
        self._domain, self._kinds = domain, set()
        self.room = frames_room(domain.sim, domain.frame_shapes(carry))
        self._whole = _whole(carry)[0]

    @property
    def compilations(self) -> int:
        """How many different programs this run has needed so far."""
        return len(self._kinds)

    def __call__(self, carry: CutCarry, blocks: int) -> tuple[CutCarry, Frame, Health]:
        """`blocks` (at most `room`) blocks on; returns when the numbers are there."""
        domain = self._domain
        arrays, tree = jax.tree.flatten(carry)
        self._kinds.add((tree, tuple((x.shape, x.dtype) for x in arrays)))
        count = on_each(np.int32(blocks), domain.devices)
        program = domain.on_each(_chunk, self.room)
        # Awaited: a few cores with many dispatched collectives may wait for one another for ever.
        after, frames, health = jax.block_until_ready(program(domain.cut_sim, carry.carry, count))
        need_alike(after.state, self._whole)
        return CutCarry(after, domain.devices), domain.joined(frames, carry, 2), health


def _whole(carry: CutCarry) -> tuple[Any, Any]:
    """The state of the whole domain and the random key, shapes only."""
    first = lambda key: None if key is None else key[0]
    both = lambda state, key: (gathered(state, carry.devices), first(key))
    return eqx.filter_eval_shape(both, carry.carry.state, carry.carry.key)


def frame_shapes(sim: Simulation, state: Any, key: Any = None) -> Frame:
    """Shapes of one frame of each name, recorded on one device."""
    return _one_look(eqx.filter_eval_shape(_looked, sim, state, key))


def recorded_shapes(sim: Simulation, carry: Carry | CutCarry) -> Frame:
    """Shapes of one frame of each name that a run from `carry` records."""
    if isinstance(carry, CutCarry):
        return frame_shapes(sim, *_whole(carry))
    return _one_look(eqx.filter_eval_shape(first_look, sim, carry)[1])


def _one_look(frames: Frame) -> Frame:
    """The shapes of one frame, from those of frames with time first."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], np.dtype(x.dtype)), frames)


def _summarised(sim: Simulation, state: Any, key: Any) -> Frame:
    return summary(sim, _begun_unseen(sim, state, key))


def _looked(sim: Simulation, state: Any, key: Any) -> Frame:
    return first_look(sim, _begun_unseen(sim, state, key))[1]


def _begun_unseen(sim: Simulation, state: Any, key: Any) -> Carry:
    # How much room caches have changes no frame; inside a trace it cannot be estimated.
    return start(shown_to_shapes(sim), state, key=key, capacity=1)


def carry_on(domain: Domain, carry_or_state: Any, key: Array | None) -> CutCarry:
    """The carry that a run over these devices goes on from.

    **Errors:** `ParameterError` for a carry that cannot change devices.
    """
    if not isinstance(carry_or_state, Carry | CutCarry):
        return domain.start(carry_or_state, key)
    if key is not None:
        raise ParameterError(
            "a carry brings its own key; give key= only when starting from a state"
        )
    devices = getattr(carry_or_state, "devices", None)
    if devices == domain.devices:
        return carry_or_state
    return recut(domain, carry_or_state)


def recut(domain: Domain, carry: Carry | CutCarry) -> CutCarry:
    """A carry of one device, or of another grid of devices, over these: caches are built anew."""
    begun = domain.start(carry.state, carry.key)
    step = jax.tree.map(lambda x: on_each(x, domain.devices), carry.step)
    return moved(domain.sim, carry, begun.replace(step=step, fresh=carry.fresh))


def cast(sim: Simulation, carry_or_state: Any) -> Simulation:
    """`sim` in the precision of a state or carry."""
    return cast_floats(sim, float_dtype(getattr(carry_or_state, "state", carry_or_state)))


def template(
    sim: Simulation,
    carry: Carry | CutCarry,
    here: tuple[int, ...],
    devices: tuple[int, ...],
    shapes: dict[str, tuple[int, ...]],
) -> Carry | CutCarry:
    """A carry like `carry`, which is over the devices `here`, over others: its form, not its numbers.

    `shapes`, by path, tell how many particles there is room for.
    """
    found = _template(sim, carry, here, devices)
    if not isinstance(found, CutCarry):
        return found
    domain = Domain(sim, devices, "vmap")
    return with_rows_of(found, shapes, domain.cut_sim, domain.on_each)


def _template(
    sim: Simulation, carry: Carry | CutCarry, here: tuple[int, ...], devices: tuple[int, ...]
) -> Carry | CutCarry:
    if devices == here:
        return carry.replace(fresh=False)
    state, key = _whole(carry) if isinstance(carry, CutCarry) else (carry.state, carry.key)
    domain = Domain(sim, devices, "vmap") if devices else None

    def begun(state: Any, key: Array | None) -> Carry | CutCarry:
        if domain is None:
            return start(sim, state, key=key, capacity=1)
        return domain.start(state, key)

    is_particles = lambda x: isinstance(x, Particles)
    if any(map(is_particles, jax.tree.leaves(carry.state, is_leaf=is_particles))):
        # How they are shared out, and what room their lists need, only numbers tell.
        return begun(carry.state, carry.key).replace(fresh=False)
    form = eqx.filter_eval_shape(begun, state, key)
    return jax.tree.map(numbers_like, form).replace(fresh=False)
