"""What a fit says of data, parameters and convergence, and what bad input gets."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import physkit as pk

from .exponential_decay import SAMPLE, START, decay, everything, fit_decay, residuals_of


def test_a_fit_that_does_not_converge_warns_and_its_check_raises():
    with pytest.warns(UserWarning, match="NOT converged"):
        found = fit_decay(method=pk.fitting.LevenbergMarquardt(max_steps=2))
    assert not found.converged
    assert "NOT CONVERGED" in repr(found)
    with pytest.raises(pk.errors.ConvergenceError, match="max_steps=2"):
        found.check()
    loss = lambda m, data: jnp.sum(residuals_of(m, data) ** 2)
    for method in (pk.fitting.Optax(optax.sgd(1e-4), steps=20), pk.fitting.BFGS(max_steps=3)):
        with pytest.warns(UserWarning, match="NOT converged"):
            assert not fit_decay(loss, method=method).converged


def test_parameters_that_nothing_depends_on_are_named():
    model = {**START, "idle": jnp.ones(2)}
    with pytest.warns(UserWarning, match=r"does not depend on idle\[0\], idle\[1\] at the start"):
        found = fit_decay(model=model)
    assert np.all(np.isinf(found.standard_errors["idle"]))
    np.testing.assert_allclose(found.values["idle"], 1.0)
    assert np.isfinite(found.standard_errors["rate"])
    assert "did not depend on idle[0], idle[1]" in repr(found)


@pytest.mark.parametrize(
    "errors", [None, pk.fitting.AutocorrelatedErrors(0)], ids=["independent", "autocorrelated"]
)
def test_data_that_a_mask_leaves_out_do_not_count(errors):
    there = np.arange(30) % 3 == 0
    near = {"size": jnp.asarray(2.5), "rate": jnp.asarray(1.2)}
    masked = fit_decay(
        lambda m, d: jnp.where(jnp.isnan(d), 0, decay(m) - d),
        model=near, data=np.where(there, SAMPLE, np.nan), errors=errors,
    )  # fmt: skip
    alone = fit_decay(
        lambda m, d: decay(m)[there] - d, model=near, data=SAMPLE[there], errors=errors
    )
    assert masked.count == alone.count == 10
    np.testing.assert_allclose(masked.noise, alone.noise, rtol=1e-6)
    for name in near:
        np.testing.assert_allclose(masked.error(name), alone.error(name), rtol=1e-5)


@pytest.mark.parametrize("kind", ["residuals", "loss", "compiled"])
def test_predictions_minus_data_of_another_shape_warn(kind):
    near = {"size": jnp.asarray(2.5), "rate": jnp.asarray(1.2)}
    wrap = {"residuals": lambda f: f, "compiled": jax.jit}.get(
        kind, lambda f: lambda *x: 30 * jnp.mean(f(*x) ** 2)
    )
    said = pytest.warns(pk.errors.PhyskitWarning, match=r"30 data .* 30 pred.* \[30, 30\]")
    with said, jax.numpy_rank_promotion("allow"):  # as it is unless a user forbids it
        fit_decay(wrap(lambda m, d: decay(m)[:, None] - d / 1.0), model=near)
    # Shapes that go together, and differences among the data, do not.
    fit_decay(wrap(lambda m, d: decay(m)[:, None] - d[:, None]), model=near)
    fit_decay(wrap(lambda m, d: (decay(m) - d) / jnp.std(d[:, None] - d[None, :])), model=near)


def test_noise_larger_than_given_makes_a_remark():
    found = fit_decay(
        lambda m, d: residuals_of(m, d) / 0.005,
        errors=pk.fitting.IndependentErrors(noise_known=True),
    )
    assert "times what the noise allows" in repr(found)


def test_a_value_at_its_bound_makes_a_remark():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit_decay(bounds={"rate": pk.bounds.Interval(0.1, 1.0)})
    assert "rate is at the end of its range, 1" in repr(found)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (lambda m, d: residuals_of(m, d).astype(int), "real number .* or real arrays"),
        (lambda m, d: (), "real number .* or real arrays"),
        (lambda m, d: residuals_of(m, d) > 0, r"got bool\[30\], .* return it as a float"),
        (lambda m, d: jnp.sum(residuals_of(m, d) > 0), r"got int64\[\], .* return it as a float"),
        (lambda m, d: 3, "real number .* got 3"),
        (
            lambda m, d: jax.lax.complex(residuals_of(m, d), residuals_of(m, d)),
            r"got complex128\[30\]$",
        ),
        (
            lambda m, d: residuals_of(m, d).at[3].set(jnp.nan),
            "not finite at the start: 1 of 30 residuals",
        ),
        (lambda m, d: jnp.sum(residuals_of(m, d)) / 0, "not finite at the start: the loss"),
        (
            lambda m, d: jnp.sqrt(m["rate"] - 0.5) + residuals_of(m, d),
            "its derivative by rate.* is not",
        ),
        (
            lambda m, d: residuals_of(m, d)[:1],
            "more parameters than data: 2 numbers to fit from 1 residuals",
        ),
    ],
)
def test_objectives_of_the_wrong_kind_are_refused(objective, message):
    with pytest.raises(pk.errors.ObjectiveError, match=message):
        fit_decay(objective)


def test_inside_of_a_trace_it_says_that_it_is_a_loop_of_the_host():
    with pytest.raises(pk.errors.DeclarationError, match="fit is a loop of the host"):
        jax.jit(lambda x: fit_decay().loss * x)(1.0)


def test_a_column_of_a_table_is_data():
    class Column:  # what pandas and xarray have
        def __array__(self, dtype=None, copy=None):
            return np.array(SAMPLE, dtype)

        def __rsub__(self, other):
            raise AssertionError("the objective sees numbers")

    for data in (Column(), list(map(float, SAMPLE)), np.array(SAMPLE, object)):
        assert fit_decay(data=data).values == fit_decay().values
    with pytest.raises(pk.errors.ObjectiveError, match="an array of what is no number"):
        fit_decay(data=np.array(["a", None], object))


def test_wrong_arguments_are_refused():
    loss = lambda m, d: jnp.sum(residuals_of(m, d) ** 2)
    with pytest.raises(
        pk.errors.ObjectiveError, match=r"LevenbergMarquardt needs residuals, and the .* a loss"
    ):
        fit_decay(loss, method=pk.fitting.LevenbergMarquardt())
    with pytest.raises(
        pk.errors.ObjectiveError, match="BFGS needs a loss, and the objective returns residuals"
    ):
        fit_decay(method=pk.fitting.BFGS())
    holes = np.where(np.arange(len(SAMPLE)) == 3, np.nan, SAMPLE)
    with pytest.raises(pk.errors.ObjectiveError, match="1 numbers of the data are not finite"):
        fit_decay(data=holes)
    with pytest.raises(pk.errors.ObjectiveError, match="Optax needs a loss"):
        fit_decay(method=optax.adam(0.1))
    with pytest.raises(pk.errors.ObjectiveError, match="do not go with a loss"):
        fit_decay(loss, errors=pk.fitting.IndependentErrors())
    with pytest.raises(pk.errors.ObjectiveError, match="do not go with residuals"):
        fit_decay(errors=pk.fitting.Likelihood())
    with pytest.raises(pk.errors.ParameterError, match="method is an object"):
        fit_decay(method="adam")
    with pytest.raises(
        pk.errors.ParameterError, match=r"bounds for \['speed'\], but where selects"
    ):
        fit_decay(bounds={"speed": pk.bounds.PositiveBound()})
    with pytest.raises(pk.errors.ParameterError, match="bounds are one object for all"):
        fit_decay(bounds=(pk.bounds.PositiveBound(),))
    with pytest.raises(pk.errors.ParameterError, match=r"must be Unbounded\(\)"):
        fit_decay(bounds={"rate": (0, 1)})
    with pytest.raises(pk.errors.ShapeError, match="do not go with its shape"):
        fit_decay(bounds={"rate": pk.bounds.Interval([0.0, 0.0], [1.0, 1.0])})
    with pytest.raises(
        pk.errors.DeclarationError, match=r"an objective is called as function\(model, data\)"
    ):
        fit_decay(lambda m: m["rate"])
    with pytest.raises(pk.errors.ParameterError, match=r"starts .* must be a whole number from 1"):
        fit_decay(starts=0)
    with pytest.raises(pk.errors.ParameterError, match=r"starts for \['speed'\]"):
        fit_decay(starts={"speed": jnp.ones(3)})
    with pytest.raises(pk.errors.ShapeError, match="starts of rate"):
        fit_decay(starts={"rate": jnp.ones((3, 2))})
    with pytest.raises(pk.errors.ParameterError, match="start 1 of rate"):
        fit_decay(starts={"rate": jnp.array([1.0, -1.0])}, bounds=pk.bounds.PositiveBound())
    with pytest.raises(pk.errors.ParameterError, match="max_steps"):
        pk.fitting.LevenbergMarquardt(max_steps=0)
    with pytest.raises(pk.errors.SelectionError, match="complex"):
        pk.fit(lambda m: m["z"].real, {"z": jnp.ones(2, complex)}, where=everything, progress=False)


def test_an_objective_without_forward_derivative_is_told_to_use_reverse():
    @jax.custom_vjp
    def double(x):
        return 2 * x

    double.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
    objective = lambda m, d: double(residuals_of(m, d))
    with pytest.raises(pk.errors.ObjectiveError, match="jac='reverse'"):
        fit_decay(objective)
    np.testing.assert_allclose(
        fit_decay(objective, jac="reverse").values["rate"], fit_decay().values["rate"], rtol=1e-6
    )


def test_a_fit_that_fills_the_memory_says_what_keeps_less():
    def loss(model):
        oscillator = pk.Function(lambda t, y: -model["k"] * jnp.sin(y))
        sim = pk.Simulation(pk.RK4(oscillator), dt=1e-3, adjoint=pk.adjoints.Direct())
        return jnp.sum(pk.simulate(sim, jnp.ones(10**7), 10**7).state ** 2)

    with pytest.raises(pk.errors.CapacityError, match=r"adjoint=Binomial.*allocating"):
        pk.fit(loss, {"k": jnp.asarray(1.0)}, where=lambda m: m["k"], jac="reverse", progress=False)
