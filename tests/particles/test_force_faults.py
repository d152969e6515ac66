"""Faults of forces: every path of a force has them."""

import jax
import pytest

import physkit as pk
from physkit.core import Fault


@pytest.fixture(scope="module")
def atoms():
    position, box = pk.lattice.face_centered_cubic(cells=(2, 2, 2), density=0.8442)
    particles = pk.Particles(position, space=box)
    return pk.maxwell_boltzmann(jax.random.key(0), particles, 1.0)


@pytest.mark.parametrize("use_neighbor_list", [True, False])
class TestLeaps:
    """A time step so large that particles leap over one another."""

    def simulation(self, use_neighbor_list):
        force = pk.Pairwise(pk.LennardJones(), cutoff=1.6, use_neighbor_list=use_neighbor_list)
        return pk.Simulation(pk.VelocityVerlet(force), dt=0.5, guards=())

    def test_is_a_fault_of_simulate(self, atoms, use_neighbor_list):
        result = pk.simulate(self.simulation(use_neighbor_list), atoms, 4)
        assert Fault.DISPLACEMENT in result.health.faults()

    def test_stops_a_run(self, atoms, use_neighbor_list):
        with pytest.raises(pk.errors.StepSizeError, match="reduce dt"):
            pk.run(self.simulation(use_neighbor_list), atoms, 4, progress=False)
