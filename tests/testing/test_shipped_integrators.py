"""Every integrator of particles that physkit ships passes the battery. What is new must be entered here."""

import diffrax
import jax
import jax.numpy as jnp
import pytest

import physkit.integrators
import physkit.particles.forces
import physkit.particles.forces.potentials
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
from physkit.particles import ParticleIncrement, Particles
from physkit.particles.forces import (
    Distance,
    GridBias,
    HarmonicTrap,
    Modulated,
    Pairwise,
    SoftSphere,
)
from physkit.testing import check_integrator

from .shipped import lattice, shipped_classes, tilted

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = ("test_all_are_covered",)


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
    @pytest.mark.parametrize("kind", INTEGRATORS, ids=lambda kind: kind.__name__)
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
        assert shipped_classes(physkit.integrators, AbstractIntegrator) == examined
