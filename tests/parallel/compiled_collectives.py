r"""Count the collectives of compiled programs over eight emulated devices; print them as JSON.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 JAX_ENABLE_X64=1 \
        python -m tests.parallel.compiled_collectives [backends] [systems]
"""

import json
import re
import sys
from collections import Counter

import jax
import jax.numpy as jnp

import physkit as pk
from physkit.core import shard
from physkit.fields.elliptic import solve_elliptic, solve_poisson
from physkit.geometry import Grid
from physkit.parallel import Spmd
from physkit.simulate.distributed._domain import DistributedDomain
from physkit.simulate.distributed._spmd_function import SpmdFunction
from physkit.simulate.driver._simulate import simulate_on_one_device
from tests.parallel import field_cases

OPS = "all-gather|all-to-all|all-reduce|collective-permute|reduce-scatter"


def count_collectives(function, *arguments) -> dict[str, int]:
    """Number of collectives of each kind in the optimized program."""
    text = jax.jit(function).lower(*arguments).compile().as_text()
    return Counter(re.findall(rf" ({OPS})(?:-start)?\(", text))


def count_in_solver(solve, devices, backend):
    """Collectives of the program that solves for a source."""
    shape = (8, 16, 16)[: len(devices)]
    source = pk.Field(jax.random.normal(jax.random.key(0), shape), Grid([1.0] * len(shape), shape))
    source = source.replace(data=source.data - source.data.mean())
    return count_collectives(Spmd(SpmdFunction(solve), devices, backend), shard(source, devices))


def count_in_system(name, devices, backend):
    """Collectives of the program that makes the steps of a system."""
    sim, state, steps = field_cases.SYSTEMS[name][0]()
    domain = DistributedDomain(sim, devices, backend)
    carry = domain.init(state)
    program = domain.spmd(simulate_on_one_device, steps)
    return count_collectives(lambda carry: program(domain.sharded_sim, carry), carry.carry)


SYSTEMS = [
    ("gray_scott", (2, 2)),
    ("gravity_waves", (2, 2)),
    ("kuramoto_sivashinsky", (2,)),
    ("kolmogorov_flow", (2, 1)),
    ("kolmogorov_flow", (2, 2)),
    ("stommel_gyre", (2, 2)),
    ("sod", (4,)),
    ("taylor_green_3d", (2, 2)),
]


def main(backends: list[str], names: list[str]) -> None:
    """Print counts by the name of the program."""
    found: dict[str, dict[str, int]] = {}

    def report(name, counts):
        found[name] = counts
        print(name, dict(counts), flush=True)

    for backend in backends:
        for devices in ((2, 1, 1), (2, 2, 1), (2, 2, 2)):
            report(
                f"poisson {devices}, {backend}", count_in_solver(solve_poisson, devices, backend)
            )
        for name, devices in SYSTEMS:
            if not names or name in names:
                report(f"{name} {devices}, {backend}", count_in_system(name, devices, backend))
        if not names:
            solve_by_cg = lambda f: solve_elliptic(f, jnp.float64(2.0), 0.0, f)
            report(
                f"conjugate gradients (2, 2), {backend}",
                count_in_solver(solve_by_cg, (2, 2), backend),
            )
    print(json.dumps(found))


if __name__ == "__main__":
    arguments = [*sys.argv[1:], "", ""]
    main(
        (arguments[0] or "pmap,shard_map").split(","),
        arguments[1].split(",") if arguments[1] else [],
    )
