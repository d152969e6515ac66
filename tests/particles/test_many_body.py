"""Many-body potentials: published energies, forces as derivatives, lists that know both ends of a pair."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import CutoffError, ParameterError, ShapeError
from physkit.geometry import Box
from physkit.particles import Particles
from physkit.particles.forces import (
    AbstractManyBodyPotential,
    LennardJones,
    ManyBody,
    MessagePassing,
    Pairwise,
    StillingerWeber,
    SymmetryFunctions,
    Tersoff,
)
from physkit.particles.neighbors import NeighborList, neighbor_list

from .crystals import CLOCK, FCC, alloy, crystal

DIAMOND = np.concatenate([FCC, FCC + 0.25])


# The second parametrization of silicon, which LAMMPS' benchmark has.
TERSOFF_2 = Tersoff(
    A=3264.7, B=95.373, lambda1=3.2394, lambda2=1.3258, lambda3=1.3258, beta=0.33675, n=22.956,
    c=4.8381, d=2.0417, h=0.0, R=2.8, S=3.2,
)  # fmt: skip


class Cohesion(AbstractManyBodyPotential):
    """An embedding energy by hand, and one of angles."""

    decay: jax.Array = pk.param(1.3)

    @property
    def cutoff(self):
        return 1.6

    def site_energies(self, near):
        weight = jnp.exp(-self.decay * near.distance) * (1.6 - near.distance) ** 3
        bend = weight[:, None] * weight[None] * (near.cosine + 0.3) ** 2
        return -jnp.sqrt(1e-3 + near.sum(weight)) + near.sum_pairs(bend)


def moving(atoms):
    velocity = np.random.default_rng(2).normal(size=atoms.position.shape)
    return atoms.replace(velocity=jnp.asarray(velocity))


def evaluate(potential, atoms, *quantities, cutoff=None):
    """Quantities of the potential's force, by one program."""
    force = ManyBody(potential, cutoff)

    @jax.jit
    def all_of_them(force, atoms, cache):
        return tuple(getattr(force, q)(CLOCK, atoms, cache) for q in quantities)

    return all_of_them(force, atoms, force.init(atoms))


@pytest.mark.parametrize(
    ("potential", "energy"),
    [(StillingerWeber(), -4.33660), (TERSOFF_2, -4.63041)],
    ids=["StillingerWeber", "Tersoff"],
)
def test_silicon(potential, energy):
    """Energies per atom in LAMMPS' logs of its potential benchmark."""
    (each,) = evaluate(potential, crystal(5.431, DIAMOND, 2), "particle_energies")
    np.testing.assert_allclose(each, energy, atol=6e-6)


@pytest.mark.slow
def test_a_silicon_of_two_equal_species_is_silicon():
    names = ("A", "B", "c", "R", "S")
    table = {name: np.full(2, float(getattr(TERSOFF_2, name))) for name in names}
    rest = {
        k: float(getattr(TERSOFF_2, k))
        for k in ("lambda1", "lambda2", "lambda3", "beta", "n", "d", "h")
    }
    two = Tersoff(**table, **rest, chi=np.ones((2, 2)))
    plain = evaluate(TERSOFF_2, crystal(5.5, DIAMOND, 2, 0.1), "energy")
    mixed = evaluate(two, crystal(5.5, DIAMOND, 2, 0.1, species=2), "energy")
    np.testing.assert_allclose(mixed, plain, rtol=1e-12)


class Pairs(AbstractManyBodyPotential):
    """Half the pair energies around each particle."""

    cutoff = 1.6

    def site_energies(self, near):
        return near.sum(LennardJones(1.0, 0.9).energy(near.distance)) / 2


@pytest.mark.slow
def test_a_pair_potential_as_a_many_body_one():
    atoms = moving(crystal(1.5, FCC, 3, 0.05))
    names = ("particle_energies", "energy", "force", "virial", "heat_flux")
    pairs = Pairwise(LennardJones(1.0, 0.9), 1.6, truncation="plain")
    cache = pairs.init(atoms)
    expected = jax.jit(lambda: [getattr(pairs, q)(CLOCK, atoms, cache) for q in names[:2]])()
    expected += [pairs(CLOCK, atoms, cache)[0]]
    expected += [getattr(pairs, q)(CLOCK, atoms, cache) for q in names[3:]]
    many = ManyBody(Pairs())
    found = evaluate(Pairs(), atoms, *names[:2], *names[3:])
    found = [*found[:2], many.force(CLOCK, atoms), *found[2:]]
    for name, a, b in zip(names, found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-10, err_msg=name)


