"""The physics of a step is traced once for all of its stages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.integrators._trace_once import trace_once


@pytest.mark.parametrize("method", [pk.RK4, pk.SSPRK3, pk.ETDRK4, pk.integrators.ARS222])
def test_stages_share_one_trace(method):
    calls = []

    def source(t, u):
        calls.append(t)
        return jnp.sin(t) - u.data**3

    grid = pk.Grid([1.0], (8,))
    start = pk.Field.from_function(grid, lambda x: jnp.cos(2 * jnp.pi * x))
    sim = pk.Simulation(method(pk.equations.Diffusion(1e-3), source), dt=0.1)
    carry = pk.init(sim, start)
    calls.clear()
    program = jax.jit(lambda carry: pk.simulate(sim, carry, 3).state.data)
    lowered = program.lower(carry)
    # By the loop twice at most: JAX traces its body again where types are settled.
    assert 1 <= len(calls) <= 2
    # Stages have times of their own; a plain loop over stages is the reference.
    calls.clear()
    with jax.disable_jit():
        plain = pk.simulate(sim, carry, 3).state.data
    assert len(calls) > 3
    np.testing.assert_allclose(lowered.compile()(carry), plain, rtol=1e-13, atol=1e-13)


def test_arguments_of_other_shapes_and_static_parts_are_told_apart():
    shapes = []

    def function(x, name):
        shapes.append((x.shape, name))
        return {"sum": jnp.sum(x), name: 2 * x, "name": name}

    def step(x):
        once = trace_once(function)
        found = [once(x, "a"), once(x + 1, "a"), once(x[:2], "a"), once(x, "b")]
        assert [f["name"] for f in found] == ["a", "a", "a", "b"]
        return [f["sum"] for f in found], found[3]["b"]

    sums, double = jax.jit(step)(jnp.arange(3.0))
    assert [float(s) for s in sums] == [3.0, 6.0, 1.0, 3.0]
    np.testing.assert_array_equal(double, [0.0, 2.0, 4.0])
    assert shapes == [((3,), "a"), ((2,), "a"), ((3,), "b")]


@pytest.mark.parametrize(
    "others", [(1, 1.0), (1, True), (0.0, -0.0), ((None, 2), (2, None))], ids=str
)
def test_equal_numbers_of_other_types_are_told_apart(others):
    seen = []

    def step(x):
        once = trace_once(lambda x, other: seen.append(other) or 2 * x)
        return [once(x, other) for other in others]

    jax.jit(step)(jnp.ones(2))
    assert repr(tuple(seen)) == repr(others)


def test_numbers_of_the_trace_around_it_and_derivatives():
    def loss(k, x):
        once = trace_once(lambda x: jnp.sin(k * x))  # closes over a traced number
        return jnp.sum(once(once(x)))

    x = jnp.arange(1.0, 4.0)
    plain = lambda k, x: jnp.sum(jnp.sin(k * jnp.sin(k * x)))
    for transform in (jax.grad, jax.hessian, lambda f: jax.vmap(f, (0, None))):
        k = jnp.ones(2) if transform not in (jax.grad, jax.hessian) else 1.3
        np.testing.assert_allclose(
            jax.jit(transform(loss))(k, x), transform(plain)(k, x), rtol=1e-12
        )


def test_what_is_not_traced_runs_as_it_is():
    calls = []
    once = trace_once(lambda x: calls.append(x) or 2 * x)
    assert (once(1.0), once(jnp.ones(())), once(1.0)) == (2.0, 2.0, 2.0)
    assert len(calls) == 3
