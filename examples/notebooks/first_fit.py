# %% [markdown]
# # A first fit
#
# A weight on a spring was watched for a while. How stiff is the spring, how fast did the weight begin? The
# gradient goes through every step of the simulation.

# %%
import jax

import physkit as pk

record = pk.Every(10, x=lambda now: now.state.position[0, 0])


def model(stiffness, speed):
    start = pk.Particles([[0.0]], velocity=[[speed]])
    spring = pk.VelocityVerlet(pk.HarmonicTrap(stiffness))
    return pk.Simulation(spring, dt=0.05, observers=[record]), start


truth = pk.simulate(*model(2.5, 1.2), 200)
data = truth["x"] + 0.05 * jax.random.normal(jax.random.key(0), truth["x"].shape)

# %%
misfit = lambda m: (pk.simulate(*m, 200)["x"] - data) / 0.05
where = {
    "stiffness": lambda m: pk.find(m[0], pk.HarmonicTrap).stiffness,
    "speed": lambda m: m[1].velocity,
}
guess = model(2.2, 1.0)
found = pk.fit(misfit, guess, where=where)
found

# %%
before, after = (pk.simulate(*m, 200)["x"] for m in (guess, found.model))
ax = pk.plot.fit(truth.times["x"], data, before, after, error=0.05, label="x")

# %%
pk.gradient_audit(*guess, steps=20)
