# %% [markdown]
# # A first simulation
#
# A crystal of argon melts. In a notebook every object shows what it holds: click on the triangles.

# %%
import jax

import physkit as pk

position, box = pk.lattice.face_centered_cubic(cells=(3, 3, 3), density=0.8442)
atoms = pk.maxwell_boltzmann(jax.random.key(0), pk.Particles(position, space=box), temperature=1.44)
atoms

# %%
force = pk.Pairwise(pk.LennardJones(), cutoff=2.0)
record = [pk.Every(10, energy=pk.TotalEnergy(), temperature=pk.Temperature(), x=pk.Positions())]
simulation = pk.Simulation(pk.VelocityVerlet(force), dt=0.004, observers=record)
simulation

# %%
run = pk.run(simulation, atoms, 400)
run

# %%
ax = pk.plot.series(run.times["temperature"], run["temperature"], label="temperature")

# %%
states = [atoms.replace(position=x) for x in run["x"][::8]]
pk.plot.animate(states, fps=5, size=(3, 3), dpi=70)
