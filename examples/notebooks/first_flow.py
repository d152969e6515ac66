# %% [markdown]
# # A first flow
#
# Vortices in a box that repeats, from random ones: they merge, and the flow decays. The equation is that of the
# vorticity, ∂ω/∂t + u·∇ω = ν∇²ω.

# %%
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk

grid = pk.Grid(pk.Box([2 * np.pi, 2 * np.pi]), (64, 64))
noise = pk.Field(jax.random.normal(jax.random.key(1), (64, 64)), grid)
# Large vortices only: small waves are damped.
k = jnp.hypot(*jnp.meshgrid(*[jnp.fft.fftfreq(64, 1 / 64)] * 2, indexing="ij"))
smooth = jnp.fft.ifft2(jnp.fft.fft2(noise.data) * jnp.exp(-((k / 5) ** 2))).real
vorticity = pk.Field(8 * smooth / jnp.std(smooth), grid)
vorticity

# %%
flow = pk.ETDRK4(pk.equations.VorticityTransport(2e-3))
record = [pk.Every(20, enstrophy=pk.quantities.Enstrophy()), pk.Every(40, w=pk.FieldValues())]
run = pk.run(pk.Simulation(flow, dt=0.005, observers=record), vorticity, 600)
run

# %%
ax = pk.plot.field(run.state, label="vorticity")

# %%
ax = pk.plot.series(run.times["enstrophy"], run["enstrophy"], label="enstrophy")
