"""Growth of sharded capacities: components of one state keep equal numbers of slots."""

import jax
import pytest

import physkit as pk
from physkit.core import replace_fields
from physkit.integrators import Lie
from physkit.particles import AbstractShardedCache
from physkit.particles.forces import Morse, Pairwise
from physkit.simulate.distributed._domain import DistributedDomain

from .particle_cases import fluid, molecules


@pytest.mark.slow
def test_two_components_grow_together_when_one_overflows(monkeypatch):
    """Capacities of neighbor lists follow the number of slots: equal components stay equal."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    kinds = {"a": fluid(), "b": fluid()}
    force = lambda name: Pairwise(Morse(1e-3, 2.0, 1.0), 2.0, 0.3, component=name)
    step = Lie(*(pk.VelocityVerlet(force(name)) for name in kinds))
    domain = DistributedDomain(pk.Simulation(step, dt=0.01), (2,))
    carry = domain.init(kinds)
    state = carry.carry.state
    ownership = state["a"].ownership
    full = replace_fields(ownership, {"num_present": ownership.num_present + 60})
    after = carry.replace(state={**state, "a": replace_fields(state["a"], {"ownership": full})})
    bigger, events = domain.grow(carry, after)
    assert any("particles in a slab" in event for event in events), events
    rows = [kind.num_slots for kind in bigger.carry.state.values()]
    assert rows[0] == rows[1] > state["a"].num_slots
    domain.program(bigger)(bigger, 1).health.check()


@pytest.mark.slow
def test_lists_of_sites_grow_with_their_bodies(monkeypatch):
    """Such a list has as many rows a slot as a body has sites."""
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    sim, bodies = molecules()
    domain = DistributedDomain(sim, (2,))
    carry = domain.init(bodies)
    state = carry.carry.state
    full = replace_fields(state.ownership, {"num_present": state.ownership.num_present + 60})
    after = carry.replace(state=replace_fields(state, {"ownership": full}))
    bigger, events = domain.grow(carry, after)
    assert any("particles in a slab" in event for event in events), events
    caches = jax.tree.leaves(bigger.carry.aux, is_leaf=is_cache)
    rows = {cache.num_slots for cache in caches if is_cache(cache)}
    assert rows == {2 * bigger.carry.state.num_slots}
    assert bigger.carry.state.num_slots > state.num_slots
    domain.program(bigger)(bigger, 1).health.check()


def is_cache(x):
    return isinstance(x, AbstractShardedCache)