def test_reverse_columns_lead_back():
    atoms = crystal(1.3, FCC, 3, 0.05)
    pairs = neighbor_list(atoms, 1.6, with_reverse=True).pairs.resize(64)
    index, reverse = np.asarray(pairs.index), np.asarray(pairs.reverse)
    i, k = np.nonzero(index < len(index))
    assert len(i) > 1000
    np.testing.assert_array_equal(index[index[i, k], reverse[i, k]], i)


def everything(force, atoms, cache, direction):
    """What a force says, and what its energies say, of particles that interact across no boundary."""
    x, v, h = atoms.position, atoms.velocity, 1e-5

    def energies(x):
        return force.particle_energies(CLOCK, atoms.replace(position=x), cache)

    def by_strain(e):
        larger = Box(atoms.space.lengths * (1 + e))
        return force.energy(CLOCK, atoms.replace(position=x * (1 + e), space=larger), cache)

    along = jax.lax.map(lambda s: jnp.sum(energies(x + s * direction)), jnp.array([-h, h]))
    by_size = jax.lax.map(by_strain, jnp.array([-h, h]))
    found, _ = force(CLOCK, atoms, cache)
    virial = force.virial(CLOCK, atoms, cache)
    says = {
        "momentum": (jnp.sum(found, axis=0), jnp.zeros(3)),
        "strain": (virial, force._virial_by_strain(CLOCK, atoms, cache)),
        "work": (jnp.sum(found * direction), (along[0] - along[1]) / (2 * h)),
        "dE/dV": (jnp.trace(virial), (by_size[0] - by_size[1]) / (2 * h)),
    }
    if not force.potential.num_passes:
        _, rates = jax.jvp(energies, (x,), (v,))
        power = jnp.sum(found * v, axis=1) + rates
        says["heat"] = force.heat_flux(CLOCK, atoms, cache), jnp.sum(x * power[:, None], axis=0)
    return says


@pytest.mark.parametrize(
    ("potential", "spacing", "basis"),
    [
        (Cohesion(), 1.3, FCC),
        pytest.param(alloy(), 1.3, FCC, marks=pytest.mark.slow),
        pytest.param(
            MessagePassing(1.6, 3, hidden=4, num_species=2, key=0), 1.3, FCC, marks=pytest.mark.slow
        ),
        pytest.param(StillingerWeber(), 5.4, DIAMOND, marks=pytest.mark.slow),
        pytest.param(TERSOFF_2, 5.4, DIAMOND, marks=pytest.mark.slow),
    ],
    ids=["own", "EmbeddedAtom", "passing", "StillingerWeber", "Tersoff"],
)
def test_force_virial_and_heat_flux_are_derivatives(potential, spacing, basis):
    atoms = moving(crystal(spacing, basis, 2, 0.05 * spacing, species=2))
    # In a larger box: a cluster with surfaces, so that heat flows by absolute positions.
    atoms = atoms.replace(space=Box([5 * spacing] * 3), position=atoms.position + spacing)
    force = ManyBody(potential)
    direction = jnp.asarray(np.random.default_rng(1).normal(size=atoms.position.shape))
    says = jax.jit(everything)(force, atoms, force.init(atoms), direction)
    for name, (found, expected) in says.items():
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=2e-8, err_msg=name)
    if potential.num_passes:
        with pytest.raises(pk.errors.NoVirialError, match="passes features on"):
            force.heat_flux(CLOCK, atoms)


