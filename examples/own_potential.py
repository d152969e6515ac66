"""A pair potential of your own in four lines: soft disks that order into clusters.

A generalized exponential potential of index above 2 lets particles overlap: at high density they
gather in clusters, and the clusters form a crystal (Mladek et al., Phys. Rev. Lett. 96,
045701 (2006)).
"""

import os

import jax
from jaxtyping import Array, Float

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ


# Its energy is all there is to write: force, virial, neighbor list and derivatives follow.
class GeneralizedExponential(pk.AbstractPairPotential):
    """U(r) = ε exp(−r⁴)."""

    epsilon: Float[Array, ""] = pk.param(1.0)

    def energy(self, r):
        return self.epsilon * jax.numpy.exp(-(r**4))


# Disks at random places, cooled by Langevin dynamics.
n, edge = (300, 10.0) if quick else (1200, 20.0)
box = pk.Box([edge, edge])
position = edge * jax.random.uniform(jax.random.key(0), (n, 2))
force = pk.Pairwise(GeneralizedExponential(), cutoff=2.0)
cooling = pk.BAOAB(force, temperature=0.05, friction=1.0)

run = pk.run(
    pk.Simulation(cooling, dt=0.02),
    pk.Particles(position, space=box),
    steps=500 if quick else 10_000,
    key=jax.random.key(1),
)

# Who is near is in the same cluster.
clustered = run.state
separation = clustered.space.displacement(clustered.position[:, None], clustered.position[None])
members = jax.numpy.sum(jax.numpy.sum(separation**2, axis=-1) < 0.5, axis=1)

ax = pk.plot.particles(
    clustered, color=members, radius=0.35, color_label="particles in the cluster"
)
ax.set_title("Particles cluster, and clusters form a crystal")
ax.figure.savefig("own_potential.png", dpi=150)
