"""The ensemble filter is Kalman's for linear models, the inversion the posterior; both say what is wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.inference import (
    Localization,
    Posterior,
    ensemble_kalman_filter,
    ensemble_kalman_inversion,
)
from physkit.inference._square_root_update import square_root_update

OSCILLATOR = np.array([[0.0, 1.0], [-1.0, -0.1]])
SIM = pk.Simulation(pk.RK4(lambda t, x: jnp.asarray(OSCILLATOR, x.dtype) @ x), dt=0.1)
NOISE, TIMES, INTERVAL = 0.3, 12, 5
START_STD = 1.0


def observations():
    rng = np.random.default_rng(0)
    step = propagator()
    x, seen = np.array([1.0, 0.0]), []
    for _ in range(TIMES):
        x = step @ x
        seen.append(x[0] + NOISE * rng.normal())
    return np.array(seen)


def propagator():
    a = 0.1 * OSCILLATOR
    one = np.eye(2) + a + a @ a / 2 + a @ a @ a / 6 + a @ a @ a @ a / 24  # a step of RK4
    return np.linalg.matrix_power(one, INTERVAL)


def kalman(seen):
    """Kalman's filter: mean and covariance after each observation."""
    step, mean, covariance, found = propagator(), np.zeros(2), START_STD**2 * np.eye(2), []
    h = np.array([[1.0, 0.0]])
    for y in seen:
        mean, covariance = step @ mean, step @ covariance @ step.T
        gain = covariance @ h.T / (h @ covariance @ h.T + NOISE**2)
        mean = mean + gain[:, 0] * (y - mean[0])
        covariance = (np.eye(2) - gain @ h) @ covariance
        found.append((mean, np.sqrt(np.diag(covariance))))
    return tuple(np.array(x) for x in zip(*found, strict=True))


def filtered(count, key=0, dtype=float):
    rng = np.random.default_rng(count)
    members = rng.normal(size=(count, 2)) * START_STD
    members = jnp.asarray(members - members.mean(0), dtype)
    sim, state = ensemble_kalman_filter(
        SIM, members, observations(), observe=lambda x: x[0], noise=NOISE, interval=INTERVAL
    )
    return sim, state, pk.run(sim, state, TIMES, key=key, progress=False)


