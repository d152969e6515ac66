"""A short, strong laser pulse ploughs through a thin plasma: electrons are pushed aside and swing back.

Electromagnetic particle-in-cell in units of c and of the plasma frequency ω_p. The field behind the pulse runs
with it, nearly at the speed of light, and pushes along what it catches. Of a weak pulse the wake is known: its
length is 2π v_g/ω_p with the group velocity v_g = c √(1 − ω_p²/ω²), its height an integral over the pulse
(Esarey, Schroeder & Leemans, Rev. Mod. Phys. 81, 1229, 2009, eq. 22).
"""

import math
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

em = pk.electromagnetism
QUICK = "PHYSKIT_QUICK" in os.environ
SIZE = (40.0, 16.0)  # of the box, c/ω_p
A_UNIT, A_CELL = ((7, 2), 1) if QUICK else ((12, 4), 2)  # cells a length, electrons a cell
OMEGA, LENGTH, WIDTH = 4.0, 1.5, 3.5  # of the pulse: frequency, length along and across
START, FRONT, RAMP, TIME = (
    5.0,
    8.0,
    2.0,
    27.0,
)  # where the pulse is, and where plasma begins
WEAK, STRONG = 0.3, 2.0  # strength of the pulses, a₀ = eA/mc

cells = tuple(int(length * n) for length, n in zip(SIZE, A_UNIT))
grid = pk.Grid(pk.Box(list(SIZE)), cells)
maxwell = em.Maxwell(component="light")
pic = em.ParticleInCell(maxwell, "electrons", kernel=pk.kernels.TSC())
dt = 0.95 * maxwell.longest_step(grid)
frames = 20
every = math.ceil(TIME / dt / frames)
middle = cells[1] // 2
axis = pk.Every(
    every,
    along=lambda now: now.state["light"].Ex.data[:, middle],
    across=lambda now: now.state["light"].Ey.data[:, middle],
)
simulation = pk.Simulation(pic, dt=dt, observers=axis)

# Electrons at rest on a lattice; the density is 1, so that ω_p = 1.
x = (np.arange(cells[0] * A_CELL) + 0.5) / (A_UNIT[0] * A_CELL)
x, y = x[x > FRONT], (np.arange(cells[1]) + 0.5) / A_UNIT[1]
places = np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
edge = np.minimum(places[:, 0] - FRONT, SIZE[0] - places[:, 0])
weight = np.clip(edge / RAMP, 1e-3, 1) / (A_UNIT[0] * A_UNIT[1] * A_CELL)


@jax.jit
def wake(strength, width):
    """A pulse from vacuum into plasma: what is on the axis, and the fields in the end."""

    def pulse(x, y):
        s, r = x - START, y - 0.5 * SIZE[1]
        envelope = jnp.exp(-((s / LENGTH) ** 2) - (r / width) ** 2)
        return strength * OMEGA * envelope * jnp.cos(OMEGA * s)

    parts = {"Ey": pulse, "Hz": lambda x, y: pulse(x + 0.5 * dt, y)}
    light = em.ElectromagneticField.of(grid, parts, mode="TE")
    amount = jnp.asarray(weight)
    electrons = pk.Particles(jnp.asarray(places), None, amount, grid.space, charge=-amount)
    state = {"light": light, "electrons": electrons}
    # A pulse that ends at its sides has a field along it, too; the ions stay where the electrons were.
    state = pic.with_gauss_law(state, pic.charge_density(state) * -1.0)
    done = pk.simulate(simulation, state, frames * every)
    end = done.state
    change = pic.gauss_residual(end).data - pic.gauss_residual(state).data
    momentum = jnp.max(jnp.sum(end["electrons"].velocity ** 2, axis=1))
    density = -pic.charge_density(end).data
    return (
        done.frames,
        density,
        end["light"].Ex.data,
        end["light"].Ey.data,
        change,
        momentum,
    )


