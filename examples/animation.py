"""Two crystals in the plane collide: a film, colored by speed. They heat up, stick and spin."""

import os

import jax.numpy as jnp

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ

sites, box = pk.lattice.triangular(cells=(18, 11), spacing=1.12)
sites = sites - box.lengths / 2
disk = sites[jnp.sum(sites**2, axis=1) < (4 if quick else 8) ** 2]

offset, speed = jnp.array([13.0, 3.0]), jnp.array([1.0, 0.0])
atoms = pk.Particles(
    position=jnp.concatenate([disk - offset, disk + offset]),
    velocity=jnp.concatenate([jnp.zeros_like(disk) + speed, jnp.zeros_like(disk) - speed]),
)

force = pk.Pairwise(pk.LennardJones(), cutoff=2.5)
simulation = pk.Simulation(
    pk.VelocityVerlet(force),
    dt=0.005,
    observers=pk.Every(160, position=pk.Positions(), velocity=pk.Velocities()),
)
run = pk.run(simulation, atoms, steps=480 if quick else 8_000)


def draw(state, ax):
    speed = jnp.linalg.norm(state.velocity, axis=1)
    pk.plot.particles(state, ax=ax, color=speed, limits=(0, 2), radius=0.5, color_label="speed")
    ax.set(xlim=(-24, 24), ylim=(-18, 18))


frames = zip(run["position"], run["velocity"], strict=True)
states = [atoms.replace(position=x, velocity=v) for x, v in frames]
pk.plot.animate(states, "animation.gif", draw=draw, size=(5.2, 3.8), dpi=80, fps=20)
