"""The battery for potentials and forces: good specimens pass, broken ones fail for the right reason."""

import jax.numpy as jnp
import pytest

from physkit.testing import check_force, check_potential

from .specimens import (
    BROKEN_FORCES,
    BROKEN_POTENTIALS,
    GOOD_FORCES,
    GOOD_POTENTIALS,
    TILTED,
    crowd,
)

RADII = [0.3, 0.6, 1.0, 1.3]


@pytest.mark.parametrize("potential", GOOD_POTENTIALS)
def test_good_potentials_pass(potential):
    check_potential(potential(), RADII)


@pytest.mark.parametrize(("potential", "message"), BROKEN_POTENTIALS)
def test_broken_potentials_fail(potential, message):
    with pytest.raises(AssertionError, match=message):
        check_potential(potential(), RADII)


@pytest.mark.parametrize(
    ("force", "space"),
    [pytest.param(*f, marks=pytest.mark.slow) if f[1] is TILTED else f for f in GOOD_FORCES],
)
def test_good_forces_pass(force, space):
    check_force(force(), crowd(space()))


def test_a_force_is_examined_in_double_precision_whatever_the_state():
    check_force(GOOD_FORCES[0][0](), crowd(dtype=jnp.float32))


@pytest.mark.parametrize(("force", "space", "message"), BROKEN_FORCES)
def test_broken_forces_fail(force, space, message):
    with pytest.raises(AssertionError, match=message):
        check_force(force(), crowd(space()))


def test_a_sum_of_forces_is_refused():
    force = GOOD_FORCES[0][0]()
    with pytest.raises(AssertionError, match="one by one"):
        check_force(force + force, crowd())
