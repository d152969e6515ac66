"""A Lennard-Jones liquid heated at constant pressure: its density beside Johnson's equation of state."""

import os

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

PRESSURE, COLD, HOT = 1.0, 0.8, 2.2
quick = "PHYSKIT_QUICK" in os.environ
dt, settle, heat = 0.005, 600 if quick else 4_000, 1_500 if quick else 60_000


def temperature(t):
    """Constant while the liquid settles, then rising to twice the critical temperature."""
    return COLD + (HOT - COLD) * jnp.clip((t - dt * settle) / (dt * heat), 0, 1)


position, box = pk.lattice.face_centered_cubic(3, density=0.75)
atoms = pk.maxwell_boltzmann(0, pk.Particles(position, space=box), COLD)
force = pk.Pairwise(pk.LennardJones(), cutoff=2.2, truncation="plain", tail=True)
thermostat = pk.VelocityRescaling(pk.VelocityVerlet(force), temperature, relaxation_time=0.2)
barostat = pk.StochasticCellRescaling(
    thermostat, pressure=PRESSURE, relaxation_time=1.0, compressibility=0.1, interval=5
)
record = pk.Every(
    20,
    density=lambda now: now.state.num_particles / now.state.space.volume,
    temperature=lambda now: temperature(now.t),
)
# First at constant volume, then at constant pressure, in one state.
melt = pk.run(pk.Simulation(thermostat, dt, observers=record), atoms, steps=settle, key=1)
run = pk.run(pk.Simulation(barostat, dt, observers=record), melt.state, steps=settle + heat, key=2)

density, t = np.asarray(run["density"]), np.asarray(run["temperature"])
heating = t > COLD
edges = np.linspace(COLD, HOT, 15)
bins = np.clip(np.digitize(t[heating], edges) - 1, 0, 13)
mean = [np.mean(density[heating][bins == k]) for k in range(14) if np.any(bins == k)]
middle = [np.mean(t[heating][bins == k]) for k in range(14) if np.any(bins == k)]

# Johnson's density at this pressure, the largest where there are several.
rho, at = np.linspace(0.02, 0.95, 600), np.linspace(COLD, HOT, 60)
grid = np.meshgrid(rho, at)
pressure = np.asarray(pk.systems.lennard_jones_equation_of_state(*grid).pressure)
expected = [rho[np.nonzero(p <= PRESSURE)[0][-1]] for p in pressure]

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
left.plot(dt * 20 * np.arange(len(density)), density, lw=0.6, color="#457b9d")
left.set(xlabel="time", ylabel="density", title=f"pressure {PRESSURE:g} from time 0 on")
right.plot(at, expected, color="#333333", lw=1.4, label="Johnson, Zollweg & Gubbins 1993")
right.plot(middle, mean, "o", ms=5, color="#c1121f", label="108 atoms, averages while heated")
right.set(xlabel="temperature", title="along the isobar")
right.legend(frameon=False)
fig.savefig("isobar.png", dpi=150)
