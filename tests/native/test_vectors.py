"""The inner loops of native code are vector instructions."""

import contextlib
import platform
import re
import subprocess

import jax
import jax.numpy as jnp
import pytest

import physkit as pk
from physkit.core import cast_floats
from physkit.native import NotTranslatableError, _compiler, _sum_over_partners, sum_over_partners
from physkit.particles.forces.pairs._pair_kernels import PairKernel, pair_arrays

CUTOFF = 2.5
POTENTIALS = {
    "Lennard-Jones": pk.LennardJones(),
    "Coulomb": pk.Coulomb(),
    "screened": pk.potentials.Yukawa(1.0, 0.5),
}


def _code(potential, dtype, is_listed, monkeypatch):
    """The C code of a pair force."""
    sources = []
    monkeypatch.setattr(_sum_over_partners, "load_handler", lambda code, *_: sources.append(code))
    position = jnp.arange(24, dtype=dtype).reshape(8, 3)
    state = pk.Particles(position, charge=jnp.ones(8, dtype), space=pk.Box.cube(dtype(30)))
    potential = cast_floats(potential, dtype)
    force = cast_floats(pk.Pairwise(potential, CUTOFF), dtype)
    arrays, context = pair_arrays(state, potential), force._context(state)
    index = jnp.zeros((8, 5), jnp.int32) if is_listed else None
    with contextlib.suppress(NotTranslatableError):  # what takes the code has made no handler of it
        jax.eval_shape(
            lambda *leaves: sum_over_partners(PairKernel("force", CUTOFF), *leaves, index),
            arrays,
            arrays,
            context,
        )
    return sources[0]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize("name", POTENTIALS)
def test_forces_are_vector_instructions(name, dtype, is_listed, monkeypatch):
    compiler = _compiler.c_compiler()
    if platform.machine() != "x86_64" or compiler is None or "clang" in compiler[0]:
        pytest.skip("looks at what GCC makes for processors with AVX2")
    code = _code(POTENTIALS[name], dtype, is_listed, monkeypatch)
    command = [*compiler, *_compiler._OPTIONS, "-march=x86-64-v3", "-fno-trapping-math"]
    command += [f"-I{jax.ffi.include_dir()}", "-S", "-x", "c", "-", "-o", "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=True)
    letter = "s" if dtype == jnp.float32 else "d"
    # Each force divides. Single divisions, too, are there: of what is left over by full registers.
    assert re.search(rf"\bvdivp{letter}\s", done.stdout)
