r"""The derivative of a small wave by every adjoint over a grid of emulated devices, as JSON.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 NPROC=16 JAX_ENABLE_X64=1 \
        python -m tests.parallel.adjoints [backends] [adjoints]

(Emulated by `vmap` those with rules of their own, Binomial and Reversible, cannot be: JAX traces such
rules when the name of the mapped axis is gone.)
"""

import json
import os
import sys

import equinox as eqx
import jax
import jax.numpy as jnp

import physkit as pk
from tests.parallel import field_cases

ADJOINTS = [
    pk.adjoints.Direct(),
    pk.NestedCheckpoint(),
    pk.adjoints.Binomial(2),
    pk.adjoints.Forward(),
    pk.Reversible(),
]


def slope(sim, state, devices) -> float:
    """d/ds of a number of the last state, where s scales the first."""

    def outcome(size):
        surface = (state["elevation"] * size).with_boundary(state["elevation"])
        last = pk.simulate(sim, {**state, "elevation": surface}, 4, devices=devices).state
        return jnp.sum(last["elevation"].data ** 2) + jnp.sum(last["u"].data[0])

    size = jnp.float64(1.5)
    return float(jax.jit(jax.grad(outcome))(size) if devices is None else jax.grad(outcome)(size))


def main(backends: list[str], names: list[str]) -> None:
    """Relative differences to one device."""
    sim, state, _ = field_cases.gravity_waves((True, False), (8, 4))
    far = {}
    for adjoint in ADJOINTS:
        name = type(adjoint).__name__
        if names and name not in names:
            continue
        by = eqx.tree_at(lambda s: s.adjoint, sim, adjoint, is_leaf=lambda x: x is sim.adjoint)
        one = slope(by, state, None)
        for backend in backends:
            os.environ["PHYSKIT_SPMD"] = backend
            far[f"{name}, {backend}"] = abs(slope(by, state, (2, 2)) - one) / abs(one)
            print(f"{name}, {backend}", far[f"{name}, {backend}"], flush=True)
    print(json.dumps(far))


if __name__ == "__main__":
    given = [*sys.argv[1:], "", ""]
    main((given[0] or "pmap,shard_map").split(","), given[1].split(",") if given[1] else [])
