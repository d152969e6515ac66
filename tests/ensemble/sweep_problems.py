"""Small models that tests of ensembles sweep over.

Their functions are made once: others would be other programs, and be compiled again.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk


def _swing(t, y, args):
    damping, gravity = args
    return jnp.stack([y[1], -gravity * jnp.sin(y[0]) - damping * y[1]])


def _angle(now):
    return now.state[0]


def _state(now):
    return now.state


@functools.cache
def pendulum(interval=5, dt=0.05):
    """A damped pendulum, state [θ, ω]; a damping of −10⁵ blows up at once."""
    right = pk.Function(_swing, (jnp.asarray(0.1), jnp.asarray(9.81))).named("pendulum")
    record = pk.Every(interval, angle=_angle, state=_state)
    return pk.Simulation(pk.RK4(right), dt=dt, observers=record), jnp.array([0.5, 0.0])


def damping(model):
    return pk.find(model, "pendulum").args[0]


def gravity(model):
    return pk.find(model, "pendulum").args[1]


def angle(model):
    return model[1][0]


@functools.cache
def brownian(interval=10):
    """Particles without forces but friction and noise."""
    force = pk.HarmonicTrap(1.0)
    start = pk.Particles(jnp.zeros((3, 2)), space=pk.Free())
    record = pk.Every(interval, x=pk.Positions())
    return pk.Simulation(pk.BAOAB(force, 1.0, 1.0), dt=0.1, observers=record), start


@functools.cache
def boxes(exact=True, interval=20):
    """32 Lennard-Jones atoms, at six temperatures: model and velocities."""
    sites, box = pk.lattice.face_centered_cubic(2, density=0.6)
    atoms = pk.maxwell_boltzmann(jax.random.key(0), pk.Particles(sites, space=box), 1.0)
    force = pk.Pairwise(pk.LennardJones(), cutoff=1.5, skin=0.2, exact=exact)
    record = pk.Every(interval, x=pk.Positions())
    sim = pk.Simulation(pk.VelocityVerlet(force), dt=0.005, observers=record)
    hot = np.sqrt([0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    return (sim, atoms), hot[:, None, None] * np.asarray(atoms.velocity)[None]
