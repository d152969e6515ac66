"""Derivatives of ensemble means: independent of the chunk size, in the memory of one chunk."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import physkit as pk
from physkit.core import ParameterError, ShapeError
from physkit.ensemble import ensemble_mean

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_mean_and_gradient_do_not_depend_on_the_chunk_size",
    "test_a_diverged_member_makes_the_mean_nan",
)

KEYS = jax.random.split(jax.random.key(5), 23)


def observe_trapped_particle(friction, key, temperature=0.5, steps=30):
    """Squared position and path of a trapped particle in a thermostat of this friction."""
    bath = pk.BAOAB(pk.HarmonicTrap(1.0), temperature=temperature, friction=friction)
    bead = pk.Particles(jnp.ones((1, 1)))
    sim = pk.Simulation(bath, dt=0.1, observers=pk.Every(5, x=pk.Positions()))
    done = pk.simulate(sim, bead, steps, key=key)
    return {"square": done.state.position[0, 0] ** 2, "path": done.frames["x"][:, 0, 0]}


def mean_square(friction, chunk_size=None):
    return ensemble_mean(
        lambda key: observe_trapped_particle(friction, key), KEYS, chunk_size=chunk_size
    )["square"]


@pytest.mark.parametrize("chunk", [5, pytest.param(22, marks=pytest.mark.slow)])
def test_mean_and_gradient_do_not_depend_on_the_chunk_size(chunk):
    """Of 23 members; equal to a loop, to all at once, and to finite differences."""
    g = jnp.asarray(0.7)
    both = jax.jit(jax.value_and_grad(mean_square), static_argnums=1)
    one = jax.jit(lambda key: observe_trapped_particle(g, key)["square"])
    one_by_one = [float(one(key)) for key in KEYS]
    value, slope = both(g, None)
    assert float(value) == pytest.approx(np.mean(one_by_one), rel=1e-12)
    # With a rest of 3, and of 1.
    np.testing.assert_allclose(both(g, chunk), (value, slope), rtol=1e-11)
    h = 1e-5
    difference = (both(g + h, chunk)[0] - both(g - h, chunk)[0]) / (2 * h)
    np.testing.assert_allclose(slope, difference, rtol=1e-7)
    assert abs(float(slope)) > 1e-3


@pytest.mark.slow
def test_forward_mode_vmap_and_arrays():
    g = jnp.asarray(0.7)
    slope = jax.jit(jax.grad(mean_square), static_argnums=1)(g, 5)
    _, forward = jax.jit(lambda g: jax.jvp(lambda g: mean_square(g, 5), (g,), (jnp.ones(()),)))(g)
    np.testing.assert_allclose(forward, slope, rtol=1e-11)
    both = jax.jit(jax.vmap(lambda g: mean_square(g, 5)))(jnp.asarray([0.7, 0.9]))
    np.testing.assert_allclose(both[0], mean_square(g), rtol=1e-11)
    path = ensemble_mean(lambda key: observe_trapped_particle(g, key)["path"], KEYS, chunk_size=5)
    assert path.shape == (7,)
    assert float(path[0]) == pytest.approx(1, rel=1e-12)


def gradient_bytes(members, chunk):
    """Bytes of temporaries of a gradient through a field of 400 cells, 64 steps."""
    grid = pk.Grid([1.0], (400,))
    starts = jnp.ones((members, 400))

    def loss(nu):
        def one(start):
            sim = pk.Simulation(
                pk.RK4(pk.equations.Diffusion(nu)), dt=1e-7, adjoint=pk.adjoints.Direct()
            )
            return jnp.sum(pk.simulate(sim, pk.Field(start, grid), 64).state.data ** 2)

        return ensemble_mean(one, starts, chunk_size=chunk)

    compiled = jax.jit(jax.grad(loss)).lower(jnp.asarray(1e-3)).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_gradient_needs_the_memory_of_one_chunk():
    one_chunk, many = gradient_bytes(4, None), gradient_bytes(64, 4)
    assert many < 1.2 * one_chunk + 64 * 400 * 8  # the members themselves
    assert gradient_bytes(64, None) > 8 * one_chunk


@pytest.mark.slow
def test_stochastic_optimization_finds_the_friction():
    """From ⟨x(t)⟩ at friction 0.4, with fresh noise in every step."""
    path = lambda friction, keys: ensemble_mean(
        lambda key: observe_trapped_particle(friction, key)["path"], keys, chunk_size=100
    )
    data = observe_trapped_particle(0.4, KEYS[0], temperature=0.0)[
        "path"
    ]  # what the mean is in a harmonic trap
    optimizer = optax.adam(0.1)
    x = jnp.log(jnp.asarray(1.0))
    optimizer_state = optimizer.init(x)

    @jax.jit
    def step(i, x, optimizer_state):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(1), i), 400)
        loss = lambda x: jnp.sum((path(jnp.exp(x), keys) - data) ** 2)
        updates, optimizer_state = optimizer.update(jax.grad(loss)(x), optimizer_state)
        return optax.apply_updates(x, updates), optimizer_state

    tail = []
    for i in range(60):
        with jax.numpy_dtype_promotion("standard"):  # of the optimizer
            x, optimizer_state = step(i, x, optimizer_state)
        tail.append(float(jnp.exp(x)))
    assert np.mean(tail[-20:]) == pytest.approx(0.4, rel=0.05)


def test_a_diverged_member_makes_the_mean_nan():
    starts = jnp.asarray([1.0, jnp.inf, 2.0])
    assert jnp.isnan(ensemble_mean(lambda x: x - x, starts, chunk_size=1))


def test_bad_members_and_chunk_sizes_are_refused():
    f = lambda x: x
    with pytest.raises(ParameterError, match="chunk"):
        ensemble_mean(f, jnp.ones(3), chunk_size=0)
    with pytest.raises(ParameterError, match="got none"):
        ensemble_mean(f, jnp.ones(0))
    with pytest.raises(ShapeError, match="members must be the first axis"):
        ensemble_mean(lambda x: x[0], (jnp.ones(3), jnp.ones(2)))
    with pytest.raises(ParameterError, match="floating-point"):
        ensemble_mean(f, jnp.arange(3))
