"""Orszag and Tang's vortex: a smooth flow of a gas that conducts breaks into crossing shocks."""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
CELLS = 24 if QUICK else 128
# Quick runs take what compiles fastest.
schemes = {"riemann": pk.riemann.HLLD(), "reconstruction": None}
if QUICK:
    first_order = pk.reconstructions.PiecewiseConstant()
    schemes = {"riemann": pk.riemann.Rusanov(), "reconstruction": first_order}
simulation, gas = pk.systems.orszag_tang(CELLS, **schemes)

# The field lives on faces, where its divergence stays 0; the picture wants it in cells.
every = pk.Every(
    2 * CELLS,
    density=lambda snapshot: snapshot.state.density.data,
    field=lambda snapshot: snapshot.state.magnetic_in_cells(),
)
integrator = simulation.integrator
if QUICK:
    integrator = pk.Euler(pk.find(simulation, pk.equations.IdealMHD))
simulation = pk.Simulation(integrator, dt=simulation.dt, observers=every)
run = pk.run(simulation, gas, 8 * CELLS, progress=False)

fig, axes = plt.subplots(1, 3, figsize=(11, 3.9), sharey=True, layout="constrained")
for ax, frame in zip(axes, (1, 2, 4), strict=True):
    density, t = np.asarray(run.frames["density"][frame]), frame / 8
    image = ax.imshow(
        density.T, origin="lower", extent=(0, 1, 0, 1), cmap="magma", vmin=0.08, vmax=0.5,
        interpolation="bilinear",
    )  # fmt: skip
    # Lines of the field are contours of its vector potential: B_x = ∂A/∂y.
    bx, by, _ = np.asarray(run.frames["field"][frame])
    potential = np.cumsum(bx, axis=1) / CELLS - (np.cumsum(by[:, :1], axis=0) / CELLS)
    middles = (np.arange(CELLS) + 0.5) / CELLS
    ax.contour(
        middles, middles, potential.T, levels=np.linspace(-0.1, 0.1, 12), colors="white",
        linewidths=0.5, linestyles="solid", alpha=0.7,
    )  # fmt: skip
    ax.set(title=f"t = {t:g}", xlabel="x", xticks=(0, 0.5, 1))
axes[0].set(ylabel="y", yticks=(0, 0.5, 1))
fig.colorbar(image, ax=axes, label="density", shrink=0.9)
fig.savefig("orszag_tang.png", dpi=130)

# What must not change, and what must stay 0.
energy = [float(x.energy.integral()) for x in (gas, run.state)]
print(f"energy: {energy[1] / energy[0] - 1:+.1e}")
print(f"max |∇·B| h / max |B|: {float(run.state.relative_divergence()):.1e}")
