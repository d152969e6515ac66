# %% [markdown]
# # A first sweep
#
# A particle in a well with two minima, at four temperatures, eight times each: all members are one program.

# %%
import physkit as pk

simulation, state = pk.systems.double_well()
record = [pk.Every(20, x=lambda now: now.state.position[0, 0])]
simulation = pk.Simulation(simulation.integrator, dt=simulation.dt, observers=record)
temperature = pk.SweepAxis(
    lambda model: pk.find(model, pk.Brownian).temperature, [0.05, 0.1, 0.2, 0.4], name="kT"
)
sweep = pk.Sweep((simulation, state), 1000, over=temperature, replicas=8, key=7)
sweep

# %%
ensemble = pk.sweep(sweep)
ensemble

# %%
hot = ensemble.coordinates["kT"] == 0.4
ax = pk.plot.fan(ensemble.times["x"], ensemble["x"][hot], members=4, label="x")
