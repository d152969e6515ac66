"""Members that are set up one by one share capacities by protocols, which a user's classes can follow."""

import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float, Int

import physkit as pk
from physkit.core import AbstractResizable, Module, ShapeError, data, replace_fields, static
from physkit.ensemble.compute._common_capacity import round_up_capacity, stack_carries
from physkit.ensemble.design._common_skin import set_common_skin


class Rows(AbstractResizable):
    rows: Float[Array, "*b n"] = data()
    required: Int[Array, "*b"] = data()

    @property
    def capacity(self):
        return self.rows.shape[-1]

    def grow_to(self, capacity):
        return self.resize(max(capacity, self.capacity))

    def resize(self, capacity):
        rows = jnp.zeros(capacity).at[: self.capacity].set(self.rows[:capacity])
        return replace_fields(self, {"rows": rows})


class ReachingTrap(Module):
    reach: float = static()

    def with_common_skin(self, states):
        return ReachingTrap(min(float(state.shape[0]) for state in states))


def carry_with_rows(capacity):
    aux = Rows(jnp.ones(capacity), jnp.int32(capacity))
    return pk.init(*pk.systems.lorenz()).replace(aux=aux)


def test_a_users_cache_gets_the_largest_capacity():
    batch = stack_carries([carry_with_rows(3), carry_with_rows(5)])
    assert batch.aux.rows.shape == (2, 5)
    assert batch.aux.rows.sum(axis=1).tolist() == [3, 5]


@pytest.mark.parametrize(
    ("required", "capacity"), [(0, 8), (8, 8), (8.1, 16), (57, 64), (65, 80), (129, 160)]
)
def test_few_capacities_serve_all_numbers(required, capacity):
    assert round_up_capacity(required) == capacity
    assert round_up_capacity(capacity) == capacity


def test_members_of_different_structure_are_refused():
    carries = [carry_with_rows(3), pk.init(*pk.systems.lorenz())]
    with pytest.raises(ShapeError, match="set up differently"):
        stack_carries(carries)


def test_a_users_force_gets_a_common_skin():
    sim, state = pk.systems.lorenz()
    sim = replace_fields(sim, {"integrator": ReachingTrap(9.0)})
    states = [jnp.zeros(4), jnp.zeros(2)]
    shared, unchanged = set_common_skin((sim, state), states)
    assert shared.integrator.reach == 2.0
    assert unchanged is state
