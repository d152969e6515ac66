"""A diffusing field over the devices of several processes, for `test_multiprocess_run.py`."""

import sys
from pathlib import Path

import physkit as pk


def case():
    """Diffusion of a wave on 16² cells; every fifth step is recorded."""
    import jax.numpy as jnp

    grid = pk.Grid(pk.Box([1.0, 1.0]), (16, 16))
    x, y = grid.coordinates()
    u = pk.Field(1 + jnp.sin(2 * jnp.pi * x) * jnp.cos(2 * jnp.pi * y), grid)
    observer = pk.Every(5, u=pk.FieldValues(), total=lambda s: s.state.integral())
    return pk.Simulation(pk.RK4(pk.equations.Diffusion(0.01)), dt=1e-3, observers=(observer,)), u


def main(folder: Path, devices: tuple[int, ...], steps: int, slow: bool) -> None:
    """Run with files, unless `folder` is called memory, and save the last state beside them."""
    job = pk.parallel.initialize(wait=100)
    import numpy as np

    sim, state = case()
    files = folder.name != "memory"
    save = pk.Checkpoints(folder / "checkpoints", blocks=40 if slow else 10)
    out = pk.run(
        sim,
        state,
        steps,
        devices=devices,
        to=folder if files else None,
        checkpoint=save if files else None,
        resume=files,
        progress=slow,
    )
    last = np.asarray(out.state.data)
    if job.is_first:
        folder.mkdir(exist_ok=True, parents=True)
        np.savez(
            folder / "last.npz", last=last, u=np.asarray(out["u"]), total=np.asarray(out["total"])
        )
    print(f"resumed from {out.resumed_from}, at step {int(out.carry.step)}", flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(
        Path(arguments[0]),
        tuple(map(int, arguments[1].split("x"))),
        int(arguments[2]),
        "slow" in arguments,
    )
