"""Derivatives of models that are trained: a right-hand side, noise, an operator on a field, a force."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk


class Learned(pk.AbstractTendency):
    """A rate by a network."""

    network: pk.Network

    def rate(self, clock, state):
        return jnp.tanh(self.network(state))


def network(key):
    return Learned(pk.Network(eqx.nn.MLP(2, 2, 4, 1, jnp.tanh, key=jax.random.key(key))))


def ordinary():
    return pk.Simulation(pk.RK4(network(2)), dt=0.1), jnp.array([1.0, 0.5])


def stochastic():
    noisy = pk.integrators.EulerMaruyama(network(3), diffusion=network(4))
    return pk.Simulation(noisy, dt=0.1), jnp.array([1.0, 0.5])


def operator():
    line = pk.Grid([32.0], (16,))
    law = pk.equations.FourierNeuralOperator(1, modes=4, width=2, depth=2, key=0)
    front = pk.Field.from_function(line, lambda x: jnp.cos(2 * jnp.pi * x / 32))
    flow = pk.ETDRK4(pk.equations.KuramotoSivashinsky(), law)
    return pk.Simulation(flow, dt=0.25), front


def graph():
    rng = np.random.default_rng(0)
    sites = np.stack(np.meshgrid(*[1.5 * np.arange(3)] * 2), -1).reshape(9, 2)
    atoms = pk.Particles(
        sites + rng.uniform(-0.1, 0.1, sites.shape),
        rng.uniform(-0.5, 0.5, sites.shape),
        space=pk.Box([4.5, 4.5]),
    )
    network = pk.potentials.MessagePassing(2.0, width=4, hidden=4, num_gaussians=3, key=0)
    # Constants of the energy move nothing: they show in the frames alone.
    frames = pk.Every(4, energy=pk.PotentialEnergy())
    motion = pk.VelocityVerlet(pk.ManyBody(network))
    return pk.Simulation(motion, dt=0.05, observers=frames), atoms


@pytest.mark.slow
@pytest.mark.parametrize("make", [ordinary, stochastic, operator, graph])
def test_a_trained_model_has_right_derivatives(make):
    simulation, state = make()
    key = jax.random.key(0) if make is stochastic else None
    weights, rest = eqx.partition(simulation.integrator, eqx.is_inexact_array)

    @jax.jit
    @jax.value_and_grad
    def loss(weights):
        trained = dataclasses.replace(simulation, integrator=eqx.combine(weights, rest))
        end = pk.simulate(trained, state, 4, key=key).state
        numbers = jax.tree.leaves(eqx.filter(end, eqx.is_inexact_array))
        return sum(jnp.mean((x - 0.3) ** 2) for x in numbers)

    first = loss(weights)[0]
    for _ in range(5):
        _, slopes = loss(weights)
        weights = jax.tree.map(lambda w, s: w - 0.01 * s / (1 + jnp.abs(s)), weights, slopes)
    assert loss(weights)[0] < first
    trained = dataclasses.replace(simulation, integrator=eqx.combine(weights, rest))
    # What the inputs of a graph network are measured by does not learn.
    constants = (".mean", ".deviation")
    audit = pk.gradient_audit(trained, state, 4, key=key, ignore=constants)
    assert audit.ok, audit
    cut = {row.name.rsplit(".")[-1] for row in audit.rows if row.verdict == "cut"}
    assert cut == ({"mean", "deviation"} if make is graph else set())
