"""Bad input raises a clear error before the first chunk, or at its end."""

import warnings
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    CapacityError,
    ClusterError,
    ComponentError,
    DeclarationError,
    ObserverError,
    OverlapError,
    ParameterError,
    PhyskitWarning,
    ShapeError,
    require_castable,
    static,
)
from physkit.geometry import Box
from physkit.integrators import RK4, AbstractOneStep, Lie, VelocityVerlet
from physkit.observe import Every, Finite, Guard
from physkit.observe._observer import check_interval
from physkit.parallel import ProcessGroup
from physkit.particles import Particles
from physkit.particles.forces import AbstractForce, Coulomb, HarmonicTrap, LennardJones
from physkit.simulate import Simulation, init, run, simulate
from physkit.simulate.distributed._sharded_carry import ShardedCarry
from physkit.simulate.driver._compatibility import require_no_run
from physkit.simulate.driver._same_start import require_same_start

from .problems import Explosive, Springs, Sum, energy_of, particles, springs, x_of

X = np.zeros((3, 2)) + np.arange(3)[:, None]


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Particles(np.zeros(3)), ShapeError, r"position must be \[n d\].*got shape \(3,\)"),
        (lambda: Particles(np.zeros((3, 4))), ShapeError, "d = 1, 2 or 3"),
        (lambda: Particles(X, np.zeros((2, 2))), ShapeError, r"velocity must have shape \(3, 2\)"),
        (lambda: Particles(X, mass=[1, 2]), ShapeError, r"mass must have shape \(3,\)"),
        (lambda: Particles(X, charge=np.ones(4)), ShapeError, "charge must have shape"),
        (lambda: Particles(X, species=[0.0, 1.0, 1.0]), ParameterError, "species must be integers"),
        (
            lambda: Particles(X, species=[0, -1, 1]),
            ParameterError,
            "species are numbered from 0; got -1",
        ),
        (lambda: Particles(X, id=[1, 1, 2]), ParameterError, "ids must be distinct"),
        (lambda: Particles(X, mass=[1, -2, 3]), ParameterError, r"mass\[1\] = -2"),
        (lambda: Particles(X, mass=0.0), ParameterError, "masses must be positive"),
        (
            lambda: Particles(X, space=Box([1, 1, 1])),
            ShapeError,
            "positions have 2 axes, the box has 3",
        ),
        (lambda: Box([1.0, -1.0]), ParameterError, "box lengths must be positive"),
        (lambda: Box(3.0), ShapeError, "one length per axis"),
        (
            lambda: springs(dt=0.0),
            ParameterError,
            "time step must be positive and finite; got dt = 0",
        ),
        (lambda: springs(dt=-0.1), ParameterError, "time step must be positive"),
        (lambda: springs(dt=float("nan")), ParameterError, "time step must be positive"),
        (lambda: springs(dt="0.1"), ParameterError, "must be a number or an array"),
        (
            lambda: springs(observers=[Every(10, x=x_of), Every(25, e=energy_of)]),
            ObserverError,
            r"must divide one another; got \[10, 25\]",
        ),
        (
            lambda: springs(observers=Every(10, x=x_of), guards=[Finite(4)]),
            ObserverError,
            r"must divide one another; got \[4, 10\]",
        ),
        (
            lambda: springs(observers=[x_of]),
            ObserverError,
            "is not an observer; wrap quantities as",
        ),
        (
            lambda: springs(guards="finite"),
            ObserverError,
            r"guards come in a list, as guards=\[Guard\(",
        ),
        (
            lambda: springs(observers=[Finite(4)]),
            ObserverError,
            r"a Finite among observers stops nothing: give guards=\[",
        ),
        (lambda: Every(0, x=x_of), ObserverError, "counts steps: 1, 2, …; got 0"),
        (lambda: check_interval(2.5), ObserverError, "counts steps: 1, 2, …; got 2.5"),
        (lambda: Every(True, x=x_of), ObserverError, "counts steps"),
        (lambda: Every(2), ObserverError, "needs something to record"),
        (lambda: Every(2, x=3.0), ObserverError, r"x=3.0 is not a quantity; did you mean"),
        (lambda: Every(2, guard=Finite), ObserverError, r"did you mean Finite\(\)"),
        (lambda: Guard(0, x_of), ObserverError, "counts steps"),
        (
            lambda: simulate(springs(guards=[Guard(1, energy_of)]), particles(), 6),
            ObserverError,
            "this one returns numbers",
        ),
        (lambda: VelocityVerlet(3.0), TypeError, "expected a force"),
        (lambda: particles().replace(positon=0), ParameterError, r"no \['positon'\]; available"),
    ],
)
def test_constructors_refuse(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize("act", [simulate, lambda *a, **k: run(*a, progress=False, **k)])
class TestSimulateAndRunRefuse:
    @pytest.mark.parametrize(
        ("steps", "message"),
        [
            (0, "whole number from 1; got 0"),
            (-4, "whole number from 1"),
            (True, "whole number from 1"),
            (7, r"steps=7 must be a multiple of the longest observer interval, 6; e.g. 6 or 12"),
            (5, r"interval, 6; e.g. 6$"),
        ],
    )
    def test_steps(self, act, steps, message):
        with pytest.raises(ObserverError, match=message):
            act(springs(), particles(), steps)

    def test_two_observers_of_one_name(self, act):
        for pair in ([Every(1, x=x_of), Every(2, x=energy_of)], [Sum(1), Sum(2)]):
            with pytest.raises(ObserverError, match=r"two observers record \["):
                act(springs(observers=pair), particles(), 4)

    def test_mixed_precision(self, act):
        p = particles()
        mixed = p.replace(velocity=p.velocity.astype(jnp.float32))
        with pytest.raises(ParameterError, match=r"mixes precisions \['float32', 'float64'\]"):
            act(springs(), mixed, 6)

    def test_a_missing_component(self, act):
        sim = Simulation(VelocityVerlet(Springs(component="ions")), 0.1)
        with pytest.raises(
            ComponentError, match=r"no component 'ions' in state; available: \['gas'\]"
        ):
            act(sim, {"gas": particles()}, 2)

    def test_a_missing_component_name(self, act):
        with pytest.raises(ComponentError, match=r"say component=… \(one of \['gas'\]\)"):
            act(Simulation(VelocityVerlet(Springs()), 0.1), {"gas": particles()}, 2)

    def test_masses_changed_by_hand(self, act):
        p = particles()
        with pytest.raises(ParameterError, match="at the start: a mass is zero or negative"):
            act(springs(), p.replace(mass=-p.mass), 6)

    def test_a_box_changed_by_hand(self, act):
        p = Particles(X, space=Box([4.0, 4.0]))
        shrunk = p.replace(space=Box(jnp.ones(2)).__class__(jnp.ones(2)))
        object.__setattr__(shrunk.space, "lengths", -jnp.ones(2))
        with pytest.raises(ParameterError, match="at the start: a box length"):
            act(springs(), shrunk, 6)

    def test_a_start_that_is_not_finite(self, act):
        p = particles()
        not_finite = p.replace(position=p.position.at[0, 0].set(jnp.nan))
        with pytest.raises(
            ParameterError, match=r"the state at the start is not finite: position has 1 of"
        ):
            act(springs(), not_finite, 6)
        far = p.replace(position=p.position.at[0, 0].set(1e200))
        with pytest.raises(OverlapError, match="the force at the start is not finite"):
            act(Simulation(VelocityVerlet(Explosive()), 0.1), far, 6)


def test_init_checks_concrete_values_only():
    """Inside a trace numbers are unknown; the loop sets fault bits."""
    import jax

    bits = jax.jit(lambda m: simulate(springs(), particles().replace(mass=m), 6).health.bits)
    assert int(bits(-particles().mass)) != 0


def test_init_needs_a_key_for_noise():
    from .problems import RandomWalk

    carry = init(Simulation(RandomWalk(), 0.1), particles())
    with pytest.raises(ValueError, match="this simulation needs noise: give a key"):
        simulate(Simulation(RandomWalk(), 0.1), carry, 1)


class Jump(AbstractOneStep):
    """A step of one's own that takes the clock's key as it is."""

    def step(self, plan, clock, state, aux):
        return state + jax.random.normal(clock.key, state.shape), aux


@pytest.mark.parametrize("verb", [run, simulate])
def test_a_step_of_ones_own_that_draws_needs_a_key(verb):
    with pytest.raises(ParameterError, match="this simulation needs noise: give a key"):
        verb(Simulation(Jump(), 0.1), jnp.ones(2), 1)


class NoPair(AbstractOneStep):
    def step(self, plan, clock, state, aux):
        return state


class OtherState(AbstractOneStep):
    def step(self, plan, clock, state, aux):
        return {"x": state["x"][:1]}, aux


class OtherArguments(AbstractOneStep):
    def step(self, clock, state):
        return state


@pytest.mark.parametrize(
    ("integrator", "message"),
    [
        (NoPair(), r"NoPair.step returns the pair \(state, aux\); got"),
        (OtherState(), r"OtherState.step returns .*: float64\[1\] in the place of float64\[2\]"),
        (
            OtherArguments(),
            r"defines step\(self, clock, state\), .* step\(self, plan, clock, state, aux\)",
        ),
    ],
)
def test_a_step_of_another_form_is_named(integrator, message):
    with pytest.raises(DeclarationError, match=message):
        simulate(Simulation(integrator, dt=0.1), {"x": jnp.ones(2)}, 2)


def test_a_complex_rate_of_a_real_state_says_how_to_start():
    message = r"starts complex, e\.g\. y\.astype\(complex\)"
    with jax.numpy_dtype_promotion("standard"), pytest.raises(ShapeError, match=message):
        init(Simulation(RK4(lambda t, y: jax.lax.complex(y, y)), 0.1), jnp.ones(2))


class TestParticlesThatNothingMoves:
    sim = Simulation(VelocityVerlet(Springs(component="a")), 0.05)

    def test_are_named_at_the_start(self):
        with pytest.warns(
            PhyskitWarning, match="nothing moves 'b', though it has velocities"
        ) as seen:
            init(self.sim, {"a": particles(), "b": particles()})
        assert len(seen) == 1

    def test_may_rest(self):
        b = particles()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            init(self.sim, {"a": particles(), "b": b.replace(velocity=0 * b.velocity)})
            frozen = Particles(b.position, b.velocity, frozen=np.ones(5, bool))
            init(self.sim, {"a": particles(), "b": frozen})

    def test_may_be_moved_without_forces(self):
        class Flight(AbstractOneStep):
            def step(self, plan, clock, state, aux):
                b = state["b"]
                return {**state, "b": b.replace(position=b.position + clock.dt * b.velocity)}, aux

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            both = Simulation(Lie(self.sim.integrator, Flight()), 0.05)
            init(both, {"a": particles(), "b": particles()})


class _TwoProcesses(ProcessGroup):
    """Process 0 of two, the other of which contributes what it is asked for by another call."""

    def __init__(self, other):
        super().__init__(None, None)
        self.process_count, self.names, self.other = 2, ["process 0", "process 1"], other

    def all_gather_object(self, value, what):
        if self.other is None:
            self.kept = value
            return [value, value]
        return [value, self.other]


def _compare_starts(first, second):
    """`require_same_start` of two processes."""
    silent = _TwoProcesses(None)
    require_same_start(silent, *second)
    require_same_start(_TwoProcesses(silent.kept), *first)


class TestProcessesOfOneJob:
    def start(self, sim=None, state=None, seed=0, **more):
        sim = springs() if sim is None else sim
        state = particles() if state is None else state
        return sim, state, jax.random.key(seed), {"steps": 6, "to": None, **more}

    def test_equal_starts_pass(self):
        # Functions of two processes have other addresses.
        a = springs(observers=Every(2, x=lambda now: now.t))
        b = springs(observers=Every(2, x=lambda now: now.t))
        _compare_starts(self.start(a), self.start(b))

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            ({"steps": 12}, "steps is 6 on process 0 and 12 on process 1"),
            ({"to": "there"}, "to is None on process 0 and 'there'"),
            ({"sim": springs(dt=0.1)}, r"the simulation\.dt is .*0\.05.* and .*0\.1"),
            ({"state": particles(dtype=jnp.float32)}, r"the state\.position is float64"),
            ({"seed": 1}, "the key"),
            (
                {"sim": springs(observers=())},
                r"the simulation\.observers is tuple of 3 on process 0",
            ),
        ],
        ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
    )
    def test_what_differs_is_named(self, other, message):
        with pytest.raises(ClusterError, match=message):
            _compare_starts(self.start(), self.start(**other))


