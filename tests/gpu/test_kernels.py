"""Sums over pairs in programs for NVIDIA's GPUs are one kernel, which Triton compiles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.gpu._count import Program
from benchmarks.gpu._systems import forward_program
from benchmarks.gpu._target import MISSING, as_h100, has_compiler, lower_for_h100
from physkit import systems
from physkit.particles.forces.pairs._direct_gravity import _attraction_by_blocks

from .lowering import findings

KERNEL = "__gpu$xla.gpu.triton"


@pytest.fixture(autouse=True)
def with_kernels(without_native_code, monkeypatch):
    monkeypatch.setenv("PHYSKIT_NATIVE", "cuda")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lowered_without_a_gpu(dtype):
    row = jax.ShapeDtypeStruct((4096,), dtype)
    traced = jax.jit(lambda x: _attraction_by_blocks((x, x), x, x[0]))
    with as_h100():
        text = traced.trace(row).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count(f"@{KERNEL}") == 1
    assert dtype == np.float64 or findings(text) == ["calls __gpu"]
    # Only for CUDA.
    assert KERNEL not in traced.trace(row).lower(lowering_platforms=("tpu",)).as_text()


def test_sums_over_few_pairs_are_no_kernels():
    row = jax.ShapeDtypeStruct((5,), jnp.float32)
    traced = jax.jit(lambda x: _attraction_by_blocks((x, x), x, x[0]))
    with as_h100():
        assert KERNEL not in traced.trace(row).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.slow
@pytest.mark.skipif(not has_compiler(), reason=MISSING)
def test_each_loop_over_steps_of_a_melt_has_one(monkeypatch):
    texts, costs = {}, {}
    for chosen in ("cuda", "0"):
        monkeypatch.setenv("PHYSKIT_NATIVE", chosen)
        jax.clear_caches()
        program, arguments = forward_program(systems.lennard_jones_melt(cells=6))
        texts[chosen] = lower_for_h100(program, *arguments).compile().as_text()
        costs[chosen] = Program(texts[chosen]).step()
    # Of steps in groups, and of those that fill none.
    assert texts["cuda"].count(f'custom_call_target="{KERNEL}"') == 2
    assert KERNEL not in texts["0"]
    # XLA makes two kernels of the sum.
    assert costs["cuda"].launches < costs["0"].launches
