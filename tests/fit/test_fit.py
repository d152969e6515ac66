"""Fits with known answers: values, standard errors, spectra, methods, starts."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import physkit as pk
from physkit.fit import select
from physkit.fit._triangle import triangle
from physkit.fit.uncertainty._standard_errors import fewest_rows, likelihood_information

from .exponential_decay import SAMPLE, START, everything, fit_decay, linear_errors, residuals_of


@pytest.mark.parametrize("method", [None, pk.fitting.GaussNewton()], ids=["default", "GaussNewton"])
@pytest.mark.parametrize("bounds", [None, pk.bounds.PositiveBound(), pk.bounds.Interval(0.0, 9.0)])
def test_values_and_errors_do_not_depend_on_method_or_bounds(method, bounds):
    near = {"size": jnp.asarray(2.5), "rate": jnp.asarray(1.2)}
    found = fit_decay(model=near, method=method, bounds=bounds).check()
    values, errors = (
        [tree["size"], tree["rate"]] for tree in (found.values, found.standard_errors)
    )
    np.testing.assert_allclose(values, [3.0275, 1.5194], rtol=1e-4)
    np.testing.assert_allclose(errors, linear_errors(found.values), rtol=1e-5)
    np.testing.assert_allclose(found.residuals, residuals_of(found.model, SAMPLE))
    np.testing.assert_allclose(found.loss, 0.5 * np.sum(found.residuals**2))
    assert found.correlations[0, 0] == pytest.approx(1)
    assert abs(found.correlations[0, 1]) < 1


def test_numbers_errors_and_labels_go_together_in_any_order():
    ordered = {"size": lambda m: m["size"], "rate": lambda m: m["rate"]}  # "rate" sorts first
    near = {"size": jnp.asarray(2.5), "rate": jnp.asarray(1.2)}
    found = fit_decay(model=near, where=ordered, starts={"size": [2.0, 2.9], "rate": [1.0, 1.4]})
    assert found.labels == ("size", "rate")
    assert (
        list(found.values) == list(found.start) == list(found.standard_errors) == ["size", "rate"]
    )
    size, rate = linear_errors(found.values)
    np.testing.assert_allclose(found.error("size"), size, rtol=1e-5)
    np.testing.assert_allclose(found.error("rate"), rate, rtol=1e-5)
    rows = [line.split() for line in str(found).splitlines()[2:4]]
    assert [row[0] for row in rows] == ["size", "rate"]
    assert [float(row[1]) for row in rows] == pytest.approx([3.0275, 1.5194], rel=1e-3)
    for attempt in found.attempts:
        assert list(attempt.values) == list(attempt.start) == ["size", "rate"]


def test_a_descent_looks_at_its_last_point():
    for starts, attempts in ((1, [0.1225]), ({"x": jnp.array([3.0, 1.5])}, [4.0, 0.1225])):
        with pytest.warns(UserWarning, match="1 step is too few to tell"):
            found = pk.fit(
                lambda m: (m["x"] - 1) ** 2, {"x": jnp.asarray(1.5)}, where=lambda m: m["x"], starts=starts,
                method=pk.fitting.Optax(optax.sgd(0.1), steps=1), progress=False,
            )  # fmt: skip
        np.testing.assert_allclose([found.loss, found.values["x"]], [0.1225, 1.35])
        np.testing.assert_allclose([a.loss for a in found.attempts], attempts)
        np.testing.assert_allclose(found.attempts[-1].values["x"], 1.35)


def test_fits_in_single_precision():
    start = {"size": jnp.asarray(1.0, jnp.float32), "rate": jnp.asarray(0.5, jnp.float32)}
    found = fit_decay(model=start).check()
    double = fit_decay()
    assert found.model["size"].dtype == jnp.float32
    for name in START:
        assert abs(found.values[name] - double.values[name]) < 0.05 * double.standard_errors[name]
        np.testing.assert_allclose(
            found.standard_errors[name], double.standard_errors[name], rtol=0.01
        )


@pytest.mark.parametrize("jac", ["forward", "reverse"])
def test_forward_and_reverse_jacobians_give_one_fit(jac):
    found = fit_decay(jac=jac).check()
    np.testing.assert_allclose(found.values["rate"], fit_decay().values["rate"], rtol=1e-8)


@pytest.mark.parametrize(
    "method",
    [
        None,
        pk.fitting.LBFGS(),
        pk.fitting.Optax(optax.adam(optax.cosine_decay_schedule(0.1, 400)), steps=400),
        optax.lbfgs(),
    ],
    ids=["BFGS", "L-BFGS", "adam", "raw lbfgs"],
)
def test_losses_reach_the_minimum_by_every_method(method):
    loss = lambda m, data: 0.5 * jnp.sum(residuals_of(m, data) ** 2)
    found = fit_decay(loss, method=method)
    assert found.converged
    np.testing.assert_allclose(found.values["rate"], fit_decay().values["rate"], rtol=1e-2)
    assert found.standard_errors is None
    assert "no standard errors: a loss does not say" in repr(found)
    assert found.history.loss[-1] < found.history.loss[0]
    assert len(found.history.gradient_norm) == len(found.history.loss)


def test_a_likelihood_has_errors_from_its_hessian():
    spread = 0.05
    known = fit_decay(
        lambda m, d: residuals_of(m, d) / spread,
        errors=pk.fitting.IndependentErrors(noise_known=True),
    )
    loss = lambda m, data: 0.5 * jnp.sum((residuals_of(m, data) / spread) ** 2)
    found = fit_decay(loss, errors=pk.fitting.Likelihood()).check()
    for name in START:
        np.testing.assert_allclose(
            found.standard_errors[name], known.standard_errors[name], rtol=0.02
        )


def test_patience_ends_a_first_order_descent_early():
    loss = lambda m, data: jnp.sum(residuals_of(m, data) ** 2)
    found = fit_decay(loss, method=pk.fitting.Optax(optax.adam(0.1), steps=5000, patience=30))
    assert found.converged
    assert found.steps < 2000


def test_a_simplex_has_one_free_number_less():
    target = jnp.array([0.2, 0.5, 0.3])
    noise = 0.01 * jnp.asarray(np.random.default_rng(0).normal(size=(50, 3)))
    model = {"share": jnp.full(3, 1 / 3)}
    found = fit_decay(
        lambda m, d: m["share"][None] - d,
        model,
        data=target[None] + noise,
        bounds=pk.bounds.Simplex(),
    ).check()
    np.testing.assert_allclose(found.values["share"], target, atol=0.005)
    np.testing.assert_allclose(found.values["share"].sum(), 1)
    assert found.covariance.shape == (3, 3)
    assert np.linalg.matrix_rank(found.covariance, 1e-9) == 2
    np.testing.assert_allclose(found.covariance.sum(0), 0, atol=1e-12)
    assert len(found.spectrum.eigenvalues) == 2


def test_residuals_as_a_tree_and_a_part_of_an_array():
    model = {"x": jnp.array([1.0, 5.0, 5.0])}
    tree = lambda m: {"a": m["x"][1:] - 2.0, "b": (m["x"].sum() - 5.5)[None]}
    found = pk.fit(tree, model, where=lambda m: m["x"][1:], progress=False).check()
    assert found.labels == ("x[1:][0]", "x[1:][1]")
    assert float(found.model["x"][0]) == 1.0
    assert set(found.residuals) == {"a", "b"}
    np.testing.assert_allclose(found.values["x[1:]"], 2.0 + 0.5 / 3)


def test_unidentifiable_directions_are_described():
    model = {"stiffness": jnp.asarray(2.0), "mass": jnp.asarray(1.0)}
    frequency = lambda m: jnp.sqrt(m["stiffness"] / m["mass"]) * jnp.asarray([1.0, 2.0, 3.0])
    seen = jnp.array([1.01, 2.02, 2.97])
    found = pk.fit(
        lambda m: frequency(m) - seen,
        model,
        where=everything,
        bounds=pk.bounds.PositiveBound(),
        progress=False,
    )
    assert found.converged
    assert np.isinf(found.standard_errors["mass"])
    assert np.isinf(found.standard_errors["stiffness"])
    (direction,) = found.spectrum.unidentifiable
    assert direction in ("mass and stiffness rising together (0.71, 0.71)",
                     "stiffness and mass rising together (0.71, 0.71)")  # fmt: skip
    assert "the data do not determine" in repr(found)
    assert "∞" in repr(found)


def test_autocorrelated_residuals_have_larger_errors():
    rng = np.random.default_rng(3)
    slow = np.convolve(rng.normal(size=1010), np.ones(11), "valid")[:1000]
    model = {"mean": jnp.asarray(1.0)}
    mean = lambda m, d: m["mean"] - d
    plain = fit_decay(mean, model, data=jnp.asarray(slow))
    aware = fit_decay(
        mean, model, data=jnp.asarray(slow), errors=pk.fitting.AutocorrelatedErrors(40)
    )
    # A sum of 11 white numbers: its mean is known as well as that of 1000 white ones, times 11.
    expected = 11 / np.sqrt(1000)
    assert abs(aware.standard_errors["mean"] / expected - 1) < 0.25
    assert plain.standard_errors["mean"] < 0.4 * expected
    white = fit_decay(
        mean,
        model,
        data=jnp.asarray(rng.normal(size=1000)),
        errors=pk.fitting.AutocorrelatedErrors(3),
    )
    assert abs(white.standard_errors["mean"] * np.sqrt(1000) - 1) < 0.15
    with pytest.raises(pk.errors.ShapeError, match="leading axis of time"):
        fit_decay(lambda m, d: {"a": m["mean"] - d, "b": m["mean"] - d[1:]}, model,
               data=jnp.asarray(slow), errors=pk.fitting.AutocorrelatedErrors())  # fmt: skip
    with pytest.raises(pk.errors.ParameterError, match="more frames"):
        fit_decay(mean, model, data=jnp.ones(3), errors=pk.fitting.AutocorrelatedErrors(5))


def test_several_starts_side_by_side():
    """cos ωt has many minima in ω; and a start at a NaN is flagged, not fatal."""
    t = jnp.linspace(0.0, 10.0, 60)
    seen = jnp.cos(2.0 * t)
    wave = lambda m: jnp.where(m["omega"] < 9, jnp.cos(m["omega"] * t), jnp.nan) - seen
    model = {"omega": jnp.asarray(0.7)}
    alone = pk.fit(wave, model, where=everything, progress=False)
    starts = {"omega": jnp.array([0.7, 2.2, 5.0, 9.5])}
    found = pk.fit(wave, model, where=everything, starts=starts, progress=False)
    assert alone.loss > 1
    assert found.converged
    np.testing.assert_allclose(found.values["omega"], 2.0, rtol=1e-6)
    assert [a.diverged for a in found.attempts] == [False, False, False, True]
    assert found.start["omega"] == 2.2
    assert "DIVERGED" in repr(found)
    assert "1 of 4 starts diverged" in repr(found)
    assert "← best" in repr(found)
    drawn = pk.fit(
        wave,
        model,
        where=everything,
        starts=12,
        start_std=1.5,
        key=jax.random.key(1),
        progress=False,
    )
    assert len(drawn.attempts) == 12
    assert drawn.attempts[0].start["omega"] == 0.7
    assert drawn.loss < alone.loss
    loss = lambda m: jnp.sum(wave(m) ** 2)
    for method in (pk.fitting.BFGS(), pk.fitting.Optax(optax.adam(0.02), steps=300)):
        found = pk.fit(loss, model, where=everything, starts=starts, method=method, progress=False)
        np.testing.assert_allclose(found.values["omega"], 2.0, rtol=1e-3)
        assert found.attempts[3].diverged


def test_one_start_that_is_given_is_where_the_fit_starts():
    """The model's own number may be one for which the objective is not finite."""
    found = pk.fit(
        lambda m: jnp.sqrt(m["c"]) - jnp.arange(1.0, 4.0), {"c": jnp.asarray(-3.0)},
        where=lambda m: m["c"], starts={"c": jnp.array([5.0])}, progress=False,
    )  # fmt: skip
    np.testing.assert_allclose([found.start["c"], found.attempts[0].start["c"]], 5.0)
    np.testing.assert_allclose(found.residuals_before, np.sqrt(5.0) - np.arange(1, 4))
    np.testing.assert_allclose(found.values["c"], 4.0)


