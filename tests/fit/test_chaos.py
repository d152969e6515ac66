"""Growth of gradients: chaos where it is, none where it is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ParameterError, PhyskitError

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_lorenz_is_chaotic",
    "test_regular_systems_are_not_chaotic[kepler]",
    "test_regular_systems_are_not_chaotic[at rest]",
    "test_noise_needs_a_key_and_is_not_chaos",
    "test_the_picture_of_growth",
)


def test_lorenz_is_chaotic():
    sim, state = pk.systems.lorenz()
    growth = pk.fitting.gradient_growth(sim, state, 100_000)
    assert growth.chaotic
    assert abs(growth.exponent - 0.9056) < 3 * growth.error < 0.12
    np.testing.assert_allclose(growth.lyapunov_time, 1 / growth.exponent)
    assert "chaotic" in str(growth)
    assert f"{growth.safe_steps} steps" in str(growth)


def test_the_safe_window_is_where_a_gradient_passes_the_factor():
    sim, state = pk.systems.lorenz()
    state = pk.simulate(sim, state, 3_000).state
    growth = pk.fitting.gradient_growth(sim, state, 2_000, every=20, factor=100.0)
    assert 1 < growth.safe_time < 15

    def largest(steps):
        end = lambda s: pk.simulate(sim, s, steps).state
        return float(np.linalg.norm(jax.jacfwd(end)(state), 2))

    # The measure's directions are random: no longer than the longest, seldom much shorter.
    assert 80 < largest(growth.safe_steps) < 1_000
    assert largest(growth.safe_steps // 4) < 50


@pytest.mark.parametrize("name", ["kepler", "harmonic", "at rest"])
def test_regular_systems_are_not_chaotic(name):
    if name == "kepler":
        sim, state = pk.systems.kepler(0.3)
        growth = pk.fitting.gradient_growth(sim, state, 4_000)
        assert 0.7 < growth.power < 1.3  # neighbors on other ellipses have other periods
    else:
        sim = pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.0)), dt=0.05)
        x = jnp.zeros((1, 2)) if name == "at rest" else jnp.array([[1.0, 0.5]])
        growth = pk.fitting.gradient_growth(sim, pk.Particles(x), 2_000)
        assert abs(growth.power) < 0.05
        assert growth.safe_steps == 2_000
    assert not growth.chaotic
    assert growth.lyapunov_time == np.inf
    assert "no exponential growth" in str(growth)


def _fluid(dtype=float):
    """A crystal that melts within the part of the run that `gradient_growth` leaves out."""
    return pk.systems.lennard_jones_melt(
        2, density=0.6, temperature=3.0, cutoff=1.55, truncation="shifted-force", dtype=dtype
    )


@pytest.mark.parametrize(
    "dtype", [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.slow)], ids=["f32", "f64"]
)
def test_a_fluid_is_chaotic(dtype):
    sim, atoms = _fluid(dtype)
    carry = pk.init(sim, atoms, capacity=31)  # a carry will do: this one has room for all pairs
    growth = pk.fitting.gradient_growth(sim, carry, 800, every=20)
    assert growth.chaotic
    assert 1.0 < growth.exponent < 6


@pytest.mark.slow
def test_a_fluid_against_two_runs_side_by_side():
    """λ of the derivative, and of a second run 10⁻⁷ away that is pulled back every 0.05."""
    sim, atoms = _fluid()
    growth = pk.fitting.gradient_growth(sim, atoms, 4_000, every=10)
    bare = pk.Simulation(sim.integrator, dt=sim.dt)
    atoms = pk.simulate(bare, pk.init(bare, atoms, capacity=31), 1_000).state
    advance = jax.jit(lambda s: pk.simulate(bare, pk.init(bare, s, capacity=31), 10).state)
    join = lambda s: jnp.concatenate([s.unwrapped, s.velocity])
    noise = jax.random.normal(jax.random.key(1), (2, *atoms.position.shape))

    def displaced(s, d):
        return s.shift(
            pk.components.ParticleIncrement(position=d[: len(d) // 2], velocity=d[len(d) // 2 :])
        )

    d = 1e-7 * noise.reshape(-1, 3) / jnp.linalg.norm(noise)
    rates = []
    for _ in range(400):
        here, there = advance(atoms), advance(displaced(atoms, d))
        d = join(there) - join(here)
        size = jnp.linalg.norm(d)
        rates.append(float(jnp.log(size / 1e-7)) / 0.05)
        atoms, d = here, 1e-7 * d / size
    block = pk.statistics.block_average(np.array(rates[100:]))
    assert abs(block.mean - growth.exponent) < 4 * np.hypot(block.error, growth.error)


def test_noise_needs_a_key_and_is_not_chaos():
    sim = pk.Simulation(pk.BAOAB(pk.HarmonicTrap(1.0), temperature=1.0, friction=0.1), dt=0.05)
    growth = pk.fitting.gradient_growth(
        sim, pk.Particles(jnp.ones((1, 1))), 1_000, key=jax.random.key(3)
    )
    assert not growth.chaotic
    assert growth.exponent < 0  # friction forgets the start


def test_bad_input_is_refused():
    sim, state = pk.systems.lorenz()
    for wrong in (
        {"steps": 5},
        {"steps": 100, "every": 50},
        {"steps": 100, "factor": 1.0},
        {"steps": 100, "directions": 0},
        {"steps": 100, "every": 0},
    ):
        with pytest.raises(ParameterError, match="gradient_growth needs"):
            pk.fitting.gradient_growth(sim, state, **wrong)
    wild = pk.Simulation(pk.Euler(pk.Function(lambda t, x: x**3)), dt=1.0)
    with pytest.raises(PhyskitError, match="finite"):
        pk.fitting.gradient_growth(wild, jnp.ones(2), 40, every=1)


def test_the_picture_of_growth():
    sim, state = pk.systems.lorenz()
    ax = pk.plot.gradient_growth(pk.fitting.gradient_growth(sim, state, 20_000))
    assert any("exp" in text.get_text() for text in ax.get_legend().get_texts())
    sim, state = pk.systems.kepler(0.3)
    pk.plot.gradient_growth(pk.fitting.gradient_growth(sim, state, 400), ax=ax)
    with pytest.raises(ParameterError, match="draws what gradient_growth"):
        pk.plot.gradient_growth(3.0)
