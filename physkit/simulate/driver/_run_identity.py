"""What a run is: its start, key, simulation and code, noted in checkpoints and compared on resuming."""

import equinox as eqx
import jax

from physkit.core import Key, PhyskitError, State
from physkit.parallel import addressable_rows
from physkit.storage import (
    Identity,
    describe_array,
    describe_numbers,
    program_digest,
)

from ..adjoint._adjoint import Direct
from ..distributed._domain import DistributedDomain, cast_to_state_precision
from ..distributed._sharded_carry import ShardedCarry
from ..distributed._whole_domain import KeyShape, init_on_one_device, whole_state_and_key
from ..loop._advance import advance
from ..loop._carry import Carry, summary
from ..loop._init import init
from ..loop._simulation import Simulation
from ._single_device import SingleDevice

ONE_DEVICE = "the simulation"
ANY_DEVICES = "the simulation over devices"


def run_identity(
    host: SingleDevice | DistributedDomain,
    start: State | Carry | ShardedCarry,
    carry: Carry | ShardedCarry,
    there: Identity | None = None,
) -> Identity:
    """What a run is that begins at `start`, whose first carry on its devices is `carry`.

    Code is digested from the program of the run itself on one device, which is traced only once, and over
    devices from that of the whole domain, which is the same over all of them.

    - `there`: an identity that it is to be compared with: programs are traced as they were for that one.
    """
    sim = host.sim
    sections = {
        "the start": _describe_start(start),
        "the random key": {"": _describe_key(carry)},
        "the simulation": describe_numbers(sim, ignore=(".adjoint", ".guards")),
        "the guards": describe_numbers(sim.guards),
    }
    name = ONE_DEVICE if isinstance(host, SingleDevice) else ANY_DEVICES
    if there is not None and there.code and name not in there.code:
        name = ANY_DEVICES if ANY_DEVICES in there.code else ONE_DEVICE
    code = _code_digest(name, host, start, carry)
    return Identity(sections, {} if code is None else {name: code})


def member_code_digest(sim: Simulation, state: State, key: KeyShape) -> str | None:
    """The digest of what one device computes for the whole domain, whatever its caches hold; None where it
    cannot be traced without numbers."""
    try:
        program, *_ = eqx.filter_make_jaxpr(_whole_program)(sim, state, key)
    except PhyskitError:
        return None
    return program_digest(program)


def _whole_program(sim: Simulation, state: State, key: Key | None):
    carry = init_on_one_device(sim, state, key)
    sim = cast_to_state_precision(sim, carry)
    after, frames, health = advance(sim, carry, 1, Direct())
    return after.state, frames, health, summary(sim, after)


def _code_digest(
    name: str,
    host: SingleDevice | DistributedDomain,
    start: State | Carry | ShardedCarry,
    carry: Carry | ShardedCarry,
) -> str | None:
    sim = host.sim
    if name == ANY_DEVICES:
        state, key = (
            whole_state_and_key(start)
            if isinstance(start, ShardedCarry)
            else (
                (start.state, start.key) if isinstance(start, Carry) else (start, _first_key(carry))
            )
        )
        return member_code_digest(sim, state, key)
    if isinstance(start, ShardedCarry):
        return None  # it was never on one device
    if not isinstance(host, SingleDevice):
        host = SingleDevice(sim)
        carry = start if isinstance(start, Carry) else init(sim, start, key=_first_key(carry))
    # As the run's own calls have it, so that JAX finds the trace again.
    carry = carry.replace(is_initial=False)
    results, *_ = eqx.filter_make_jaxpr(summary)(sim, carry)
    return program_digest(host.program(carry).trace(carry), results)


def _describe_start(start: State | Carry | ShardedCarry) -> dict[str, str]:
    if isinstance(start, Carry):
        described = describe_numbers(start.state)
        if int(start.step):
            described |= describe_numbers(start.observer_state, ".observers")
        return described
    if isinstance(start, ShardedCarry):
        leaves = jax.tree.leaves(start.carry.state)
        if not all(getattr(x, "is_fully_addressable", True) for x in leaves):
            return {"": f"a carry over {start.devices} of several processes"}
        return describe_numbers(start.carry.state) | {".devices": str(start.devices)}
    return describe_numbers(start)


def _first_key(carry: Carry | ShardedCarry) -> Key | None:
    """The random key; over devices all have the same."""
    if isinstance(carry, Carry):
        return carry.key
    if carry.carry.key is None:
        return None
    keys = carry.carry.key
    words = addressable_rows(jax.random.key_data(keys))[1][0]
    return jax.random.wrap_key_data(words, impl=jax.random.key_impl(keys))


def _describe_key(carry: Carry | ShardedCarry) -> str:
    key = _first_key(carry)
    return "none" if key is None else describe_array(key)
