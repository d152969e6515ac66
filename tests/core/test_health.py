"""Faults as data: collected over caches, and raised as the error of the most specific one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    CapacityError,
    CutoffError,
    Fault,
    Faults,
    Health,
    ParameterError,
    SimulationDiverged,
    all_finite,
    collect_faults,
)
from physkit.core._faults import ADVICE
from tests.core.growable_row import row


def test_no_fault_is_ok():
    health = collect_faults({"list": row(3, 3), "faults": Faults.none()})
    assert health.ok
    health.check()


def test_faults_are_sticky_and_collected():
    faults = Faults.none().set_if(Fault.CUTOFF, jnp.array(True))
    faults = faults.set_if(Fault.CUTOFF, jnp.array(False)).set_if(Fault.MASS, jnp.array(True))
    health = jax.jit(collect_faults)((faults, None, {"x": Faults.none()}))
    assert health.faults() == Fault.CUTOFF | Fault.MASS


def test_overflow_and_given_faults_are_combined():
    broken = jnp.array(True)
    health = collect_faults(row(3, 4), (Fault.GUARD, broken), (Fault.NOT_FINITE, ~broken))
    assert health.faults() == Fault.OVERFLOW | Fault.GUARD


def test_the_first_fault_in_order_of_causes_is_raised():
    """A cause comes before what follows from it: a large cutoff also makes the state NaN."""
    with pytest.raises(CutoffError, match="between steps 3 and 7: a cutoff"):
        Health(jnp.int32(Fault.CUTOFF | Fault.NOT_FINITE)).check("between steps 3 and 7")
    with pytest.raises(CapacityError, match="overflowed"):
        Health(jnp.int32(Fault.OVERFLOW | Fault.NOT_FINITE)).check()
    with pytest.raises(SimulationDiverged) as caught:
        Health(jnp.int32(Fault.NOT_FINITE)).check("here", steps=5)
    assert caught.value.steps == 5


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_has_an_error_with_advice(fault):
    error, advice = ADVICE[fault]
    with pytest.raises(error) as caught:
        Health(jnp.int32(fault)).check()
    assert advice in str(caught.value)


def test_faults_of_any_member_of_a_batch_count():
    bits = jnp.array([0, int(Fault.MASS), 0], jnp.int32)
    assert Health(bits).faults() == Fault.MASS
    with pytest.raises(ParameterError, match="mass"):
        Health(bits).check()


def test_all_finite_checks_floating_leaves_only():
    assert all_finite({"n": jnp.arange(3)})
    assert all_finite({"x": jnp.ones(3), "z": jnp.ones(2, complex)})
    assert not all_finite({"x": jnp.array([1.0, jnp.inf])})
    assert not all_finite((jnp.ones(1), jnp.array(complex(0, np.nan))))
