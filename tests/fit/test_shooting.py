"""Multiple shooting: fits of chaotic runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import ParameterError, ShapeError
from physkit.fit import MultipleShooting, fit_in_windows

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = ("test_bad_input_is_refused",)

RECORD = pk.Every(5, position=lambda now: now.state)
NAMES = ("sigma", "rho", "beta")
TRUTH = {"sigma": 10.0, "rho": 28.0, "beta": 8 / 3}
NOISE = 0.5


def where(name):
    return lambda m: pk.find(m, pk.Function).args[NAMES.index(name)]


def lorenz(*parameters):
    sim, _ = pk.systems.lorenz(*parameters)
    return pk.Simulation(sim.integrator, dt=0.01, observers=RECORD, guards=())


def misfit(frames, data):
    return (frames["position"] - data) / NOISE


def observed(steps):
    sim = lorenz()
    start = jnp.array([-5.9, -5.5, 24.0])
    clean = pk.simulate(sim, start, steps).frames["position"]
    return clean + NOISE * jax.random.normal(jax.random.key(2), clean.shape)


@pytest.mark.slow
def test_windows_of_one_trajectory_have_no_gaps_and_every_frame_once():
    sim, start = lorenz(), jnp.array([-5.9, -5.5, 24.0])
    data = pk.simulate(sim, start, 100).frames["position"] + 1.0
    for windows in (1, 4):
        shooting = MultipleShooting(misfit, 100, windows)
        model = shooting.initial_model(sim, start)
        fit, seams = shooting(model, data)
        assert fit.shape == (windows, 20 // windows, 3)
        np.testing.assert_allclose(fit, -1 / NOISE, rtol=1e-9)
        assert seams.shape[0] == windows - 1
        np.testing.assert_allclose(seams, 0, atol=1e-9)
    moved = (model[0], model[1].at[2].add(0.5))
    gaps = np.asarray(shooting.gaps(moved))
    np.testing.assert_allclose(gaps[1], -0.5, atol=1e-9)
    np.testing.assert_allclose(shooting(moved, data)[1], 100 * gaps)
    with_weights = MultipleShooting(misfit, 100, 4, (2.0,))
    np.testing.assert_allclose(with_weights(moved, data)[1], 2 * gaps)


def test_windows_know_the_time_and_particles_their_box():
    """A driven particle that crosses the box's edge: no gaps, though time and images matter."""
    push = pk.ExternalForce(lambda t, p: jnp.cos(t) * jnp.ones_like(p.position))
    record = pk.Every(2, x=pk.Positions())
    sim = pk.Simulation(pk.VelocityVerlet(push), dt=0.1, observers=record)
    walker = pk.Particles(jnp.array([[0.9]]), jnp.array([[1.0]]), space=pk.Box([1.0]))
    shooting = MultipleShooting(lambda f, d: f["x"], 40, 5)
    sim, starts = shooting.initial_model(sim, walker)
    np.testing.assert_allclose(shooting.gaps((sim, starts)), 0, atol=1e-12)
    whole = pk.simulate(sim, walker, 40).state
    np.testing.assert_allclose(shooting.trajectory((sim, starts))[1].position[-1], whole.position)
    across = starts.replace(position=(starts.position + 0.98) % 1)
    assert float(jnp.abs(shooting.gaps((sim, across))).max()) < 0.1


def test_windows_fit_lorenz_where_a_single_run_fails():
    """Five time units, some four Lyapunov times; from 20 % off."""
    steps, windows = 500, 10
    data = observed(steps)
    starts = data[:-1:10]
    found = fit_in_windows(
        misfit,
        (lorenz(8.0, 24.0, 2.2), data[0]),
        where={name: where(name) for name in NAMES},
        steps=steps, windows=windows, data=data, starts=starts, weights=(2.0, 100.0), progress=False,
    )  # fmt: skip
    assert found.converged
    for name, true in TRUTH.items():
        error = float(found.standard_errors[name])
        assert abs(float(found.values[name]) - true) < 4 * error < 0.2 * true
    gaps = MultipleShooting(misfit, steps, windows).gaps(found.model)
    assert float(jnp.abs(gaps).max()) < 0.05


@pytest.mark.slow
def test_lorenz_over_eighteen_lyapunov_times():
    steps = 2_000
    data = observed(steps)
    model = (lorenz(8.0, 24.0, 2.2), data[0])
    pointers = {name: where(name) for name in NAMES}
    settings = {"where": pointers, "steps": steps, "data": data, "progress": False}
    with pytest.warns(UserWarning, match="NOT converged"):
        single = fit_in_windows(
            misfit, model, windows=1, starts=data[:1], weights=(1.0,), **settings
        )
    assert single.loss > 1_000
    multiple = fit_in_windows(misfit, model, windows=40, starts=data[:-1:10], **settings)
    for name, true in TRUTH.items():
        np.testing.assert_allclose(multiple.values[name], true, rtol=0.01)


def test_bad_input_is_refused():
    with pytest.raises(ParameterError, match="windows must divide"):
        MultipleShooting(misfit, 100, 7)
    with pytest.raises(ParameterError, match="windows must be a whole number"):
        MultipleShooting(misfit, 100, 0)
    shooting = MultipleShooting(misfit, 100, 4)
    model = shooting.initial_model(lorenz(), jnp.ones(3))
    with pytest.raises(ShapeError, match="do not fall on them"):
        shooting(model, jnp.zeros((20, 3)))
    with pytest.raises(ShapeError, match="4 windows"):
        shooting((model[0], model[1][:3]), jnp.zeros((21, 3)))
    with pytest.raises(ShapeError, match="one per array"):
        MultipleShooting(misfit, 100, 4, (1.0, 2.0))(model, jnp.zeros((21, 3)))
    with pytest.raises(ParameterError, match="at least one weight"):
        fit_in_windows(misfit, model, where=where("rho"), steps=100, windows=4, weights=())
