"""Predicted memory of a batch (`ensemble.predict_batch_memory`) beside the measured peak.

The prediction is about the device: what the compiled program takes for the members, their start and end
included. It is compiled and run once, and then again, with the peak of the process counted anew; what was
resident before it, less the members' initial state, is subtracted. Copies of frames that the host makes
afterwards are no part of it, and on a CPU come on top. Needs Linux. MiB; `rate` is the measured peak.
"""

import ctypes
import gc
from pathlib import Path

from benchmarks._harness import print_measurement

UNIT = "MiB, measured peak"
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def lorenz(size: int, precision: str) -> dict:
    """Every member's path is kept: outputs count most."""
    import physkit as pk
    from benchmarks.ensemble_lorenz import model, values

    del precision
    sim, start = model()
    record = pk.Every(5, position=lambda now: now.state)
    sim = pk.Simulation(sim.integrator, dt=sim.dt, observers=record, adjoint=pk.adjoints.Direct())
    over = pk.SweepAxis(lambda m: pk.find(m, pk.Function).args, values(size))
    return compare_prediction(pk.Sweep((sim, start), 5000, over=over), size)


def argon(size: int, precision: str) -> dict:
    """States, lists and temporaries of the forces count most."""
    import physkit as pk
    from benchmarks.ensemble_argon import model, velocities

    sim, atoms = model(precision)
    over = pk.SweepAxis(lambda m: m[1].velocity, velocities(atoms, size))
    return compare_prediction(pk.Sweep((sim, atoms), 20, over=over), size)


def compare_prediction(whole, size: int) -> dict:
    import jax
    import numpy as np

    from physkit.ensemble import predict_batch_memory
    from physkit.ensemble.compute._chunk_runner import ChunkRunner

    predicted = predict_batch_memory(whole).bytes_for(size) / 2**20
    runner = ChunkRunner(whole, 0, size, jax.local_devices()[:1])
    batch = runner.init_batch(np.arange(size))
    resident = sum(x.nbytes for x in jax.tree.leaves(batch)) / 2**20
    for _ in range(2):
        gc.collect()
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        _CLEAR.write_text("5")  # reset the peak
        before = status_mib("VmRSS")
        attempt = runner._advance(batch, runner.max_blocks)
        measured = status_mib("VmHWM") - before + resident
        del attempt
    note = f"predicted {predicted:.0f} MiB, measured {measured / predicted - 1:+.0%}"
    return {"rate": measured, "unit": UNIT, "note": note}


def status_mib(what: str) -> float:
    """A line of /proc/self/status, in MiB."""
    row = next(r for r in _STATUS.read_text().splitlines() if r.startswith(what))
    return int(row.split()[1]) / 1024


if __name__ == "__main__":
    print_measurement({"lorenz": lorenz, "argon": argon})
