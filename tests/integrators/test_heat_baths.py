"""Stochastic velocity rescaling and Andersen's thermostat: canonical kinetic energies, counted heat."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from physkit.core import (
    Clock,
    ComponentError,
    DeclarationError,
    ParameterError,
    StepCount,
    has_operation,
    param,
    put_component,
)
from physkit.integrators import (
    RK4,
    Andersen,
    NoseHooverChain,
    ThermostatChain,
    VelocityRescaling,
    VelocityVerlet,
)
from physkit.integrators.baths._bath import AbstractBath
from physkit.integrators.baths._gamma_variate import gamma_variate
from physkit.observe import ConservedEnergy, Every, Temperature
from physkit.particles import ParticleIncrement, Particles, kinetic_energy
from physkit.simulate import Simulation, simulate

from .problems import Pair, evolve, final_state

KEY = jax.random.key(3)


def chain(seed=0, **options):
    """Five bonded atoms in the plane, without total momentum."""
    draw = np.random.default_rng(seed)
    x = np.arange(5.0)[:, None] * [1.0, 0.2] + 0.1 * draw.normal(size=(5, 2))
    v, mass = draw.normal(size=(5, 2)), 1 + draw.random(5)
    return Particles(x, v - (mass @ v) / mass.sum(), mass, **options)


class Berendsen(AbstractBath):
    """Weak coupling to a bath, which is right on average and no more."""

    integrator: Any
    temperature: Any = param()

    def step(self, plan, clock, state, aux):
        inner, _ = aux
        state, inner = self.integrator.step(plan, clock, state, inner)
        ratio = 8 * self.temperature / (2 * kinetic_energy(state))
        factor = jnp.sqrt(1 + clock.dt / 0.3 * (ratio - 1))
        change = ParticleIncrement(velocity=(factor - 1) * state.velocity)
        return put_component(state, None, state.shift(change)), (inner, aux[1])


def kinetic_moments(bath, replicas=4000):
    """⟨K⟩/(N_f k_B T/2) and the variance of K over that of the canonical distribution, N_f (k_B T)²/2."""
    states = jax.tree.map(lambda *x: jnp.stack(x), *(chain(i) for i in range(8)))
    states = jax.tree.map(lambda x: jnp.tile(x, (replicas // 8, *(1,) * (x.ndim - 1))), states)

    def replica(state, key):
        def record(carry, n):
            key_n = jax.random.fold_in(key, n)
            carry = evolve(bath, carry[0], jnp.asarray(0.05), 4, key=key_n, aux=carry[1])
            return carry, kinetic_energy(carry[0])

        start = evolve(bath, state, jnp.asarray(0.05), 60, key=key)
        return jax.lax.scan(record, start, jnp.arange(12))[1]

    kinetic = jax.jit(jax.vmap(replica))(states, jax.random.split(KEY, replicas))
    degrees = 10.0 if isinstance(bath, Andersen) else 8.0
    return float(jnp.mean(kinetic)) / (degrees * 0.35), float(jnp.var(kinetic)) / (
        degrees * 0.49 / 2
    )


def motion():
    return VelocityVerlet(Pair(20.0))


@pytest.mark.parametrize(
    "bath",
    [
        VelocityRescaling(motion(), temperature=0.7, relaxation_time=0.3),
        pytest.param(Andersen(motion(), temperature=0.7, rate=2.0), marks=pytest.mark.slow),
    ],
    ids=["VelocityRescaling", "Andersen"],
)
def test_kinetic_energies_are_canonical(bath):
    """Mean and variance; the chain in the plane has 8 degrees of freedom where its momentum is conserved."""
    mean, variance = kinetic_moments(bath)
    assert mean == pytest.approx(1, abs=0.015)
    assert variance == pytest.approx(1, abs=0.04)


def test_weak_coupling_is_told_from_a_thermostat():
    """So the test above says something: Berendsen's mean is right, and its variance far too small."""
    mean, variance = kinetic_moments(Berendsen(motion(), temperature=0.7), replicas=800)
    assert mean == pytest.approx(1, abs=0.02)
    assert variance < 0.8


