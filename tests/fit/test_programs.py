"""How the programs of a fit are compiled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.fit import LevenbergMarquardt, _program, fit, select
from physkit.fit.solve._bounds import Unbounded
from physkit.fit.solve._coordinates import make_coordinates
from physkit.fit.solve._problem import ObjectiveInputs, is_small


def inputs_of(model):
    selection = select(lambda m: m["size"], model)
    start = make_coordinates(selection, model, Unbounded())
    return ObjectiveInputs(start, model, None, jnp.ones(()))


@pytest.mark.parametrize(
    ("numbers", "parameters", "expected"),
    [(15, 3, True), (1000, 3, True), (1000, 30, False), (10_000, 3, False)],
)
def test_a_small_model_is_one_whose_tangents_are_few_numbers(numbers, parameters, expected):
    model = {"state": jnp.zeros(numbers, jnp.float32), "size": jnp.ones(parameters, jnp.float32)}
    assert is_small(inputs_of(model)) is expected


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="kernels of CPUs")
@pytest.mark.parametrize(
    ("data", "is_small", "expected"),
    [(100, True, "plain"), (100, False, "usual"), (100_000, True, "usual")],
)
def test_plain_kernels_are_for_small_programs_only(monkeypatch, data, is_small, expected):
    """Where they read many data, XLA's other kernels are faster."""
    calls = []
    for name, word in (("_call", "usual"), ("_call_plainly", "plain")):
        known = getattr(_program, name)

        def call(*arguments, known=known, word=word):
            calls.append(word)
            return known(*arguments)

        monkeypatch.setattr(_program, name, call)
    measured = jnp.ones(data, jnp.float32)
    program = _program.compile_by_content(lambda x: x * measured, is_small=is_small)
    np.testing.assert_array_equal(program(jnp.asarray(2.0)), np.full(data, 2.0))
    assert calls == [expected]


def test_a_second_fit_traces_no_step_of_its_method(monkeypatch):
    """Its objective it does: what that closes over may have changed."""
    traced = []
    trace = eqx.filter_make_jaxpr

    def note(function):
        traced.append(getattr(function, "__name__", ""))
        return trace(function)

    monkeypatch.setattr(eqx, "filter_make_jaxpr", note)
    t = jnp.linspace(0.0, 1.0, 7)

    def fit_decay(rate):
        traced.clear()
        measured = jnp.exp(-rate * t)
        found = fit(
            lambda m: jnp.exp(-m["rate"] * t) - measured,
            {"rate": jnp.asarray(1.0)},
            where=lambda m: m["rate"],
            method=LevenbergMarquardt(max_steps=97),  # as no other test has it
            progress=False,
        )
        np.testing.assert_allclose(found.model["rate"], rate, rtol=1e-6)
        return list(traced)

    assert {"init", "step_if_active"} <= set(fit_decay(1.7))
    again = fit_decay(2.3)
    assert "with_jacobian" in again
    assert not {"init", "step_if_active"} & set(again)
