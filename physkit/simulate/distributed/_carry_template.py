"""The template of a carry, into which a checkpoint is read that was written over other devices."""

import equinox as eqx
import jax

from physkit.core import Key, State

from ..loop._carry import Carry
from ..loop._init import init
from ..loop._simulation import Simulation
from ._capacity import is_slotted, match_num_slots, zeros_like_shape
from ._domain import DistributedDomain
from ._sharded_carry import ShardedCarry
from ._whole_domain import whole_state_and_key


def carry_template(
    sim: Simulation,
    carry: Carry | ShardedCarry,
    carry_devices: tuple[int, ...],
    devices: tuple[int, ...],
    shapes: dict[str, tuple[int, ...]],
) -> Carry | ShardedCarry:
    """A carry over `devices` with the structure of `carry`; its numbers mean nothing.

    - `carry_devices`: the devices of `carry`; () is one device.
    - `shapes`: of the checkpoint's arrays by path, which tell how many slots particles have in it.
    """
    same = devices == carry_devices
    template = carry.replace(is_initial=False) if same else _init_over(sim, carry, devices)
    if not isinstance(template, ShardedCarry):
        return template
    # Emulated: the devices that the checkpoint was written over need not exist here.
    domain = DistributedDomain(sim, devices, "vmap")
    return match_num_slots(template, shapes, domain.sharded_sim, domain.spmd)


def _init_over(
    sim: Simulation, carry: Carry | ShardedCarry, devices: tuple[int, ...]
) -> Carry | ShardedCarry:
    domain = DistributedDomain(sim, devices, "vmap") if devices else None

    def begin(state: State, key: Key | None) -> Carry | ShardedCarry:
        if domain is None:
            return init(sim, state, key=key, capacity=1)
        return domain.init(state, key)

    if any(map(is_slotted, jax.tree.leaves(carry.state, is_leaf=is_slotted))):
        # How particles are distributed, and how long their lists are, depends on numbers: shapes do not do.
        return begin(carry.state, carry.key).replace(is_initial=False)
    if isinstance(carry, ShardedCarry):
        state, key = whole_state_and_key(carry)
    else:
        state, key = carry.state, carry.key
    form = eqx.filter_eval_shape(begin, state, key)
    return jax.tree.map(zeros_like_shape, form).replace(is_initial=False)
