"""diffrax solvers inside the step: accuracy, stiffness, any state, derivatives, giving up."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import AbstractTerm, Fault, Function, collect_faults
from physkit.geometry import Box
from physkit.integrators import RK4, Diffrax, EquationsOfMotion, Strang, VelocityVerlet
from physkit.particles import ParticleIncrement, Particles

from .problems import (
    Central,
    Pair,
    Spring,
    ball_in_stream,
    drag_rate,
    evolve,
    evolve_compiled,
    final_state,
    linear,
    linear_rate,
    orbit,
    pendulum,
    pendulum_rate,
)

# The fast suite runs these; `make test-all` runs every case.
FAST_CASES = (
    "test_closed_form_solutions_at_any_step[array]",
    "test_closed_form_solutions_at_any_step[components]",
    "test_kepler_orbit_with_ten_steps_a_turn",
    "test_positions_fold_and_images_count",
    "test_inside_a_composition",
    "test_forward_mode[adjoint1]",
    "test_solver_failure_sets_a_fault_and_nan",
    "test_a_cache_is_brought_up_to_date_once_a_step",
)


def with_tight_tolerances(*tendencies, solver=None, **options):
    options = {"rtol": 1e-10, "atol": 1e-12, **options}
    return Diffrax(diffrax.Dopri8() if solver is None else solver, *tendencies, **options)


@pytest.mark.parametrize(
    ("problem", "tendencies"),
    [
        (linear, (linear_rate,)),
        (pendulum, (pendulum_rate,)),
        (ball_in_stream, (EquationsOfMotion(Spring(component="ball")), Function(drag_rate))),
    ],
    ids=["array", "dict of numbers", "components"],
)
def test_closed_form_solutions_at_any_step(problem, tendencies):
    problem = problem()
    for steps in (2, 7):
        out = final_state(
            with_tight_tolerances(*tendencies), problem.state, problem.time / steps, steps
        )
        np.testing.assert_allclose(problem.read(out), problem.exact, atol=2e-8)


def test_the_error_follows_the_tolerance():
    problem = pendulum()

    def error(rtol):
        integrator = Diffrax(diffrax.Tsit5(), pendulum_rate, rtol=rtol, atol=rtol)
        out = problem.read(final_state(integrator, problem.state, problem.time / 4, 4))
        return np.abs(np.asarray(out) - problem.exact).max()

    assert error(1e-9) < error(1e-6) / 30 < error(1e-3) / 900


def test_kepler_orbit_with_ten_steps_a_turn():
    out = final_state(
        with_tight_tolerances(EquationsOfMotion(Central())), orbit(), 2 * np.pi / 10, 10
    )
    np.testing.assert_allclose(out.position, orbit().position, atol=1e-6)


def test_a_stiff_problem_that_explicit_methods_cannot_do():
    """y' = −10⁶ (y − cos t): explicit steps would need dt < 3·10⁻⁶."""
    rate = lambda t, y: -1e6 * (y - jnp.cos(t))
    integrator = Diffrax(diffrax.Kvaerno5(), rate, rtol=1e-8, atol=1e-10, max_steps=200)
    out = final_state(integrator, jnp.ones(2), 0.1, 10)
    np.testing.assert_allclose(out, np.cos(1.0), rtol=1e-5)


def test_positions_fold_and_images_count():
    state = Particles([[9.9, 5.0]], [[1.0, -3.0]], space=Box([10.0, 10.0]))
    out = final_state(with_tight_tolerances(EquationsOfMotion(Pair())), state, 1.0, 2)
    np.testing.assert_allclose(out.position, [[1.9, 9.0]], rtol=1e-9)
    np.testing.assert_array_equal(out.image, [[1, -1]])


def test_frozen_particles_and_undriven_arrays_stay():
    state = {
        "atoms": Particles([[1.0], [2.0]], [[0.5], [0.5]], frozen=[False, True]),
        "rest": jnp.ones(3),
    }
    out = final_state(
        with_tight_tolerances(EquationsOfMotion(Spring(component="atoms"))), state, 0.1, 3
    )
    assert float(out["atoms"].position[1, 0]) == 2.0
    np.testing.assert_array_equal(out["rest"], state["rest"])


def test_inside_a_composition():
    state = Particles([[1.0]], [[0.2]])
    friction = lambda t, p: ParticleIncrement(velocity=-0.3 * p.velocity)
    one = final_state(
        Strang(VelocityVerlet(Spring()), with_tight_tolerances(friction)), state, 0.05, 40
    )
    two = final_state(Strang(VelocityVerlet(Spring()), RK4(friction)), state, 0.05, 40)
    np.testing.assert_allclose(one.position, two.position, atol=1e-8)


