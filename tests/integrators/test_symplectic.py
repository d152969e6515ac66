"""Energy, time reversal and long orbits of the splitting methods."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Clock, StepCount
from physkit.integrators import (
    PEFRL,
    RK4,
    BlanesMoan,
    EquationsOfMotion,
    KahanLi,
    Leapfrog,
    Suzuki,
    VelocityVerlet,
    Yoshida,
)
from physkit.integrators._splitting_coefficients import (
    BLANES_MOAN,
    KAHAN_LI,
    PEFRL_STAGES,
    SUZUKI,
    YOSHIDA,
)
from physkit.particles import Particles, angular_momentum, total_momentum

from .problems import Central, Pair, Sine, Spring, evolve, final_state, orbit, particle_pendulum

SYMPLECTIC = [
    (VelocityVerlet, 200),
    (Leapfrog, 200),
    (Yoshida, 100),
    (lambda f: Yoshida(f, order=6), 100),
    (lambda f: Yoshida(f, order=8), 100),
    (Suzuki, 100),
    (KahanLi, 60),
    (lambda f: KahanLi(f, order=6), 60),
    (BlanesMoan, 60),
    (lambda f: BlanesMoan(f, order=6), 60),
    (PEFRL, 100),
]


def energies(integrator, force, state, dt, steps, every):
    """Total energy every so many steps."""
    clock = Clock.at(StepCount.of(0), jnp.asarray(0.0), jnp.asarray(dt))

    def energy(s):
        return 0.5 * jnp.sum(s.mass[:, None] * s.velocity**2) + force.energy(clock, s)

    @jax.jit
    def run(s):
        plan = integrator.prepare(s, clock.dt)
        step = lambda i, c: integrator.step(plan, clock, *c)

        def block(c, _):
            c = jax.lax.fori_loop(0, every, step, c)
            return c, energy(c[0])

        return jax.lax.scan(block, (s, integrator.init(plan, clock, s)), None, steps // every)[1]

    return np.asarray(run(state)), float(energy(state))


def energy_errors(integrator, force, per_orbit, orbits=300):
    """Mean and largest energy error in each tenth of the time; every 7 steps, not to beat with the orbit."""
    steps = orbits * per_orbit // 70 * 70
    values, start = energies(integrator, force, orbit(), 2 * np.pi / per_orbit, steps, 7)
    error = np.abs(values - start).reshape(10, -1)
    return error.mean(axis=1), error.max(axis=1)


@pytest.mark.parametrize(("method", "per_orbit"), SYMPLECTIC)
def test_no_secular_drift_of_a_kepler_orbit(method, per_orbit):
    """300 orbits of eccentricity ½: the energy error is no larger at the end than at the start."""
    mean, largest = energy_errors(method(Central()), Central(), per_orbit)
    assert mean[-1] < 1.3 * mean[0] + 1e-13
    assert largest[-1] < 1.3 * largest[0] + 1e-13


def test_runge_kutta_has_a_secular_drift():
    """The test above can fail."""
    mean, largest = energy_errors(RK4(EquationsOfMotion(Central())), Central(), 100)
    assert mean[-1] > 5 * mean[0]
    assert largest[-1] > 5 * largest[0]


def test_energy_error_of_velocity_verlet_falls_as_dt_squared():
    force, steps = Sine(), np.array([400, 800, 1600, 3200])
    state = particle_pendulum().state
    worst = []
    for n in steps:
        values, start = energies(VelocityVerlet(force), force, state, 40 / n, int(n), 1)
        worst.append(np.abs(values - start).max())
    assert np.polyfit(np.log(1 / steps), np.log(worst), 1)[0] == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize(("method", "per_orbit"), SYMPLECTIC)
def test_negative_steps_undo_positive_steps(method, per_orbit):
    state, dt = orbit(), 2 * np.pi / per_orbit
    after = final_state(method(Central()), state, dt, 2 * per_orbit)
    assert np.abs(after.position - state.position).max() > 1e-14
    back = final_state(method(Central()), after, -dt, 2 * per_orbit)
    np.testing.assert_allclose(back.position, state.position, atol=1e-10)
    np.testing.assert_allclose(back.velocity, state.velocity, atol=1e-10)


def test_angular_momentum_is_kept_to_rounding():
    out = final_state(Yoshida(Central()), orbit(), 0.05, 1000)
    assert float(angular_momentum(out)) == pytest.approx(
        float(angular_momentum(orbit())), rel=1e-12
    )


def test_momentum_is_kept_to_rounding():
    draw = np.random.default_rng(0)
    state = Particles(draw.random((6, 3)), draw.random((6, 3)), 1 + draw.random(6))
    out = final_state(VelocityVerlet(Pair()), state, 0.05, 100)
    np.testing.assert_allclose(total_momentum(out), total_momentum(state), rtol=1e-12)


@pytest.mark.parametrize("gamma", [*YOSHIDA.values(), *SUZUKI.values(), *KAHAN_LI.values()])
def test_compositions_are_symmetric_and_fill_the_step(gamma):
    assert gamma == gamma[::-1]
    assert sum(gamma) == pytest.approx(1, abs=1e-14)
    assert sum(g**3 for g in gamma) == pytest.approx(0, abs=1e-14)  # order 4


@pytest.mark.parametrize("stages", [*BLANES_MOAN.values(), PEFRL_STAGES])
def test_splittings_are_symmetric_and_fill_the_step(stages):
    for weights in stages:
        np.testing.assert_allclose(weights, weights[::-1], rtol=1e-15)
        assert sum(weights) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize(
    ("method", "evaluations"),
    [
        (Yoshida, 3),
        (lambda f: Yoshida(f, order=6), 7),
        (lambda f: Yoshida(f, order=8), 15),
        (Suzuki, 5),
        (lambda f: Suzuki(f, order=6), 25),
        (lambda f: KahanLi(f, order=6), 9),
        (KahanLi, 17),
        (BlanesMoan, 6),
        (lambda f: BlanesMoan(f, order=6), 11),
        (PEFRL, 4),
    ],
)
def test_force_evaluations_a_step(method, evaluations):
    """As the docstrings say: drifts with a force after (or before) each of them."""
    integrator = method(Spring())
    stages = getattr(integrator, "stages", PEFRL_STAGES)
    assert min(len(stages[0]), len(stages[1])) == evaluations


def test_frozen_particles_stay():
    state = Particles([[1.0], [2.0]], [[0.5], [0.5]], frozen=[False, True])

    @jax.jit
    def by_each(state):
        dt = jnp.asarray(0.1)
        return [evolve(method(Spring()), state, dt, 3)[0] for method, _ in SYMPLECTIC]

    for out in by_each(state):
        assert float(out.position[1, 0]) == 2.0
        assert float(out.position[0, 0]) != 1.0


def test_init_evaluates_the_force_at_the_start_time():
    """A drive that is not zero at t₀: the first kick must know."""
    force = Spring(1.0, drive=1.0)
    state, _ = evolve(
        VelocityVerlet(force), particle_pendulum().state, jnp.asarray(1e-3), 1, t0=np.pi / 2
    )
    assert float(state.velocity[0, 0]) == pytest.approx(-2 * 1.2e-3, rel=1e-5)


def test_accuracy_at_equal_cost_is_as_the_docstrings_say():
    """Ten orbits of eccentricity ½ at 1000 force evaluations each."""

    def error(method, evaluations):
        steps = 10 * round(1000 / evaluations)
        out = final_state(method(Central()), orbit(), 20 * np.pi / steps, steps)
        return float(jnp.max(jnp.abs(out.position - orbit().position)))

    yoshida = error(Yoshida, 3)
    assert error(Suzuki, 5) < yoshida / 7
    assert error(PEFRL, 4) < yoshida / 20
    assert error(BlanesMoan, 6) < yoshida / 300
    sixth = error(lambda f: Yoshida(f, order=6), 7)
    assert error(lambda f: KahanLi(f, order=6), 9) < sixth
    assert error(lambda f: BlanesMoan(f, order=6), 11) < sixth / 100
