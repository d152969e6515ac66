"""Lower systems for GPU and TPU, and say what would not run there, or not as it should. Needs neither.

    python -m tests.gpu.lowering [system …]

prints what it finds over two emulated devices, as JSON.
"""

import json
import os
import re
import sys
import time
from typing import Any

if __name__ == "__main__":
    # Before JAX starts; the processes of tests set their own.
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    os.environ["PHYSKIT_NATIVE"] = "0"  # C code is for CPUs

import equinox as eqx
import jax
import jax.numpy as jnp

import physkit as pk
from physkit.core import CapacityError, cast_floats

PLATFORMS = ("cuda", "tpu")
# Python's numbers are doubles until they meet an array: constants, conversions of them, and what a library
# decides by its tolerances.
OF_NUMBERS = ("constant", "convert", "compare", "select")
# Notes to XLA about shardings, not calls.
NOT_CALLS = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"}
# Factors of small matrices, by libraries that GPUs and TPUs have: Krylov's steps, bodies in a flow.
LIBRARIES = {
    "Eigh",
    "cusolver_syevd_ffi",
    "LuDecomposition",
    "cusolver_getrf_ffi",
    "cu_lu_pivots_to_permutation",
}


def value_and_gradient(made: tuple[Any, Any], devices: tuple[int, ...] | None = None) -> Any:
    """A function of the floating numbers of simulation and state, all of them in single precision.

    Returns it and those numbers: a loss after as many steps as the longest interval of the observers has.
    """
    sim, state = (cast_floats(x, jnp.dtype(jnp.float32)) for x in made)
    varying = jax.tree_util.tree_map_with_path(_varies, (sim, state))
    numbers, rest = eqx.partition((sim, state), varying)
    key = jax.random.key(0)  # for those that draw noise

    def loss(numbers: Any) -> Any:
        sim, state = eqx.combine(numbers, rest)
        end = pk.simulate(sim, state, sim.observation_period, key=key, devices=devices)
        leaves = [x for x in jax.tree.leaves((end.state, end.frames)) if eqx.is_inexact_array(x)]
        return sum(jnp.sum(jnp.abs(x) ** 2) for x in leaves)

    return jax.value_and_grad(loss), numbers


def _varies(path: Any, x: Any) -> bool:
    # Boxes stay numbers: capacities of lists follow from the density.
    return eqx.is_inexact_array(x) and not re.search(r"space|grid", jax.tree_util.keystr(path))


def lower(function: Any, *arguments: Any) -> str:
    """The text of a function's program for all platforms.

    **Errors:** JAX's, for an operation or a call to a library that one of them has not.
    """
    return jax.export.export(jax.jit(function), platforms=PLATFORMS)(*arguments).mlir_module()


def findings(text: str) -> list[str]:
    """What does not belong into a program in single precision for a GPU or TPU."""
    found = []
    calls = set(re.findall(r"custom_call @([\w.]+)", text)) - NOT_CALLS - LIBRARIES
    # Other custom calls are libraries of one platform, or Python: `jnp.linalg` on CPUs, callbacks.
    found += [f"calls {name}" for name in sorted(calls)]
    for line in text.splitlines():
        operation = re.search(r"= \"?(?:stablehlo|chlo)\.(\w+)", line)
        if not operation or not re.search(r"\bf64\b|xf64|<f64>", line):
            continue
        is_array = re.search(r"tensor<\d[^>]*f64>", line)
        if is_array or operation[1] not in OF_NUMBERS:
            found.append(f"computes in float64: {line.strip()[:120]}")
    for line in text.splitlines():
        if re.search(r"stablehlo\.(dot_general|convolution)", line):
            is_single = re.search(r"tensor<(\d+x)*(f32|complex<f32>)>", line)
            if is_single and "HIGHEST" not in line:
                found.append(f"may round to TF32: {line.strip()[:120]}")
    return found


def main(names: list[str]) -> None:
    """Findings by the name of the system, over two devices."""
    from tests.parallel import field_cases, particle_cases

    cases = {
        name: (lambda case=case: case()[:2]) for name, (case, _) in field_cases.SYSTEMS.items()
    }
    cases |= particle_cases.SYSTEMS
    found = {}
    for name in names or cases:
        began = time.process_time()
        sim, state = cases[name]()
        devices = (2,) + (1,) * (dimension(state) - 1)
        function, numbers = value_and_gradient((sim, state), devices)
        try:
            text = lower(function, numbers)
        except CapacityError as error:  # it starts outside of programs, which go on from its carry
            print(name, str(error).splitlines()[0], file=sys.stderr, flush=True)
            continue
        assert "num_partitions = 2" in text, "not sharded"
        found[name] = findings(text)
        print(
            name, f"{time.process_time() - began:.1f} s", found[name], file=sys.stderr, flush=True
        )
    print(json.dumps(found))


def dimension(state: Any) -> int:
    """The number of axes of the domain."""
    is_component = lambda x: hasattr(x, "grid") or hasattr(x, "space")
    part = next(x for x in jax.tree.leaves(state, is_leaf=is_component) if is_component(x))
    space = (part.grid if hasattr(part, "grid") else part).space
    # Particles without a box are parted along one line.
    return len(space.lengths) if hasattr(space, "lengths") else 1


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_rank_promotion", "raise")
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    main(sys.argv[1:])