def test_the_kinetic_energy_relaxes_exactly_in_a_step_of_any_length():
    """⟨K'⟩ = K̄ + (K − K̄) e^(−dt/τ), also for dt longer than τ; free particles feel nothing but the bath."""
    free = Particles(np.eye(3, 2), np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, -0.5]]))
    bath = VelocityRescaling(VelocityVerlet(Pair(0.0)), temperature=2.0, relaxation_time=0.4)
    step = lambda dt, key: kinetic_energy(evolve(bath, free, dt, 1, key=key)[0])
    lengths = jnp.asarray([0.04, 0.4, 4.0])
    keys = jax.random.split(KEY, 20_000)
    after = jax.jit(jax.vmap(jax.vmap(step, (None, 0)), (0, None)))(lengths, keys)
    expected = 4.0 + (1.25 - 4.0) * np.exp(-np.asarray(lengths) / 0.4)
    np.testing.assert_allclose(jnp.mean(after, axis=1), expected, rtol=0.02)


@pytest.mark.parametrize(
    "kind", [pytest.param(VelocityRescaling, marks=pytest.mark.slow), Andersen]
)
def test_heat_is_counted(kind):
    """Kinetic, potential and the bath's energy together err as velocity Verlet does, with dt²."""
    options = {"rate": 1.0} if kind is Andersen else {"relaxation_time": 0.2}
    bath = kind(motion(), temperature=0.5, **options)

    @jax.jit
    def frames(dt):
        sim = Simulation(bath, dt=dt, observers=Every(1, e=ConservedEnergy(), t=Temperature()))
        return simulate(sim, chain(), 400, key=1).frames

    def spread(dt, steps):
        # One program, of as many steps as the shortest need, for all three.
        found = {name: np.asarray(x)[: steps + 1] for name, x in frames(dt).items()}
        # The bath itself changes the energy a lot.
        assert np.std(found["t"]) > 0.05
        return np.std(found["e"])

    errors = [spread(0.04, 100), spread(0.02, 200), spread(0.01, 400)]
    assert np.polyfit(np.log([4, 2, 1]), np.log(errors), 1)[0] == pytest.approx(2, abs=0.5)
    assert errors[-1] < 5e-3


def test_nose_hoover_inside_another_bath_is_counted_as_by_itself():
    hoover = NoseHooverChain(Pair(20.0, component="atoms"), 1.0, 1.0)
    state = {"atoms": chain(), "thermostat": ThermostatChain.at_rest()}
    clock = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(0.05))
    state, aux = evolve(hoover, state, jnp.asarray(0.05), 20)
    both = float(kinetic_energy(state["atoms"]) + hoover.force.terms[0].energy(clock, state))
    assert both + float(hoover.bath_energy(clock, state, aux)) == pytest.approx(
        float(hoover.conserved(clock, state, aux)), rel=1e-12
    )


def test_temperature_follows_a_function_of_time():
    """A ramp: the bath at its end is that of the end."""
    ramp = VelocityRescaling(
        motion(), temperature=lambda t: 0.1 + 0.9 * jnp.minimum(t / 5, 1), relaxation_time=0.05
    )

    def replica(key):
        return kinetic_energy(evolve(ramp, chain(), jnp.asarray(0.05), 140, key=key)[0])

    kinetic = jax.jit(jax.vmap(replica))(jax.random.split(KEY, 400))
    assert float(jnp.mean(kinetic)) == pytest.approx(4.0, rel=0.08)


class Ramp(eqx.Module):
    rate: Any

    def __call__(self, t):
        return self.rate * t


