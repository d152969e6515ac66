"""Faults of forces: every path of a force has them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import Clock, Fault, StepCount


@pytest.fixture(scope="module")
def atoms():
    position, box = pk.lattice.face_centered_cubic(cells=(2, 2, 2), density=0.8442)
    particles = pk.Particles(position, space=box)
    return pk.maxwell_boltzmann(jax.random.key(0), particles, 1.0)


class TestLeaps:
    """A time step so large that particles leap over one another."""

    def simulation(self, use_neighbor_list):
        force = pk.Pairwise(pk.LennardJones(), cutoff=1.6, use_neighbor_list=use_neighbor_list)
        return pk.Simulation(pk.VelocityVerlet(force), dt=0.5, guards=())

    # With a list: the next test.
    @pytest.mark.parametrize(
        "use_neighbor_list", [pytest.param(True, marks=pytest.mark.slow), False]
    )
    def test_is_a_fault_of_simulate(self, atoms, use_neighbor_list):
        result = pk.simulate(self.simulation(use_neighbor_list), atoms, 4)
        assert Fault.DISPLACEMENT in result.health.faults()

    @pytest.mark.parametrize("use_neighbor_list", [True, False])
    def test_stops_a_run(self, atoms, use_neighbor_list):
        with pytest.raises(pk.errors.StepSizeError, match="reduce dt"):
            pk.run(self.simulation(use_neighbor_list), atoms, 4, progress=False)


class TestTracedBoxes:
    """A cutoff that a box allows is right whether or not a trace hides the box."""

    def energy(self, atoms, force, scale):
        space = pk.Box(scale * atoms.space.lengths)
        scaled = atoms.replace(position=scale * atoms.position, space=space)
        simulation = pk.Simulation(pk.VelocityVerlet(force), dt=0.001)
        return pk.simulate(simulation, scaled, 3).state

    def test_the_skin_is_what_a_hidden_box_leaves(self, atoms):
        limit = float(atoms.space.max_cutoff(3))
        force = pk.Pairwise(pk.LennardJones(), 0.97 * limit)
        scales = jnp.array([0.98, 1.2])
        found = jax.jit(jax.vmap(lambda s: self.energy(atoms, force, s).position))(scales)
        for scale, positions in zip(scales, found, strict=True):
            expected = self.energy(atoms, force, scale).position
            np.testing.assert_allclose(positions, expected, rtol=1e-5, atol=1e-5)

    def test_a_cutoff_that_is_too_long_is_a_fault_with_its_remedy(self, atoms):
        force = pk.Pairwise(pk.LennardJones(), 0.97 * float(atoms.space.max_cutoff(3)))
        space = pk.Box(0.9 * atoms.space.lengths)
        with pytest.raises(pk.errors.CutoffError, match="image limit"):
            force.init(atoms.replace(space=space))
        faults = jax.jit(
            lambda box: force.init(atoms.replace(space=pk.Box(box))).neighbors.faults.bits
        )
        assert faults(space.lengths) == Fault.CUTOFF


def test_what_is_not_finite_at_the_start_is_named(atoms):
    simulation = pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(jnp.nan)), dt=0.1)
    with pytest.raises(
        pk.errors.ParameterError, match=r"stiffness has 1 of 1 numbers that are nan"
    ):
        pk.init(simulation, atoms)
    position = atoms.position.at[3, 1].set(jnp.inf)
    with pytest.raises(
        pk.errors.ParameterError, match=r"position has 1 of 96.* inf, first at \[3, 1\]"
    ):
        pk.init(simulation, atoms.replace(position=position))


TABLE = np.array([[1.0, 2.0], [2.0, 3.0]])
NETWORK = pk.potentials.MessagePassing(2.0, 3, hidden=4, num_species=2, key=0)


@pytest.mark.parametrize(
    "force",
    [
        pk.Pairwise(pk.LennardJones(TABLE)),
        pk.Pairwise(pk.LennardJones(TABLE), 2.5, use_neighbor_list=True, capacity=2),
        pk.forces.SpecialPairs([[0, 1]], pk.LennardJones(TABLE)),
        pk.forces.ManyBody(NETWORK, capacity=2),
    ],
    ids=["all pairs", "list", "special pairs", "many bodies"],
)
def test_a_species_without_a_table_that_a_trace_hides_has_no_energy(force):
    clock = Clock.at(StepCount.of(0), 0.0, 0.1)
    start = pk.Particles([[0.0, 0, 0], [1.5, 0, 0]], species=[0, 1])

    @jax.jit
    def values(species):
        state = start.replace(species=species)
        return force.energy(clock, state), force.force(clock, state)

    for found in values(jnp.array([0, 1])):
        assert np.all(np.isfinite(found))
    for found in values(jnp.array([0, 2])):
        assert np.any(np.isnan(found))