@pytest.mark.parametrize(
    "solver",
    [pytest.param(diffrax.Bosh3(), marks=pytest.mark.slow), diffrax.Kvaerno3()],
    ids=["Bosh3", "Kvaerno3"],
)
def test_reverse_mode(solver):
    def loss(rate, y):
        decay = with_tight_tolerances(
            Function(lambda t, y, k: -k * y, rate), solver=solver, rtol=1e-8
        )
        body = jax.checkpoint(lambda s: evolve(decay, s, jnp.asarray(0.5), 2)[0])
        return jnp.sum(body(y))

    by_rate, by_state = jax.jit(jax.grad(loss, (0, 1)))(jnp.asarray(0.7), jnp.ones(2))
    assert float(by_rate) == pytest.approx(-2 * np.exp(-0.7), rel=1e-6)
    np.testing.assert_allclose(by_state, np.exp(-0.7), rtol=1e-6)


@pytest.mark.parametrize("adjoint", [diffrax.ForwardMode(), diffrax.DirectAdjoint()])
def test_forward_mode(adjoint):
    def end(rate):
        decay = with_tight_tolerances(
            Function(lambda t, y, k: -k * y, rate), adjoint=adjoint, max_steps=64
        )
        return evolve(decay, jnp.ones(2), jnp.asarray(0.5), 2)[0]

    slope = jax.jvp(end, (jnp.asarray(0.7),), (jnp.asarray(1.0),))[1]
    np.testing.assert_allclose(slope, -np.exp(-0.7), rtol=1e-6)


def test_vmap_equals_loop():
    integrator, problem = with_tight_tolerances(pendulum_rate), pendulum()
    run = jax.jit(lambda y: evolve(integrator, y, jnp.asarray(0.3), 4)[0])
    scaled = lambda s: jax.tree.map(lambda x: x * s, problem.state)
    starts = [scaled(s) for s in (0.5, 1.0, 2.0)]
    batched = jax.vmap(run)(jax.tree.map(lambda *x: jnp.stack(x), *starts))
    for i, start in enumerate(starts):
        single = run(start)
        np.testing.assert_allclose(batched["angle"][i], single["angle"], rtol=1e-7)


def test_solver_failure_sets_a_fault_and_nan():
    """Nothing raises inside the trace."""
    integrator = with_tight_tolerances(lambda t, y: jnp.cos(1e4 * t) * y, max_steps=5)
    state, aux = evolve_compiled(integrator, jnp.ones(2), jnp.asarray(1.0), 2)
    assert np.all(np.isnan(state))
    assert Fault.SOLVER in collect_faults(aux).faults()
    state, aux = evolve_compiled(
        with_tight_tolerances(lambda t, y: -y), jnp.ones(2), jnp.asarray(1.0), 2
    )
    assert collect_faults(aux).ok


def test_single_precision_stays_single():
    integrator = Diffrax(
        diffrax.Tsit5(), lambda t, y: -y, rtol=jnp.float32(1e-5), atol=jnp.float32(1e-6)
    )
    out, _ = evolve_compiled(integrator, jnp.ones(2, jnp.float32), jnp.float32(0.5), 2)
    assert out.dtype == jnp.float32
    np.testing.assert_allclose(out, np.exp(-1), rtol=1e-4)


class Counter(AbstractTerm):
    """A term with a cache: counts the calls whose cache is carried on."""

    def init(self, state):
        return jnp.asarray(0)

    def __call__(self, clock, state, cache):
        return jnp.zeros_like(state), cache + 1


def test_a_cache_is_brought_up_to_date_once_a_step():
    integrator = with_tight_tolerances(lambda t, y: -y, Counter())
    _, aux = evolve_compiled(integrator, jnp.ones(2), jnp.asarray(0.1), 3)
    assert int(integrator.terms(aux)[1][1]) == 3


@pytest.mark.parametrize("size", [1.0, 2.0**-33])
def test_the_default_tolerance_follows_small_units(size):
    """An orbit in meters of a molecule is as accurate as one in its own units: to the bit, by powers of two."""

    def rates(t, y):
        return {"x": y["v"] / 1, "v": -y["x"]}

    start = {"x": jnp.asarray([1.0, 0.0]) * size, "v": jnp.asarray([0.0, 0.0]) * size}
    end = final_state(Diffrax(diffrax.Tsit5(), rates), start, 0.5, 4)
    np.testing.assert_allclose(end["x"][0] / size, np.cos(2.0), atol=1e-6)
    # Given in the units of the state, the tolerance is taken as it is.
    coarse = final_state(Diffrax(diffrax.Tsit5(), rates, atol=1e-2, rtol=1e-2), start, 0.5, 4)
    assert bool(jnp.isfinite(coarse["x"]).all())
