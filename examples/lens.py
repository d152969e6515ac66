"""Light behind a glass rod: a jet narrower than the wavelength, and the colors of a thin slab.

A plane wave falls on a rod of index 1.5; an absorbing layer takes what leaves. The series of Bessel functions
that solves the scattering exactly (Bohren & Huffman, 1983, chapter 8) is the line in the cut. A pulse
on a slab of index 2 gives its reflection at all frequencies at once; Airy's formula is the line.
"""

import math
import os

import jax
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import h1vp, hankel1, jv, jvp

import physkit as pk

pk.use_compilation_cache()

em = pk.electromagnetism
CELLS, PERIODS = (10, 4) if "PHYSKIT_QUICK" in os.environ else (30, 22)  # cells a wavelength
RADIUS, INDEX, CENTER, MARGIN = 1.5, 1.5, (3.5, 3.5), 15

# Space in units of the wavelength, the speed of light 1: a period is 1.
grid = pk.Grid(pk.Box([10.0, 7.0], periodic=False), (10 * CELLS, 7 * CELLS))
rod = em.Dielectric(INDEX**2, shape=pk.equations.Ball(list(CENTER), RADIUS))
wave = em.PlaneWave(
    [1.0, 0.0],
    [0.0, 0.0, 1.0],
    em.ContinuousWave(2 * math.pi, rise=4.0),
    margin=MARGIN,
    frequency=2 * math.pi,
)
maxwell = em.Maxwell(rod, wave, em.ConvolutionalPML(10))
quarter = math.ceil(0.25 / (0.99 * maxwell.longest_step(grid)))  # steps of a quarter of a period
simulation = pk.Simulation(
    em.Yee(maxwell),
    dt=0.25 / quarter,
    observers=pk.Every(quarter, field=lambda now: now.state.Ez.data),
)
start = maxwell.add_memory(em.ElectromagneticField.of(grid, mode="TM"))
frames = jax.jit(lambda s: pk.simulate(simulation, s, 4 * PERIODS * quarter).frames["field"])(start)
before, field = np.asarray(frames[-2:])
amplitude = np.hypot(before, field)  # a quarter of a period apart: cosine and sine


# What theory says on the axis.
def exact(x):
    """The amplitude on the line through the rod's middle along the wave, `x` from there."""
    k, size = 2 * np.pi, 2 * np.pi * RADIUS
    n = np.arange(-60, 61)
    inside, slope = jv(n, INDEX * size), INDEX * jvp(n, INDEX * size)
    scattered = (jvp(n, size) * inside - slope * jv(n, size)) / (
        slope * hankel1(n, size) - h1vp(n, size) * inside
    )
    r, turn = abs(x)[:, None], np.where(x < 0, -1.0, 1.0)[:, None] ** n * 1j**n
    far = np.maximum(r, RADIUS)  # Hankel's functions are infinite in the middle
    outer = jv(n, k * r) + scattered * hankel1(n, k * far)
    inner = (jv(n, size) + scattered * hankel1(n, size)) / inside * jv(n, INDEX * k * r)
    return abs(np.sum(turn * np.where(r > RADIUS, outer, inner), axis=1))


fig, axes = plt.subplots(2, 2, figsize=(10, 6.8), layout="constrained", height_ratios=[1.25, 1])
inner = (slice(MARGIN + 1, -MARGIN - 1),) * 2  # where the whole field is
low = (MARGIN + 0.5) / CELLS
extent = (low, 10 - low, low, 7 - low)
limit = np.ceil(amplitude[inner].max())
for ax, values, lowest, colors, label in (
    (axes[0, 0], field, -limit, "RdBu_r", "$E_z$ / $E_0$"),
    (axes[0, 1], amplitude, 0.0, "magma", "amplitude of $E_z$ / $E_0$"),
):
    image = ax.imshow(
        values[inner].T, origin="lower", extent=extent, cmap=colors, vmin=lowest, vmax=limit
    )
    edge = "0.2" if lowest else "w"
    ax.add_patch(plt.Circle(CENTER, RADIUS, fill=False, color=edge, lw=1, ls="--"))
    ax.set(xlabel="x / λ", ylabel="y / λ")
    fig.colorbar(image, ax=ax, label=label)
axes[0, 0].set_title(f"light from the left on a rod, n = {INDEX}")
axes[0, 1].set_title("a jet behind it")

middle = amplitude[MARGIN + 1 : -MARGIN - 1, amplitude.shape[1] // 2]
x = np.arange(amplitude.shape[0])[MARGIN + 1 : -MARGIN - 1] / CELLS
line = exact(x - CENTER[0])
print(f"rms error on the axis: {np.sqrt(np.mean((middle - line) ** 2)):.4f} of E0")
ax = axes[1, 0]
ax.axvspan(CENTER[0] - RADIUS, CENTER[0] + RADIUS, color="0.92")
ax.text(CENTER[0], 0.93 * limit, "glass", ha="center", va="top", color="0.4")
ax.plot(x, line, color="#1d4e89", label="series of Bessel functions")
ax.plot(x[::3], middle[::3], "o", ms=3, color="#c1121f", label="on the grid")
ax.set(title="on the axis", xlabel="x / λ", ylabel="amplitude / $E_0$")
ax.set(xlim=extent[:2], ylim=(0, 1.25 * limit))
ax.legend(frameon=False, loc="upper right", ncols=2, handlelength=1.2, columnspacing=1.0)

# A pulse has all frequencies: one run with the slab and one without give its reflection at each.
THICKNESS, PERMITTIVITY = 0.5, 4.0
frequencies = np.linspace(0.5, 1.5, 41)


def flux(permittivity, name):
    """The power behind (`transmitted`) or before (`reflected`) a slab, at every frequency."""
    simulation, start = pk.systems.dielectric_slab(
        permittivity, THICKNESS, frequencies=2 * np.pi * frequencies
    )
    steps = math.ceil((12 + 20 * THICKNESS) / float(simulation.dt))
    run = jax.jit(lambda s: pk.simulate(simulation, s, steps).summary[name]["flux"])
    return np.asarray(run(start))


reflected = -flux(PERMITTIVITY, "reflected") / flux(1.0, "transmitted")
fine = np.linspace(0.5, 1.5, 400)
airy = abs(pk.systems.slab_coefficients(2 * np.pi * fine, PERMITTIVITY, THICKNESS)[0]) ** 2
ax = axes[1, 1]
ax.plot(fine, airy, color="#1d4e89", label="Airy")
ax.plot(frequencies, reflected, "o", ms=3, color="#c1121f", label="of one pulse")
ax.set(title="a slab of index 2, half a wavelength thick", xlabel="frequency / (c/λ)")
ax.set(ylabel="reflection R", xlim=(0.5, 1.5), ylim=(0, 0.47))
ax.legend(frameon=False, loc="upper right", ncols=2, handlelength=1.2, columnspacing=1.0)
fig.savefig("lens.png", dpi=130)
