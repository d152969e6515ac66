"""Energies of other packages as forces: beside those that physkit has, and what they refuse."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, DeclarationError, NoEnergyError, ParameterError, StepCount
from physkit.particles import Particles
from physkit.particles.forces import EnergyFunction, ManyBody

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.1)
CUTOFF = 1.6
KEY = jax.random.key(0)


def atoms(space=None):
    x, _ = pk.lattice.face_centered_cubic((2, 2, 2), spacing=2.0)
    x = x + 0.1 * np.random.default_rng(0).normal(size=x.shape)
    if space is None:
        space = pk.Triclinic([[4.0, 0, 0], [0.3, 4.0, 0], [-0.2, 0.1, 4.0]])
    return Particles(jnp.asarray(x), space=space, species=np.arange(len(x)) % 2)


def well(r, p):
    """A pair energy that ends at the cutoff with two derivatives, as Lennard-Jones with a switch does."""
    s = jnp.clip(r / CUTOFF, 0, 1)
    return p["depth"] * (r**-2 - 2.0) * (1 - s**3 * (10 - 15 * s + 6 * s**2))


def of_everything(x, cell, species, p):
    """All pairs and periodic images by hand, as a function that knows nothing of physkit."""
    apart = x[None] - x[:, None]
    fraction = apart @ jnp.linalg.inv(cell)
    apart = apart - jax.lax.stop_gradient(jnp.round(fraction)) @ cell
    r = jnp.sqrt(jnp.sum(apart**2, axis=-1) + 99.0 * jnp.eye(len(x)))
    both = 1 + 0.3 * (species[:, None] + species[None]).astype(float)
    return jnp.sum(jnp.where(r < CUTOFF, both * well(r, p), 0)) / 2


def of_edges(x, cell, species, edges, p):
    """As networks are: messages along edges, summed where they arrive."""
    r = jnp.sqrt(jnp.sum(edges.vectors**2, axis=1))
    both = 1 + 0.3 * (species[edges.senders] + species[edges.receivers]).astype(float)
    return jax.ops.segment_sum(both * well(r, p) / 2, edges.receivers, len(x))


def of_table(x, cell, species, edges, p):
    """As jax-md's are: positions, and a table of neighbors in which n is none."""
    n = len(x)
    apart = x[edges.index % n] - x[:, None]
    apart = apart - jax.lax.stop_gradient(jnp.round(apart @ jnp.linalg.inv(cell))) @ cell
    r2 = jnp.sum(apart**2, axis=-1)
    present = (edges.index < n) & (r2 < CUTOFF**2)
    r = jnp.sqrt(jnp.where(present, r2, 1.0))
    both = 1 + 0.3 * (species[:, None] + species[edges.index % n]).astype(float)
    return jnp.sum(jnp.where(present, both * well(r, p), 0)) / 2


class Native(pk.AbstractManyBodyPotential):
    depth: jax.Array = pk.param(1.3)
    cutoff = CUTOFF
    uses_pairs_of_neighbors = False

    def site_energies(self, near):
        both = 1 + 0.3 * (near.species[None] + near.neighbor_species).astype(float)
        return near.sum(both * well(near.distance, {"depth": self.depth})) / 2


FORCES = {
    "everything": EnergyFunction(of_everything, {"depth": 1.3}),
    "edges": EnergyFunction(of_edges, {"depth": 1.3}, cutoff=CUTOFF, skin=0.2),
    "table": EnergyFunction(of_table, {"depth": 1.3}, cutoff=CUTOFF, skin=0.2),
}


def quantities(force, state):
    """Force, energy, virial, and the derivative by the depth of a number made of them."""

    def values(force, state):
        cache = force.init(state)
        found = force(CLOCK, state, cache)[0], force.energy(CLOCK, state, cache)
        return *found, force.virial(CLOCK, state, cache)

    def number(force):
        f, e, w = found = values(force, state)
        return jnp.sum(f**2) + e + jnp.sum(w * jnp.arange(9.0).reshape(3, 3)), found

    force = force.for_start(state)
    slope, found = jax.jit(jax.grad(number, has_aux=True))(force)
    return *found, sum(map(jnp.sum, jax.tree.leaves(slope)))


@pytest.mark.parametrize(
    "name",
    [
        "everything",
        pytest.param("edges", marks=pytest.mark.slow),
        pytest.param("table", marks=pytest.mark.slow),
    ],
)
def test_a_function_is_the_force_of_the_same_energy(name):
    state = atoms()
    expected = quantities(ManyBody(Native(), skin=0.2), state)
    for a, b in zip(quantities(FORCES[name], state), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def test_single_precision_is_an_energy_too():
    single = jax.tree.map(
        lambda x: x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x, atoms()
    )
    energy = lambda x, cell, species: jnp.sum(jnp.sin(x))
    found = jax.jit(EnergyFunction(energy).energy)(CLOCK, single)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, np.sum(np.sin(np.asarray(single.position))), rtol=1e-5)


@pytest.mark.slow
def test_energies_of_particles_where_the_function_gives_them():
    state = atoms()
    cache = FORCES["edges"].init(state)
    each = jax.jit(lambda c: FORCES["edges"].particle_energies(CLOCK, state, c))(cache)
    native = ManyBody(Native(), skin=0.2)
    expected = jax.jit(lambda c: native.particle_energies(CLOCK, state, c))(native.init(state))
    np.testing.assert_allclose(each, expected, rtol=1e-12)
    with pytest.raises(NoEnergyError, match=r"return energies \[n\]"):
        FORCES["everything"].particle_energies(CLOCK, state)


def test_what_is_no_energy_is_named(monkeypatch):
    state = atoms()
    wrong = [
        (lambda: EnergyFunction(3.0), DeclarationError, "must be a function"),
        (
            lambda: EnergyFunction(eqx.nn.Linear(3, 1, key=KEY)),
            DeclarationError,
            "give it as param",
        ),
        (lambda: EnergyFunction(of_table, skin=0.1), ParameterError, "give cutoff="),
    ]
    for make, error, says in wrong:
        with pytest.raises(error, match=says):
            make()
    for function, error, says in [
        (lambda x: jnp.sum(x), DeclarationError, r"called as function\(positions, cell, species\)"),
        (
            lambda x, cell, species: x,
            ParameterError,
            r"an energy, a real number, or energies \[32\]",
        ),
        (lambda x, cell, species: 1, ParameterError, "a real number"),
    ]:
        with pytest.raises(error, match=says):
            EnergyFunction(function).force(CLOCK, state)
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    sim = pk.Simulation(pk.VelocityVerlet(FORCES["everything"]), dt=0.1)
    with pytest.raises(DeclarationError, match="EnergyFunction cannot be sharded over devices"):
        pk.run(sim, atoms(pk.Box([4.0] * 3)), 1, devices=2, progress=False)
