"""Pictures of the chapter on two devices: which device owns which cells and atoms."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from physkit import plot
from physkit.particles import Particles
from physkit.systems import ARGON_SIGMA

from ._device_comparison import DeviceComparison

_MAPS = ("Blues", "Oranges")


def draw_flow(found: DeviceComparison, path: Path) -> None:
    """The density, each device's half in its own color, and how far it is from that of one device."""
    gathered = np.asarray(found.gathered_state.density.data)
    blocks = np.asarray(found.carry.carry.state.density.data)  # (devices, n, cells)
    n, top = blocks.shape[1], float(gathered.max())
    with plot.style():
        figure = Figure(figsize=(9.8, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
    for device, (block, colors) in enumerate(zip(blocks, _MAPS, strict=True)):
        box = (device * 0.5, device * 0.5 + 0.5, 0, 1)
        left.imshow(
            block.T, origin="lower", extent=box, cmap=colors, vmin=0.6, vmax=top, aspect="equal"
        )
        left.text(
            device * 0.5 + 0.02, 0.965, f"device {device}: {n} × {block.shape[1]} cells", va="top"
        )
    left.axvline(0.5, color="#222222", lw=1, ls="--")
    left.set(xlim=(0, 1), ylim=(0, 1), xlabel="x", ylabel="y", title="Density, colored by owner")
    difference = gathered - np.asarray(found.single.density.data)
    largest = float(np.max(np.abs(difference)))
    scale = largest or 1e-16  # equal bits: limits of colors must differ
    image = right.imshow(
        difference.T, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu_r", vmin=-scale, vmax=scale
    )
    right.axvline(0.5, color="#222222", lw=1, ls="--")
    verdict = "the same bits" if largest == 0 else f"at most {largest:.1e}"
    right.set(xlabel="x", title=f"Two devices − one device: {verdict}")
    figure.colorbar(image, ax=right, shrink=0.9)
    figure.savefig(path, dpi=150)


def draw_atoms(found: DeviceComparison, path: Path) -> None:
    """The atoms, colored by the device that has them at the end."""
    atoms, sharded = found.gathered_state, found.carry.carry.state
    owner = np.zeros(atoms.num_particles)
    # Arrays are (devices, slots): the mask says which slots hold a particle; gathered ids ascend.
    for device, (ids, mask) in enumerate(
        zip(np.asarray(sharded.id), np.asarray(sharded.ownership.mask))
    ):
        owner[np.searchsorted(np.asarray(atoms.id), ids[mask])] = device
    with plot.style():
        figure = Figure(figsize=(7.0, 6.0), layout="constrained")
        ax = figure.subplots()
    position = np.asarray(atoms.position)
    parts = {
        f"device {device}": Particles(position[owner == device], space=atoms.space)
        for device in (0, 1)
    }
    plot.particles(parts, ax=ax, radius=ARGON_SIGMA / 2, unit="Å")
    counts = [part.num_particles for part in parts.values()]
    ax.set_title(f"Argon, colored by owner: {counts[0]} and {counts[1]} atoms")
    figure.savefig(path, dpi=150)
