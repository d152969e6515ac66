"""A bend of light designed by its gradient: where silicon must be, so that a wave turns by a right angle.

A pulse of a guide's only mode goes in from the left and should leave upward in the same mode. What is optimized
is a density in each cell of a square, blurred by a cone (nothing smaller can be made) and pushed toward 0 and 1
by a tanh that gets steeper (Wang, Lazarov & Sigmund, Struct. Multidisc. Optim. 43, 767, 2011). One gradient, by
the adjoint of the time loop, costs a few runs for all of its numbers.
"""

import math
import os
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import physkit as pk

pk.use_compilation_cache()

em = pk.electromagnetism
QUICK = "PHYSKIT_QUICK" in os.environ
CELL, N, LAYER = (0.075, 52, 8) if QUICK else (0.05, 100, 10)  # µm, cells, those of the layer
SQUARE = (14, 38) if QUICK else (26, 74)  # of the design, cells
STEPS = 500 if QUICK else 1300  # until the last light has left: what comes later would not count
SHARPNESS = [8.0] * 10 if QUICK else [s for s in (4.0, 8.0, 16.0, 32.0, 64.0) for _ in range(16)]
CORE, CLADDING = 2.8**2, 1.44**2  # a silicon slab seen from above, and glass
WIDTH, RADIUS = 0.3, 0.15  # of the guides and of the cone, µm
OMEGA = 2 * math.pi / 1.55

grid = pk.Grid(pk.Box([CELL * N] * 2, periodic=False), (N, N))
i = np.arange(N) + 0.5 - N / 2
near = abs(i) < 0.5 * WIDTH / CELL
guides = (near[None] & (i[:, None] < 0)) | (near[:, None] & (i[None] > 0))
design = np.zeros((N, N), bool)
design[slice(*SQUARE), slice(*SQUARE)] = True
corner = np.where(guides | (near[:, None] & near[None]), CORE, CLADDING)

dt = 0.95 * em.Maxwell(em.Dielectric(CLADDING)).longest_step(grid)
glass, edge = em.Dielectric(corner), (LAYER + 4) * CELL
into = em.waveguide_mode(glass, grid, "x", edge, OMEGA, dt=dt)
out = em.waveguide_mode(glass, grid, "y", N * CELL - edge, OMEGA, dt=dt)
print(f"the guide's mode: β = {float(into.wavenumber) / OMEGA:.3f} ω/c")


def light(permittivity, center, width):
    """Amplitude of the mode that leaves, over that of the pulse, at ω; and the field at the end."""
    pulse = em.WavePulse(OMEGA, width, center)
    maxwell = em.Maxwell(
        em.Dielectric(permittivity), em.ModeSource(into, pulse), em.ConvolutionalPML(LAYER)
    )
    simulation = pk.Simulation(
        em.Yee(maxwell),
        dt=dt,
        observers=em.FluxSpectrum(2, "y", N * CELL - edge, [OMEGA]),
        adjoint=pk.adjoints.Direct() if QUICK else pk.NestedCheckpoint(),
    )
    start = maxwell.add_memory(em.ElectromagneticField.of(grid, mode="TM"))
    end = pk.simulate(simulation, start, STEPS)
    sent = width * jnp.sqrt(0.5 * jnp.pi)  # |∫ w e^{iωt} dt|
    leaving, _ = em.mode_amplitudes(end.summary["flux"], out)
    return abs(leaving[0] / sent) ** 2, end.state.Ez.data


reach = math.ceil(RADIUS / CELL)
a = np.arange(-reach, reach + 1) * CELL
cone = np.maximum(1 - np.hypot(a[:, None], a[None]) / RADIUS, 0)
cone = jnp.asarray(cone / cone.sum())


def permittivity_of(logits, sharpness):
    """Guides, and in the square what the density comes to: blurred, then projected toward 0 and 1."""
    density = jnp.where(design, jax.nn.sigmoid(logits), guides)
    blurred = jax.scipy.signal.convolve(density, cone, mode="same")
    top = jnp.tanh(0.5 * sharpness)
    projected = 0.5 + 0.5 * jnp.tanh(sharpness * (blurred - 0.5)) / top
    return CLADDING + (CORE - CLADDING) * jnp.where(design, projected, guides)


# One program for corner, design and picture. The design's own derivative follows by the chain rule.
center, width = (11.0, 2.2) if QUICK else (14.0, 3.0)
program = jax.jit(jax.value_and_grad(light, has_aux=True))
pulsed = lambda permittivity: program(jnp.asarray(permittivity), center, width)
descent = optax.adam(0.5 if QUICK else 0.25)


@jax.jit
def shaped(logits, sharpness):
    return permittivity_of(logits, sharpness)


@jax.jit
def improved(logits, memory, sharpness, slope):
    _, pull = jax.vjp(lambda x: permittivity_of(x, sharpness), logits)
    change, memory = descent.update(pull(-slope)[0], memory)
    return optax.apply_updates(logits, change), memory


logits = np.zeros((N, N), np.float32)
(before, _), _ = pulsed(corner)
memory, history, started = descent.init(logits), [], time.perf_counter()
for sharpness in SHARPNESS:
    (power, _), slope = pulsed(shaped(logits, sharpness))
    logits, memory = improved(logits, memory, sharpness, slope)
    history.append(float(power))
taken = time.perf_counter() - started
found = np.asarray(shaped(logits, SHARPNESS[-1]))
binary = np.where(found > 0.5 * (CORE + CLADDING), CORE, CLADDING)
(after, _), _ = pulsed(found)
(made, _), _ = pulsed(binary)
print(
    f"power that turns the corner: plain {float(before):.3f}, designed {float(after):.3f}, "
    f"its cells all glass or silicon {float(made):.3f}; {len(SHARPNESS)} gradients in {taken:.0f} s"
)
# A pulse so long that its middle is a steady wave.
(_, field), _ = program(jnp.asarray(binary), STEPS * dt, 0.3 * STEPS * dt)

fig, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained", width_ratios=[1, 1, 0.95])
extent = (0, N * CELL, 0, N * CELL)
axes[0].imshow(np.sqrt(found).T, origin="lower", extent=extent, cmap="Greys")
axes[0].set(title="the design: silicon (black) in glass", xlabel="x / µm", ylabel="y / µm")
limit = np.quantile(abs(field), 0.999)
axes[1].imshow(field.T, origin="lower", extent=extent, cmap="RdBu_r", vmin=-limit, vmax=limit)
at = (np.arange(N) + 0.5) * CELL
axes[1].contour(at, at, binary.T, levels=[0.5 * (CORE + CLADDING)], colors="0.3", linewidths=0.5)
axes[1].set(title="light in it", xlabel="x / µm")
ax = axes[2]
ax.plot(np.arange(1, len(history) + 1), history, color="#1d4e89")
ax.axhline(before, color="#c1121f", lw=1, ls="--")
ax.text(len(history), float(before) + 0.02, "a plain corner", color="#c1121f", ha="right")
for number in np.flatnonzero(np.diff(SHARPNESS)) + 1:
    ax.axvline(number + 0.5, color="0.85", lw=1, zorder=0)
ax.set(
    title="power that turns the corner", xlabel="gradients", ylabel="transmission", ylim=(0, 1.02)
)
fig.savefig("inverse_design.png", dpi=130)