def test_all_starts_diverging_is_an_error():
    with pytest.raises(pk.errors.ObjectiveError, match="from any of the 2 starts"):
        fit_decay(lambda m, d: jnp.nan * residuals_of(m, d), starts=2)


def test_a_simulation_is_fitted_with_its_state():
    spring = pk.VelocityVerlet(pk.HarmonicTrap(1.0))
    sim = pk.Simulation(spring, dt=0.05, observers=pk.Every(10, x=pk.Positions()))
    bead = lambda x: pk.Particles(jnp.asarray([[x]]), jnp.asarray([[0.0]]))
    times = np.arange(0, 10.5, 0.5)
    at = pk.fitting.frames_at(sim, times, every=10)
    seen = 1.3 * np.cos(np.sqrt(2.0) * times)
    found = pk.fit(
        lambda m, d: at.pick(pk.simulate(*m, at.steps), "x")[:, 0, 0] - d,
        (pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.7)), sim.dt, sim.observers), bead(1.0)),
        where=lambda m: {"k": pk.find(m, pk.HarmonicTrap).stiffness, "x": m[1].position},
        bounds={"k": pk.bounds.PositiveBound()},
        data=jnp.asarray(seen),
        progress=False,
    ).check()
    np.testing.assert_allclose(found.values["k"], 2.0, rtol=2e-3)
    np.testing.assert_allclose(found.values["x"], [[1.3]], rtol=1e-3)
    assert pk.find(found.model, pk.HarmonicTrap).stiffness == found.values["k"]


