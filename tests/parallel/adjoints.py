r"""The derivative of a small wave by every adjoint over a grid of emulated devices, as JSON.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 NPROC=16 JAX_ENABLE_X64=1 \
        python -m tests.parallel.adjoints [backends] [adjoints]

(Binomial and Reversible cannot be emulated by `vmap`: JAX traces custom derivative rules when the name of
the mapped axis is gone.)
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


def derivative(sim, state, devices) -> float:
    """d/ds of a number of the last state, where s scales the initial elevation."""

    def outcome(scale):
        surface = (state["elevation"] * scale).with_boundary(state["elevation"])
        last = pk.simulate(sim, {**state, "elevation": surface}, 4, devices=devices).state
        return jnp.sum(last["elevation"].data ** 2) + jnp.sum(last["u"].data[0])

    scale = jnp.float64(1.5)
    return float(jax.jit(jax.grad(outcome))(scale) if devices is None else jax.grad(outcome)(scale))


def main(backends: list[str], names: list[str]) -> None:
    """Relative differences to one device."""
    sim, state, _ = field_cases.gravity_waves((True, False), (8, 4))
    differences = {}
    for adjoint in ADJOINTS:
        name = type(adjoint).__name__
        if names and name not in names:
            continue
        variant = eqx.tree_at(lambda s: s.adjoint, sim, adjoint, is_leaf=lambda x: x is sim.adjoint)
        one = derivative(variant, state, None)
        for backend in backends:
            os.environ["PHYSKIT_SPMD"] = backend
            differences[f"{name}, {backend}"] = abs(derivative(variant, state, (2, 2)) - one) / abs(
                one
            )
            print(f"{name}, {backend}", differences[f"{name}, {backend}"], flush=True)
    print(json.dumps(differences))


if __name__ == "__main__":
    arguments = [*sys.argv[1:], "", ""]
    main(
        (arguments[0] or "pmap,shard_map").split(","),
        arguments[1].split(",") if arguments[1] else [],
    )
