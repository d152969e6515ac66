"""The same steps of a simulation on one device and over two, compared."""

from typing import Any, NamedTuple

import jax
import numpy as np

from physkit.core import State
from physkit.simulate import Simulation, communication_report, run as run_simulation

from ..common._report import Stopwatch

DEVICES = (2,)


class DeviceComparison(NamedTuple):
    """The same steps on one device and over two.

    - `single`: the last state on one device; `carry`: that of the run over two, still sharded.
    - `seconds`: on one device, and over two.
    - `bytes_sent`, `exchanges`: of each device, in a step.
    """

    name: str
    single: State
    carry: Any  # a ShardedCarry, which `physkit.simulate` does not export
    seconds: tuple[float, float]
    bytes_sent: float
    exchanges: int

    @property
    def gathered_state(self) -> State:
        """The state of the run over two devices, gathered from both."""
        return self.carry.state

    @property
    def relative_difference(self) -> float:
        """The largest difference between the two states, over the largest number."""
        pairs = list(zip(_numbers(self.single), _numbers(self.gathered_state), strict=True))
        return max(float(np.max(np.abs(a - b)) / np.max(np.abs(a))) for a, b in pairs)


def compare(name: str, simulation: Simulation, state: State, steps: int) -> DeviceComparison:
    """Run the same steps on one device and over two."""
    watch = Stopwatch()
    single = run_simulation(simulation, state, steps, progress=False).state
    single_seconds, watch = watch.seconds, Stopwatch()
    carry = run_simulation(simulation, state, steps, progress=False, devices=DEVICES).carry
    sharded_seconds = watch.seconds
    communication = communication_report(simulation, state, DEVICES)
    return DeviceComparison(
        name,
        single,
        carry,
        (single_seconds, sharded_seconds),
        communication.bytes,
        communication.count,
    )


def _numbers(state: State) -> list[np.ndarray]:
    """Floating arrays of a state; of particles unwrapped positions, and velocities."""
    # A position in a box jumps by its edge where rounding moves a particle across the boundary.
    if hasattr(state, "unwrapped"):
        return [np.asarray(state.unwrapped), np.asarray(state.velocity)]
    floats = [x for x in jax.tree.leaves(state) if jax.numpy.issubdtype(x.dtype, np.inexact)]
    return [np.asarray(x) for x in floats]
