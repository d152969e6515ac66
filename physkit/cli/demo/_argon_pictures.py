"""Pictures of the chapter on argon."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physkit import plot
from physkit.particles import Particles
from physkit.simulate import Run
from physkit.systems import ARGON_FIRST_PEAK, ARGON_SIGMA, K_B, ArgonResults

_MARK, _GRAY = plot.PALETTE[1], "#8d99ae"


def draw_radial(done: Run, found: ArgonResults, path: Path) -> None:
    """The radial distribution function with its first peak."""
    radial = done["radial_distribution"]
    figure, ax = _figure((7.4, 4.4))
    plot.radial_distribution(radial["r"], radial["value"], error=radial["error"], ax=ax, unit="Å")
    ax.axvline(ARGON_FIRST_PEAK, color=_GRAY, lw=1, ls="--", label="Rahman 1964: 3.7 Å")
    ax.plot(found.peak, found.height, "o", color=_MARK, label=f"first peak: {found.peak:.2f} Å")
    ax.legend(loc="upper right", frameon=False)
    ax.set_title("Liquid argon, 94.4 K, 1.374 g/cm³: shells of neighbors")
    figure.savefig(path, dpi=160)


def draw_displacement(done: Run, found: ArgonResults, path: Path) -> None:
    """The mean-square displacement with the line whose slope is the diffusion coefficient."""
    msd = done["mean_square_displacement"]
    figure, ax = _figure((7.4, 4.4))
    plot.mean_square_displacement(
        msd["lag"],
        msd["value"],
        error=msd["error"],
        diffusion=found.diffusion,
        start=1.0,
        ax=ax,
        length_unit="Å",
        time_unit="ps",
        label="simulated",
    )
    diffusion = 10 * float(found.diffusion.value)
    ax.set_title(f"Argon diffuses: D = {diffusion:.2f} · 10⁻⁵ cm²/s (Rahman 1964: 2.43)")
    figure.savefig(path, dpi=160)


def draw_energy(done: Run, found: ArgonResults, path: Path) -> None:
    """Energy per atom and temperature over the run."""
    with plot.style():
        figure = Figure(figsize=(7.4, 5.2), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True)
    time = done.times["energy"]
    energy = np.asarray(done["energy"], float) / done.state.num_particles / K_B
    for ax in (top, bottom):
        plot.apply_style(ax)
    top.plot(time, 1000 * (energy - np.mean(energy)), color=plot.PALETTE[0], lw=0.6)
    top.set_ylabel("energy per atom − mean / mK")
    top.set_title(
        f"Constant energy: a noise of {np.std(energy) * 1000:.2g} mK, "
        f"a drift of {found.drift:+.1g} K per nanosecond"
    )
    bottom.plot(time, np.asarray(done["kelvin"]), color=_MARK, lw=0.6)
    bottom.axhline(found.temperature, color="black", lw=1)
    bottom.set(xlabel="time / ps", ylabel="temperature / K", xlim=(0, time[-1]))
    figure.savefig(path, dpi=160)


def draw_atoms(start: Particles, done: Run, path: Path) -> None:
    """The box of atoms as balls of true size, colored by how far each has come since the start."""
    atoms = done.state
    # Unwrapped: positions in the box do not tell how often an atom has left it.
    displacement = np.linalg.norm(np.asarray(atoms.unwrapped - start.unwrapped), axis=1)
    figure, ax = _figure((7.4, 6.4))
    plot.particles(
        atoms,
        ax=ax,
        color=displacement,
        radius=ARGON_SIGMA / 2,
        limits=(0, float(np.quantile(displacement, 0.99))),  # outliers must not pale the others
        color_label="displacement / Å",
        unit="Å",
    )
    ax.set_title(f"{atoms.num_particles} atoms of argon after {done.times['energy'][-1]:.0f} ps")
    figure.savefig(path, dpi=160)


def _figure(size: tuple[float, float]):
    with plot.style():
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots()
