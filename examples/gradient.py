"""The derivative of a simulation: where a bead on a stiffening spring ends, and how that depends on k.

One reverse pass through 400 steps gives the slope by every parameter at once; a finite difference
agrees to eight digits.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float

import physkit as pk

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()


class StiffeningSpring(pk.AbstractForce):
    """U = Σ ½ k x² + ¼ h x⁴."""

    stiffness: Float[Array, ""] = pk.param()
    hardening: Float[Array, ""] = pk.param(0.5)
    component: str | None = pk.static(default=None)
    conserves_momentum = False

    def energy(self, clock, state, cache=None):
        x2 = self.particles(state).position ** 2
        return jnp.sum(0.5 * self.stiffness * x2 + 0.25 * self.hardening * x2**2)


def final_position(stiffness):
    spring = pk.VelocityVerlet(StiffeningSpring(stiffness))
    bead = pk.Particles([[1.0]])
    return pk.simulate(pk.Simulation(spring, dt=0.02), bead, steps=400).state.position[0, 0]


k = jnp.linspace(0.5, 6.0, 111)
position, slope = jax.jit(jax.vmap(jax.value_and_grad(final_position)))(k)

step = 1e-5
difference = (final_position(2.0 + step) - final_position(2.0 - step)) / (2 * step)
print(f"dx/dk at k = 2: {jax.grad(final_position)(2.0):.10f}, by differences {difference:.10f}")

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(k, position, color="#1d3557", label="where the bead is at t = 8")
for i in range(5, 111, 10):
    offset = np.array([-0.18, 0.18])
    ax.plot(k[i] + offset, position[i] + slope[i] * offset, color="#c1121f", lw=2)
ax.plot([], [], color="#c1121f", lw=2, label="its slope by jax.grad")
ax.set(xlabel="stiffness k", ylabel="x", title="One simulation per point, one gradient per tangent")
ax.legend(frameon=False)
fig.savefig("gradient.png", dpi=150)
