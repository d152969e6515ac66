"""Sedov's blast: unit energy at a point, in a quarter of the plane between mirrors.

The shock stays round on square cells, and its radius grows as (E t² / αρ)^¼.
"""

import os

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit.systems import SEDOV_ALPHA

pk.use_compilation_cache()

CELLS = 32 if "PHYSKIT_QUICK" in os.environ else 80
simulation, gas = pk.systems.sedov(CELLS, dimension=2, steps=80)
record = pk.Every(4, density=lambda now: now.state.density.data)
simulation = pk.Simulation(simulation.integrator, simulation.dt, observers=record)
result = pk.run(simulation, gas, 80, progress=False)
density = result["density"]

x, y = (np.asarray(c).reshape(-1) for c in gas.density.coordinates)
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
image = left.imshow(
    density[-1].T, origin="lower", extent=(0, 1.2, 0, 1.2), cmap="inferno", interpolation="bilinear"
)
fig.colorbar(image, ax=left, label="density")
angle = np.linspace(0, np.pi / 2, 100)
radius = SEDOV_ALPHA[2] ** -0.25
left.plot(radius * np.cos(angle), radius * np.sin(angle), "--", color="white", lw=1)
left.set(title="t = 1; dashed: similarity", xlabel="x", ylabel="y")

shock = jnp.stack(
    [
        pk.systems.shock_radius(gas.replace({"density": gas.density.replace(data=d)}))
        for d in density[1:]
    ]
)
t = result.times["density"][1:]
right.loglog(t, shock, ".", color="#c1121f", label="computed")
right.loglog(t, (t**2 / SEDOV_ALPHA[2]) ** 0.25, color="#212529", lw=1, label="$(E t^2/αρ)^{1/4}$")
right.set(title="radius of the shock", xlabel="t", ylabel="r")
right.set_yticks([0.2, 0.5, 1.0], ["0.2", "0.5", "1"])
right.minorticks_off()
right.legend(frameon=False)
fig.savefig("sedov_blast.png", dpi=130)
