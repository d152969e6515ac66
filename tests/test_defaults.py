"""Classes of a user's own that leave something out: the default is right, or an error, never a wrong number."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Int

import physkit as pk
from physkit.core import AbstractGrowable, Clock, StepCount, data, invalidate_caches
from physkit.observe import Snapshot


class OwnEuler(pk.AbstractOneStep):
    """Symplectic Euler, which does not say which terms it holds."""

    force: pk.AbstractForce

    def step(self, plan, clock, state, aux):
        return state.kick(self.force.force(clock, state), clock.dt).drift(clock.dt), aux


def test_an_integrator_of_ones_own_has_the_energy_of_the_force_it_holds():
    force = pk.Pairwise(pk.LennardJones(), 1.5, use_neighbor_list=False)
    atoms = pk.Particles([[0.0, 0.0], [1.1, 0.0]], space=pk.Box([4.0, 4.0]))
    clock = Clock.at(StepCount.of(0), 0.0, 0.01)
    now = Snapshot(clock, atoms, None, None, OwnEuler(force))
    expected = force.energy(clock, atoms)
    assert expected < 0
    np.testing.assert_allclose(pk.PotentialEnergy()(now), expected, rtol=1e-12)
    pressure = -np.trace(force.virial(clock, atoms)) / -2 / 16
    np.testing.assert_allclose(pk.Pressure()(now), pressure, rtol=1e-12)


def test_a_law_with_half_a_change_of_variables_is_refused():
    with pytest.raises(pk.errors.DeclarationError, match=r"primitive.*but not conserved"):

        class Halved(pk.equations.AbstractConservationLaw):
            """Writes fluxes in other variables and does not say how to come back."""

            component: str | None = pk.static(default=None)
            riemann: Any = None
            reconstruction: Any = None

            def primitive(self, conserved):
                return tuple(2 * x for x in conserved)

            def flux(self, values, axis):
                return values

            def wave_speeds(self, values, axis):
                return values[0], values[0]


class Rows(AbstractGrowable):
    """A cache that refers to rows, and says nothing about rows that move."""

    required: Int[Array, ""] = data()

    @property
    def capacity(self):
        return 1

    def grow_to(self, capacity):
        return self


def test_a_cache_that_does_not_say_how_it_survives_a_migration_is_refused():
    with pytest.raises(pk.errors.DeclarationError, match=r"Rows.*invalidate"):
        invalidate_caches(Rows(jnp.int32(0)))


def test_lists_are_stale_after_a_migration():
    atoms = pk.Particles([[0.0, 0.0], [1.1, 0.0]], space=pk.Box([4.0, 4.0]))
    cache = invalidate_caches(pk.Pairwise(pk.LennardJones(), 1.5, skin=0.1).init(atoms))
    assert cache.neighbors.pairs.stale
    assert cache.neighbors.cells.stale