@pytest.mark.parametrize(("value", "becomes"), [(1e-50, "0"), (1e50, "infinite")])
def test_a_parameter_that_the_precision_of_the_state_cannot_hold_is_named(value, becomes):
    bead = Particles(jnp.ones((1, 2), jnp.float32))
    sim = Simulation(VelocityVerlet(HarmonicTrap(value)), dt=0.01)
    with pytest.raises(ParameterError, match=rf"stiffness of 1e.50 becomes {becomes} in float32"):
        init(sim, bead)


def test_an_infinite_parameter_and_a_table_that_decays_pass():
    bead = Particles(jnp.ones((2, 2), jnp.float32), charge=jnp.ones(2, jnp.float32))
    table = jnp.array([[1.0, 1e-50], [1e-50, 1.0]])
    for potential in (Coulomb(screening=jnp.inf), LennardJones(epsilon=table)):
        require_castable(potential, bead.position.dtype)


def test_time_of_a_start_from_a_result_is_named():
    """A `Result` was taken for a state; nothing said that time begins anew."""
    sim = springs(observers=())
    result = simulate(sim, particles(), 2)
    with pytest.raises(ParameterError, match=r"result\.carry, or start from result\.state.*t0="):
        simulate(sim, result, 2)
    # A carry over devices holds one, too, and is where a run goes on.
    require_no_run(ShardedCarry(result.carry, (1,)))
    with pytest.raises(ParameterError, match=r"start from carry\.state, at Simulation\(…, t0=…\)"):
        simulate(springs(observers=(Every(1, x=x_of),)), result.carry, 2)


