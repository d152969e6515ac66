"""`simulate`: pure, so that `jit`, `grad`, `vmap` and the rest of JAX apply to it."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import (
    Clock,
    ComponentError,
    Count,
    Fault,
    Frame,
    Health,
    Key,
    KeyLike,
    Module,
    ObserverError,
    PyTree,
    State,
    StepCount,
    as_count,
    as_key,
    as_state,
    cast_floats,
    concrete_value,
    drop_outdated_programs,
    explain_call,
    float_dtype,
    is_concrete,
    is_tracing,
    jit_by_platform,
    poison_where,
)
from physkit.html import fragment, series_table, span, tree
from physkit.parallel import DevicesLike, gather_to_host, to_default_device

from ..distributed._domain import DistributedDomain, cast_to_state_precision, with_own_tables
from ..distributed._sharded_carry import ShardedCarry
from ..loop._advance import advance, observe_initial
from ..loop._carry import Carry, follow_parameters, refresh_aux, require_no_key, summary
from ..loop._entry import require_simulation
from ..loop._garbage import without_garbage_collection
from ..loop._init import HIDDEN_NUMBERS, check_visible_start, init, plans_start
from ..loop._simulation import Simulation
from ._compatibility import (
    explain_carry_errors,
    remember_observers,
    remember_time,
    require_no_run,
)
from ._same_start import require_same_start


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
    def state(self) -> State:
        """The last state."""
        return self.carry.state

    def _repr_html_(self) -> str:
        # Inside of a trace nobody knows yet.
        is_known = is_concrete(self.health.bits)
        body = span("kind", "Result") + " "
        if is_known:
            is_ok = self.health.ok
            body += span("good", "no faults") if is_ok else span("wrong", self.health.faults().name)
        body += series_table(self.frames, self.times) if self.frames else ""
        body += tree(self.summary, "summary") if self.summary else ""
        return fragment(body + tree(self.state, "state", open_depth=0))

    def __getitem__(self, name: str) -> PyTree:
        for recorded in (self.frames, self.summary):
            if name in recorded:
                return recorded[name]
        available = sorted(self.frames | self.summary)
        raise ComponentError(f"nothing recorded as {name!r}; available: {available}")


@explain_call
def simulate(
    sim: Simulation,
    carry_or_state: State | Carry | ShardedCarry,
    steps: Count,
    *,
    key: KeyLike | None = None,
    devices: DevicesLike | None = None,
) -> Result:
    """Advance by `steps` steps. Pure: `jit`, `grad`, `vmap` it.

    **Arguments:**

    - `carry_or_state`: a state to start from, or a carry to continue from.
    - `steps`: a multiple of the longest observer interval.
    - `key`: a JAX random key, or a whole number, for dynamics with noise, when starting from a state.
    - `devices`: shard the domain over so many devices per axis, `(2, 2)`, or over JAX devices; see `run`.
      The result is that of one device to rounding, and so are its derivatives.

    **Notes:** nothing raises inside a trace: look at `Result.health`. Any fault also poisons: all floats of
    carry, frames and summary are NaN, and so are their derivatives. Caches have fixed capacity here; `run`
    grows them. On CPU, JAX 0.12 runs loop bodies on one core; give
    `jax.jit(…, compiler_options={"xla_disable_hlo_passes": "small-while-loop-hoisting"})` for large
    states (`run` does so by itself).
    """
    require_simulation("simulate", sim, carry_or_state, steps)
    drop_outdated_programs(sim, carry_or_state)
    require_no_run(carry_or_state)
    steps, key, carry_or_state = as_count(steps), as_key(key), as_state(carry_or_state)
    count_blocks(sim, steps)
    if devices is None and isinstance(carry_or_state, ShardedCarry):
        devices = carry_or_state.devices
    with explain_carry_errors(sim, carry_or_state):
        if devices is None:
            result = simulate_on_one_device(steps, sim, carry_or_state, key)
            if not is_tracing():
                remember_observers(sim, result.carry)
                remember_time(sim, result.carry)
            return result
        # The adjoint wraps the whole SPMD program. Differentiated inside of it, a number that is replicated
        # over the domain would count once for each device.
        program = partial(_simulate_domain, steps, devices)
        return _poisoned(sim.adjoint.call_program(program, sim, carry_or_state, key))


@without_garbage_collection()  # a trace of seconds, with that of the derivative, within a user's `jit`, too
def simulate_on_one_device(
    steps: int, sim: Simulation, carry_or_state: State | Carry, key: Key | None = None
) -> Result:
    """`simulate` without devices; `steps` is known to be a multiple of the observation period."""
    is_start = not isinstance(carry_or_state, Carry)
    if is_tracing():
        # Where all numbers are inputs of the program around it, as in a fit, nothing could be seen of them, and
        # a program in the program is traced once; derivatives of it, too, are known to JAX by what was traced.
        is_hidden = _is_hidden((sim, carry_or_state, key))
        call = _call_compiled if is_hidden else _call_program
        return call(steps, False, sim, carry_or_state, key)
    # Not part of a larger program: programs of its own, instead of one for every operation.
    if is_start and (is_concrete((sim, carry_or_state, key)) or plans_start(sim)):
        carry_or_state, key = init(sim, carry_or_state, key=key), None
        return _call_outermost(steps, True, sim, carry_or_state, key)
    if is_start:
        check_visible_start(sim, carry_or_state, key)
    try:
        return _call_outermost(steps, False, sim, carry_or_state, key)
    except HIDDEN_NUMBERS:
        # A term of one's own that needs numbers at the start, and sees those that no derivative is taken of.
        return _call_program(steps, False, sim, carry_or_state, key)
    except TypeError as error:
        if explained := sim.adjoint.explain_error(error):
            raise explained from error
        raise


def _call_program(
    steps: int, is_computed: bool, sim: Simulation, carry_or_state: State | Carry, key: Key | None
) -> Result:
    program = partial(_simulate, steps, is_computed)
    return _poisoned(sim.adjoint.call_program(program, sim, carry_or_state, key))


_call_compiled = eqx.filter_jit(_call_program)
_call_outermost = jit_by_platform(_call_program)  # JAX allows XLA's options nowhere else


def _is_hidden(inputs: PyTree) -> bool:
    leaves = [x for x in jax.tree.leaves(inputs) if eqx.is_array(x) or isinstance(x, np.ndarray)]
    return all(isinstance(x, jax.core.Tracer) for x in leaves)


def _poisoned(result: Result) -> Result:
    """`result`; after any fault with NaN for all its numbers, and for their derivatives."""
    # The one place for all terms and all adjoints: outside of what an adjoint differentiates in its own way, so
    # that the cotangents that it is given are NaN already.
    bits = result.health.bits
    numbers = concrete_value(bits)
    if numbers is not None and not np.any(numbers):
        return result  # not compiled, and sound: no program to compile for it
    # Over devices each has bits of its own, and any of them makes all numbers meaningless.
    is_bad = jnp.any(bits != 0) if numbers is None else np.array(True)
    carry, frames, merged_summary = poison_where(
        (result.carry, result.frames, result.summary), is_bad
    )
    return Result(carry, frames, result.times, merged_summary, result.health)


def _simulate_domain(
    steps: int,
    devices: DevicesLike,
    sim: Simulation,
    carry_or_state: State | Carry | ShardedCarry,
    key: Key | None,
) -> Result:
    """Every device simulates its part; results are put together outside of the SPMD program."""
    domain = DistributedDomain(cast_to_state_precision(sim, carry_or_state), devices)
    if is_concrete((sim, carry_or_state, key)):
        require_same_start(domain.process_group, sim, carry_or_state, key, {"steps": steps})
    carry = domain.as_carry(carry_or_state, key)
    if carry is carry_or_state:  # else made anew
        carry = carry.replace(aux=with_own_tables(carry.aux))
    parts = domain.spmd_from(carry, _simulate_part, steps)()  # a `Result` in device layout
    frames = domain.gather(parts.frames, carry, 1)
    merged_summary = to_default_device(domain.gather_summary(parts.summary, carry))
    # Only traceable checks here: replicated numbers that differ are a fault bit, and poison what they are in.
    differs = to_default_device(domain.differs(parts.frames, parts.carry.state, carry))
    bits = to_default_device(gather_to_host(parts.health.bits))
    bits = bits | jnp.where(differs, jnp.int32(Fault.NOT_REPLICATED), jnp.int32(0))
    times = to_default_device({name: t[0] for name, t in parts.times.items()})
    final = ShardedCarry(parts.carry, domain.devices)
    return Result(final, frames, times, merged_summary, Health(bits))


def _simulate_part(steps: int, sim: Simulation, carry: Carry) -> Result:
    return _simulate(steps, False, sim, carry, None)


def _simulate(
    steps: int, is_computed: bool, sim: Simulation, carry_or_state: State | Carry, key: Key | None
) -> Result:
    """`is_computed`: whether a carry of step 0 comes from `init` just now, with these parameters."""
    if not isinstance(carry_or_state, Carry):
        carry, is_computed = init(sim, carry_or_state, key=key), True
    else:
        require_no_key(key)
        carry = carry_or_state
    sim = cast_floats(sim, float_dtype(carry.state))
    if not carry.is_initial and not is_computed:
        carry = follow_parameters(sim, carry)
    start, initial = carry.step, {}
    if carry.is_initial:
        is_current = is_computed or sim.integrator.keeps_caches_current
        if not is_computed:
            # Its forces were computed by `init`, outside of this call, and perhaps outside of a derivative:
            # inside they depend on the parameters.
            carry = refresh_aux(sim, carry)
        carry, initial = observe_initial(sim, carry, is_current)
    carry, frames, health = advance(sim, carry, count_blocks(sim, steps), sim.adjoint)
    times = {name: _times(sim, start, steps, frame) for name, frame in frames.items()}
    if initial:
        frames = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), initial, frames)
        t0 = Clock.at(start, sim.t0, sim.dt).t[None]
        times = {name: jnp.concatenate([t0, t]) for name, t in times.items()}
    return Result(carry, frames, times, summary(sim, carry), health)


def _times(sim: Simulation, start: StepCount, steps: int, frame: PyTree) -> Float[Array, " k"]:
    """Times of the frames of one name, which are evenly spaced over `steps` steps after `start`."""
    count = len(jax.tree.leaves(frame)[0])  # frames have time as their first axis
    interval = steps // count

    def time_of(i: Int[Array, ""]) -> Float[Array, ""]:
        return Clock.at(start.plus(interval * (i + 1)), sim.t0, sim.dt).t

    return jax.vmap(time_of)(jnp.arange(count))


def count_blocks(sim: Simulation, steps: Count) -> int:
    """`steps` in units of the longest interval."""
    steps = as_count(steps)
    blocks, rest = divmod(steps, sim.observation_period)
    if rest:
        period = sim.observation_period
        near = [n for n in (blocks * period, (blocks + 1) * period) if n]
        raise ObserverError(
            f"steps={steps} must be a multiple of the longest observer interval, {period}; "
            f"e.g. {' or '.join(map(str, near))}"
        )
    return blocks
