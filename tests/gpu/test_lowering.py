"""Value and gradient of every system as programs for GPUs and TPUs: nothing in them that only a CPU has."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit
from tests.compared_results import compared_results
from tests.parallel import field_cases, particle_cases
from tests.simulate.test_restart_matrix import SYSTEMS

from .lowering import findings, lower, value_and_gradient

# One of each kind; `make test-all` lowers all.
SAMPLE = ("gray_scott", "lorenz", "double_well")
# Two devices: fields by halo, fields by transforms, particles on a mesh.
SAMPLE_OF_TWO = ("gray_scott",)
PARTS = 8  # of all systems, each lowered by a process of its own with two devices


@pytest.mark.parametrize(
    "name", [n if n in SAMPLE else pytest.param(n, marks=pytest.mark.slow) for n in SYSTEMS]
)
def test_one_device(name):
    function, numbers = value_and_gradient(SYSTEMS[name]())
    function = jax.jit(function)
    assert not findings(lower(function, numbers))
    # Not on GPUs only: compilers for CPUs round twice, too.
    assert not compared_results(function.trace(numbers).jaxpr)


def over_two_devices(*names):
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PHYSKIT_SPMD": "shard_map"}
    command = [sys.executable, "-m", "tests.gpu.lowering", *names]
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_two_devices():
    found = over_two_devices(*SAMPLE_OF_TWO)
    assert found == {name: [] for name in SAMPLE_OF_TWO}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_over_two_devices(part):
    names = [*field_cases.SYSTEMS, *particle_cases.SYSTEMS][part::PARTS]
    assert not {name: what for name, what in over_two_devices(*names).items() if what}


def shout(x):
    return jax.pure_callback(np.sin, x, x)


def widen(x):
    return jnp.sum(x.astype(jnp.float64)).astype(jnp.float32)


def widen_number(x):
    return x[0] * jnp.sin(jnp.asarray(1.5) + x[0].astype(jnp.float64)).astype(jnp.float32)


def multiply(x):
    return x @ x


@pytest.mark.parametrize("broken", [widen, widen_number, multiply], ids=lambda f: f.__name__)
def test_what_does_not_belong_is_found(broken):
    assert findings(lower(broken, jnp.ones(3, jnp.float32)))


@pytest.mark.parametrize("broken", [shout, jnp.linalg.eigvals], ids=["callback", "eigenvalues"])
def test_what_only_a_cpu_has_is_found(broken):
    """By JAX, which lowers them for no other platform, or refuses to export them; else by us."""
    try:
        found = findings(lower(broken, jnp.ones((3, 3), jnp.float32)))
    except (ValueError, NotImplementedError) as error:
        found = [str(error)]
    assert found


# What asks which platform is the default one: records of a run, advice, and where there is no array to ask.
ASKS = {
    "simulate/analysis/_probe.py",
    "storage/checkpoint/_identity.py",
    "cli/verbs/_doctor.py",
    "core/numerics/_placement.py",
    "native/_compiler.py",  # whether C code is of any use; what runs is chosen by platform
}


def test_no_program_depends_on_the_default_platform():
    """Variants are chosen where a program is lowered (`platform_dependent`) or by where its arrays are."""
    root = Path(physkit.__file__).parent
    asking = set()
    for path in root.rglob("*.py"):
        names = {
            n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)
        }
        if "default_backend" in names:
            asking.add(path.relative_to(root).as_posix())
    assert asking == ASKS
