r"""Runs that change devices, and collectives of compiled programs, over eight emulated devices.

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
from physkit.simulate.distributed import _domain, _sharded_carry
from tests.parallel.compiled_collectives import count_in_solver, count_in_system


def resharded_run_difference(backend: str) -> float:
    """The difference between a run that changes devices three times and one that does not."""
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


def devices_where_a_domain_is_put_together(backend: str) -> int:
    """The most devices over which an array lies while the state and frames of a domain are put together."""
    os.environ["PHYSKIT_SPMD"] = backend
    counts = []

    def counting(function):
        def counted(parts, *args):
            counts.extend(len(x.devices()) for x in jax.tree.leaves(parts))
            return function(parts, *args)

        return counted

    _sharded_carry.unshard = counting(_sharded_carry.unshard)
    _domain.gather = counting(_domain.gather)
    grid = Grid([1.0, 1.0], (8, 8))
    observer = pk.Every(1, u=pk.FieldValues())
    sim = pk.Simulation(
        pk.Euler(pk.equations.Diffusion(0.01)), dt=1e-3, observers=observer, guards=()
    )
    out = pk.run(sim, pk.Field(1.0, grid), 2, devices=(2, 2), progress=False)
    assert out.state.data.shape == out["u"][0].shape == (8, 8)
    return max(counts)


def main(backend: str) -> None:
    """Print counts of collectives, and the difference, as JSON."""
    found = {
        "poisson": count_in_solver(solve_poisson, (2, 2, 1), backend),
        "gray_scott": count_in_system("gray_scott", (2, 2), backend),
        "devices": devices_where_a_domain_is_put_together(backend),
        "difference": resharded_run_difference(backend),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["pmap"]))
