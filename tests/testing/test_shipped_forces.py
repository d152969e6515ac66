"""Every force and pair potential that physkit ships passes the battery. What is new must be entered here."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit.integrators
import physkit.particles.forces
import physkit.particles.forces.potentials
from physkit.core import Network
from physkit.particles.forces import (
    WCA,
    AbstractForce,
    AbstractManyBodyPotential,
    AbstractPairPotential,
    BondedEnergy,
    Buckingham,
    CosineAngles,
    CosineSquaredAngles,
    Coulomb,
    DampedCoulomb,
    DirectGravity,
    Distance,
    EnergyFunction,
    Ewald,
    ExternalEnergy,
    ExternalForce,
    ExternalWrench,
    FENEBonds,
    GridBias,
    HarmonicAngles,
    HarmonicBias,
    HarmonicBonds,
    HarmonicTorsions,
    HarmonicTrap,
    LennardJones,
    ManyBody,
    MessagePassing,
    Modulated,
    Morse,
    MorseBonds,
    NeuralPair,
    Pairwise,
    PeriodicTorsions,
    ReactionField,
    RyckaertBellemansTorsions,
    ScaledCharges,
    SiteForce,
    SmearedCoulomb,
    SoftCoreLennardJones,
    SoftSphere,
    SpecialPairs,
    StillingerWeber,
    SymmetryFunctions,
    Torsion,
    TorsionMaps,
    UniformAcceleration,
    UniformField,
    VirtualSites,
    Yukawa,
)
from physkit.particles.rigid._quaternions import rotate
from physkit.testing import check_force, check_potential

from .shipped import cell, lattice, shipped_classes, three_bodies, tilted
from .specimens.states import irregular_particles

# What the fast suite runs of this file; `make test-all` runs the rest, too. Of pair forces every promise
# has a test of its own, in tests/particles/test_pairwise.py.
FAST_CASES = (
    "test_all_are_covered",
    "test_a_new_one_would_be_noticed",
    "test_passes[HarmonicTrap]",
    "test_passes[LennardJones1]",
    "test_passes[SoftSphere]",
)


def network():
    return eqx.nn.MLP("scalar", "scalar", 4, 1, activation=jnp.tanh, key=jax.random.key(0))


TABLE = np.array([[1.0, 0.6], [0.6, 1.3]])
RADII = [0.6, 0.85, 1.05, 1.4, 2.1]  # none at the minimum of WCA, 2^(1/6) σ, where U″ jumps

POTENTIALS = {
    LennardJones: [lambda: LennardJones(1.3, 0.9), lambda: LennardJones(TABLE, 0.9)],
    WCA: [lambda: WCA(1.3, 0.95), lambda: WCA(1.3, TABLE)],
    Morse: [lambda: Morse(1.2, 1.1, 2.0)],
    Buckingham: [lambda: Buckingham(1000.0, 0.2, 2.0)],
    Yukawa: [lambda: Yukawa(1.5, 0.7)],
    SoftCoreLennardJones: [
        lambda: SoftCoreLennardJones(1.3, 0.9, 0.6),
        lambda: SoftCoreLennardJones(TABLE, 0.9, 0.6),
    ],
    SoftSphere: [lambda: SoftSphere(1.0, 0.9, 9.0)],
    Coulomb: [lambda: Coulomb(1.4), lambda: Coulomb(1.4, 0.8)],
    NeuralPair: [lambda: NeuralPair(network())],
    DampedCoulomb: [lambda: DampedCoulomb(0.8, 1.4)],
    SmearedCoulomb: [lambda: SmearedCoulomb(0.8, 1.4)],
    ReactionField: [lambda: ReactionField(2.5, 7.0, 1.4)],
}


def five_bodies():
    return irregular_particles(n=5)


class Learned(AbstractManyBodyPotential):
    """A network of symmetry functions, which are parameters, too."""

    seen: SymmetryFunctions
    network: Network
    cutoff = 1.7

    def __init__(self):
        self.seen = SymmetryFunctions(
            1.7, centers=[0.9, 1.2, 1.5], width=0.3, decays=[0.5], exponents=[1, 2], num_species=2
        )
        key, inputs = jax.random.key(0), self.seen.num_functions
        self.network = Network(eqx.nn.MLP(inputs, "scalar", 3, 1, jnp.tanh, key=key))

    def site_energies(self, near):
        return jax.vmap(self.network)(self.seen(near))


def graph_network():
    return MessagePassing(1.7, 2, num_gaussians=3, hidden=2, num_species=2, key=0)


# Force, particles, and options of the check. Derivatives of forces in charges, masses, boxes and
# all parameters are part of it.
FORCES = {
    Pairwise: [
        (lambda: Pairwise(LennardJones(TABLE, 0.95), 1.6, 0.2), lattice, {}),
    ],
    ManyBody: [
        (lambda: ManyBody(StillingerWeber(sigma=0.9), 1.7, 0.1), lambda: lattice(n=9), {}),
        (lambda: ManyBody(Learned(), 1.7, 0.1), lambda: lattice(n=9), {}),
        # Constants of a training have no derivatives; here they count.
        (
            lambda: ManyBody(graph_network(), 1.7, 0.1),
            lambda: lattice(n=9),
            {"counts_constants": True},
        ),
    ],
    EnergyFunction: [
        (
            lambda: EnergyFunction(_of_edges, {"k": 1.2}, cutoff=1.7, skin=0.1),
            lambda: lattice(n=9),
            {},
        ),
        (lambda: EnergyFunction(_of_positions, {"k": 1.2}), five_bodies, {}),
    ],
    DirectGravity: [(lambda: DirectGravity(1.2, 0.1), lambda: irregular_particles(n=5), {})],
    HarmonicBonds: [
        (
            lambda: HarmonicBonds([[0, 1], [1, 2], [2, 4]], 2.0, 1.1),
            lambda: irregular_particles(n=5),
            {},
        )
    ],
    HarmonicAngles: [
        (
            lambda: HarmonicAngles([[0, 1, 2], [1, 2, 4]], 2.0, 1.7),
            lambda: irregular_particles(n=5),
            {},
        )
    ],
    VirtualSites: [
        (
            lambda: VirtualSites(
                HarmonicBonds([[5, 3], [6, 1]], 2.0, 1.1),
                [[0, 1, 2], [4, 1, 2]],
                [0.3, 0.2],
                out_of_plane=[0.4, 0.2],
                charge=[0.3, -0.2],
            ),
            five_bodies,
            {"ignore": ("charge",)},  # of the sites, which these bonds do not feel
        )
    ],
    SiteForce: [(lambda: SiteForce(HarmonicBonds([[0, 4], [1, 5]], 2.0, 1.1)), three_bodies, {})],
    ExternalWrench: [(lambda: ExternalWrench(_crank, {"k": jnp.asarray(1.2)}), three_bodies, {})],
    FENEBonds: [(lambda: FENEBonds([[0, 1], [2, 1]], 3.0, 9.0), five_bodies, {})],
    MorseBonds: [(lambda: MorseBonds([[0, 1], [2, 1]], 1.3, 0.8, 1.1), five_bodies, {})],
    CosineAngles: [(lambda: CosineAngles([[0, 1, 2], [1, 2, 4]], 2.0, 1.7), five_bodies, {})],
    CosineSquaredAngles: [
        (lambda: CosineSquaredAngles([[0, 1, 2], [1, 2, 4]], 2.0, 1.7), five_bodies, {})
    ],
    PeriodicTorsions: [(lambda: PeriodicTorsions([[0, 1, 2, 4]], 1.3, 2, 0.4), five_bodies, {})],
    HarmonicTorsions: [(lambda: HarmonicTorsions([[0, 1, 2, 4]], 1.3, 0.4), five_bodies, {})],
    RyckaertBellemansTorsions: [
        (
            lambda: RyckaertBellemansTorsions([[0, 1, 2, 4]], [1.0, 0.5, -1.0, 0.3, 0.2, 0.1]),
            five_bodies,
            {},
        )
    ],
    TorsionMaps: [
        (
            lambda: TorsionMaps([[0, 1, 2, 3, 4]], np.cos(np.arange(36.0)).reshape(6, 6)),
            five_bodies,
            {},
        )
    ],
    SpecialPairs: [
        (lambda: SpecialPairs([[0, 1], [2, 1]], Coulomb(1.2, 3.0), 0.5), lambda: lattice(n=9), {})
    ],
    Ewald: [
        (
            lambda: Ewald(
                1.4,
                1e-2,
                coulomb_constant=1.3,
                exclude=[[0, 1], [2, 1]],
                background=True,
                waves=3.2,
            ),
            lambda: lattice(tilted()),
            {},
        )
    ],
    BondedEnergy: [(lambda: BondedEnergy([[0, 1, 2]], _three_body, {"k": 1.2}), five_bodies, {})],
    UniformAcceleration: [(lambda: UniformAcceleration([0.0, 0.3, -9.8]), irregular_particles, {})],
    UniformField: [(lambda: UniformField([0.0, 0.3, -9.8]), irregular_particles, {})],
    HarmonicTrap: [(lambda: HarmonicTrap(1.5, [0.1, 0.2, 0.3]), irregular_particles, {})],
    HarmonicBias: [(lambda: HarmonicBias(Distance([0, 1], 2), 1.5, 0.8), irregular_particles, {})],
    GridBias: [
        (
            lambda: GridBias(
                (Torsion(0, 1, 2, 3), Distance(0, 3)),
                (-np.pi, 0.0),
                (np.pi, 4.0),
                nodes=(6, 5),
                values=np.cos(np.arange(30.0)).reshape(6, 5),
            ),
            five_bodies,
            {},
        )
    ],
    ScaledCharges: [
        (
            lambda: ScaledCharges(Pairwise(Coulomb(1.2), 1.45), [0, 3], 0.6),
            lambda: lattice(cell(), 12),
            {"ignore": ["screening"]},
        )
    ],
    ExternalEnergy: [
        (
            lambda: ExternalEnergy(_well, {"speed": jnp.asarray(0.3)}),
            irregular_particles,
            {"t": 0.4},
        )
    ],
    ExternalForce: [
        (lambda: ExternalForce(_pull, {"k": jnp.asarray(1.2)}), irregular_particles, {"t": 0.4})
    ],
    Modulated: [
        (
            lambda: Modulated(HarmonicTrap(1.5, [0.1, 0.2, 0.3]), 3.0, 0.2),
            irregular_particles,
            {"t": 0.4},
        )
    ],
}
SLOW_FORCES = [
    (lambda: Pairwise(Coulomb(1.2, 0.5), 1.45, 0.2, "switch"), lambda: lattice(cell()), {}),
    (lambda: Pairwise(LennardJones(), 1.45, 0.2), lambda: lattice(cell()), {}),
    (lambda: Pairwise(LennardJones(), 1.3, 0.2), lambda: lattice(tilted()), {}),
    (lambda: Pairwise(LennardJones(), 1.45, use_neighbor_list=False), lambda: lattice(cell()), {}),
    # Not with a tail: what pairs that cross the cutoff do is in its virial, but in no derivative.
    (lambda: Pairwise(LennardJones(), 1.6, 0.1, "plain"), lambda: lattice(cell()), {}),
    (
        lambda: Pairwise(LennardJones(), 1.6, exact=True),
        lattice,
        {"noise": 1e-12, "compare": "same"},
    ),
    (lambda: Pairwise(Coulomb()), lambda: lattice(n=9), {"ignore": ["screening"]}),
]


def _well(t, particles, args):
    return jnp.sum(jnp.cos(particles.position - args["speed"] * t))


def _of_edges(x, cell, species, edges, p):
    r2 = jnp.sum(edges.vectors**2, axis=1)
    each = jnp.where(edges.present, (1.7**2 - r2) ** 4, 0)
    density = jax.ops.segment_sum(each, edges.receivers, len(x))
    return p["k"] * jnp.sqrt(1 + density)


def _of_positions(x, cell, species, p):
    r2 = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    return jnp.sum(jnp.exp(-p["k"] * r2))


def _three_body(x, p):
    return p["k"] * jnp.sum(x[1] * x[2]) ** 2


def _crank(t, bodies, args):
    arm = rotate(bodies.orientation, jnp.ones_like(bodies.position))
    return -args["k"] * arm, -bodies.mass[:, None] * jnp.sin(bodies.position) * arm


def _pull(t, particles, args):
    return -jnp.sin(args["k"] * particles.position) * jnp.exp(-t)


class TestForces:
    @pytest.mark.parametrize(
        ("force", "state", "options"),
        [case for cases in FORCES.values() for case in cases],
        ids=[kind.__name__ for kind, cases in FORCES.items() for _ in cases],
    )
    def test_passes(self, force, state, options, monkeypatch):
        options = dict(options)
        if options.pop("counts_constants", False):
            # Native searches need it: a call of C code has no derivative of its own.
            monkeypatch.setenv("PHYSKIT_NATIVE", "0")
            monkeypatch.setattr(jax.lax, "stop_gradient", lambda x: x)
        check_force(force(), state(), **options)

    @pytest.mark.slow
    @pytest.mark.parametrize(("force", "state", "options"), SLOW_FORCES)
    def test_passes_slowly(self, force, state, options):
        check_force(force(), state(), **options)

    def test_all_are_covered(self):
        assert shipped_classes(physkit.particles.forces, AbstractForce) == set(FORCES)


class TestPotentials:
    @pytest.mark.parametrize(
        "potential",
        [case for cases in POTENTIALS.values() for case in cases],
        ids=[kind.__name__ for kind, cases in POTENTIALS.items() for _ in cases],
    )
    def test_passes(self, potential):
        check_potential(potential(), RADII)

    def test_all_are_covered(self):
        shipped = shipped_classes(physkit.particles.forces.potentials, AbstractPairPotential)
        assert shipped == set(POTENTIALS)


def test_a_new_one_would_be_noticed():
    from physkit.particles.forces import potentials

    assert LennardJones in shipped_classes(potentials, AbstractPairPotential)
    assert AbstractPairPotential not in shipped_classes(potentials, AbstractPairPotential)
