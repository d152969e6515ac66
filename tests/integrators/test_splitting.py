"""Compositions: carried forces are refreshed where needed only; every sub-step has its time and key."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import DeclarationError, ParameterError, get_component, static
from physkit.integrators import (
    BAOAB,
    RK4,
    AbstractIntegrator,
    AbstractOneStep,
    BlanesMoan,
    EquationsOfMotion,
    Leapfrog,
    Lie,
    NoseHooverChain,
    RemoveMomentum,
    Strang,
    Subcycle,
    VelocityVerlet,
    Yoshida,
)
from physkit.particles import ParticleIncrement, Particles, total_momentum
from physkit.particles.forces import AbstractForce

from .problems import (
    Bond,
    Pair,
    Problem,
    Spring,
    convergence_order,
    evolve,
    evolve_compiled,
    final_state,
    read_phase_space,
    solve_accurately,
)


def stretch(t, state):
    """A part that moves the particles: dx/dt = 0.3 x."""
    return ParticleIncrement(position=0.3 * state.position)


def brake(t, state):
    """A part that changes velocities only."""
    return ParticleIncrement(velocity=-0.3 * state.velocity)


class WithoutRefresh(AbstractIntegrator):
    """An integrator that does not refresh its aux after another part moved the state."""

    inner: AbstractIntegrator

    def prepare(self, state, dt):
        return self.inner.prepare(state, dt)

    def init(self, plan, clock, state):
        return self.inner.init(plan, clock, state)

    def refresh(self, plan, clock, state, aux):
        return aux

    def step(self, plan, clock, state, aux):
        return self.inner.step(plan, clock, state, aux)


def stretched_spring() -> Problem:
    """A driven spring whose particle another part moves away from the origin."""
    rate = lambda t, y: [y[1] + 0.3 * y[0], -(1 + 0.5 * np.sin(t)) * y[0]]
    exact = solve_accurately(rate, [1.0, 0.3], 4.0)
    return Problem(Particles([[1.0]], [[0.3]]), 4.0, read_phase_space(None), exact)


FORCE = Spring(1.0, drive=0.5)


@pytest.mark.parametrize(
    "compose", [lambda a, b: Strang(a, b), lambda a, b: Strang(b, a)], ids=["first", "last"]
)
@pytest.mark.parametrize("method", [VelocityVerlet, Leapfrog, Yoshida, BlanesMoan])
def test_a_carried_force_does_not_go_stale(compose, method):
    integrator = compose(method(FORCE), RK4(stretch))
    assert convergence_order(integrator, stretched_spring()) == pytest.approx(2.0, abs=0.05)


def test_without_refresh_the_order_drops_to_one():
    """The test above fails for an integrator that it should fail for."""
    integrator = Strang(WithoutRefresh(VelocityVerlet(FORCE)), RK4(stretch))
    assert convergence_order(integrator, stretched_spring()) == pytest.approx(1.0, abs=0.1)


class CountedSpring(AbstractForce):
    """A spring that counts how often a step asks for it, while it is traced."""

    calls: object = static()
    component: str | None = static(default=None)
    conserves_momentum = False

    def force(self, clock, state):
        self.calls.count += 1
        return -self.particles(state).position


class CallCounter:
    def __init__(self):
        self.count = 0


@pytest.mark.parametrize(
    ("compose", "evaluations"),
    [
        (lambda f: VelocityVerlet(f), 1),
        (lambda f: Strang(VelocityVerlet(f), RK4(brake)), 2),
        (lambda f: Strang(RK4(brake), VelocityVerlet(f)), 1),
        (lambda f: Lie(VelocityVerlet(f), RemoveMomentum()), 1),
        (lambda f: Lie(BAOAB(f, 1.0, 1.0), RemoveMomentum()), 1),
        (lambda f: Strang(VelocityVerlet(f), RK4(stretch)), 3),
        (lambda f: Lie(VelocityVerlet(f), RK4(stretch)), 2),
        (lambda f: Lie(Leapfrog(f), RK4(stretch)), 1),
        (lambda f: Yoshida(f), 3),
    ],
)
def test_forces_are_computed_again_only_where_positions_changed(compose, evaluations):
    counter = CallCounter()
    integrator, state = compose(CountedSpring(counter)), Particles([[1.0], [2.0]])
    key = jax.random.key(0)
    dt = jnp.asarray(0.1)
    _, aux = evolve(integrator, state, dt, 1, key=key)
    counter.count = 0
    jax.eval_shape(lambda s, a: evolve(integrator, s, dt, 1, key=key, aux=a), state, aux)
    assert counter.count == evaluations


@pytest.mark.parametrize("parts", ["force first", "force last"])
@pytest.mark.parametrize("composition", [Lie, Strang])
def test_aux_belongs_to_the_final_state(composition, parts):
    verlet, other = VelocityVerlet(Spring(1.0)), RK4(stretch)
    integrator = composition(*((verlet, other) if parts == "force first" else (other, verlet)))
    state, aux = evolve_compiled(integrator, Particles([[1.0]], [[0.2]]), jnp.asarray(0.1), 3)
    total, _ = aux[0] if parts == "force first" else aux[1]
    np.testing.assert_allclose(total[None], -state.position, rtol=1e-14)


class Noise(AbstractOneStep):
    """Puts the clock and a random number of each sub-step into a bare array."""

    def step(self, plan, clock, state, aux):
        entry = jnp.stack([clock.t, clock.dt, jax.random.normal(clock.key, ())])
        return jnp.concatenate([state[1:], entry[None]]), aux


def record_substeps(integrator, steps=1, first=0, state=None, rows=8):
    state = jnp.zeros((rows, 3)) if state is None else state
    key = jax.random.key(3)
    return evolve_compiled(
        integrator, state, jnp.asarray(0.2), steps, t0=1.0, key=key, first=first
    )[0]


@pytest.mark.parametrize(
    ("integrator", "times", "lengths"),
    [
        (Lie(Noise(), Noise()), [1, 1], [0.2, 0.2]),
        (Strang(Noise(), Noise()), [1, 1, 1.1], [0.1, 0.2, 0.1]),
        (Strang(Noise(), Noise(), Noise()), [1, 1, 1, 1.1, 1.1], [0.1, 0.1, 0.2, 0.1, 0.1]),
        (Subcycle(Noise(), 4), [1, 1.05, 1.1, 1.15], [0.05] * 4),
        (
            Strang(Noise(), Subcycle(Noise(), 2)),
            [1, 1, 1.1, 1.1],
            [0.1, 0.1, 0.1, 0.1],
        ),
        (Subcycle(Strang(Noise(), Noise()), 2), [1, 1, 1.05, 1.1, 1.1, 1.15], None),
    ],
    ids=["Lie", "Strang", "three parts", "Subcycle", "Subcycle in Strang", "Strang in Subcycle"],
)
def test_each_substep_has_its_own_time_and_key(integrator, times, lengths):
    rows = np.asarray(record_substeps(integrator))[-len(times) :]
    np.testing.assert_allclose(rows[:, 0], times, rtol=1e-14)
    if lengths is not None:
        np.testing.assert_allclose(rows[:, 1], lengths, rtol=1e-14)
    assert len(np.unique(rows[:, 2])) == len(times)


def test_noise_does_not_depend_on_chunks():
    integrator = Strang(Noise(), Subcycle(Noise(), 2))
    whole = record_substeps(integrator, 4, rows=16)
    cut = record_substeps(
        integrator, 3, first=1, state=record_substeps(integrator, 1, rows=16), rows=16
    )
    np.testing.assert_array_equal(whole, cut)


def test_subcycle_is_the_same_as_small_steps():
    state = Particles([[1.0]], [[0.2]])
    big = final_state(Subcycle(VelocityVerlet(FORCE), 4), state, 0.4, 5)
    small = final_state(VelocityVerlet(FORCE), state, 0.1, 20)
    np.testing.assert_allclose(big.position, small.position, rtol=1e-13)
    np.testing.assert_allclose(big.velocity, small.velocity, rtol=1e-13)


@pytest.mark.parametrize(
    ("integrator", "conserves"),
    [
        (VelocityVerlet(Pair()), True),
        (VelocityVerlet(Pair() + Spring()), False),
        (Leapfrog(Pair()), True),
        (RK4(EquationsOfMotion(Pair())), True),
        (RK4(EquationsOfMotion(Pair()), brake), False),
        (RK4(lambda t, y: -y), False),
        (BAOAB(Pair(), 1.0, 1.0), False),
        (Lie(BAOAB(Pair(), 1.0, 1.0), RemoveMomentum()), True),
        (Lie(RemoveMomentum(), BAOAB(Pair(), 1.0, 1.0)), False),
        (Strang(RemoveMomentum(), BAOAB(Pair(), 1.0, 1.0)), True),
        (Lie(BAOAB(Pair(), 1.0, 1.0), RemoveMomentum("ions")), False),
        (Lie(VelocityVerlet(Pair()), RK4(brake)), False),
        (Subcycle(VelocityVerlet(Pair()), 2), True),
        (NoseHooverChain(Pair(component="a"), 1.0, 1.0), True),
        (NoseHooverChain(Spring(component="a"), 1.0, 1.0), False),
        (Noise(), False),
    ],
)
def test_integrators_say_whether_they_conserve_momentum(integrator, conserves):
    assert integrator.conserves_momentum is conserves


def test_compositions_list_the_terms_of_their_parts():
    spring, pair = Spring(), Pair()
    integrator = Strang(RK4(EquationsOfMotion(spring)), Subcycle(VelocityVerlet(pair), 2))
    _, aux = evolve_compiled(integrator, Particles([[1.0], [2.0]]), jnp.asarray(0.1), 1)
    assert [type(term) for term, _ in integrator.terms(aux)] == [Spring, Pair]


def moving_particles(n=5, frozen=None, seed=0):
    draw = np.random.default_rng(seed)
    mass = 1 + draw.random(n)
    return Particles(draw.random((n, 2)), draw.random((n, 2)) + 1, mass, frozen=frozen)


def test_remove_momentum_of_one_component():
    state = moving_particles()
    out = final_state(RemoveMomentum(), state, 0.1, 1)
    np.testing.assert_allclose(total_momentum(out), 0, atol=1e-14)
    relative = lambda p: np.asarray(p.velocity) - np.asarray(p.velocity)[0]
    np.testing.assert_allclose(relative(out), relative(state), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(out.position, state.position)


def test_remove_momentum_of_several_components_together():
    state = {"a": moving_particles(), "b": moving_particles(seed=1), "field": jnp.ones(3)}
    out = final_state(RemoveMomentum(), state, 0.1, 1)
    np.testing.assert_allclose(total_momentum(out["a"]) + total_momentum(out["b"]), 0, atol=1e-13)
    assert np.abs(total_momentum(out["a"])).max() > 1e-3
    only = final_state(RemoveMomentum("a"), state, 0.1, 1)
    np.testing.assert_allclose(total_momentum(only["a"]), 0, atol=1e-13)
    np.testing.assert_array_equal(only["b"].velocity, state["b"].velocity)


def test_remove_momentum_leaves_frozen_particles_out():
    frozen = np.array([True, False, False, True, False])
    state = moving_particles(frozen=frozen)
    out = final_state(RemoveMomentum(), state, 0.1, 1)
    np.testing.assert_allclose(total_momentum(out), 0, atol=1e-14)
    np.testing.assert_array_equal(out.velocity[frozen], state.velocity[frozen])


def test_remove_momentum_with_everything_frozen_stays_finite():
    state = moving_particles(frozen=np.ones(5, bool))
    np.testing.assert_array_equal(
        final_state(RemoveMomentum(), state, 0.1, 1).velocity, state.velocity
    )


def test_remove_momentum_with_a_thermostat():
    state = moving_particles(8)
    integrator = Lie(BAOAB(Pair(), 1.0, 1.0), RemoveMomentum())
    out = final_state(integrator, state, 0.05, 20, key=jax.random.key(0))
    np.testing.assert_allclose(total_momentum(out), 0, atol=1e-13)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Lie(VelocityVerlet(Spring())), DeclarationError),
        (lambda: Strang(VelocityVerlet(Spring()), Spring()), DeclarationError),
        (lambda: Subcycle(VelocityVerlet(Spring()), 0), ParameterError),
        (lambda: Subcycle(VelocityVerlet(Spring()), -1), ParameterError),
        (lambda: Yoshida(Spring(), order=5), ParameterError),
        (lambda: RK4(), DeclarationError),
        (lambda: RK4(Spring()), DeclarationError),
        (lambda: RK4(Spring() + Pair()), DeclarationError),
    ],
)
def test_wrong_declarations_are_errors(make, error):
    with pytest.raises(error):
        make()


def test_a_force_on_one_component_may_read_another():
    """The other component's motion makes the carried force stale, though its own stood still."""
    state: dict[str, Any] = {"a": Particles([[0.0]]), "b": Particles([[1.0]])}
    mover = RK4(lambda t, s: {"b": ParticleIncrement(position=jnp.ones_like(s["b"].position))})
    integrator = Lie(VelocityVerlet(Bond(component="a", to="b")), mover)
    state, aux = evolve_compiled(integrator, state, jnp.asarray(0.1), 2)
    fresh = Bond(component="a", to="b").force(_clock_at_end(), state)
    np.testing.assert_allclose(aux[0][0]["a"], fresh, rtol=1e-13)
    assert get_component(state, "b").position[0, 0] == pytest.approx(1.2)


def _clock_at_end():
    from physkit.core import Clock, StepCount

    return Clock.at(StepCount.of(2), jnp.asarray(0.0), jnp.asarray(0.1))
