"""In programs for NVIDIA's GPUs sums over pairs and fluxes are one kernel each, which Triton compiles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from benchmarks.gpu._count import Program
from benchmarks.gpu._systems import forward_program
from benchmarks.gpu._target import MISSING, as_h100, has_compiler, lower_for_h100
from physkit import systems
from physkit.core import Clock, StepCount
from physkit.particles.forces.pairs._direct_gravity import _attraction_by_blocks

from .lowering import findings

CLOCK = Clock.at(StepCount.of(0), 0.0, 0.01)
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


def _rate_of_gas(density):
    grid = pk.Grid(pk.Box((1.0, 1.0)), (8, 6))
    like = jnp.broadcast_to(density, grid.shape)
    velocity = jnp.stack([like, -like])
    gas = pk.components.Gas.from_primitive(grid, like, velocity, like, gamma=1.4)
    # The smallest functions at faces: those of higher order are traced for seconds.
    law = pk.equations.CompressibleEuler(
        1.4, pk.riemann.Rusanov(), pk.reconstructions.PiecewiseConstant()
    )
    rates = law.rate(CLOCK, gas)
    return sum(jnp.sum(jnp.cos(x)) for x in jax.tree.leaves(rates))


def test_fluxes_across_each_axis_are_one_and_so_are_their_cotangents():
    row = jax.ShapeDtypeStruct((6,), jnp.float64)
    for function, count in ((_rate_of_gas, 2), (jax.grad(_rate_of_gas), 4)):
        with as_h100():
            text = jax.jit(function).trace(row).lower(lowering_platforms=("cuda",)).as_text()
        # On the way back fluxes themselves are not needed, but their kernel is a part of the program until
        # XLA drops it.
        assert count // 2 <= text.count(f"@{KERNEL}") <= count


@pytest.mark.skipif(
    hasattr(jax.sharding, "AbstractDevice"), reason="without a GPU this JAX makes no kernels there"
)
def test_fluxes_in_a_users_shard_map():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",))
    each = jax.sharding.PartitionSpec("d")
    gradients = jax.vmap(jax.grad(_rate_of_gas))
    sharded = jax.shard_map(gradients, mesh=mesh, in_specs=each, out_specs=each)
    rows = jax.ShapeDtypeStruct((2, 6), jnp.float64)
    assert KERNEL in jax.jit(sharded).trace(rows).lower(lowering_platforms=("cuda",)).as_text()


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