@pytest.mark.slow
def test_a_graph_network_knows_no_directions_and_no_numbers():
    """Turned, mirrored and renumbered its energies are the same; those of two copies side by side, too."""
    atoms = crystal(1.3, FCC, 2, 0.08, species=2)
    potential = MessagePassing(1.25, 4, 2, hidden=4, num_species=2, key=0)
    force = ManyBody(potential, skin=0.03)
    seen = force.map_neighborhoods(potential.invariants, atoms)
    potential = potential.standardized(seen, jnp.array([-1.0, -2.0]))
    force = ManyBody(potential, skin=0.03)
    energies = jax.jit(lambda atoms: force.particle_energies(CLOCK, atoms))
    each = energies(atoms)
    assert float(jnp.std(each)) > 0.05
    order = np.random.default_rng(3).permutation(32)
    # A cubic box turned about z and mirrored is itself.
    x = atoms.position[order] @ jnp.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    other = Particles(x, space=atoms.space, species=atoms.species[order])
    np.testing.assert_allclose(energies(other), each[order], atol=1e-10)
    two = jnp.concatenate([atoms.position, atoms.position + jnp.array([[2.6, 0.0, 0.0]])])
    double = Particles(two, space=Box([5.2, 2.6, 2.6]), species=jnp.tile(atoms.species, 2))
    np.testing.assert_allclose(energies(double), jnp.tile(each, 2), atol=1e-10)
    # What a neighbor's neighbor does, beyond the cutoff, is felt through messages.
    row = Particles([[0.0, 0, 0], [0.7, 0, 0], [1.4, 0, 0]], species=[0, 0, 1])
    shifted = row.replace(position=row.position.at[2, 0].add(-0.1))
    assert float(abs(energies(shifted) - energies(row))[0]) > 1e-6
    for wrong, match in (
        ({"cutoff": -1.0}, "cutoff must be positive"),
        ({"cutoff": 1.0, "shortest": 1.0}, "shortest must be between"),
        ({"cutoff": 1.0, "passes": 0}, "passes"),
        ({"cutoff": 1.0, "num_gaussians": 1}, "at least 2"),
    ):
        with pytest.raises(ParameterError, match=match):
            MessagePassing(**wrong, key=0)
    with pytest.raises(ShapeError, match=r"\[m 12\]"):
        potential.standardized(seen[:, :5], 0.0)


@pytest.mark.slow
def test_blocks_do_not_change_the_sum(monkeypatch):
    """Many small blocks, the last of which overlaps the one before: energies and second derivatives."""
    atoms, force = crystal(1.3, FCC, 3, 0.05), ManyBody(Cohesion())
    cache = force.init(atoms)

    def response():
        def value(x):
            moved = atoms.replace(position=x)
            return jnp.sum(force(CLOCK, moved, cache)[0] ** 2)

        return jax.jit(jax.value_and_grad(value))(atoms.position)

    whole = response()
    for name in ("PAIRS_PER_SMALL_BLOCK", "PAIRS_PER_LARGE_BLOCK"):
        monkeypatch.setattr(f"physkit.particles.forces.many_body._many_body.{name}", 20_000)
    for found, expected in zip(response(), whole):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)


def hot_silicon():
    silicon = crystal(5.431, DIAMOND, 2, 0.05).replace(mass=jnp.full(64, 28.0))
    return pk.maxwell_boltzmann(1, silicon, 0.3)


def is_list(x):
    return isinstance(x, NeighborList)


@pytest.mark.slow
def test_energy_is_conserved_while_the_list_is_rebuilt():
    """Hot silicon: lists are rebuilt, and the error of the energy falls with dt²."""
    silicon = hot_silicon()

    @jax.jit
    def drift(dt):
        simulation = pk.Simulation(
            pk.VelocityVerlet(ManyBody(StillingerWeber(), skin=0.3, capacity=32)),
            dt,
            pk.Every(1, energy=pk.TotalEnergy()),
        )
        result = pk.simulate(simulation, silicon, 120)
        energy = result["energy"]
        lists = [x for x in jax.tree.leaves(result.carry.aux, is_leaf=is_list) if is_list(x)]
        return jnp.max(jnp.abs(energy - energy[0])), lists[0].num_rebuilds

    (coarse, rebuilds), (fine, _) = drift(0.4), drift(0.2)
    assert rebuilds > 2
    assert 3.0 < coarse / fine < 5.0


@pytest.mark.slow
def test_gradient_of_a_trajectory_by_parameters():
    silicon = hot_silicon()

    @jax.jit
    @jax.value_and_grad
    def end(three_body):
        # The cutoff does not depend on what is traced, so that it is known in a trace, too.
        force = ManyBody(StillingerWeber(three_body=three_body), capacity=32)
        result = pk.simulate(pk.Simulation(pk.VelocityVerlet(force), 0.2), silicon, 3)
        return jnp.sum(result.state.position**2)

    slope = (end(21.0 + 1e-4)[0] - end(21.0 - 1e-4)[0]) / 2e-4
    np.testing.assert_allclose(end(21.0)[1], slope, rtol=1e-6)
    with pytest.raises(ParameterError, match="traced parameter: give cutoff"):
        jax.jit(lambda s: ManyBody(StillingerWeber(sigma=s)).cutoff)(2.0)


