"""The battery over everything that physkit ships. What is new must be entered here."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit.integrators
import physkit.particles.forces
import physkit.particles.forces.potentials
from physkit.core import Network, is_abstract
from physkit.geometry import Box, Triclinic
from physkit.integrators import (
    ARS222,
    ARS343,
    BAOAB,
    ETDRK2,
    ETDRK4,
    PEFRL,
    RK4,
    RK38,
    SSPRK2,
    SSPRK3,
    AbstractIntegrator,
    Andersen,
    BackwardEuler,
    BasinHopping,
    BlanesMoan,
    Boris,
    BoxMotion,
    Brownian,
    CFLSubsteps,
    Composition,
    CrankNicolson,
    Diffrax,
    DormandPrince5,
    EquationsOfMotion,
    Euler,
    EulerMaruyama,
    Events,
    ExactLinear,
    ExactWave,
    Gillespie,
    HardSphereMonteCarlo,
    Heun,
    HybridMonteCarlo,
    KahanLi,
    Krylov,
    Leapfrog,
    Lie,
    Magnus,
    MartynaTobiasKlein,
    Metadynamics,
    Midpoint,
    MonteCarloBarostat,
    NoseHooverChain,
    ParticleInCell,
    PotentialPropagator,
    QuantumJumps,
    Ralston,
    RelativisticMotion,
    RemoveMomentum,
    RepeatedCircuit,
    ReplicaExchange,
    RungeKutta,
    SpinHeatBath,
    SpinMetropolis,
    SplitStep,
    StaggeredLeapfrog,
    StochasticCellRescaling,
    StochasticHeun,
    Strang,
    StreamAndCollide,
    Subcycle,
    Suzuki,
    SwendsenWang,
    Tableau,
    TauLeaping,
    ThermostatChain,
    Trotter,
    VelocityRescaling,
    VelocityVerlet,
    Yee,
    Yoshida,
)
from physkit.particles import ParticleIncrement, Particles, RigidBodies
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
from physkit.testing import check_force, check_integrator, check_potential

from .specimens.states import irregular_particles

# What the fast suite runs of this file; `make test-all` runs the rest, too. Of pair forces every promise
# has a test of its own, in tests/particles/test_pairwise.py.
FAST_CASES = (
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


def cell():
    return Box([3.6, 3.5, 3.7])


def tilted():
    return Triclinic([[3.6, 0.0, 0.0], [0.5, 3.5, 0.0], [-0.4, 0.3, 3.7]])


def lattice(space=None, n=27):
    """27 particles at distances near 1.1, two species, with charges."""
    rng = np.random.default_rng(0)
    sites = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3)[:n] * 1.12
    x, v = sites + rng.uniform(-0.08, 0.08, sites.shape), rng.normal(size=sites.shape)
    return Particles(
        jnp.asarray(x), jnp.asarray(v), rng.uniform(1, 2, n), space,
        charge=rng.normal(size=n), species=np.arange(n) % 2,
    )  # fmt: skip


def three_bodies():
    rng = np.random.default_rng(2)
    sites = 0.4 * rng.normal(size=(3, 3, 3)) + 1.5 * np.arange(3)[:, None, None]
    velocity, mass = rng.normal(size=sites.shape), rng.uniform(1, 2, (3, 3))
    return RigidBodies.from_sites(sites, mass, velocity=velocity)


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
        assert _shipped(physkit.particles.forces, AbstractForce) == set(FORCES)


class TestPotentials:
    @pytest.mark.parametrize(
        "potential",
        [case for cases in POTENTIALS.values() for case in cases],
        ids=[kind.__name__ for kind, cases in POTENTIALS.items() for _ in cases],
    )
    def test_passes(self, potential):
        check_potential(potential(), RADII)

    def test_all_are_covered(self):
        shipped = _shipped(physkit.particles.forces.potentials, AbstractPairPotential)
        assert shipped == set(POTENTIALS)


def trap(component=None):
    return Modulated(HarmonicTrap(1.5, [0.1, -0.2], component=component), 1.1, 0.3)


def bodies():
    return Particles(
        jnp.array([[0.9, -0.4], [-0.3, 0.6]]), jnp.array([[0.2, 0.1], [-0.5, 0.3]]), [1.0, 1.7]
    )


def thermostatted():
    return {"atoms": bodies(), "thermostat": ThermostatChain.at_rest()}


def newton():
    return EquationsOfMotion(trap())


def drag(t, particles):
    return ParticleIncrement(velocity=-0.8 * (1 + t) * particles.velocity)


EULER = Tableau(((),), (1.0,), 1, "Euler 1768")

# Integrator, state, coarsest step, options of the check.
INTEGRATORS = {
    VelocityVerlet: (lambda: VelocityVerlet(trap()), 0.1, {"order": 2, "symmetric": True}),
    Leapfrog: (lambda: Leapfrog(trap()), 0.1, {"order": 2, "symmetric": True}),
    Yoshida: (lambda: Yoshida(trap()), 0.1, {"order": 4, "symmetric": True}),
    Suzuki: (lambda: Suzuki(trap()), 0.2, {"order": 4, "symmetric": True}),
    KahanLi: (lambda: KahanLi(trap()), 0.6, {"order": 8, "symmetric": True}),
    BlanesMoan: (lambda: BlanesMoan(trap()), 0.3, {"order": 4, "symmetric": True}),
    Boris: (lambda: Boris(1.1, [0.3, -0.2], trap()), 0.1, {"order": 2}),
    PEFRL: (lambda: PEFRL(trap()), 0.3, {"order": 4, "symmetric": True}),
    Euler: (lambda: Euler(newton()), 0.02, {"order": 1}),
    Midpoint: (lambda: Midpoint(newton()), 0.1, {"order": 2}),
    Heun: (lambda: Heun(newton()), 0.1, {"order": 2}),
    Ralston: (lambda: Ralston(newton()), 0.1, {"order": 2}),
    SSPRK2: (lambda: SSPRK2(newton()), 0.1, {"order": 2}),
    SSPRK3: (lambda: SSPRK3(newton()), 0.1, {"order": 3}),
    RK4: (lambda: RK4(newton()), 0.1, {"order": 4}),
    RK38: (lambda: RK38(newton()), 0.1, {"order": 4}),
    DormandPrince5: (lambda: DormandPrince5(newton(), drag), 0.1, {"order": 5}),
    RungeKutta: (lambda: RungeKutta(EULER, newton()), 0.02, {"order": 1}),
    Lie: (lambda: Lie(RK4(drag), VelocityVerlet(trap())), 0.02, {"order": 1}),
    Strang: (lambda: Strang(RK4(drag), VelocityVerlet(trap())), 0.1, {"order": 2}),
    Composition: (
        lambda: Composition(VelocityVerlet(trap())),
        0.1,
        {"order": 4, "symmetric": True},
    ),
    Subcycle: (lambda: Subcycle(VelocityVerlet(trap()), 3), 0.2, {"order": 2, "symmetric": True}),
    BAOAB: (lambda: BAOAB(trap(), 0.7, 0.3), 0.1, {"key": jax.random.key(0)}),
    Brownian: (lambda: Brownian(trap(), 0.7, 3.0), 0.1, {"key": jax.random.key(0)}),
    # Who collides is a choice, of which there is no derivative by the rate.
    Andersen: (
        lambda: Andersen(VelocityVerlet(trap()), 0.7, 2.0),
        0.1,
        {"key": jax.random.key(0), "ignore": ["rate"]},
    ),
    VelocityRescaling: (
        lambda: VelocityRescaling(VelocityVerlet(trap()), 0.7, 0.5),
        0.1,
        {"key": jax.random.key(0)},
    ),
    StochasticCellRescaling: (
        lambda: StochasticCellRescaling(
            VelocityRescaling(VelocityVerlet(attraction()), 0.7, 0.5),
            1.0,
            0.5,
            0.3,
            shape="triclinic",
            interval=2,
        ),
        0.05,
        {"key": jax.random.key(0)},
    ),
    # Which trials are accepted is a choice, of which there is no derivative by the pressure.
    MonteCarloBarostat: (
        lambda: MonteCarloBarostat(
            VelocityRescaling(VelocityVerlet(attraction()), 0.7, 0.5), 1.0, 0.05, interval=1
        ),
        0.05,
        {"key": jax.random.key(0), "ignore": ["pressure"]},
    ),
    MartynaTobiasKlein: (
        lambda: MartynaTobiasKlein(attraction("atoms"), 0.7, 1.0, 2.0, 20.0, shape="triclinic"),
        0.05,
        {"order": 2, "symmetric": True},
    ),
    # Where hills are put is a choice that has no derivative.
    Metadynamics: (
        lambda: Metadynamics(
            VelocityRescaling(
                VelocityVerlet(trap() + GridBias(Distance(0, 1), 0.0, 4.0)), 0.7, 0.5
            ),
            0.1,
            0.3,
            interval=100,
        ),
        0.1,
        {"key": jax.random.key(0), "ignore": ["height", "width", "bias_factor"]},
    ),
    NoseHooverChain: (lambda: NoseHooverChain(trap("atoms"), 0.7, 2.0), 0.05, {"order": 2}),
    RemoveMomentum: (lambda: Lie(VelocityVerlet(trap()), RemoveMomentum()), 0.05, {"order": None}),
    Diffrax: (
        lambda: Diffrax(diffrax.Tsit5(), newton(), rtol=1e-9, atol=1e-9),
        0.1,
        {"ignore": ["tol"], "modes": ("reverse",)},
    ),
}


# Choices between states, which have no derivative: examined in tests/integrators/test_sampling.py and
# test_monte_carlo_of_particles.py.
SEARCHES = (BasinHopping, HardSphereMonteCarlo, HybridMonteCarlo, ReplicaExchange)
# Qubits: examined in tests/quantum.
OF_QUBITS = (Krylov, Magnus, QuantumJumps, RepeatedCircuit, Trotter)
# Examined on arrays, in tests/integrators/test_stochastic.py.
ON_ARRAYS = (EulerMaruyama, StochasticHeun)
# Whole numbers, which have no derivative: examined in tests/reactions and tests/spins.
OF_WHOLE_NUMBERS = (Gillespie, SpinHeatBath, SpinMetropolis, SwendsenWang, TauLeaping)
# Its derivative is that of what is inside and of the times of events: tests/integrators/test_events.py.
WITH_EVENTS = (Events,)
# Examined on fields, in tests/integrators.
WITH_FIELDS = (
    ARS222,
    ARS343,
    BackwardEuler,
    CFLSubsteps,
    CrankNicolson,
    ETDRK2,
    ETDRK4,
    ExactLinear,
    ExactWave,
    PotentialPropagator,
    SplitStep,
)
# Of waves on staggered grids, with charges in motion, and of lattices: tests/fields/test_maxwell.py,
# test_elastic_waves.py and test_lattice_boltzmann.py, tests/integrators/test_particle_in_cell.py, and the
# systems of the restart matrix.
OF_LIGHT = (ParticleInCell, RelativisticMotion, StaggeredLeapfrog, StreamAndCollide, Yee)

# One of each kind; the others take the same paths, and are examined with the slow cases.
QUICK = (VelocityVerlet, RK4, Strang, BAOAB, NoseHooverChain, RemoveMomentum, Diffrax)


def attraction(component=None):
    """A smooth force between all pairs of a few particles."""
    return Pairwise(SoftSphere(0.8, 0.9, 4.0), 1.3, component=component)


def state_for(kind):
    """What an integrator advances here."""
    if kind in (StochasticCellRescaling, MonteCarloBarostat):
        return lattice(tilted(), 12)
    if kind is MartynaTobiasKlein:
        # Not at rest: what returns to 0 by rounding alone has no size to be compared with.
        chain = ThermostatChain(jnp.full(3, 0.1), jnp.full(3, 0.1))
        motion = BoxMotion(0.1 * jnp.eye(3), chain)
        return {"atoms": lattice(tilted(), 12), "thermostat": chain, "barostat": motion}
    return thermostatted() if kind is NoseHooverChain else bodies()


class TestIntegrators:
    @pytest.mark.parametrize(
        "kind",
        [k if k in QUICK else pytest.param(k, marks=pytest.mark.slow) for k in INTEGRATORS],
        ids=[kind.__name__ for kind in INTEGRATORS],
    )
    def test_passes(self, kind):
        integrator, dt, options = INTEGRATORS[kind]
        state = state_for(kind)
        state = state.replace(charge=0.8 * state.mass) if kind is Boris else state
        check_integrator(integrator(), state, dt, **options)

    def test_all_are_covered(self):
        elsewhere = (
            SEARCHES, ON_ARRAYS, WITH_FIELDS, OF_LIGHT, OF_WHOLE_NUMBERS, OF_QUBITS, WITH_EVENTS,
        )  # fmt: skip
        examined = set(INTEGRATORS).union(*elsewhere)
        assert _shipped(physkit.integrators, AbstractIntegrator) == examined


def _shipped(folder, base):
    """The final classes that a folder exports."""
    public = [getattr(folder, name) for name in dir(folder) if not name.startswith("_")]
    kinds = {x for x in public if isinstance(x, type) and issubclass(x, base)}
    return {kind for kind in kinds if not is_abstract(kind)}


def test_a_new_one_would_be_noticed():
    from physkit.particles.forces import potentials

    assert LennardJones in _shipped(potentials, AbstractPairPotential)
    assert AbstractPairPotential not in _shipped(potentials, AbstractPairPotential)
