"""`simulate`: pure, so that `jit`, `grad`, `vmap` and the rest of JAX apply to it."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import Clock, Fault, Health, Module, ObserverError, cast_floats, float_dtype
from physkit.observe import Frame
from physkit.parallel import to_default_device

from ..distributed._domain import DistributedDomain, cast_to_state_precision
from ..distributed._sharded_carry import ShardedCarry
from ..loop._advance import advance, observe_initial
from ..loop._carry import Carry, init, summary
from ..loop._simulation import Simulation
from ._compatibility import explain_carry_errors


class Result(Module):
    """What `simulate` returns.

    - `carry`: what continues the run; `state` is its state.
    - `frames`: recorded arrays by name, time first; step 0 included when started from a state.
    - `times`: the time of each frame, by the same names.
    - `summary`: results of accumulating observers, by name.
    - `health`: fault bits as data; `health.check()` raises what they say.
    """

    carry: Carry | ShardedCarry
    frames: Frame
    times: dict[str, Array]
    summary: Frame
    health: Health

    @property
    def state(self) -> Any:
        """The last state."""
        return self.carry.state


def simulate(
    sim: Simulation,
    carry_or_state: Any,
    steps: int,
    *,
    key: Array | None = None,
    devices: Any = None,
) -> Result:
    """Advance by `steps` steps. Pure: `jit`, `grad`, `vmap` it.

    **Arguments:**

    - `carry_or_state`: a state to start from, or a carry to go on from.
    - `steps`: a multiple of the longest observer interval.
    - `key`: a JAX random key for dynamics with noise, when starting from a state.
    - `devices`: cut the domain over so many devices per axis, `(2, 2)`, or over JAX devices; see `run`.
      The result is that of one device to rounding, and so are its derivatives.

    **Notes:** nothing raises inside a trace: look at `Result.health`, whose faults also poison the
    numbers with NaN. Caches have fixed capacity here; `run` grows them. On CPU, JAX 0.12 runs loop
    bodies on one core; give
    `jax.jit(…, compiler_options={"xla_disable_hlo_passes": "small-while-loop-hoisting"})` for large
    states (`run` does so by itself).
    """
    count_blocks(sim, steps)
    if devices is None and isinstance(carry_or_state, ShardedCarry):
        devices = carry_or_state.devices
    with explain_carry_errors(sim, carry_or_state):
        if devices is not None:
            return _over_devices(sim, carry_or_state, steps, key, devices)
        return simulate_on_one_device(steps, sim, carry_or_state, key)


def simulate_on_one_device(
    steps: int, sim: Simulation, carry_or_state: Any, key: Array | None = None
) -> Result:
    return sim.adjoint.call_program(partial(_simulated, steps), sim, carry_or_state, key)


def _over_devices(sim, carry_or_state, steps: int, key: Array | None, devices: Any) -> Result:
    program = partial(_joined_from_each, steps, devices)
    # Around all devices: what is one number for the domain must move alone, not once on each.
    return sim.adjoint.call_program(program, sim, carry_or_state, key)


def _joined_from_each(steps: int, devices: Any, sim, carry_or_state, key: Array | None) -> Result:
    domain = DistributedDomain(cast_to_state_precision(sim, carry_or_state), devices)
    carry = domain.as_carry(carry_or_state, key)
    found = domain.spmd_from(carry, _simulate_part, steps)()
    after = ShardedCarry(found.carry, domain.devices)
    first = lambda tree: jax.tree.map(lambda x: x[0], tree)
    frames = to_default_device(domain.gather(found.frames, carry, 1))
    total = to_default_device(domain.gather_summary(found.summary, carry))
    wrong = to_default_device(domain.differs(found.frames, found.carry.state, carry))
    bits = to_default_device(found.health.bits) | jnp.where(
        wrong, jnp.int32(Fault.NOT_REPLICATED), jnp.int32(0)
    )
    return Result(after, frames, to_default_device(first(found.times)), total, Health(bits))


def _simulate_part(steps: int, sim: Simulation, carry: Carry) -> Result:
    return _simulated(steps, sim, carry, None)


def _simulated(steps: int, sim: Simulation, carry_or_state: Any, key: Array | None) -> Result:
    blocks = count_blocks(sim, steps)
    carry = _begin(sim, carry_or_state, key)
    sim = cast_floats(sim, float_dtype(carry.state))
    first: Frame = {}
    begin = carry.step
    if carry.is_initial:
        if carry is carry_or_state:
            carry = _started_again(sim, carry)
        carry, first = observe_initial(sim, carry)
    carry, frames, health = advance(sim, carry, blocks, sim.adjoint)
    times = {name: _times(sim, begin, len(x), steps) for name, x in _leading(frames).items()}
    if first:
        join = lambda a, b: jnp.concatenate([a, b])
        frames = {name: jax.tree.map(join, first[name], frames[name]) for name in frames}
        t0 = Clock.at(begin, sim.t0, sim.dt).t[None]
        times = {name: jnp.concatenate([t0, t]) for name, t in times.items()}
    return Result(carry, frames, times, summary(sim, carry), health)


def _started_again(sim: Simulation, carry: Carry) -> Carry:
    """A fresh `carry` with what `start` found outside of a derivative, say a force, found inside of it."""
    plan = sim.integrator.prepare(carry.state, sim.dt)
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    return carry.replace(aux=sim.integrator.refresh(plan, clock, carry.state, carry.aux))


def count_blocks(sim: Simulation, steps: int) -> int:
    """`steps` in units of the longest interval."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ObserverError(f"steps must be a whole number from 1; got {steps!r}")
    blocks, rest = divmod(steps, sim.observation_period)
    if rest:
        near = [
            n for n in (blocks * sim.observation_period, (blocks + 1) * sim.observation_period) if n
        ]
        raise ObserverError(
            f"steps={steps} must be a multiple of the longest observer interval, {sim.observation_period}; "
            f"e.g. {' or '.join(map(str, near))}"
        )
    return blocks


def _begin(sim: Simulation, carry_or_state: Any, key: Array | None) -> Carry:
    if not isinstance(carry_or_state, Carry):
        return init(sim, carry_or_state, key=key)
    if key is not None:
        raise ObserverError("a carry brings its own key; give key= only when starting from a state")
    return carry_or_state


def _leading(frames: Frame) -> dict[str, Any]:
    return {name: jax.tree.leaves(x)[0] for name, x in frames.items()}


def _times(sim: Simulation, begin, count: int, steps: int) -> Array:
    interval = steps // count
    at = lambda i: Clock.at(begin.plus(interval * (i + 1)), sim.t0, sim.dt).t
    return jax.vmap(at)(jnp.arange(count))