@pytest.mark.slow
def test_the_filter_becomes_kalmans_as_the_ensemble_grows(tmp_path):
    mean, std = kalman(observations())
    errors = []
    for count in (100, 10_000):
        sim, state, run = filtered(count)
        errors.append(np.sqrt(np.mean((run["mean"][1:] - mean) ** 2)))
        np.testing.assert_allclose(run["std"][1:], std, rtol=6 / np.sqrt(count))
        assert np.all(np.abs(run["mean"][1:] - mean) < 6 / np.sqrt(count) * std)
    # √100 = 10 is the ratio of the errors expected, each of which scatters.
    assert 3 < errors[0] / errors[1] < 30
    normalized = run["innovation"][1:] / run["innovation_std"][1:]
    assert 0.4 < np.mean(normalized**2) < 2
    half = pk.run(sim, state, TIMES // 2, key=0, progress=False)
    rest = pk.run(sim, half.carry, TIMES // 2, progress=False)
    np.testing.assert_array_equal(rest["mean"][-1], run["mean"][-1])
    single = filtered(100, dtype=np.float32)[2]
    assert single["mean"].dtype == np.float32
    np.testing.assert_allclose(single["std"][1:], std, rtol=0.6)


def test_the_square_root_is_kalmans_filter_for_six_members():
    """Members of the right mean and covariance keep them exactly: no 1/√members is left."""
    rng = np.random.default_rng(3)
    columns = np.linalg.qr(np.c_[np.ones(6), rng.normal(size=(6, 2))])[0][:, 1:]
    members = jnp.asarray(columns * np.sqrt(5) * START_STD)
    common = {"observe": lambda x: x[0], "noise": NOISE, "interval": INTERVAL, "square_root": True}
    sim, state = ensemble_kalman_filter(SIM, members, observations(), **common)
    run = pk.run(sim, state, TIMES, key=0, progress=False)
    mean, std = kalman(observations())
    np.testing.assert_allclose(run["mean"][1:], mean, atol=1e-12)
    np.testing.assert_allclose(run["std"][1:], std, rtol=1e-11)
    single = ensemble_kalman_filter(SIM, members.astype(np.float32), observations(), **common)
    low = pk.run(*single, TIMES, key=0, progress=False)
    assert low["mean"].dtype == np.float32
    np.testing.assert_allclose(low["mean"][1:], mean, atol=2e-5)


def test_the_square_root_decomposes_the_smaller_matrix():
    """Of two observations a matrix of two; observations of no precision change nothing."""
    rng = np.random.default_rng(5)
    members, predicted = jnp.asarray(rng.normal(size=(6, 4))), jnp.asarray(rng.normal(size=(6, 2)))
    seen, variance = jnp.asarray([0.5, -1.0]), jnp.asarray([0.5, 2.0])
    few = square_root_update(members, predicted, seen, variance)
    padded = jnp.pad(predicted, ((0, 0), (0, 5)), constant_values=1.0) + jnp.arange(6.0)[:, None]
    many = square_root_update(
        members,
        padded.at[:, :2].set(predicted),
        jnp.pad(seen, (0, 5)),
        jnp.pad(variance, (0, 5), constant_values=np.inf),
    )
    np.testing.assert_allclose(few, many, atol=1e-12)
    text = str(jax.make_jaxpr(square_root_update)(members, predicted, seen, variance))
    decomposed = [line for line in text.splitlines() if " eigh[" in line or " eigh " in line]
    assert decomposed
    assert all("[2,2]" in line for line in decomposed)


@pytest.mark.slow
def test_a_local_square_root_acts_nearby_only():
    rng = np.random.default_rng(4)
    members, predicted = jnp.asarray(rng.normal(size=(8, 5))), jnp.asarray(rng.normal(size=(8, 3)))
    seen, variance = jnp.asarray(rng.normal(size=3)), jnp.asarray([0.5, 1.0, 2.0])
    x, y = jnp.arange(5.0), jnp.asarray([0.0, 1.0, 2.0])
    everywhere = square_root_update(members, predicted, seen, variance)
    wide = square_root_update(members, predicted, seen, variance, Localization(x, y, radius=1e5))
    np.testing.assert_allclose(wide, everywhere, atol=1e-7)
    near = square_root_update(members, predicted, seen, variance, Localization(x, y, radius=1.5))
    np.testing.assert_allclose(near[:, 4], members[:, 4], atol=1e-13)
    # Number 0 sees the first observation whole and the second by ρ, as if that were noisier.
    rho = Localization(x, y, radius=1.5).weights()[0][0]
    precision = jnp.where(rho > 0, rho, 1e-300) / variance
    alone = square_root_update(members[:, :1], predicted, seen, 1 / precision)
    np.testing.assert_allclose(near[:, 0], alone[:, 0], atol=1e-12)


@pytest.mark.slow
def test_localization_is_gaspari_and_cohns():
    x = jnp.arange(8.0)
    of_state, of_observed = Localization(x, x[::4], radius=4.0, period=8.0).weights()
    assert of_state.shape == (8, 2)
    np.testing.assert_allclose(jnp.diag(of_observed), 1)
    # ρ(0) = 1, ρ(c) = 5/24, ρ(2c) = 0 with c half of the radius; and it is even.
    np.testing.assert_allclose(
        of_state[jnp.array([0, 2, 4, 6]), 0], [1, 5 / 24, 0, 5 / 24], atol=1e-14
    )
    sim, state = ensemble_kalman_filter(
        SIM, jax.random.normal(jax.random.key(0), (50, 2)), np.zeros(2), observe=lambda x: x[0],
        noise=NOISE, interval=1, inflation=1.1,
        localization=Localization([0.0, 5.0], [0.0], radius=2.0),
    )  # fmt: skip
    with pytest.raises(pk.errors.SimulationDiverged, match="there are 2 observations"):
        pk.run(sim, state, 3, key=0, progress=False)
    run = pk.run(sim, state, 2, key=0, progress=False)
    # What is beyond the radius is not corrected, only inflated; what is observed is.
    np.testing.assert_allclose(run["std"][1:, 1], run["forecast_std"][1:, 1], rtol=1e-12)
    assert run["std"][1, 0] < 0.5 * run["forecast_std"][1, 0]


def test_inversion_ends_at_the_posterior_of_a_linear_model_and_bears_failed_members():
    rng = np.random.default_rng(1)
    design = jnp.asarray(rng.normal(size=(20, 2)))
    measured = design @ jnp.array([1.0, -0.5]) + 0.5 * jnp.asarray(rng.normal(size=20))

    def residuals(model):
        predicted = jnp.einsum("ij,j->i", design, model["slope"])
        failed = model["slope"][0] > 2.5  # a few draws of the prior
        return jnp.where(failed, jnp.nan, (predicted - measured) / 0.5)

    posterior = Posterior(
        residuals,
        {"slope": jnp.zeros(2)},
        where=lambda m: m["slope"],
        priors=pk.priors.Normal(0.0, 1.0),
    )
    covariance = np.linalg.inv(np.asarray(design.T @ design) / 0.25 + np.eye(2))
    mean = covariance @ np.asarray(design.T @ measured) / 0.25
    sim, start = ensemble_kalman_inversion(posterior, members=4000, iterations=4, key=1)
    found = pk.run(sim, start, 4, key=2, progress=False)
    last = found["slope"][-1]
    assert 0 < found["num_failed"][0] < 100
    assert found["num_failed"][-1] == 0
    # Of the members of the same frame.
    every = jax.vmap(jax.vmap(lambda slope: residuals({"slope": slope})))(found["slope"])
    np.testing.assert_allclose(found["misfit"], 0.5 * np.sum(every**2, axis=-1), rtol=1e-9)
    np.testing.assert_array_equal(found["num_failed"], np.isnan(found["misfit"]).sum(axis=1))
    np.testing.assert_allclose(last.mean(0), mean, atol=0.08 * np.sqrt(covariance.max()))
    np.testing.assert_allclose(np.cov(last.T), covariance, atol=0.12 * covariance.max())
    loss = Posterior(
        lambda m: jnp.sum(m["slope"] ** 2), {"slope": jnp.zeros(2)}, where=lambda m: m["slope"],
        priors=pk.priors.Normal(),
    )  # fmt: skip
    with pytest.raises(pk.errors.ObjectiveError, match="needs residuals"):
        ensemble_kalman_inversion(loss)
    with pytest.raises(pk.errors.ParameterError, match="two members"):
        ensemble_kalman_inversion(posterior, members=1)


def test_what_the_filter_cannot_use_is_said():
    def make(**changes):
        arguments = {
            "states": jnp.zeros((5, 2)), "observations": np.zeros(3), "observe": lambda x: x[0],
            "noise": 1.0, "interval": 1,
        } | changes  # fmt: skip
        return ensemble_kalman_filter(SIM, **arguments)

    errors = pk.errors
    for error, text, changes in (
        (errors.ParameterError, "two members", {"states": jnp.zeros((1, 2))}),
        (errors.ShapeError, "first axes", {"states": (jnp.zeros((3, 2)), jnp.zeros(2))}),
        (errors.ParameterError, "no floating numbers", {"states": jnp.zeros((5, 2), int)}),
        (errors.ShapeError, "observe returns 2", {"observe": lambda x: x}),
        (errors.ParameterError, "1 observations are not finite", {"observations": [0.0, np.nan]}),
        (errors.ParameterError, "above 0", {"noise": 0.0}),
        (errors.ShapeError, "noise is a number", {"noise": np.ones(2)}),
        (errors.ParameterError, "1 or more", {"inflation": 0.5}),
        (errors.ShapeError, "each of 2 numbers", {"localization": Localization([0.0], [0.0], 1.0)}),
        (errors.DeclarationError, "observe is called", {"observe": lambda: 0.0}),
    ):
        with pytest.raises(error, match=text):
            make(**changes)
    # Lists are states here as everywhere.
    assert make(states=[[0.0, 1.0], [2, 3]])[1].states.shape == (2, 2)
    ring = pk.Particles(jnp.zeros((1, 1)), space=pk.Box([10.0]))
    members = jax.vmap(lambda x: ring.replace(position=x))(jnp.ones((5, 1, 1)))
    with pytest.raises(errors.ParameterError, match="box that repeats have no mean"):
        make(states=members, observe=lambda p: p.position[0])
    with pytest.raises(errors.ParameterError, match="above 0"):
        Localization([0.0], [0.0], radius=0.0)


@pytest.mark.slow
def test_members_may_be_particles_of_a_simulation_with_forces():
    bead = pk.Particles([[1.0]])
    spring = pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.0)), dt=0.1)
    truth = pk.simulate(spring, bead, 20).state.position
    drawn = 1.0 + 0.5 * jax.random.normal(jax.random.key(0), (40, 1, 1))
    members = jax.vmap(lambda x: bead.replace(position=x))(drawn)
    sim, state = ensemble_kalman_filter(
        spring, members, [float(truth[0, 0])], observe=lambda p: p.position[:, 0], noise=0.05,
        interval=20,
    )  # fmt: skip
    run = pk.run(sim, state, 1, key=0, progress=False)
    found = run.state.states.position[:, 0, 0]
    np.testing.assert_allclose(found.mean(), truth[0, 0], atol=0.05)
    assert found.std() < 0.06
    assert run["mean"].shape[0] == 2
