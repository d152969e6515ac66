"""The carry of a run over a grid of devices."""

import jax

from physkit.core import Aux, Key, Module, PyTree, State, StepCount, replace_fields, static, unshard
from physkit.parallel import gather_to_host_memory, replicated_row, to_default_device

from ..loop._carry import Carry


class ShardedCarry(Module):
    """A carry in device layout: every array of `carry` has a leading axis over the devices.

    A run over the same devices continues from it bit by bit. `state` is the state of the whole domain;
    `carry.state` is that of the devices.
    """

    carry: Carry
    devices: tuple[int, ...] = static()

    @property
    def state(self) -> State:
        """The state of the whole domain, in the host's memory.

        Collective: in a job of several processes, all must read it.
        """
        parts, on_host = gather_to_host_memory(self.carry.state)
        with on_host:
            return unshard(parts, self.devices)

    @property
    def step(self) -> StepCount:
        """The number of steps done."""
        return to_default_device(jax.tree.map(replicated_row, self.carry.step))

    @property
    def key(self) -> Key | None:
        """The random key that noise comes from."""
        return None if self.carry.key is None else to_default_device(replicated_row(self.carry.key))

    @property
    def is_initial(self) -> bool:
        """Whether no observer has seen step 0 yet."""
        return self.carry.is_initial

    @property
    def aux(self) -> Aux:
        """Caches, each device's own."""
        return self.carry.aux

    @property
    def guards(self) -> PyTree:
        """Guards, each device's own."""
        return self.carry.guards

    def replace(self, **parts: PyTree) -> "ShardedCarry":
        """A copy with parts of the carry replaced, in device layout."""
        return replace_fields(self, {"carry": self.carry.replace(**parts)})
