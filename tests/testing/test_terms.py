"""The battery for potentials, forces and tendencies: good specimens pass, broken ones fail as expected."""

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import DeclarationError
from physkit.particles import Particles, RigidBodies
from physkit.particles.forces import LennardJones, Pairwise, SiteForce
from physkit.testing import check_force, check_potential, check_tendency

from .specimens.all_forces import BROKEN_FORCES, GOOD_FORCES
from .specimens.forces import PairForce
from .specimens.potentials import BROKEN_POTENTIALS, GOOD_POTENTIALS
from .specimens.states import irregular_particles, tilted_box, two_components
from .specimens.tendencies import BROKEN_TENDENCIES, Decay

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
    [
        # Another test of this file examines the force of pairs in free space; that by a list, one in a box.
        pytest.param(*f, marks=pytest.mark.slow) if f[1] is tilted_box or f[0] is PairForce else f
        for f in GOOD_FORCES
    ],
)
def test_good_forces_pass(force, space):
    check_force(force(), irregular_particles(space()))


def test_a_force_is_examined_in_double_precision_whatever_the_state():
    check_force(GOOD_FORCES[0][0](), irregular_particles(dtype=jnp.float32))


@pytest.mark.parametrize(("force", "space", "message"), BROKEN_FORCES)
def test_broken_forces_fail(force, space, message):
    with pytest.raises(AssertionError, match=message):
        check_force(force(), irregular_particles(space()))


@pytest.mark.slow
def test_a_force_that_names_components():
    bodies = RigidBodies(
        3.0 * np.eye(3), [1.0, 2.0, 2.5], sites=[[0.3, 0, 0], [-0.3, 0, 0.1]], site_mass=0.5
    )
    others = Particles([[1.0, 1.0, 1.0], [2.5, 1.0, 1.2]])
    pairs = Pairwise(LennardJones(), cutoff=20.0, exclude=bodies.site_pairs)
    force = SiteForce(pairs, ["water", "ions"])
    check_force(force, {"water": bodies, "ions": others})


def test_a_sum_of_forces_is_refused():
    force = GOOD_FORCES[0][0]()
    with pytest.raises(DeclarationError, match="one by one"):
        check_force(force + force, irregular_particles())


class TestTendency:
    def test_good(self):
        check_tendency(Decay(), two_components(), drives=["a", "b"])

    def test_a_plain_function_will_do(self):
        check_tendency(lambda t, y: -y * (1 + t), jnp.array([1.0, 2.0]))

    def test_components_that_should_be_driven(self):
        with pytest.raises(AssertionError, match=r"drives \['a', 'b'\], expected \['a'\]"):
            check_tendency(Decay(), two_components(), drives=["a"])

    @pytest.mark.parametrize(("tendency", "message"), BROKEN_TENDENCIES)
    def test_broken(self, tendency, message):
        with pytest.raises(AssertionError, match=message):
            check_tendency(tendency(), two_components())
