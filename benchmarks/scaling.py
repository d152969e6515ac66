"""`python -m benchmarks.scaling`: domains sharded over many GPUs, from bytes, bandwidth and latency.

A model, not a measurement. Prints the tables of docs/scaling.md and draws docs/images/scaling.png. What a
device sends is what `pk.devices.communication_report` counts, as a formula in the size of its part.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

MEMORY = 0.7 * 3.35e12  # B/s of an H100's memory that plain kernels reach
INSIDE = (0.8 * 450e9, 10e-6)  # B/s and seconds per exchange between the 8 GPUs of a node, NVLink
ACROSS = (0.8 * 50e9, 20e-6)  # the same between nodes, one 400 Gb/s InfiniBand port each GPU
NODE = 8
COUNTS = tuple(2**k for k in range(10))
DENSITY, HALO = 0.8442, 4.9  # particles per σ³; σ that ghosts reach, buffers with their spare room


class Method(NamedTuple):
    """Work and messages of one step on `p` GPUs for a problem of `n` cells or particles."""

    name: str
    strong: float  # size of the problem that is cut ever finer
    weak: float  # size per GPU of the one that grows
    work: Callable[[float], float]  # size on one GPU → seconds
    sent: Callable[[float, int], tuple[float, float, float]]  # → bytes, exchanges, reductions
    most: Callable[[float], float] = lambda n: math.inf  # how many parts there can be


def stencil(n: float, p: int) -> tuple[float, float, float]:
    """One layer of a nearly square block, float32, to each of four neighbors."""
    px = 2 ** (int(math.log2(p) + 1) // 2)
    py = p // px
    side = math.sqrt(n)
    x = 2 * side / py * 4 if px > 1 else 0.0
    y = 2 * side / px * 4 if py > 1 else 0.0
    return x + y, 2 * (px > 1) + 2 * (py > 1), 0


def spectral(n: float, p: int) -> tuple[float, float, float]:
    """Four exchanges that hold eight fields of modes, 4 bytes a cell each; slabs."""
    return (32 * n / p * (p - 1) / p, 4, 0) if p > 1 else (0, 0, 0)


def liquid(n: float, p: int, area: float | None = None) -> tuple[float, float, float]:
    """Positions of ghosts on both sides of a slab; two votes on whether lists are stale."""
    area = (n / DENSITY) ** (2 / 3) if area is None else area
    return (2 * 12 * DENSITY * area * HALO, 2, 2) if p > 1 else (0, 0, 0)


def plasma(n: float, p: int) -> tuple[float, float, float]:
    """Halos of the line, its transform, a vote; every fifth step room for migrants, 10 B a particle."""
    return (2 * n / p + 4 * 4096 / p * 2, 5 + 4, 1) if p > 1 else (0, 0, 0)


METHODS = (
    Method("stencil", 16384.0**2, 8192.0**2, lambda n: 16 * n / MEMORY, stencil),
    Method("spectral", 8192.0**2, 4096.0**2, lambda n: 200 * n / MEMORY, spectral),
    Method(
        "Lennard-Jones", 32e6, 4e6, lambda n: n / 300e6, liquid,
        most=lambda n: (n / DENSITY) ** (1 / 3) / 4.0,
    ),
    Method("particle-in-cell", 1e9, 1e8, lambda n: 200 * n / MEMORY, plasma),
)  # fmt: skip


def seconds(method: Method, n: float, p: int, sent: tuple[float, float, float]) -> float:
    """Of a step: work, then messages; nothing overlaps."""
    bandwidth, latency = INSIDE if p <= NODE else ACROSS
    size, exchanges, votes = sent
    reduction = latency + 5e-6 * math.log2(p) if p > 1 else 0.0
    return method.work(n / p) + size / bandwidth + exchanges * latency + votes * reduction


def strong(method: Method, p: int) -> float | None:
    """Speed-up over one GPU; None where there cannot be so many parts."""
    n = method.strong
    if p > method.most(n):
        return None
    return seconds(method, n, 1, (0, 0, 0)) / seconds(method, n, p, method.sent(n, p))


def weak(method: Method, p: int) -> float:
    """Time of one GPU with its part, over that of p GPUs with p parts; particles in a longer box."""
    n = method.weak
    area = (n / DENSITY) ** (2 / 3)
    sent = liquid(n, p, area) if method.sent is liquid else method.sent(n * p, p)
    return seconds(method, n, 1, (0, 0, 0)) / seconds(method, n * p, p, sent)


def table(measure: Callable[[Method, int], float | None], unit: str) -> str:
    """A row per method, a column per number of GPUs."""
    shown = (8, 16, 64, 512)
    lines = [f"| {unit} | " + " | ".join(map(str, shown)) + " |", "|---" * (1 + len(shown)) + "|"]
    for method in METHODS:
        cells = [measure(method, p) for p in shown]
        words = ["–" if c is None else f"{c:.2f}" if c < 2 else f"{c:.0f}" for c in cells]
        lines.append(f"| {method.name} | " + " | ".join(words) + " |")
    return "\n".join(lines)


def draw(path: Path) -> None:
    """Speed-up of one problem, and efficiency of one that grows."""
    from matplotlib.figure import Figure

    from physkit import plot

    with plot.style():
        figure = Figure(figsize=(9.6, 4.3), layout="constrained")
        left, right = figure.subplots(1, 2)
    left.plot(COUNTS, COUNTS, color="#999999", lw=1, ls="--", label="ideal")
    for method, color in zip(METHODS, plot.PALETTE, strict=False):
        points = [(p, strong(method, p)) for p in COUNTS]
        left.plot(
            *zip(*[q for q in points if q[1] is not None]),
            "o-",
            ms=4,
            color=color,
            label=method.name,
        )
        right.plot(
            COUNTS, [weak(method, p) for p in COUNTS], "o-", ms=4, color=color, label=method.name
        )
    for ax in (left, right):
        plot.apply_style(ax)
        ax.set_xscale("log", base=2)
        ax.axvspan(NODE, COUNTS[-1] * 1.2, color="#000000", alpha=0.04, lw=0)
        ax.set(xlabel="GPUs", xlim=(0.9, COUNTS[-1] * 1.2))
        ax.set_xticks(COUNTS[::3], list(map(str, COUNTS[::3])))
    left.set_yscale("log", base=2)
    left.set_yticks(COUNTS[::3], list(map(str, COUNTS[::3])))
    left.set(ylabel="times as fast as one GPU", title="One problem, cut ever finer")
    right.set(ylabel="efficiency", ylim=(0, 1.05), title="A problem that grows with the GPUs")
    right.text(NODE * 1.3, 0.55, "more than one node", color="#555555", va="center", fontsize=9)
    left.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=130)


def main() -> None:
    print(table(strong, "times as fast, GPUs:"))
    print()
    print(table(weak, "efficiency, GPUs:"))
    draw(Path(__file__).parent.parent / "docs/images/scaling.png")


if __name__ == "__main__":
    main()
