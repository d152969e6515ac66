"""The initial phases of a universe from its final density, by gradients through a particle-mesh code.

32³ particles cluster under their own gravity while space expands. From the final density alone,
gradient descent finds the white noise of the initial state. The gradient goes back through the
simulation bit by bit (`Reversible`), so that its memory does not grow with the number of steps.
Takes 40 seconds on one core.
"""

import os

import jax
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
cells, rounds = (16, 4) if quick else (32, 60)
universe = {"size": 200.0 * cells / 32, "contrast": 1.5}

truth = jax.random.normal(jax.random.key(1), (cells,) * 3)
observed = jax.jit(lambda noise: pk.systems.final_density(noise, **universe).data)(truth)
found = pk.systems.recover_phases(observed, rounds=rounds, progress=True, **universe)
k, phases = pk.systems.correlation_by_scale(truth, found.noise)
_, end = pk.systems.correlation_by_scale(observed, found.density)
print("correlation of the phases by wavenumber:", np.round(phases[:8], 3))

grid = pk.Grid([1.0, 1.0, 1.0], truth.shape)


def linear(noise):
    return pk.systems.linear_density(pk.Field(noise, grid), **universe).data


def slab(x):
    return np.asarray(x)[:, :, : cells // 8].mean(axis=2).T


density = np.log10(slab(observed) + 0.05)
dark, bright = np.percentile(density, [0.5, 99.5])
contrast = "linear density contrast"
pictures = (
    ("true initial state", slab(linear(truth)), "RdBu_r", (-2.5, 2.5), contrast),
    ("final density: all that is known", density, "magma", (dark, bright), "log$_{10}$ density"),
    ("initial state, reconstructed", slab(linear(found.noise)), "RdBu_r", (-2.5, 2.5), contrast),
)
with pk.plot.style():
    fig, axes = plt.subplots(1, 4, figsize=(13, 3.7), layout="constrained")
for ax, (title, x, colors, (low, high), label) in zip(axes, pictures, strict=False):
    image = ax.imshow(x, origin="lower", cmap=colors, interpolation="bicubic", vmin=low, vmax=high)
    ax.set_title(title)
    ax.axis("off")
    fig.colorbar(image, ax=ax, label=label, location="bottom", shrink=0.8, extend="both")
axes[3].plot(k, phases, "o-", ms=4, color="#D55E00", label="initial state")
axes[3].plot(k, end, color="#0072B2", label="final density")
axes[3].axhline(0.9, color="#B8B8B8", lw=0.8, zorder=0)
axes[3].set(xlabel="wavenumber, waves per box", ylim=(0, 1.03), title="correlation with the truth")
axes[3].legend()
fig.savefig("initial_phases.png", dpi=105)
