"""Weather in two layers: a sheared flow breaks up into eddies, and the eddies into jets.

Waves some ten deformation radii long grow first, at the rate of linear theory, until they mix what feeds them.
Where rotation changes northwards, the eddies feed jets along x.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

# Two layers of 128² cells for 5000 steps; every fiftieth is kept.
cells, steps = (32, 200) if "PHYSKIT_QUICK" in os.environ else (128, 5000)
simulation, start = pk.systems.baroclinic_turbulence(cells, every=50)
run = pk.run(simulation, start, steps, progress=False)

# What moves is potential vorticity; the winds follow from it.
law = pk.find(simulation, pk.equations.QuasiGeostrophic)
grid, end = start.grid, run.state
length = float(grid.space.lengths[0])
zonal = np.asarray(law.velocity(end)[0].data).mean(axis=1)
times, energy = np.asarray(run.times["energy"]), np.asarray(run["energy"])

fig, axes = plt.subplots(1, 4, figsize=(14, 3.8), layout="constrained", width_ratios=[1, 1, 0.6, 1])
shown = [np.searchsorted(energy, 0.3 * energy.max()), len(energy) - 1]
for ax, frame in zip(axes, shown, strict=False):
    vorticity = np.asarray(run["vorticity"])[frame, 0].T
    limit = np.percentile(abs(vorticity), 99.5)
    image = ax.imshow(
        vorticity,
        origin="lower",
        extent=(0, length, 0, length),
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
    )
    ax.set(title=f"upper layer, t = {times[frame]:.0f}", xlabel="x / $L_d$", ylabel="y / $L_d$")
    fig.colorbar(
        image,
        ax=ax,
        shrink=0.8,
        label="potential vorticity / (U/$L_d$)" if frame == shown[-1] else None,
    )

y = (np.arange(cells) + 0.5) * length / cells
axes[2].plot(zonal[0], y, color="#1d4e89", label="upper")
axes[2].plot(zonal[1], y, color="#c1121f", label="lower")
axes[2].set(title="jets", xlabel="mean u / U", ylabel="y / $L_d$", ylim=(0, length), xlim=(None, 6))
axes[2].legend(frameon=False, loc="upper right")

axes[3].semilogy(times, energy, color="#1d4e89", label="eddies")


def growth(k):
    """How fast waves along x of wavenumber k grow while they are small: an eigenvalue of two layers."""
    depth, flow = np.asarray(law.depth), np.asarray(law.mean_flow)
    stretch = float(law.coupling[0]) / depth
    of_stream = np.array([[-stretch[0], stretch[0]], [stretch[1], -stretch[1]]]) - k**2 * np.eye(2)
    sources = -1j * k * np.diag(law.potential_vorticity_gradient()) + np.diag([0, law.drag * k**2])
    rates = -1j * k * np.diag(flow) + sources @ np.linalg.inv(of_stream)
    return np.linalg.eigvals(rates).real.max()


# The fastest of the waves that fit, beside the energy of the eddies.
fastest = max(growth(k) for k in 2 * np.pi / length * np.arange(1, cells // 3))
begin = np.searchsorted(energy, 30 * energy[1:].min())
line = energy[begin] * np.exp(2 * fastest * (times[begin:] - times[begin]))
axes[3].semilogy(times[begin:], line, "k--", label=f"linear theory,\nσ = {fastest:.3f} U/$L_d$")
axes[3].set(title="energy", xlabel="t U / $L_d$", ylim=(0.5 * energy[1:].min(), 5 * energy.max()))
axes[3].legend(frameon=False, loc="center right")
fig.savefig("weather.png", dpi=130)
