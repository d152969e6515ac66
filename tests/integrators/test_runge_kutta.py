"""Explicit Runge–Kutta on any state; Newton's law as a tendency; mistakes named."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import AbstractTerm, Function, ShapeError
from physkit.geometry import Box
from physkit.integrators import (
    RK4,
    RK38,
    EquationsOfMotion,
    Euler,
    RungeKutta,
    Tableau,
    VelocityVerlet,
)
from physkit.integrators.runge_kutta import _tableau as table
from physkit.particles import ParticleIncrement, Particles

from .problems import (
    Bond,
    Pair,
    Sine,
    Spring,
    coupled_particles,
    evolve,
    evolve_compiled,
    final_state,
)

TABLEAUX = [getattr(table, name) for name in dir(table) if name.isupper()]


@pytest.mark.parametrize("tableau", TABLEAUX, ids=lambda t: t.citation.split(",")[0])
def test_order_conditions(tableau):
    """Butcher's conditions up to order 4, of as many orders as the tableau claims."""
    b, c = np.array(tableau.weights), np.array(tableau.nodes)
    a = np.zeros((len(b), len(b)))
    for i, row in enumerate(tableau.matrix):
        a[i, :i] = row
    conditions = [
        (1, b.sum(), 1),
        (2, b @ c, 1 / 2),
        (3, b @ c**2, 1 / 3),
        (3, b @ a @ c, 1 / 6),
        (4, b @ c**3, 1 / 4),
        (4, (b * c) @ a @ c, 1 / 8),
        (4, b @ a @ c**2, 1 / 12),
        (4, b @ a @ a @ c, 1 / 24),
    ]
    for order, value, expected in conditions:
        if order <= tableau.order:
            assert value == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    "state",
    [
        jnp.asarray(2.0),
        jnp.ones((2, 3)),
        (jnp.asarray(1.0), jnp.asarray(2.0)),
        {"a": jnp.ones(2), "b": [jnp.asarray(1.0)]},
        jnp.asarray(1.0 + 2.0j),
        jnp.ones(3, jnp.float32),
    ],
    ids=["number", "array", "tuple", "dict", "complex", "float32"],
)
def test_states_may_be_any_pytree(state):
    decay = RK4(lambda t, y: jax.tree.map(jnp.negative, y))
    dt = jnp.asarray(0.1, jnp.float32) if _is_single(state) else jnp.asarray(0.1)
    out, _ = evolve_compiled(decay, state, dt, 10)
    for before, after in zip(jax.tree.leaves(state), jax.tree.leaves(out), strict=True):
        assert after.dtype == before.dtype
        np.testing.assert_allclose(after, np.exp(-1) * np.asarray(before), rtol=2e-6)


def _is_single(state):
    return any(x.dtype == jnp.float32 for x in jax.tree.leaves(state))


def test_components_without_a_rate_stay():
    state = {"a": jnp.ones(2), "b": jnp.ones(3)}
    out = final_state(RK4(lambda t, s: {"a": s["b"][:2]}), state, 0.1, 2)
    np.testing.assert_allclose(out["a"], 1.2)
    np.testing.assert_array_equal(out["b"], state["b"])


def test_tendencies_add_up_each_on_its_own_components():
    def push(t, s):
        return {"a": jnp.ones_like(s["a"])}

    def both(t, s):
        return {"a": -s["a"], "b": 2 * s["b"]}

    state = {"a": jnp.ones(2), "b": jnp.ones(3)}
    one = final_state(RK38(push, both), state, 0.1, 2)
    two = final_state(RK38(lambda t, s: {**both(t, s), "a": 1 - s["a"]}), state, 0.1, 2)
    np.testing.assert_allclose(one["a"], two["a"], rtol=1e-14)
    np.testing.assert_allclose(one["b"], two["b"], rtol=1e-14)


class Counter(AbstractTerm):
    """A term with a cache: counts its calls."""

    def init(self, state):
        return jnp.asarray(0)

    def __call__(self, clock, state, cache):
        return jnp.zeros_like(state), cache + 1


def test_caches_go_from_call_to_call():
    integrator = RK4(lambda t, y: -y, Counter())
    _, aux = evolve_compiled(integrator, jnp.ones(2), jnp.asarray(0.1), 3)
    assert int(integrator.terms(aux)[1][1]) == 12


