r"""What compiled programs over eight emulated devices exchange: counts of collectives, as JSON.

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


def collectives(function, *arguments) -> dict[str, int]:
    """How many of each the optimized program holds."""
    text = jax.jit(function).lower(*arguments).compile().as_text()
    return Counter(re.findall(rf" ({OPS})(?:-start)?\(", text))


def of_solver(solve, devices, backend):
    """The program that solves for a source."""
    shape = (8, 16, 16)[: len(devices)]
    source = pk.Field(jax.random.normal(jax.random.key(0), shape), Grid([1.0] * len(shape), shape))
    source = source.replace(data=source.data - source.data.mean())
    return collectives(Spmd(SpmdFunction(solve), devices, backend), shard(source, devices))


def of_system(name, devices, backend):
    """The program that makes the steps."""
    sim, state, steps = field_cases.SYSTEMS[name][0]()
    domain = DistributedDomain(sim, devices, backend)
    carry = domain.init(state)
    program = domain.spmd(simulate_on_one_device, steps)
    return collectives(lambda carry: program(domain.sharded_sim, carry), carry.carry)


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
    """Counts by the name of the program."""
    found: dict[str, dict[str, int]] = {}

    def tell(name, counts):
        found[name] = counts
        print(name, dict(counts), flush=True)

    for backend in backends:
        for devices in ((2, 1, 1), (2, 2, 1), (2, 2, 2)):
            tell(f"poisson {devices}, {backend}", of_solver(solve_poisson, devices, backend))
        for name, devices in SYSTEMS:
            if not names or name in names:
                tell(f"{name} {devices}, {backend}", of_system(name, devices, backend))
        if not names:
            varying = lambda f: solve_elliptic(f, jnp.float64(2.0), 0.0, f)
            tell(f"conjugate gradients (2, 2), {backend}", of_solver(varying, (2, 2), backend))
    print(json.dumps(found))


if __name__ == "__main__":
    given = [*sys.argv[1:], "", ""]
    main((given[0] or "pmap,shard_map").split(","), given[1].split(",") if given[1] else [])
