# %% [markdown]
# # A force of your own
#
# A pair potential is a class with a formula; the force is its derivative. Here particles repel softly, and so
# much overlaps that clusters form.

# %%
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import physkit as pk


class GeneralizedExponential(pk.AbstractPairPotential):
    """U(r) = ε exp(−r⁴)."""

    epsilon: Float[Array, ""] = pk.param(1.0)

    def energy(self, r):
        return self.epsilon * jnp.exp(-(r**4))


GeneralizedExponential()

# %%
position = 8 * jax.random.uniform(jax.random.key(0), (200, 2))
disks = pk.Particles(position, space=pk.Box([8.0, 8.0]))
force = pk.Pairwise(GeneralizedExponential(), cutoff=2.0)
cooling = pk.Simulation(pk.BAOAB(force, temperature=0.05, friction=1.0), dt=0.02)
run = pk.run(cooling, disks, 1000, key=1)
run.state

# %% [markdown]
# Is its derivative right? One line tells.

# %%
pk.gradient_audit(cooling, disks, key=1)
