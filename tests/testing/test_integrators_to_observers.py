"""The battery for integrators, simulations and observers: good specimens pass, broken ones fail."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from physkit.core import ParameterError
from physkit.geometry import Box
from physkit.integrators import RK4, EquationsOfMotion, VelocityVerlet
from physkit.observe import Every, KineticEnergy, Momentum
from physkit.particles import DistanceConstraints, Particles, constrain
from physkit.simulate import Simulation
from physkit.testing import (
    _simulation as battery,
    check_integrator,
    check_observer,
    check_simulation,
)

from .specimens import integrators, simulations
from .specimens.forces import PairForce
from .specimens.integrators import BROKEN_INTEGRATORS
from .specimens.states import irregular_particles

# A wrong order is found in other tests here, and a gradient that is cut off by the battery of observers.
SLOW = (integrators.KicksOnce, integrators.StopsForce)


class TestIntegrator:
    def check(self, kind):
        force = PairForce()
        reference = RK4(EquationsOfMotion(force))
        check_integrator(
            kind(force),
            irregular_particles(n=4),
            0.05,
            order=2,
            reference=reference,
            symmetric=True,
            steps=4,
        )

    @pytest.mark.slow  # methods of the package pass the same, in tests of their own
    def test_good(self):
        self.check(integrators.Verlet)

    @pytest.mark.slow
    def test_successive_steps_show_the_order_without_a_reference(self):
        check_integrator(
            integrators.Verlet(PairForce()), irregular_particles(n=4), 0.05, order=2, steps=4
        )
        with pytest.raises(AssertionError, match=r"expected 3 ± 0\.2"):
            check_integrator(
                integrators.Verlet(PairForce()), irregular_particles(n=4), 0.05, order=3, steps=4
            )

    def test_an_exact_solution(self):
        decays = RK4(lambda t, y: -y)
        exact = lambda y, t: y * jnp.exp(-t)
        check_integrator(decays, jnp.array([1.0, 2.0]), 0.2, order=4, exact=exact)
        with pytest.raises(AssertionError, match=r"the error falls with order .* expected 4"):
            check_integrator(
                decays, jnp.array([1.0]), 0.2, order=4, exact=lambda y, t: y * jnp.exp(-1.01 * t)
            )

    def test_errors_at_round_off_show_no_order(self):
        with pytest.raises(AssertionError, match="give a larger dt"):
            check_integrator(RK4(lambda t, y: -y), jnp.array([1.0]), 1e-5, order=4)

    @pytest.mark.parametrize(
        ("kind", "message"),
        [
            pytest.param(*b, marks=pytest.mark.slow) if b[0] in SLOW else b
            for b in BROKEN_INTEGRATORS
        ],
    )
    def test_broken(self, kind, message):
        with pytest.raises(AssertionError, match=message):
            self.check(kind)

    def test_a_box_counts_among_what_must_converge(self):
        particles = irregular_particles(Box([30.0, 30.0, 30.0]), n=2)
        grows = integrators.GrowsBoxByNoOrder(PairForce())
        with pytest.raises(AssertionError, match=r"the error falls with order"):
            check_integrator(grows, particles, 0.05, order=2, steps=4)

    @pytest.mark.slow
    def test_particles_with_constraints(self):
        check_integrator(
            VelocityVerlet(PairForce()), bonded_particles(), 0.05, order=2, symmetric=True
        )


class TestSimulation:
    def simulation(self, kind=integrators.Verlet, **more):
        observers = [Every(2, energy=total_energy())]
        return Simulation(kind(PairForce(), **more), 0.02, observers=observers)

    @pytest.mark.slow  # as above
    def test_good(self):
        check_simulation(
            self.simulation(),
            irregular_particles(n=4),
            8,
            conserved={"energy": (total_energy(), 1e-2), "momentum": (Momentum(), 1e-12)},
        )

    @pytest.mark.slow
    def test_particles_with_constraints(self):
        check_simulation(Simulation(VelocityVerlet(PairForce()), 0.02), bonded_particles(), 3)

    def test_broken_conservation(self):
        with pytest.raises(AssertionError, match=r"kinetic is not conserved: computed .* at step"):
            check_simulation(
                self.simulation(),
                irregular_particles(n=4),
                8,
                conserved={"kinetic": (KineticEnergy(), 1e-9)},
            )

    def test_too_few_steps(self):
        with pytest.raises(ParameterError, match="at least three times"):
            check_simulation(self.simulation(), irregular_particles(n=4), 4)

    def test_hidden_state(self):
        sim = self.simulation(simulations.ChangesWithEachTrace, num_traces=Counter())
        with pytest.raises(AssertionError, match=r"simulate against run|three pieces"):
            check_simulation(sim, irregular_particles(n=4), 8)

    def test_a_bare_number_as_a_parameter(self):
        height = lambda sim: sim.integrator.force.height
        sim = eqx.tree_at(height, self.simulation(), 1.5)
        with pytest.raises(AssertionError, match=r"integrator\.force\.height is the bare .* 1\.5"):
            check_simulation(sim, irregular_particles(n=4), 8)

    def test_a_program_for_every_value(self, monkeypatch):
        # Without `filter_jit` every call counts as a trace, as if each value compiled a program.
        monkeypatch.setattr(battery.eqx, "filter_jit", lambda f: lambda *a: f(*a))
        with pytest.raises(AssertionError, match="traced 3 times for three values of parameters"):
            battery.check_traces(self.simulation(), irregular_particles(n=4), 8, None)

    @pytest.mark.slow  # observers do it in the fast suite
    def test_cut_off_gradient(self):
        with pytest.raises(AssertionError, match=r"force\.height is exactly 0"):
            check_simulation(self.simulation(integrators.StopsForce), irregular_particles(n=4), 8)


class TestObserver:
    sim = property(lambda self: Simulation(integrators.Verlet(PairForce()), 0.02))

    @pytest.mark.slow
    def test_a_good_quantity(self):
        check_observer(Every(2, kinetic=KineticEnergy()), self.sim, irregular_particles(n=4))

    @pytest.mark.slow  # observers of the package pass the same, in tests of their own
    def test_good(self):
        check_observer(simulations.RunningSum(), self.sim, irregular_particles(n=4))

    def test_one_that_holds_a_force(self):
        with pytest.raises(AssertionError, match=r"HoldsForce\.force holds a PairForce"):
            check_observer(simulations.HoldsForce(PairForce()), self.sim, irregular_particles(n=4))

    def test_functions_that_close_over_a_force(self):
        force = PairForce()
        for function in (
            lambda now: force.energy(now.clock, now.state),
            functools.partial(lambda force, now: force.energy(now.clock, now.state), force),
            lambda now: GLOBAL_FORCE.energy(now.clock, now.state),
            lambda now, force=force: force.energy(now.clock, now.state),
            lambda now: _energy_by_global_forces(now),
            jax.jit(lambda now: {"a": [force]}["a"][0].energy(now.clock, now.state)),
            EnergyOf({"pair": force}),
        ):
            with pytest.raises(AssertionError, match="function holds a PairForce"):
                check_observer(Every(1, energy=function), self.sim, irregular_particles(n=4))

    def test_one_that_changes_the_type_of_its_state(self):
        with pytest.raises(Exception, match=r"float32"):
            check_observer(simulations.ChangesStateType(), self.sim, irregular_particles(n=4))

    def test_one_that_cuts_off_gradients(self):
        stopped = lambda now: jnp.sum(jax.lax.stop_gradient(now.state.velocity) ** 2)
        with pytest.raises(AssertionError, match="is exactly 0, but the finite difference"):
            check_observer(Every(1, v=stopped), self.sim, irregular_particles(n=4))

    def test_one_that_is_not_finite(self):
        with pytest.raises(AssertionError, match=r"the frames: \['v'\] is not finite"):
            check_observer(
                Every(1, v=lambda now: jnp.log(-(now.state.velocity**2))),
                self.sim,
                irregular_particles(n=4),
            )


GLOBAL_FORCE = PairForce()
GLOBAL_FORCES = [GLOBAL_FORCE]


def _energy_by_global_forces(now):
    return GLOBAL_FORCES[0].energy(now.clock, now.state)


class EnergyOf:
    """A function that is an object, with forces of its own."""

    def __init__(self, forces):
        self.forces = forces

    def __call__(self, now):
        return sum(force.energy(now.clock, now.state) for force in self.forces.values())


class Counter(list):
    """A mutable number that claims to be hashable, to smuggle a side effect into a program."""

    def __init__(self):
        super().__init__([0])

    def __hash__(self):
        return 0

    def __eq__(self, other):
        return self is other


def bonded_particles():
    """Two bonds of constant length, and two particles that are free."""
    constraints = DistanceConstraints([[0, 1], [2, 3]], [2.05, 1.2])
    loose = irregular_particles()
    bonded = Particles(loose.position, loose.velocity, loose.mass, constraints=constraints)
    return constrain(bonded)


def total_energy():
    return Every(1, e=lambda now: _energy(now)).outputs["e"]


def _energy(now):
    particles = now.state
    kinetic = 0.5 * jnp.sum(particles.mass[:, None] * particles.velocity**2)
    return kinetic + now.integrator.force.energy(now.clock, particles)
