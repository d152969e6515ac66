"""The Ising model in the plane beside Onsager's solution: magnetization, heat capacity, curves that cross.

Clusters of like spins take new values together (Swendsen and Wang), so that nothing slows down at T_c.
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import systems

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
sizes = (8,) if quick else (8, 16, 32)
sweeps = 60 if quick else 1500
critical = systems.ISING_TEMPERATURE
temperatures = np.linspace(1.6, 3.2, 5 if quick else 17)
around = critical + np.linspace(-0.06, 0.06, 3 if quick else 7)


def averages(size, temperatures):
    """Thermal averages at each temperature: members of a batch."""

    @jax.jit
    @jax.vmap
    def run(temperature, key):
        simulation, spins = systems.ising_model(temperature, cells=(size, size))
        return pk.simulate(simulation, spins, sweeps, key=key).frames

    frames = run(
        jnp.asarray(temperatures), jax.random.split(jax.random.key(size), len(temperatures))
    )
    skip = sweeps // 10
    return [
        pk.statistics.spin_averages(e[skip:], m[skip:], T, num_sites=size**2, blocks=16)
        for e, m, T in zip(frames["energy"], frames["magnetization"], temperatures, strict=True)
    ]


def snapshot(temperature):
    """A lattice in equilibrium."""
    cells = (32, 32) if quick else (256, 256)
    simulation, spins = systems.ising_model(temperature, cells=cells, disordered=True)
    return pk.simulate(simulation, spins, 20 if quick else 200, key=2).state.data


def points(ax, x, found, name, marker, size):
    values = np.array([getattr(f, name) for f in found])
    ax.errorbar(x, values[:, 0], values[:, 1], fmt=marker, ms=3.5, lw=0.8, label=f"{size}²")


with pk.plot.style():
    fig, axes = plt.subplots(2, 3, figsize=(10.5, 6.8), layout="constrained")
    for ax, T in zip(axes[0], (2.0, critical, 2.6), strict=True):
        ax.imshow(snapshot(T), cmap="bone", vmin=-1.6, vmax=1.2, interpolation="nearest")
        ax.set(xticks=[], yticks=[], title=f"$k_BT = {T:.3f}\\,J$")
        ax.grid(False)
        ax.spines[:].set_visible(False)
    left, middle, right = axes[1]
    fine = np.linspace(1.6, 3.2, 801)
    exact = systems.onsager_solution(fine)
    left.plot(fine, exact.magnetization, "k-", lw=1, label="Yang")
    middle.plot(fine, exact.heat_capacity, "k-", lw=1, label="Onsager")
    for size, marker in zip(sizes, "os^", strict=False):
        found = averages(size, np.concatenate([temperatures, around]))
        wide, near = found[: len(temperatures)], found[len(temperatures) :]
        points(left, temperatures, wide, "magnetization", marker, size)
        points(middle, temperatures, wide, "heat_capacity", marker, size)
        points(right, around, near, "binder_cumulant", marker + "-", size)
    left.set(xlabel="$k_BT/J$", ylabel="magnetization per spin $\\langle|m|\\rangle$")
    middle.set(xlabel="$k_BT/J$", ylabel="heat capacity per spin $c/k_B$", ylim=(0, 3))
    right.axvline(critical, color="k", lw=0.8, ls="--")
    right.set(
        xlabel="$k_BT/J$",
        ylabel="Binder's cumulant $1 - \\langle m^4\\rangle/3\\langle m^2\\rangle^2$",
    )
    for ax in axes[1]:
        ax.legend(frameon=False)
    fig.savefig("ising.png", dpi=110)
