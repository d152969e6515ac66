"""A vortex street behind a cylinder, by the lattice Boltzmann equation.

A stream flows past a cylinder between sides of free slip. At Reynolds number 100 vortices leave it in turn, and
push it to and fro.
"""

import os

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

lb, sides = pk.lattice_boltzmann, pk.boundaries
QUICK = "PHYSKIT_QUICK" in os.environ
cells, end = (6, 60.0) if QUICK else (16, 110.0)
# Quick runs take what compiles fastest.
collision = lb.TwoRelaxationTimes() if QUICK else lb.CentralMoments()
interpolated = not QUICK

# Lengths in diameters of the cylinder, speeds in that of the stream.
grid = pk.Grid(pk.Box([16.0, 6.0], periodic=False), (16 * cells, 6 * cells))
dt = lb.time_step(grid, speed=1.0, mach=0.2 if QUICK else 0.15)
# A little off the middle, so that the street does not wait for rounding.
cylinder = pk.equations.Ball([4.0, 3.05], 0.5)


def inflow(t, x, y):
    """From rest to 1, over two periods of the sound between inlet and outlet, which then stay silent."""
    return jnp.sin(0.5 * jnp.pi * jnp.minimum(t / 20, 1.0)) ** 2 + 0 * y, 0 * y


around = {"x": (sides.Dirichlet(inflow), sides.Outflow()), "y": sides.Mirror()}
start = lb.Populations.of(grid, dt, [0.0, 0.0], around)
equation = lb.LatticeBoltzmann(
    1 / 100, collision=collision, solids=(cylinder,), interpolated=interpolated
)
observers = pk.Every(20, force=pk.quantities.SolidForce())
simulation = pk.Simulation(lb.StreamAndCollide(equation), dt=dt, observers=observers)
run = pk.run(simulation, start, int(end / dt) // 20 * 20, progress=False)

u, v = np.asarray(equation.velocity(run.state))
vorticity = (np.gradient(v, axis=0) - np.gradient(u, axis=1)) * cells
x, y = (np.ravel(c) for c in grid.coordinates())
vorticity[np.hypot(x[:, None] - 4.0, y - 3.05) < 0.5 + 1 / cells] = 0

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(9, 5.6), layout="constrained", height_ratios=(3, 1)
)
image = top.imshow(
    vorticity.T,
    origin="lower",
    extent=(0, 16, 0, 6),
    cmap="RdBu_r",
    vmin=-3,
    vmax=3,
    interpolation="bicubic",
)
top.add_patch(plt.Circle((4.0, 3.05), 0.5, color="0.25"))
top.set(title="vorticity, Re = 100", xlabel="x / D", ylabel="y / D")
fig.colorbar(image, ax=top, label="ω D / U", shrink=0.8)

# Coefficients: force over ½ U² D.
time, (drag, lift) = np.asarray(run.times["force"]), 2 * np.asarray(run["force"]).T
late = time > 0.3 * end
bottom.plot(time[late], drag[late], color="#1d4e89", label="drag")
bottom.plot(time[late], lift[late], color="#c1121f", label="lift")
bottom.set(title="coefficients", xlabel="t U / D")
bottom.legend(frameon=False, ncols=2, loc="center left")
fig.savefig("vortex_street.png", dpi=130)
