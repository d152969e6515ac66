"""The Kuramoto–Sivashinsky equation: chaos in space and time, and how fast nearby states separate."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

simulation, start = pk.systems.kuramoto_sivashinsky()


# Two forecasts in one program, whose starts differ by a ten-thousandth.
@jax.jit
@jax.vmap
def forecast(perturbation):
    perturbed = start.replace(data=start.data * (1 + perturbation))
    result = pk.simulate(simulation, perturbed, steps=2_500)
    return result.times["u"], result.frames["u"]


t, u = (np.asarray(a) for a in forecast(jnp.array([0.0, 1e-4])))
t, distance = t[0], np.sqrt(np.mean((u[1] - u[0]) ** 2, axis=1))
x = np.asarray(start.coordinates[0])

# The distance grows exponentially until both have nothing in common.
with pk.plot.style():
    fig, (top, bottom) = plt.subplots(
        2, 1, figsize=(9, 5.2), layout="constrained", sharex=True, height_ratios=(2.4, 1)
    )
    image = top.pcolormesh(t, x, u[0].T, cmap="RdBu_r", vmin=-3, vmax=3, rasterized=True)
    top.set(ylabel="$x$")
    fig.colorbar(image, ax=top, label="$u$", pad=0.01)
    bottom.semilogy(t, distance, color="#D55E00")
    bottom.set(xlabel="$t$", ylabel="distance of a\nnearby state (rms)", xlim=(0, t[-1]))
    fig.savefig("kuramoto_sivashinsky.png", dpi=110)
