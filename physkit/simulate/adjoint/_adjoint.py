"""The contract of adjoints: what a loop keeps for its backward pass, and what it computes again."""

import abc
from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeAlias

import jax
import numpy as np

from physkit.core import Module, PhyskitError, PyTree, State

from ._loop_body import LoopBody
from .packing._packed_step import PackedStep

Program: TypeAlias = Callable[..., PyTree]  # a hashable function of pytrees


class MemoryEstimate(NamedTuple):
    """What the derivative of a loop needs, predicted from its shapes.

    - `stored`: bytes kept from the forward to the backward pass.
    - `peak`: bytes at the fullest moment of the backward pass, including those stored.
    - `forward_passes`: how often every step is computed forward until its derivative is there.
    """

    stored: float
    peak: float
    forward_passes: float


class AbstractAdjoint(Module):
    """Repeats a body; forward all adjoints compute the same, backward they trade memory for time.

    A subclass writes `repeat` and `estimate_memory`. One that does more than differentiate loop by loop also
    overrides the other methods, which are called with the whole simulation.
    """

    # Whether memory and time of the derivative are per number that is differentiated by.
    cost_per_parameter: ClassVar[bool] = False

    @abc.abstractmethod
    def repeat(self, body: LoopBody, carry: PyTree, length: int) -> tuple[PyTree, PyTree]:
        """`body` applied `length` times: the last carry, and all records in order of time."""

    @abc.abstractmethod
    def estimate_memory(self, length: int, carry: float, inner: MemoryEstimate) -> MemoryEstimate:
        """What the derivative of `length` repeats needs, of a body that needs `inner`.

        - `carry`: bytes of the loop's carry.
        """

    def advance(
        self, sim: Module, carry: PyTree, blocks: int, block: LoopBody
    ) -> tuple[PyTree, PyTree]:
        """`blocks` blocks of the simulation `sim`, whose plain loop body is `block`."""
        del sim
        return self.repeat(block, carry, blocks)

    def call_program(self, program: Program, *inputs: PyTree) -> PyTree:
        """`program(*inputs)`, the whole simulation, for adjoints with a derivative of all of it at once."""
        return program(*inputs)

    def prepare_state(self, sim: Module, state: State) -> State:
        """The form of `state` in which this adjoint lets `sim` compute, from the very start."""
        del sim
        return state

    def prepare_chunk(self, sim: Module, carry: PyTree) -> tuple[Module, PyTree]:
        """`sim` and `carry` as a compiled chunk begins with them, for the same bits as those of `advance`."""
        return sim, carry

    def explain_error(self, error: TypeError) -> PhyskitError | None:
        """What to say where JAX refuses a derivative of the compiled simulation; None: its own error."""
        del error
        return None


class Direct(AbstractAdjoint):
    """Keeps the intermediates of every step: fastest backward pass, memory ∝ steps."""

    def repeat(self, body: LoopBody, carry: PyTree, length: int) -> tuple[PyTree, PyTree]:
        if isinstance(body, PackedStep) and (found := body.repeat(carry, length)):
            return found
        carry, records = jax.lax.scan(body, carry, None, length=length)
        return carry, jax.tree.map(merge_time_axes, records)

    def estimate_memory(self, length: int, carry: float, inner: MemoryEstimate) -> MemoryEstimate:
        del carry
        stored = length * inner.stored
        # While one step is differentiated its residuals count in its peak, not twice.
        return MemoryEstimate(stored, stored + inner.peak - inner.stored, inner.forward_passes)


def merge_time_axes(x: jax.Array | np.ndarray) -> jax.Array | np.ndarray:
    """[outer, inner, …] → [outer·inner, …]."""
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))
