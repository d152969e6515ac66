"""Nested loops, one level for each interval of observers: forward, and backward in `Reversible`.

    block₀ = step,    blockₖ = observe every nₖ steps, after blockₖ₋₁ repeated nₖ / nₖ₋₁ times

for the intervals n₁ < n₂ < … , each of which divides the next.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import jax

from physkit.core import PyTree

from ..adjoint._adjoint import LoopBody
from ._carry import Carry

Body = TypeVar("Body", bound=Callable)
# (body of the level inside, its repeats, the interval) → body of this level
Level: TypeAlias = Callable[[Body, int, int], Body]


def nest_loops(step: Body, intervals: Sequence[int], level: Level) -> Body:
    """The body of the longest interval, from `step` outward."""
    body, steps = step, 1
    for interval in intervals:
        body = level(body, interval // steps, interval)
        steps = interval
    return body


def forward_level(
    repeat: Callable[[LoopBody, Carry, int], tuple[Carry, PyTree]],
    observe: Callable[[Carry, int], tuple[Carry, PyTree]],
    merge: Callable[[PyTree, PyTree], PyTree],
) -> Level[LoopBody]:
    """A level of the forward loop: repeat the level inside, then observe.

    **Arguments:**

    - `repeat`: an adjoint's.
    - `observe`: (carry, interval) → (carry, records), of one instant.
    - `merge`: (records of the level inside, records of this one) → both as one.
    """

    def level(inner: LoopBody, length: int, interval: int) -> LoopBody:
        def body(carry: Carry, _: None = None) -> tuple[Carry, PyTree]:
            carry, records = repeat(inner, carry, length) if length > 1 else inner(carry)
            carry, observed = observe(carry, interval)
            return carry, merge(records, add_time_axis(observed))

        return body

    return level


def add_time_axis(records: PyTree) -> PyTree:
    """Records of one instant as arrays over time with one entry."""
    return jax.tree.map(lambda x: x[None], records)
