"""Seeing with sound: full-waveform inversion of 16 shots.

Sixteen sources on a ring send a pulse through a body one after the other; 64 sensors on the ring record what
arrives. The speed of sound in every cell is fitted to all recordings: the gradient of the misfit runs back
through the wave equation, in bounded memory. The recordings are computed on a finer grid and have noise of 1 %.
"""

import math
import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import physkit as pk

pk.use_compilation_cache()

ac = pk.acoustics
QUICK = "PHYSKIT_QUICK" in os.environ
CELLS, SHOTS, EPOCHS = (32, 8, 5) if QUICK else (64, 16, 12)
SIZE, RADIUS, WATER = 64.0, 21.0, 1.5  # mm, mm, mm/µs
STEPS = 64 if QUICK else 190
DT = 0.75 if QUICK else 0.25  # µs
FREQUENCY = 0.1 if QUICK else 0.2  # MHz: the wavelength is 7.5 cells

pulse = ac.WavePulse(2 * math.pi * FREQUENCY, 0.4 / FREQUENCY, 1.8 / FREQUENCY)


def ring(number):
    angle = 2 * np.pi * np.arange(number) / number
    return np.stack([np.cos(angle), np.sin(angle)], 1) * RADIUS + SIZE / 2


sources, sensors = ring(SHOTS), ring(64)


def record(speed, source, cells=CELLS, refine=1):
    """The pressure at all sensors, `[time sensors]`, of one shot."""
    acoustics = ac.KSpaceAcoustics(
        speed,
        sources=ac.PointSource(source, pulse),
        layer=ac.ConvolutionalPML(cells * 10 // 64, order=4.0),
        reference_speed=1.6,
    )
    simulation = pk.Simulation(
        ac.StaggeredLeapfrog(acoustics),
        dt=DT / refine,
        observers=pk.Every(refine, pressure=ac.Sensors(sensors, "pressure")),
        adjoint=pk.adjoints.Direct() if QUICK else pk.NestedCheckpoint(),
    )
    start = acoustics.add_memory(ac.AcousticField.of(pk.Grid([SIZE, SIZE], (cells, cells))))
    return pk.simulate(simulation, start, STEPS * refine).frames["pressure"]


def body(cells):
    """A body of 1.54 with a hard and a soft inclusion, in water; edges a cell wide."""
    x, y = pk.Grid([SIZE, SIZE], (cells, cells)).coordinates()

    def disk(cx, cy, radius):
        return 0.5 * (1 - jnp.tanh((jnp.hypot(x - cx, y - cy) - radius) / 0.7))

    speed = WATER + 0.04 * disk(32.0, 32.0, 14.0)
    return speed + 0.08 * disk(37.0, 35.0, 4.5) - 0.09 * disk(26.0, 28.0, 3.5)


fine = jax.jit(lambda source: record(body(3 * CELLS // 2), source, 3 * CELLS // 2, 2))
truth = np.stack([fine(source) for source in jnp.asarray(sources)])
scale = np.std(truth)
recorded = truth + 0.01 * scale * np.random.default_rng(0).normal(size=truth.shape)

# Unknown is the speed of the cells in the ring; nothing finer than this wavelength shows is looked for.
x, y = pk.Grid([SIZE, SIZE], (CELLS, CELLS)).coordinates()
inside = np.asarray(jnp.hypot(x - SIZE / 2, y - SIZE / 2) < RADIUS - 3.0)
wave = 2 * np.pi * np.fft.fftfreq(CELLS, SIZE / CELLS)
smoothing = np.exp(-0.5 * (wave[:, None] ** 2 + wave[None, : CELLS // 2 + 1] ** 2) * 1.2**2)


def speed_of(model):
    """Water outside of the ring, inside what is fitted, smoothed."""
    change = jnp.zeros((CELLS, CELLS)).at[inside].set(model["relative"] - 1.0)
    return WATER * (1 + jnp.fft.irfft2(jnp.fft.rfft2(change) * smoothing, (CELLS, CELLS)))


def misfit(model, data):
    shots, seen = data
    found = jax.vmap(lambda source: record(speed_of(model), source))(shots)
    return jnp.mean((found - seen) ** 2) / scale**2


model = {"relative": jnp.ones(inside.sum())}
batch = SHOTS // 4
steps = EPOCHS * SHOTS // batch
fit = pk.fit(
    misfit,
    model,
    where=lambda m: m["relative"],
    data=(jnp.asarray(sources), jnp.asarray(recorded)),
    method=pk.fitting.Optax(
        optax.adam(optax.cosine_decay_schedule(0.015, steps), b1=0.8),
        steps=steps,
        batch_rows=batch,
        tolerance=0.03,
    ),
    key=0,
    progress=False,
)
found = np.asarray(speed_of(fit.model))
true = np.asarray(body(CELLS))
start_error, error = (np.sqrt(np.mean((c - true)[inside] ** 2)) for c in (WATER, found))
print(
    f"rms error of the speed in the ring: {1e3 * start_error:.1f} m/s before, {1e3 * error:.1f} m/s after"
)

fig, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
panels = (
    ("true", true),
    ("start: water", np.full_like(true, WATER)),
    ("found", found),
)
for ax, (title, speed) in zip(axes, panels):
    image = ax.imshow(
        1e3 * speed.T,
        origin="lower",
        extent=(0, SIZE, 0, SIZE),
        cmap="viridis",
        vmin=1450,
        vmax=1620,
    )
    ax.set(title=title, xlabel="x / mm", xlim=(8, 56), ylim=(8, 56))
axes[1].plot(*sensors.T, ".", color="w", ms=3)
axes[1].plot(*sources.T, "*", color="#ffb703", ms=9)
axes[0].set_ylabel("y / mm")
fig.colorbar(image, ax=axes[:3], label="speed of sound / (m/s)", shrink=0.8, pad=0.01)
ax = axes[3]
cut = round(35.0 / SIZE * CELLS)
at = (np.arange(CELLS) + 0.5) * SIZE / CELLS
ax.plot(at, 1e3 * true[:, cut], color="0.2", label="true")
ax.plot(at, np.full(CELLS, 1e3 * WATER), color="0.6", ls=":", label="start")
ax.plot(at, 1e3 * found[:, cut], color="#c1121f", label="found")
ax.set(title="on the line y = 35 mm", xlabel="x / mm", xlim=(8, 56), box_aspect=1)
ax.legend(frameon=False)
fig.savefig("full_waveform_inversion.png", dpi=130)