def test_a_run_that_no_memory_holds_is_a_clear_error():
    def huge(s):
        return jnp.broadcast_to(s.state[0], (2**30, 2**14))

    sim = Simulation(RK4(lambda t, y: -y), dt=0.1, observers=[Every(1, huge=huge)])
    with pytest.raises(CapacityError, match=r"does not fit into the memory .*Out of memory"):
        run(sim, jnp.ones(2), 2, progress=False)


def test_a_random_key_is_no_quantity():
    sim = springs(observers=(Every(1, key=lambda now: jax.random.key(0)),))
    with pytest.raises(ObserverError, match="a quantity returns numbers of the snapshot"):
        simulate(sim, particles(), 1)


def test_a_step_number_is_no_quantity():
    """It was recorded as two numbers, its high and its low word."""
    sim = springs(observers=(Every(1, step=lambda now: now.clock.step),))
    with pytest.raises(ObserverError, match=r"not a StepCount.* result\.times\[name\]"):
        simulate(sim, particles(), 1)


def test_an_energy_of_a_force_without_a_return_is_named():
    class NoReturn(AbstractForce):
        component: str | None = static(default=None)
        conserves_momentum: ClassVar[bool] = False

        def energy(self, clock, state, cache=None):
            jnp.sum(state.position)

    sim = Simulation(VelocityVerlet(NoReturn()), dt=0.1)
    with pytest.raises(DeclarationError, match="the energy of NoReturn returned None: is there a"):
        simulate(sim, particles(), 1)
