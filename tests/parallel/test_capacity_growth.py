"""Growth of sharded capacities: components of one state keep equal numbers of slots."""

import pytest

import physkit as pk
from physkit.core import replace_fields
from physkit.integrators import Lie
from physkit.particles.forces import Morse, Pairwise
from physkit.simulate.distributed._domain import DistributedDomain

from .particle_cases import fluid


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
