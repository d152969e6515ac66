"""Gradients of pair forces, by any number, are sums by native code."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, StepCount
from physkit.particles.forces.pairs import _reduce_pairs

SPECIES = np.arange(47) % 2
FORCES = {
    "Lennard-Jones": (pk.LennardJones(), {}),
    "tables by species": (
        pk.LennardJones(epsilon=[[1.0, 1.5], [1.5, 0.5]], sigma=[[1.0, 0.8], [0.8, 0.9]]),
        {"species": SPECIES},
    ),
    "charges": (pk.Coulomb(), {"charge": 2.0 * SPECIES - 1}),
}


@pytest.mark.parametrize("use_neighbor_list", [True, False])
@pytest.mark.parametrize("name", FORCES)
def test_gradients_by_all_numbers(name, use_neighbor_list, monkeypatch):
    potential, properties = FORCES[name]
    box = pk.Box([9.0, 8.0, 7.0])
    position = np.random.default_rng(0).uniform(0, 7, (len(SPECIES), 3))
    state = pk.Particles(position, space=box, **properties)
    force = pk.Pairwise(potential, 2.5, use_neighbor_list=use_neighbor_list)
    clock = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.1), None)
    numbers, rest = eqx.partition((force, state), eqx.is_inexact_array)

    def loss(numbers):
        force, state = eqx.combine(numbers, rest)
        return jnp.sum(force.force(clock, state) ** 2)

    left_to_xla, by_xla = [], _reduce_pairs._by_xla

    def record(terms, *arguments):
        left_to_xla.append(terms)
        return by_xla(terms, *arguments)

    monkeypatch.setattr(_reduce_pairs, "_by_xla", record)
    traced = jax.make_jaxpr(jax.grad(loss))(numbers)
    assert not left_to_xla
    assert "ffi_call" in str(traced)