# A weak pulse that is as wide as one likes.
seen, *_ = wake(WEAK, 1e6)
along, energy = np.asarray(seen["along"][-1]), np.asarray(seen["across"]) ** 2
at = (np.arange(cells[0]) + 0.5) / A_UNIT[0]
center = energy @ (at - 0.5 / A_UNIT[0]) / energy.sum(axis=1)  # Ey sits at the nodes
inside = np.flatnonzero(center > FRONT + RAMP)
speed = (center[-1] - center[inside[0]]) / ((frames - inside[0]) * every * dt)
group = math.sqrt(1 - OMEGA**-2)
k = 1 / group
# Within plasma the pulse is shorter and stronger: a₀² L stays.
height = 0.25 * (WEAK * k) ** 2 * LENGTH * math.sqrt(0.5 * math.pi) * math.exp(-(LENGTH**2) / 8)
behind = (at > FRONT + RAMP + 1) & (at < center[-1] - 2 * LENGTH)
x, u = at[behind], along[behind]
zero = np.flatnonzero(u[:-1] * u[1:] < 0)
zero = x[zero] + (x[1] - x[0]) * u[zero] / (u[zero] - u[zero + 1])
print(
    f"weak pulse: wake {2 * np.mean(np.diff(zero)):.3f} c/ω_p long, {2 * math.pi * group:.3f} expected; "
    f"height {np.abs(u).max():.4f}, {height:.4f} expected; speed of the pulse {speed:.4f} c, {group:.4f} "
    "expected"
)

_, density, inner, light, change, momentum = wake(STRONG, WIDTH)
print(
    f"strong pulse: div E − charge changed by {float(abs(change).max()):.0e} of {float(density.max()):.1f}; "
    f"fastest electron γ = {math.sqrt(1 + float(momentum)):.1f}"
)

fig, axes = plt.subplots(
    3, 2, figsize=(8.4, 9.4), layout="constrained", sharex="col", width_ratios=[40, 1],
    height_ratios=[1.5, 1.5, 1],
)  # fmt: skip
extent = (0, SIZE[0], 0, SIZE[1])
ax = axes[0, 0]
image = ax.imshow(density.T, origin="lower", extent=extent, cmap="magma", vmin=0, vmax=4)
fig.colorbar(image, cax=axes[0, 1], label="electrons / $n_0$")
size = 0.4 * float(abs(light).max())
nodes, up = np.arange(cells[0]) / A_UNIT[0], (np.arange(cells[1]) + 0.5) / A_UNIT[1]
ax.contour(nodes, up, light.T, levels=[-size, size], colors="#7fd3ff", linewidths=0.7)
ax.set(
    title="electrons, and the light that pushes them (blue)",
    ylabel="y / (c/$\\omega_p$)",
)
ax = axes[1, 0]
limit = np.quantile(abs(inner), 0.9995)
image = ax.imshow(inner.T, origin="lower", extent=extent, cmap="RdBu_r", vmin=-limit, vmax=limit)
fig.colorbar(image, cax=axes[1, 1], label="$E_x$ / ($m c \\omega_p / e$)")
ax.set(title="the field along the way", ylabel="y / (c/$\\omega_p$)")
for ax in axes[:2, 0]:
    ax.set_aspect("auto")
axes[2, 1].axis("off")
ax = axes[2, 0]
ax.plot(at, along, color="#1d4e89", label="particles in cells")
x = at[(at > FRONT + RAMP) & (at < center[-1] - LENGTH)]
ax.plot(x, height * np.cos(k * (x - center[-1])), "--", color="#c1121f", label="theory")
ax.set(
    title=f"behind a weak pulse, $a_0$ = {WEAK}", xlabel="x / (c/$\\omega_p$)",
    ylabel="$E_x$ / ($m c \\omega_p / e$)", xlim=(6, 38), ylim=(-1.7 * height, 1.7 * height),
)  # fmt: skip
ax.legend(frameon=False, loc="upper right", ncols=2)
fig.savefig("laser_wake.png", dpi=130)
