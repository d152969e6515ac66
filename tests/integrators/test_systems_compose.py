"""The ready-made systems raise no false alarm of `check_composition`."""

import inspect
import warnings

import equinox as eqx
import jax
import pytest

import physkit as pk
from physkit import systems

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_systems_are_found",
    "test_no_false_alarm[kdv_solitons]",
    "test_no_false_alarm[kepler]",
)


def _builds_a_simulation(name):
    function = getattr(systems, name)
    if not inspect.isfunction(function):
        return False
    signature = inspect.signature(function)
    # A shock tube needs its two gases; the named ones are built from it.
    needs_arguments = any(p.default is p.empty for p in signature.parameters.values())
    return "Simulation" in str(signature.return_annotation) and not needs_arguments


NAMES = [n for n in dir(systems) if not n.startswith("_") and _builds_a_simulation(n)]


def test_systems_are_found():
    assert len(NAMES) > 20


@pytest.mark.parametrize("name", NAMES)
def test_no_false_alarm(name):
    sim, state = getattr(systems, name)()[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Traced only: no force is computed, nothing is compiled.
        eqx.filter_eval_shape(lambda: pk.init(sim, state, key=jax.random.key(0)).step)