def test_the_table_shows_values_and_errors(capsys):
    pk.fit(residuals_of, START, where=everything, data=SAMPLE, title="decaying")
    err = capsys.readouterr().err
    assert "decaying" in err
    assert "|gradient|" in err or "loss" in err
    text = repr(fit_decay())
    for part in ("Fit by LevenbergMarquardt: 30 residuals, 2 numbers; converged", "± std. error",
                 "correlations", "Fisher spectrum", "best known"):  # fmt: skip
        assert part in text


def test_a_field_is_found_without_a_matrix():
    """Where heat came from, in 96² cells, from where it is: by L-BFGS, as 9 216² numbers are 680 MB."""
    grid = pk.Grid(pk.Box([1.0, 1.0]), (96, 96))
    x, y = grid.coordinates()
    truth = jnp.sin(2 * jnp.pi * x) * jnp.cos(4 * jnp.pi * y)
    heat = pk.Simulation(pk.ETDRK2(pk.equations.Diffusion(0.01)), dt=0.1)
    end = lambda field: pk.simulate(heat, pk.Field(field, grid), 3).state.data
    seen = end(truth)
    found = pk.fit(
        lambda field: 1e3 * jnp.mean((end(field) - seen) ** 2), jnp.zeros((96, 96)),
        where=lambda m: {"field": m}, progress=False,
    )  # fmt: skip
    assert found.method == "LBFGS"
    assert found.converged
    np.testing.assert_allclose(found.model, truth, atol=0.02)


