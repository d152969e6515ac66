"""Brownian particles in a double well: where they are found, against Boltzmann's law."""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

TEMPERATURE = 0.2


class DoubleWell(pk.AbstractForce):
    """U = Σ ¼ x⁴ − ½ x²: minima at ±1, a barrier of ¼ between them."""

    component: str | None = pk.static(default=None)
    conserves_momentum = False

    def energy(self, clock, state, cache=None):
        x2 = self.particles(state).position ** 2
        return jnp.sum(0.25 * x2**2 - 0.5 * x2)


n = 2_000 if "PHYSKIT_QUICK" in os.environ else 20_000
thermostat = pk.BAOAB(DoubleWell(), temperature=TEMPERATURE, friction=1.0)
simulation = pk.Simulation(thermostat, dt=0.1, observers=pk.Every(10, x=pk.Positions()))
left = pk.Particles(-jnp.ones((n, 1)))  # all begin in the left well
run = pk.run(simulation, left, steps=800, key=jax.random.key(0))

x = np.linspace(-2, 2, 401)
boltzmann = np.exp(-(0.25 * x**4 - 0.5 * x**2) / TEMPERATURE)
boltzmann /= np.trapezoid(boltzmann, x)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for frame, color in ((80, "#f4a9a8"), (8, "#c1121f"), (2, "#fb8500")):
    density, edges = np.histogram(run["x"][frame], bins=60, range=(-2, 2), density=True)
    label = f"t = {run.times['x'][frame]:.0f}"
    ax.stairs(density, edges, color=color, fill=frame == 80, lw=1.5, label=label)
ax.plot(x, boltzmann, color="#1d3557", lw=2, label="exp(−U / $k_B T$)")
ax.set(xlabel="x", ylabel="probability density", title="From one well into both")
ax.legend(frameon=False)
fig.savefig("langevin_double_well.png", dpi=150)
