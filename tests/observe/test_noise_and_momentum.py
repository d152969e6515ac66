"""Temperatures count momentum as conserved only where no noise changes it."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk

SPRING = pk.HarmonicBonds([[0, 1], [1, 2]], 2.0, 1.0)


class OwnEuler(pk.AbstractOneStep):
    """With or without noise in its velocities; it declares nothing about momentum."""

    force: pk.AbstractForce
    is_noisy: bool = pk.static(default=False)

    def step(self, plan, clock, state, aux):
        v = state.velocity + clock.dt * self.force.force(clock, state) / state.mass[:, None]
        if self.is_noisy:
            v = v + 0.1 * clock.random_normal(state.id, v.shape[1:], v.dtype)
        return state.replace(position=state.position + clock.dt * v, velocity=v), aux


@pytest.mark.parametrize(
    ("integrator", "degrees"),
    [
        (OwnEuler(SPRING, is_noisy=True), 9),
        (OwnEuler(SPRING), 6),
        (pk.Lie(pk.VelocityVerlet(SPRING), OwnEuler(SPRING, is_noisy=True)), 9),
        (
            pk.Lie(OwnEuler(SPRING, is_noisy=True), pk.integrators.RemoveMomentum()),
            6,
        ),
    ],
    ids=["noise", "no noise", "noise inside", "noise, then removed"],
)
def test_degrees_of_freedom(integrator, degrees):
    v = jnp.asarray([[1.0, 0.2, 0.0], [0.0, -1.0, 0.5], [0.3, 0.0, 1.0]])
    atoms = pk.Particles(jnp.eye(3), v)
    record = pk.Every(1, temperature=pk.Temperature(), kinetic=pk.KineticEnergy())
    done = pk.run(
        pk.Simulation(integrator, 0.01, observers=record), atoms, 1, key=0, progress=False
    )
    np.testing.assert_allclose(done["temperature"], 2 * done["kinetic"] / degrees, rtol=1e-12)
