"""Stochastic differential equations: paths against exact ones, moments, noise that belongs to the step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import DeclarationError, Function, ParameterError, ShapeError
from physkit.integrators import EulerMaruyama, StochasticHeun
from physkit.testing import check_integrator

KEY = jax.random.key(3)
GROWTH, NOISE = 0.3, 0.7


def drift(t, y):
    return jnp.stack([GROWTH * y[0], 0 * y[1]])


def one_wiener_process(t, y):
    """The second number is the path of the noise itself, so that the exact solution is known for every dt."""
    return jnp.stack([NOISE * y[0], jnp.ones_like(y[1])])[:, None]


@pytest.mark.parametrize(
    ("kind", "order", "exact_growth"),
    [(EulerMaruyama, 0.5, GROWTH - NOISE**2 / 2), (StochasticHeun, 1.0, GROWTH)],
)
def test_paths_of_geometric_brownian_motion(kind, order, exact_growth):
    """y = y₀ exp((a − b²/2) t + b W) in Itô's sense, y₀ exp(a t + b W) in Stratonovich's."""
    errors, step_counts = [], (8, 32, 128)
    for n in step_counts:
        sim = pk.Simulation(kind(drift, diffusion=one_wiener_process), dt=1 / n)
        end = lambda key, sim=sim, n=n: pk.simulate(sim, jnp.array([1.0, 0.0]), n, key=key).state
        y, w = jax.jit(jax.vmap(end))(jax.random.split(KEY, 2000)).T
        errors.append(float(jnp.mean(abs(y - jnp.exp(exact_growth + NOISE * w)))))
    slope = -np.polyfit(np.log(step_counts), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.12)


def ensemble(method, start, dt, steps, count):
    sim = pk.Simulation(method, dt=dt)
    run = lambda key: pk.simulate(sim, start, steps, key=key).state
    return jax.jit(jax.vmap(run))(jax.random.split(KEY, count))


def test_moments_of_an_ornstein_uhlenbeck_process(dtype):
    """Each number of a tree has noise of its own; y' = (1 − θdt) y + b √dt ξ is a chain in closed form."""
    theta, b, dt = 1.5, np.array([0.5, 2.0]), 0.1
    start = {"a": jnp.ones(2, dtype), "b": jnp.zeros((), dtype)}
    method = EulerMaruyama(
        lambda t, y: jax.tree.map(lambda x: -theta * x, y),
        diffusion=lambda t, y: {"a": jnp.asarray(b, dtype), "b": jnp.ones((), dtype)},
    )
    end = ensemble(method, start, dt, 20, 20_000)
    assert end["a"].dtype == dtype
    decay = 1 - theta * dt
    variance = dt * (1 - decay**40) / (1 - decay**2)
    found = jnp.concatenate([end["a"], end["b"][:, None]], axis=1)
    np.testing.assert_allclose(jnp.mean(found, axis=0), decay**20 * np.array([1, 1, 0]), atol=0.05)
    expected = np.diag(variance * np.array([*(b**2), 1]))
    np.testing.assert_allclose(np.cov(found.T), expected, atol=0.05 * variance * 4)


def test_noise_does_not_depend_on_chunks():
    sim = pk.Simulation(StochasticHeun(lambda t, y: -y, diffusion=0.3), dt=0.1)
    whole = pk.simulate(sim, jnp.ones(3), 6, key=KEY)
    half = pk.simulate(sim, jnp.ones(3), 4, key=KEY)
    np.testing.assert_array_equal(whole.state, pk.simulate(sim, half.carry, 2).state)
    assert len(set(np.asarray(whole.state).tolist())) == 3


@pytest.mark.parametrize(
    "kind", [EulerMaruyama, pytest.param(StochasticHeun, marks=pytest.mark.slow)]
)
def test_battery(kind):
    method = kind(
        Function(lambda t, y, k: -k * y**3, jnp.array(0.8)),
        diffusion=Function(lambda t, y, b: b * jnp.cos(y), jnp.array(0.4)),
    )
    check_integrator(method, jnp.array([0.7, -0.4]), 0.1, key=KEY)


def test_wrong_use_is_named():
    rest = lambda t, y: -y
    particles = pk.Particles(jnp.zeros((2, 3)))
    cases = (
        (lambda: EulerMaruyama(rest), DeclarationError, "diffusion"),
        (
            lambda: start(EulerMaruyama(rest, diffusion=1.0), particles),
            DeclarationError,
            "Brownian",
        ),
        (lambda: start(EulerMaruyama(rest, diffusion=jnp.ones(2)), jnp.ones(3)), ShapeError, "'m'"),
        (
            lambda: start(EulerMaruyama(rest, diffusion=1.0), jnp.ones(3), None),
            ParameterError,
            "key",
        ),
        (lambda: start(EulerMaruyama(rest, diffusion=1.0), jnp.ones(3, int)), ShapeError, "int"),
    )
    for make, error, match in cases:
        with pytest.raises(error, match=match):
            make()


def start(method, state, key=KEY):
    return pk.simulate(pk.Simulation(method, dt=0.1), state, 1, key=key)
