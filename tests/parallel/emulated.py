"""Functions over emulated devices, and modules in a process with several."""

import os
import subprocess
import sys
from pathlib import Path

import jax

from physkit.core import shard, unshard
from physkit.parallel import Spmd
from physkit.simulate.distributed._spmd_function import SpmdFunction

ROOT = Path(__file__).parents[2]


def run_module(module: str, *arguments: str) -> str:
    """Run a module with eight emulated devices, which only a new process can have; return its output."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1",
        "PHYSKIT_TYPECHECK": "0",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8",
        "NPROC": "16",  # threads: devices that wait for one another need one each
    }
    command = [sys.executable, "-m", f"tests.parallel.{module}", *arguments]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def run_over(function, devices, *arguments):
    """Run a function of Modules over devices; return its result for the whole domain."""
    return unshard(Spmd(SpmdFunction(function), devices)(*shard(arguments, devices)), devices)


def noise(*shape, seed=0):
    return jax.random.normal(jax.random.key(seed), shape)


# Emulated by `vmap` they have no derivative: see `substeps.py`.
SUBSTEPS = ["sedov", "sedov in the plane", "sedov in space", "viscous_shear"]
