"""A simulation on one device: what the host asks of it."""

from typing import Any

import equinox as eqx
from jaxtyping import Array

from physkit.core import ParameterError, grow
from physkit.observe import Frame
from physkit.parallel import alone

from ._carry import Carry, start, summary
from ._chunk import ChunkProgram
from ._cut_carry import CutCarry
from ._devices import Domain
from ._loop import first_look
from ._moved import moved
from ._simulation import Simulation


class OneDevice:
    """One simulation on one device; its like over many is `Domain`."""

    def __init__(self, sim: Simulation):
        self.sim, self.job = sim, alone()

    def carry_on(self, carry_or_state: Any, key: Array | None) -> Carry:
        """What a run goes on from."""
        if isinstance(carry_or_state, CutCarry):
            alone = Domain(self.sim, carry_or_state.devices, "vmap").alone(carry_or_state)
            return moved(self.sim, carry_or_state, alone)
        if not isinstance(carry_or_state, Carry):
            return start(self.sim, carry_or_state, key=key)
        if key is not None:
            raise ParameterError(
                "a carry brings its own key; give key= only when starting from a state"
            )
        return carry_or_state

    def first_look(self, carry: Carry) -> tuple[Carry, Frame]:
        """Step 0 looked at, with its frames."""
        return eqx.filter_jit(first_look)(self.sim, carry)

    def program(self, carry: Carry) -> ChunkProgram:
        """What advances a carry by chunks."""
        return ChunkProgram(self.sim, carry)

    def summary(self, carry: Carry) -> Frame:
        """Results of accumulating observers."""
        return summary(self.sim, carry)

    def grown(self, carry: Carry, after: Carry) -> tuple[Carry, list[str]]:
        """`carry` with room for what was required up to `after`, and what has grown."""
        aux, events = grow(carry.aux, after.aux)
        return carry.replace(aux=aux), events

    def alone(self, carry: Carry) -> Carry:
        """The carry as one device would have it."""
        return carry
