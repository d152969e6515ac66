"""What files cost: writing beside a run, checkpoints, opening long runs, and `physkit --help`.

`python -m benchmarks.files`; times on a busy machine are CPU seconds, and ratios.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import physkit as pk
from physkit.storage import Output
from physkit.systems import lennard_jones_melt


def wall_and_cpu(work):
    """Wall-clock and CPU seconds of `work`."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def writing(folder: Path, cells: int = 20, steps: int = 300) -> None:
    """Frames of positions and velocities every 100 steps, beside the same run without."""
    sim, state = lennard_jones_melt(cells=cells, dtype=np.float32)
    observed = pk.Simulation(
        sim.integrator, sim.dt, observers=pk.Every(100, x=pk.Positions(), v=pk.Velocities())
    )
    warm = pk.run(observed, state, 100, progress=False)
    pk.run(observed, warm.carry, 100, progress=False)
    in_memory, to_files = [], []
    for k in range(3):
        in_memory.append(wall_and_cpu(lambda: pk.run(observed, warm.carry, steps, progress=False)))
        to = folder / f"r{k}"
        to_files.append(
            wall_and_cpu(lambda to=to: pk.run(observed, warm.carry, steps, to=to, progress=False))
        )
    (a, ca), (b, cb) = (np.min(x, axis=0) for x in (in_memory, to_files))
    print(f"{state.num_particles} atoms, {steps} steps: {a:.2f} s (CPU {ca:.2f}) in memory")
    print(
        f"  to files, with two checkpoints: {b:.2f} s (CPU {cb:.2f}): {100 * (cb / ca - 1):+.1f} % CPU"
    )
    out = folder / "frames"
    out.mkdir()
    shape = jax.ShapeDtypeStruct(state.position.shape, np.float32)
    to = Output(out, observed.observers, state, {"x": shape, "v": shape}, 0.0, 0.005)
    to.create()
    x = np.asarray(state.position)

    def one(k):
        to.add({"x": x[None], "v": x[None]}, dict.fromkeys("xv", np.array([100 * k])))
        to.commit()

    each = np.min([wall_and_cpu(lambda k=k: one(k)) for k in range(10)], axis=0)
    print(f"  one frame written: {1e3 * each[0]:.1f} ms (CPU {1e3 * each[1]:.1f} ms), "
          f"{100 * each[1] / (ca / steps * 100):.2f} % of the CPU of 100 steps")  # fmt: skip


def checkpoints(folder: Path) -> None:
    """120 MB written and read back."""
    tree = {"x": jax.random.normal(jax.random.key(0), (30_000_000,))}
    path = folder / "c.h5"
    for what, work in (
        ("written", lambda: pk.save_checkpoint(path, tree)),
        ("read", lambda: pk.load_checkpoint(path, tree)),
    ):
        wall, cpu = np.min([wall_and_cpu(work) for _ in range(4)], axis=0)
        print(f"120 MB checkpoint {what}: {wall:.2f} s (CPU {cpu:.2f} s)")


def opening(folder: Path, frames: int = 100_000) -> None:
    """A run of very many frames."""
    state = pk.Particles(np.zeros((10, 3)))
    observers = (pk.Every(1, x=pk.Positions(), e=lambda now: now.t),)
    shapes = {"x": jax.ShapeDtypeStruct((10, 3), np.float32), "e": jax.ShapeDtypeStruct((), float)}
    to = Output(folder, observers, state, shapes, 0.0, 0.1)
    to.create()
    for k in range(0, frames, 10_000):
        steps = np.arange(k, k + 10_000)
        to.add({"x": np.zeros((10_000, 10, 3)), "e": steps * 1.0}, dict.fromkeys("xe", steps))
        to.commit()
    wall, cpu = np.min([wall_and_cpu(lambda: pk.open(folder)) for _ in range(5)], axis=0)
    print(f"opening {frames} frames: {1e3 * wall:.1f} ms (CPU {1e3 * cpu:.1f} ms)")
    last = np.min([wall_and_cpu(lambda: pk.open(folder)["x"][-1]) for _ in range(5)], axis=0)
    print(f"  and reading the last: {1e3 * last[0]:.1f} ms")


def time_help() -> None:
    """`physkit --help`."""

    def once():
        before = os.times()
        wall = time.perf_counter()
        subprocess.run([sys.executable, "-m", "physkit", "--help"], capture_output=True, check=True)
        wall, after = time.perf_counter() - wall, os.times()
        cpu = after.children_user + after.children_system
        return wall, cpu - before.children_user - before.children_system

    wall, cpu = np.min([once() for _ in range(7)], axis=0)
    print(f"physkit --help: {wall:.2f} s (CPU {cpu:.2f} s)")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for k, part in enumerate((checkpoints, opening, writing)):
            part_folder = Path(name) / str(k)
            part_folder.mkdir()
            part(part_folder)
    time_help()
