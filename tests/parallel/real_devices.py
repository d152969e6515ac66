r"""What only several devices show, emulated ones here: runs that change devices, and programs of `pmap`.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 JAX_ENABLE_X64=1 \
        python -m tests.parallel.real_devices [backend]
"""

import json
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk
from physkit.fields.elliptic import solve_poisson
from physkit.fields.operators import Central
from physkit.geometry import Grid
from tests.parallel.compiled_collectives import of_solver, of_system


def going_on(backend: str) -> float:
    """How far a run that changes devices three times is from one that does not."""
    os.environ["PHYSKIT_SPMD"] = backend
    grid = Grid([1.0, 1.0], (8, 8))
    u = pk.Field(jax.random.normal(jax.random.key(0), grid.shape), grid)
    sim = pk.Simulation(pk.Euler(pk.equations.Diffusion(0.01, scheme=Central(2))), dt=1e-3)
    devices = jax.devices()
    one = pk.run(sim, u, 6, progress=False).state
    two = pk.run(sim, u, 2, devices=(1, 2), progress=False)
    others = pk.run(sim, two.carry, 2, devices=devices[2:6], progress=False)
    last = pk.simulate(sim, others.state, 2, devices=(2, 2)).state
    alone = pk.run(sim, others.state, 2, progress=False).state
    assert alone.data.devices() == {devices[0]}
    return float(np.max(np.abs(last.data - one.data)) + jnp.max(jnp.abs(last.data - alone.data)))


def main(backend: str) -> None:
    """Counts of collectives, and a distance, as JSON."""
    found = {
        "poisson": of_solver(solve_poisson, (2, 2, 1), backend),
        "gray_scott": of_system("gray_scott", (2, 2), backend),
        "far": going_on(backend),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["pmap"]))
