"""What continues a run whose domain is cut over devices."""

from typing import Any

import jax
from jaxtyping import Array

from physkit.core import Count, Module, gathered, replaced, static
from physkit.parallel import at_home, on_host, one_row

from ._carry import Carry


class CutCarry(Module):
    """A carry in device layout: every array of `carry` has a leading axis over the devices.

    It is what a run over the same devices goes on from, bit by bit; `state` is the state of the whole
    domain.
    """

    carry: Carry
    devices: tuple[int, ...] = static()

    @property
    def state(self) -> Any:
        """The state of the whole domain. In a job of several processes, all must ask."""
        return at_home(gathered(on_host(self.carry.state), self.devices))

    @property
    def step(self) -> Count:
        """The number of steps done."""
        return at_home(jax.tree.map(one_row, self.carry.step))

    @property
    def key(self) -> Array | None:
        """The random key that noise comes from."""
        return None if self.carry.key is None else at_home(one_row(self.carry.key))

    @property
    def fresh(self) -> bool:
        """Whether step 0 has not been looked at."""
        return self.carry.fresh

    @property
    def aux(self) -> Any:
        """Caches, each device's own."""
        return self.carry.aux

    @property
    def guards(self) -> Any:
        """Guards, each device's own."""
        return self.carry.guards

    def replace(self, **parts: Any) -> "CutCarry":
        """A copy with parts of the carry replaced, in device layout."""
        return replaced(self, {"carry": self.carry.replace(**parts)})