def test_equations_of_motion_agree_with_velocity_verlet():
    problem = coupled_particles()
    force = Bond(2.0, component="light", to="heavy") + Bond(2.0, component="heavy", to="light")
    one = final_state(RK4(EquationsOfMotion(force)), problem.state, 1e-3, 1000)
    two = final_state(VelocityVerlet(force), problem.state, 1e-3, 1000)
    for name in one:
        np.testing.assert_allclose(one[name].position, two[name].position, atol=1e-6)


def test_equations_of_motion_fold_positions_and_count_images():
    state = Particles([[9.9, 5.0]], [[1.0, -3.0]], space=Box([10.0, 10.0]))
    out = final_state(RK4(EquationsOfMotion(Pair())), state, 0.5, 4)
    np.testing.assert_allclose(out.position, [[1.9, 9.0]], rtol=1e-12)
    np.testing.assert_array_equal(out.image, [[1, -1]])


def test_equations_of_motion_leave_frozen_particles_alone():
    state = Particles([[1.0], [2.0]], [[0.5], [0.5]], frozen=[False, True])
    out = final_state(RK4(EquationsOfMotion(Spring())), state, 0.1, 3)
    assert float(out.position[1, 0]) == 2.0
    assert float(out.velocity[1, 0]) == 0.5


def test_equations_of_motion_with_a_force_that_depends_on_velocity():
    """A magnetic field and drag: a spiral with a known end."""

    def field(t, p):
        v = p.velocity
        return ParticleIncrement(velocity=jnp.stack([v[:, 1], -v[:, 0]], axis=1) - 0.1 * v)

    state = Particles([[0.0, 0.0]], [[1.0, 0.0]])
    out = final_state(RK4(EquationsOfMotion(Pair()), field), state, np.pi / 100, 100)
    np.testing.assert_allclose(out.velocity, [[-np.exp(-np.pi / 10), 0]], atol=1e-7)


def test_terms_lists_the_forces_inside_equations_of_motion():
    integrator = RK4(
        EquationsOfMotion(Spring() + Sine()), lambda t, p: ParticleIncrement(velocity=-p.velocity)
    )
    _, aux = evolve_compiled(integrator, Particles([[1.0]]), jnp.asarray(0.1), 1)
    assert [type(t) for t, _ in integrator.terms(aux)] == [Spring, Sine, Function]


def test_function_with_parameters_is_differentiable():
    def loss(rate):
        decay = RK4(Function(lambda t, y, args: -args * y, rate))
        return evolve(decay, jnp.asarray(1.0), jnp.asarray(0.1), 10)[0]

    slope = jax.grad(loss)(jnp.asarray(0.5))
    assert float(slope) == pytest.approx(-np.exp(-0.5), rel=1e-6)


@pytest.mark.parametrize(
    "rate",
    [
        lambda t, y: jnp.ones((2, 3)),
        lambda t, y: y.astype(jnp.complex128) * 1j,
    ],
)
def test_a_rate_that_does_not_fit_is_named(rate):
    with (
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
        pytest.raises(ShapeError, match="does not fit"),
    ):
        evolve(Euler(rate), jnp.ones(3), jnp.asarray(0.1), 1)


def test_a_rate_that_does_not_fit_is_named_by_its_place():
    rate = lambda t, s: {"a": jnp.ones((2, 3))}
    with jax.numpy_rank_promotion("allow"), pytest.raises(ShapeError, match="'a'"):
        evolve(Euler(rate), {"a": jnp.ones(3)}, jnp.asarray(0.1), 1)


def test_a_tableau_that_is_not_explicit_is_an_error():
    with pytest.raises(ShapeError, match="rows of lengths"):
        Tableau(((1.0,),), (1.0,), 1, "backward Euler")


def test_the_same_program_serves_other_parameters():
    """A parameter is an argument of the compiled program, not a part of it."""
    traces = []

    @jax.jit
    def run(integrator, y):
        traces.append(1)
        return evolve(integrator, y, jnp.asarray(0.1), 3)[0]

    make = lambda k: RungeKutta(table.RK4, EquationsOfMotion(Spring(k)))
    for k in (1.0, 2.0, 3.0):
        run(make(k), Particles([[1.0]]))
    assert len(traces) == 1