def test_many_weights_need_no_matrix():
    """Of the weights of a network: 150 000² numbers are 180 GB."""
    target = jnp.linspace(0.5, 1, 150_000)
    method = pk.fitting.Optax(optax.adam(0.02), steps=200)
    loss = lambda m: jnp.sum((m - target) ** 2) / 150_000
    found = pk.fit(
        loss, jnp.zeros(150_000), where=lambda m: {"m": m}, method=method, progress=False
    )
    np.testing.assert_allclose(found.model, target, atol=1e-3)
    assert len(found.labels) == 150_000


def test_putting_numbers_drops_the_fixed_point_form():
    sim = pk.Simulation(pk.Leapfrog(pk.HarmonicTrap(1.9)), 0.05, adjoint=pk.Reversible())
    model = sim, pk.simulate(sim, pk.Particles([[1.2]]), 1).carry
    assert model[1].state.fixed_point is not None
    selection = select({"x": lambda m: m[1].state.position}, model)
    moved = selection.put(model, {"x": [[0.7]]})
    end = pk.simulate(*moved, 1).state.position
    begin = moved[1].state.replace(position=jnp.asarray([[0.7]]))
    np.testing.assert_allclose(end, pk.simulate(sim, begin, 1).state.position, rtol=1e-12)


def test_a_likelihood_is_followed_to_its_minimum():
    """A polynomial of six terms: BFGS stops 1.6 standard errors off, along directions that hardly curve."""
    x = np.linspace(1, 2, 30)
    powers = np.vander(x, 6, increasing=True)
    noise = 0.01 * np.random.default_rng(0).normal(size=30)
    data = powers @ np.array([1.0, -2.0, 3.0, 0.5, -1.0, 2.0]) + noise
    exact = np.linalg.lstsq(powers, data, rcond=None)[0]
    errors = 0.01 * np.sqrt(np.diag(np.linalg.inv(powers.T @ powers)))

    def loss(b):
        residuals = jnp.sum(jnp.asarray(powers) * b[None], axis=1) - jnp.asarray(data)
        return 0.5 * jnp.sum((residuals / 0.01) ** 2)

    found = pk.fit(
        loss,
        jnp.full(6, 10.0),
        where=lambda m: {"b": m},
        method=pk.fitting.BFGS(),
        errors=pk.fitting.Likelihood(),
        progress=False,
    )
    assert found.converged
    np.testing.assert_allclose((found.values["b"] - exact) / errors, 0, atol=1e-3)
    np.testing.assert_allclose(found.standard_errors["b"], errors, rtol=1e-4)
    assert found.loss == pytest.approx(float(loss(exact)), rel=1e-9)
    assert len(found.history.loss) == found.steps


