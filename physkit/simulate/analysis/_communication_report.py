"""How much devices send to one another in a step of a simulation."""

import dataclasses

import numpy as np

from physkit.core import Aux, Clock, Key, Plan, State, array_bytes, explain_call, replicate, shard
from physkit.parallel import Collective, DevicesLike, resolve_devices, trace_collectives

from ..distributed._domain import cast_to_state_precision
from ..distributed._shape_errors import explain_shape_errors
from ..distributed._spmd_function import SpmdFunction
from ..loop._carry import Carry
from ..loop._init import init
from ..loop._migrate import migrate
from ..loop._simulation import Simulation


@dataclasses.dataclass(frozen=True)
class CommunicationReport:
    """What every device sends in one step.

    - `devices`: how many there are along each axis.
    - `messages`: all exchanges of a step.
    - `state_bytes`: what a device holds of the state.
    """

    devices: tuple[int, ...]
    messages: tuple[Collective, ...]
    state_bytes: int

    @property
    def bytes(self) -> float:
        """What a device sends in every step; loops of unknown length count one turn."""
        return float(sum(m.bytes * m.count for m in self.messages if m.when != "sometimes"))

    @property
    def count(self) -> int:
        """How many exchanges there are in every step."""
        return sum(m.count for m in self.messages if m.when != "sometimes")

    def seconds(self, bandwidth: float, latency: float) -> float:
        """How long the exchanges of a step take at least, one after the other.

        **Arguments:**

        - `bandwidth`: bytes per second that a device sends at.
        - `latency`: seconds that an exchange takes however short it is.
        """
        return self.count * latency + self.bytes / bandwidth

    def rows(self) -> list[tuple[str, str, str, int, float]]:
        """One row for all exchanges of a kind along an axis: kind, along, when, number, bytes a step."""
        totals: dict[tuple[str, str, str], tuple[int, float]] = {}
        for m in self.messages:
            key = (m.kind, m.axes, m.when)
            number, size = totals.get(key, (0, 0.0))
            totals[key] = (number + m.count, size + m.bytes * m.count)
        return [(*key, *value) for key, value in totals.items()]

    def __str__(self) -> str:
        grid = " × ".join(map(str, self.devices))
        lines = [
            f"{grid} devices, each with {self.state_bytes:,} bytes of state, which sends every step",
            f"{'what':18} {'along':6} {'when':10} {'exchanges':>9} {'bytes':>14}",
        ]
        for kind, along, when, number, size in self.rows():
            lines.append(f"{kind:18} {along:6} {when:10} {number:9d} {size:14,.0f}")
        if len(lines) == 2:
            lines.append("nothing")
        return "\n".join(lines)


@explain_call
def communication_report(
    sim: Simulation, state: State, devices: DevicesLike, *, key: Key | None = None
) -> CommunicationReport:
    """What devices would send to one another in one step, without running it.

    The devices need not be there: a laptop can tell what a domain over 512 of them would send.

    **Arguments:**

    - `devices`: as `run` takes them, `(8, 8)`.
    - `key`: a random key where the dynamics has noise.

    **Errors:** those of `run` for domains that cannot be sharded so.

    **Notes:** counted in the traced program. Exchanges in a branch (particles changing devices, new
    neighbor lists) are marked `"sometimes"` and left out of the sums, loops of unknown length
    (iterative solvers) count one turn.
    """
    sim, (shape, _) = cast_to_state_precision(sim, state), resolve_devices(devices)
    sharded_sim, parts = shard(sim, shape), shard(state, shape)
    keys = None if key is None else replicate(key, shape)
    # Traced one after the other, so that only what a step sends is counted, not what its preparation does.
    with explain_shape_errors(sim, shape, parts, lambda: (state, key)):
        _, carry = trace_collectives(SpmdFunction(_init), shape, sharded_sim, parts, keys)
        _, plan = trace_collectives(SpmdFunction(_prepare), shape, sharded_sim, carry)
        messages, _ = trace_collectives(SpmdFunction(_step), shape, sharded_sim, plan, carry)
    # Every device holds an equal part: arrays in device layout have one row for each.
    return CommunicationReport(shape, tuple(messages), array_bytes(parts) // int(np.prod(shape)))


def _init(sim: Simulation, state: State, key: Key | None) -> Carry:
    return init(sim, state, key=key)


def _prepare(sim: Simulation, carry: Carry) -> Plan:
    return sim.integrator.prepare(carry.state, sim.dt)


def _step(sim: Simulation, plan: Plan, carry: Carry) -> tuple[State, Aux]:
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    state, aux = sim.integrator.step_lazy(plan, clock, carry.state, carry.aux)
    return migrate(sim, plan, clock, state, aux)
