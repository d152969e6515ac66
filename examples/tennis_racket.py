"""A body that turns about its middle axis flips over and over (Dzhanibekov): beside the exact solution."""

import os

import jax
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ellipj, ellipk

import physkit as pk

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

# A wing nut, made of spheres: a bar, and a handle in its middle.
bar = [[x, 0, 0] for x in np.linspace(-1, 1, 9)]
handle = [[0, y, 0] for y in np.linspace(0.25, 1.0, 4)]
start = np.array([0.01, 1.0, 0.0])
nut = pk.RigidBodies.from_molecule(
    [*bar, *handle], [[0.0, 0, 0]], np.ones(13), angular_velocity=[start]
)
inertia = np.asarray(nut.inertia[0])

# Euler's equations are solved by Jacobi's elliptic functions (Landau & Lifshitz, Mechanics, §37).
i1, i2, i3 = inertia
energy, square = np.sum(inertia * start**2), np.sum((inertia * start) ** 2)
rate = np.sqrt((i2 - i1) * (energy * i3 - square) / (i1 * i2 * i3))
m = (i3 - i2) * (square - energy * i1) / ((i2 - i1) * (energy * i3 - square))
period = 4 * ellipk(m) / rate


def exact(t):
    sn, cn, dn, _ = ellipj(ellipk(m) + rate * t, m)
    low, high = square - energy * i1, energy * i3 - square
    sizes = high / (i1 * (i3 - i1)), low / (i2 * (i2 - i1)), low / (i3 * (i3 - i1))
    return np.sqrt(sizes)[:, None] * [dn, sn, cn]


count = 600 if "PHYSKIT_QUICK" in os.environ else 3000
nothing = pk.forces.ExternalWrench(lambda t, b: (0 * b.position, 0 * b.position))
observers = pk.Every(
    count // 150,
    w=pk.quantities.AngularVelocities(body_axes=True),
    x=pk.Positions(sites=True),
)
simulation = pk.Simulation(pk.VelocityVerlet(nothing), dt=1.5 * period / count, observers=observers)
run = pk.run(simulation, nut, count, progress=False)
w, x = run["w"][:, 0], run["x"]
t = np.linspace(0, 1.5 * period, len(w))
print(f"largest error of ω: {np.abs(w.T - exact(t)).max():.1e}")

fig = plt.figure(figsize=(8, 5.4), layout="constrained")
above, below = fig.subfigures(2, 1, height_ratios=(1, 1.25))
moments = np.linspace(30, 70, 6).astype(int)  # of the first flip
for ax, k in zip(above.subplots(1, 6), moments, strict=True):
    colors = np.r_[np.zeros(9), np.ones(4)]
    state = pk.Particles(x[k], species=colors.astype(int))
    pk.plot.particles(state, ax=ax, radius=0.16, view=(-90, 15))
    if ax.get_legend():
        ax.get_legend().remove()
    ax.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), title=f"t = {t[k]:.0f}")
ax = below.subplots()
fine = np.linspace(0, 1.5 * period, 600)
for k, (color, name) in enumerate(
    (("#f4a261", "smallest"), ("#c1121f", "middle"), ("#1d3557", "largest"))
):
    ax.plot(fine, exact(fine)[k], color=color, lw=1.2)
    ax.plot(t[::3], w[::3, k], "o", color=color, ms=4, label=f"axis of {name} inertia")
ax.set(xlabel="time", ylabel="ω in body axes", xlim=(0, 1.5 * period))
ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
fig.savefig("tennis_racket.png", dpi=150)