def test_one_number_in_an_array_is_neither_a_loss_nor_residuals():
    with pytest.raises(pk.errors.ObjectiveError, match="may be a loss or a residual"):
        pk.fit(
            lambda m: ((m - 2.0) ** 2 - 3.0).reshape(1),
            jnp.asarray(0.5),
            where=lambda m: {"m": m},
            progress=False,
        )


def test_curvature_that_is_rounding_gives_no_errors():
    """Of −log L of √(ab), in single precision, whatever the units of a and b."""
    for scale in (1.0, 1e3):
        units = np.asarray([1.0, scale])
        hessian = np.asarray([[7e10, 7e10], [7e10, 7e10 + 4096]]) * np.outer(units, units)
        found = likelihood_information(hessian.astype(np.float32)).covariance
        assert np.all(np.isinf(np.diag(found)))
    hessian = np.asarray([[2.0, 0.5], [0.5, 3.0]])
    np.testing.assert_allclose(
        likelihood_information(hessian).covariance, np.linalg.inv(hessian), rtol=1e-12
    )


@pytest.mark.parametrize("shape", [(1000, 3), (130, 5), (7, 3), (2, 3)])
def test_triangles_by_blocks_of_rows_keep_sums_of_squares(shape):
    matrix = np.random.default_rng(0).normal(size=shape)
    square = matrix.T @ matrix
    on_host = fewest_rows(matrix)
    np.testing.assert_allclose(on_host.T @ on_host, square, rtol=0, atol=1e-11)
    compiled = np.asarray(triangle(jnp.asarray(matrix)))
    np.testing.assert_allclose(compiled.T @ compiled, square, rtol=0, atol=1e-11 * square.max())
    assert len(on_host) <= shape[1]
    assert len(compiled) <= shape[1]
