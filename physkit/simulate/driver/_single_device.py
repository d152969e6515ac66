"""A simulation on one device: what the host's driver calls."""

import jax

from physkit.core import (
    Frame,
    Key,
    State,
    grow_caches,
    has_overflow,
    invalidate_caches,
    jit_by_platform,
    jit_by_size,
)
from physkit.parallel import single_process

from ..distributed._domain import DistributedDomain
from ..distributed._reshard import reshard_observers
from ..distributed._sharded_carry import ShardedCarry
from ..loop._advance import observe_initial
from ..loop._carry import Carry, follow_parameters, refresh_aux, require_no_key, summary
from ..loop._carry_parameters import has_parameters_of
from ..loop._chunk_program import ChunkProgram
from ..loop._garbage import without_garbage_collection
from ..loop._init import init_and_observe
from ..loop._simulation import Simulation
from ._chunk_driver import MAX_GROWTHS

_follow_parameters = jit_by_size(follow_parameters, lambda sim, carry: carry.state)
_summary = jit_by_size(summary, lambda sim, carry: (carry.state, carry.observer_state))
_refresh = jit_by_platform(refresh_aux)
_observe_initial = jit_by_platform(observe_initial)


class SingleDevice:
    """One simulation on one device; `DistributedDomain` has the same methods for many."""

    def __init__(self, sim: Simulation):
        self.sim, self.process_group = sim, single_process()
        self._program: ChunkProgram | None = None
        self._first: tuple[Carry | None, tuple[Carry, Frame] | None] = None, None
        self._frames: Frame | None = None  # shapes of one observation, once there was one

    def as_carry(self, carry_or_state: State | Carry | ShardedCarry, key: Key | None) -> Carry:
        """The carry that a run continues from."""
        if isinstance(carry_or_state, ShardedCarry):
            # Emulated on one device: those that the carry came from need not be here.
            domain = DistributedDomain(self.sim, carry_or_state.devices, "vmap")
            single = domain.to_single_device(carry_or_state)
            return reshard_observers(self.sim, carry_or_state, single)
        if not isinstance(carry_or_state, Carry):
            carry, observed, frames = init_and_observe(self.sim, carry_or_state, key)
            self._first = carry, (observed, frames)
            return carry
        require_no_key(key)
        return carry_or_state

    def follow_parameters(self, carry: Carry) -> Carry:
        """`carry`, made by whatever simulation, with the forces of this one."""
        if has_parameters_of(self.sim, carry):
            return carry
        return _follow_parameters(self.sim, carry)

    def rebuild_caches(self, carry: Carry) -> Carry:
        """`carry` with lists and forces made anew, with the capacity that they need."""
        carry = carry.replace(aux=invalidate_caches(carry.aux))
        for _ in range(MAX_GROWTHS):
            rebuilt = _refresh(self.sim, carry)
            if not has_overflow(rebuilt.aux):
                return rebuilt
            carry, _ = self.grow(carry, rebuilt)
        return carry  # the run says what does not settle

    def observe_initial(self, carry: Carry) -> tuple[Carry, Frame]:
        """Observe step 0: the carry, and its frames."""
        start, observed = self._first
        self._first = None, None  # nothing keeps the start alive during the run
        if observed is None or carry is not start:  # else by the program that made it
            observed = _observe_initial(self.sim, carry)
        self._frames = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), observed[1])
        return observed

    def program(self, carry: Carry) -> ChunkProgram:
        """What advances a carry by chunks."""
        # One for all carries: how many blocks a chunk has does not depend on capacities.
        if self._program is None:
            self._program = ChunkProgram(self.sim, carry, self._frames)
        return self._program

    @without_garbage_collection()
    def summary(self, carry: Carry) -> Frame:
        """Results of accumulating observers."""
        if not jax.tree.leaves(carry.observer_state):
            return summary(self.sim, carry)
        return _summary(self.sim, carry)

    def grow(self, carry: Carry, after: Carry) -> tuple[Carry, list[str]]:
        """`carry` with capacities for what was required up to `after`, and what has grown."""
        aux, events = grow_caches(carry.aux, after.aux)
        return carry.replace(aux=aux), events

    def to_single_device(self, carry: Carry) -> Carry:
        """The carry as one device would have it."""
        return carry
