"""Runs over devices treat a user's force as they treat those of the package: protocols, not classes."""

from typing import ClassVar

from physkit.core import replace_fields, shard, static
from physkit.integrators import VelocityVerlet
from physkit.particles.forces import AbstractForce, Forces, HarmonicTrap, LennardJones, Pairwise
from physkit.simulate import Simulation
from physkit.simulate.distributed._capacity import add_migration_margins, for_shape_inference
from tests.parallel.particle_cases import fluid


class UserNeighborForce(AbstractForce):
    """A user's force between neighbors, which is no subclass and no part of the package's forces."""

    capacity: int | None = static(default=None)
    component: str | None = static(default=None)
    conserves_momentum: ClassVar[bool] = True

    @property
    def _pairwise(self):
        return Pairwise(LennardJones(), cutoff=2.0, skin=0.3, capacity=self.capacity)

    def init(self, state):
        return self._pairwise.init(state)

    def __call__(self, clock, state, cache):
        return self._pairwise(clock, state, cache)

    def for_shape_inference(self):
        return replace_fields(self, {"capacity": 1})


def margin(force):
    """The migration margin of particles on two devices, so fast that it is as wide as it may be."""
    particles = fluid()
    particles = particles.replace(velocity=particles.velocity + 100.0)
    sim = Simulation(VelocityVerlet(force), 0.01)
    return add_migration_margins(shard(particles, (2,)), sim).ownership.migration_margin


def test_a_user_s_neighbor_force_has_the_margin_of_pairwise():
    user_force, pairwise = UserNeighborForce(), Pairwise(LennardJones(), cutoff=2.0, skin=0.3)
    assert margin(user_force) == margin(pairwise)
    assert margin(Forces.of(HarmonicTrap(1.0), user_force)) == margin(pairwise)


def test_forces_without_neighbors_have_a_wider_margin():
    assert margin(HarmonicTrap(1.0)) > margin(UserNeighborForce())


def test_shapes_are_inferred_with_small_lists_of_any_force():
    force = Forces.of(HarmonicTrap(1.0), UserNeighborForce())
    small = for_shape_inference(Simulation(VelocityVerlet(force), 0.01))
    assert small.integrator.force.terms[1].capacity == 1