def test_parameters_of_a_ramp_have_derivatives():
    def end(rate):
        bath = VelocityRescaling(motion(), temperature=Ramp(rate), relaxation_time=0.2)
        return kinetic_energy(evolve(bath, chain(), jnp.asarray(0.05), 4, key=KEY)[0])

    slope = jax.jit(jax.grad(end))(1.0)
    difference = (jax.jit(end)(1.0 + 1e-5) - jax.jit(end)(1.0 - 1e-5)) / 2e-5
    assert float(slope) == pytest.approx(float(difference), rel=1e-6)
    assert abs(float(slope)) > 1e-3


def test_momentum_stays_and_is_counted():
    """Rescaling keeps the total momentum zero, so temperatures count d degrees less; collisions do not."""
    for kind, options, degrees in (
        (VelocityRescaling, {"relaxation_time": 0.2}, 8),
        (Andersen, {"rate": 1.0}, 10),
    ):
        bath = kind(motion(), temperature=0.5, **options)
        sim = Simulation(bath, dt=0.05, observers=Every(1, t=Temperature()))
        result = simulate(sim, chain(), 1, key=1)
        expected = 2 * float(kinetic_energy(result.state)) / degrees
        assert float(result.frames["t"][-1]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_frozen_particles_stay_and_a_system_at_rest_stays_at_rest():
    frozen = np.array([False, True, False, False, True])
    state = chain(frozen=frozen)
    for bath in (
        VelocityRescaling(motion(), 0.5, 0.2),
        Andersen(motion(), 0.5, 5.0),
    ):
        out = final_state(bath, state, 0.05, 3, key=KEY)
        np.testing.assert_array_equal(out.velocity[frozen], state.velocity[frozen])
        assert np.abs(out.velocity - state.velocity)[~frozen].min() > 0
    still = Particles(np.eye(2))
    out = final_state(
        VelocityRescaling(VelocityVerlet(Pair(0.0)), 0.5, 0.2), still, 0.1, 2, key=KEY
    )
    np.testing.assert_array_equal(out.velocity, 0)


def test_mistakes_are_errors():
    with pytest.raises(DeclarationError, match=r"write VelocityVerlet\(force\)"):
        VelocityRescaling(Pair(), 1.0, 1.0)
    with pytest.raises(ParameterError, match="relaxation_time must be positive; got 0"):
        VelocityRescaling(motion(), 1.0, 0.0)
    with pytest.raises(ParameterError, match="temperature must not be negative; got -1"):
        VelocityRescaling(motion(), -1.0, 1.0)
    with pytest.raises(ParameterError, match="rate must not be negative"):
        Andersen(motion(), 1.0, -1.0)
    with pytest.raises(ValueError, match="give a key"):
        final_state(VelocityRescaling(motion(), 1.0, 1.0), chain(), 0.1, 1)
    no_motion = VelocityRescaling(RK4(lambda t, s: s), 1.0, 1.0)
    with pytest.raises(ComponentError, match="bath of particles"):
        evolve(no_motion, jnp.ones(3), jnp.asarray(0.1), 1, key=KEY)

    def position(temperature, time):
        bath = VelocityRescaling(motion(), temperature, time)
        return evolve(bath, chain(), jnp.asarray(0.1), 2, key=KEY)[0].position

    traced = jax.jit(position)
    assert np.isnan(traced(-0.1, 1.0)).all()
    assert np.isnan(traced(0.1, 0.0)).all()
    assert np.isfinite(traced(0.1, 1.0)).all()


@pytest.mark.parametrize("shape", [0.5, 1.0, 3.5, 1e4])
def test_sums_of_squares_are_drawn_without_a_loop(shape, dtype):
    """A loop would make a GPU's host wait in every step."""
    draw = jax.vmap(gamma_variate, (0, None))
    keys, shape = jax.random.split(KEY, 20_000), jnp.asarray(shape, dtype)
    found = jax.jit(draw)(keys, shape)
    assert found.dtype == dtype
    assert scipy.stats.kstest(found, "gamma", args=(float(shape),)).pvalue > 1e-3
    jaxpr = jax.make_jaxpr(draw)(keys, shape).jaxpr
    assert not has_operation(jaxpr, frozenset({"while", "scan"}))