def test_bad_input_is_named():
    atoms = crystal(1.3, FCC, 3)
    with pytest.raises(ParameterError, match="species"):
        ManyBody(alloy()).energy(CLOCK, atoms)
    with pytest.raises(CutoffError, match="image limit"):
        ManyBody(Cohesion(), 5.0).energy(CLOCK, atoms)
    with pytest.raises(ShapeError, match=r"\[s s\]"):
        Tersoff(chi=[1.0, 2.0])
    with pytest.raises(pk.errors.NotReversible, match="NestedCheckpoint"):
        ManyBody(Cohesion()).require_reversible(atoms)
    # A cutoff that grows with a fitted parameter must not lose neighbors in silence.
    grown = ManyBody(StillingerWeber(sigma=2.3), cutoff=3.8)
    assert np.isnan(grown.energy(CLOCK, crystal(5.431, DIAMOND, 3)))


@pytest.mark.parametrize("by_parameter", [False, True])
def test_a_longer_list_brings_no_neighbors_beyond_the_potential(by_parameter):
    """This one would rise again beyond its cutoff, as tables and polynomials do."""

    class Bonds(AbstractManyBodyPotential):
        decay: jax.Array = pk.param(1.0)

        @property
        def cutoff(self):
            return 1.6 * self.decay if by_parameter else 1.6

        def site_energies(self, near):
            return near.sum((1.6 - near.distance) ** 2)

    atoms = Particles([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0], [0, 0, 2.5]])
    for cutoff in (None, 3.0):
        assert ManyBody(Bonds(), cutoff).energy(CLOCK, atoms) == pytest.approx(
            2 * (2 * 0.6**2 + (1.6 - 2**0.5) ** 2)
        )


# --- networks --------------------------------------------------------------------------------------


def test_symmetry_functions_are_sums_over_neighbors_and_their_pairs():
    """Beside loops over particles, for two species; and the same after a rotation of all that is seen."""
    seen = SymmetryFunctions(
        1.7, centers=[0.9, 1.3], width=0.3, decays=[0.5], exponents=[1, 4], num_species=2
    )
    x = np.random.default_rng(3).uniform(0, 1.6, (7, 3))
    turn, _ = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))
    kinds = np.array([0, 1, 1, 0, 1, 0, 0])

    @jax.jit
    def functions(x):
        atoms = Particles(x, species=kinds)
        return ManyBody(Cohesion(), 1.7, 0.1, capacity=8).map_neighborhoods(seen, atoms)

    found = functions(jnp.asarray(x))
    assert found.shape == (7, seen.num_functions) == (7, 2 * 2 + 3 * 4)
    np.testing.assert_allclose(functions(jnp.asarray(x @ turn.T)), found, rtol=1e-11, atol=1e-13)
    # A longer list, with one particle more beyond their cutoff.
    more = Particles([*x, [3.5, 0.8, 0.8]], species=[*kinds, 0])
    further = ManyBody(Cohesion(), 3.8, 0.1, capacity=8).map_neighborhoods(seen, more)
    np.testing.assert_allclose(further[:7], found, rtol=1e-11, atol=1e-13)

    def window(r):
        return (1 - 10 * (r / 1.7) ** 3 + 15 * (r / 1.7) ** 4 - 6 * (r / 1.7) ** 5) * (r < 1.7)

    expected = np.zeros((7, 16))
    for i in range(7):
        others = [j for j in range(7) if j != i]
        for j in others:
            r = np.linalg.norm(x[j] - x[i])
            for k, c in enumerate((0.9, 1.3)):
                expected[i, 2 * kinds[j] + k] += np.exp(-((r - c) ** 2) / 0.18) * window(r)
            for m in (m for m in others if m > j):
                s = np.linalg.norm(x[m] - x[i])
                cosine = (x[j] - x[i]) @ (x[m] - x[i]) / (r * s)
                weight = np.exp(-0.5 * (r**2 + s**2)) * window(r) * window(s)
                of_kinds = [(0, 0), (0, 1), (1, 1)].index(tuple(sorted((kinds[j], kinds[m]))))
                for a, (zeta, sign) in enumerate([(1, 1), (1, -1), (4, 1), (4, -1)]):
                    bend = 2.0 ** (1 - zeta) * (1 + sign * cosine) ** zeta
                    expected[i, 4 + 3 * a + of_kinds] += bend * weight
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    for wrong in (
        {"cutoff": 0.0},
        {"cutoff": 1.0, "width": -1.0},
        {"cutoff": 1.0, "centers": [0.5]},
    ):
        with pytest.raises(ParameterError, match=r"positive|two centers"):
            SymmetryFunctions(**wrong)
