"""All adjoints give the same derivatives; `adjoint_report` predicts their memory and time."""

import dataclasses
from functools import lru_cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Function, ParameterError, find
from physkit.integrators import RK4, VelocityVerlet
from physkit.observe import Every
from physkit.simulate import (
    Binomial,
    Direct,
    Forward,
    NestedCheckpoint,
    Simulation,
    adjoint_report,
    init,
    simulate,
)
from physkit.simulate.adjoint._revolve import build_schedule
from physkit.testing import check_gradient

from .problems import RandomWalk, Springs, energy_of, particles, springs

FAST_CASES = (
    "test_are_those_of_direct[NestedCheckpoint(max_unsplit=2)]",
    "test_both_modes_agree_with_finite_differences[Binomial(checkpoints=2)]",
    "test_second_derivatives_in_every_order[Forward]",
    "test_a_carry_made_outside_of_the_derivative_depends_on_parameters",
    "test_repeats_the_fewest_steps[1]",
    "test_repeats_the_fewest_steps[5]",
    "test_every_backward_step_begins_at_its_state[17-3]",
    "test_steps_that_no_root_divides_make_no_larger_program",
    "test_forward_passes_are_those_of_the_docstring",
    "test_prints_a_table_and_finds_rows_by_class",
    "test_checkpoints_are_counted",
)

ADJOINTS = [
    NestedCheckpoint(max_unsplit=2),
    Binomial(3),
    Forward(),
]
SMALL = [Binomial(2), Forward()]


def loss_and_argument(adjoint, steps=30):
    """A loss of frames and state, and its argument: a parameter of the simulation and an array of the state."""
    sim = springs(observers=Every(3, energy=energy_of), adjoint=adjoint)
    state = particles(2)

    def loss(at):
        stiffness, mass = at
        changed = eqx.tree_at(lambda s: find(s, Springs).stiffness, sim, stiffness)
        result = simulate(changed, state.replace(mass=mass), steps)
        return jnp.sum(result.state.position**2) + jnp.sum(jnp.sin(result.frames["energy"]))

    return loss, (jnp.asarray(1.3), jnp.asarray([1.0, 2.0]))


def pendulum_loss(adjoint, k, steps=6):
    """A loss of the end and the recorded angles of a pendulum."""
    integrator = RK4(Function(lambda t, y, k: jnp.stack([y[1], -jnp.sin(k * y[0])]), k))
    sim = Simulation(
        integrator, 0.3, observers=Every(2, angle=lambda now: now.state[0]), adjoint=adjoint
    )
    done = simulate(sim, jnp.asarray([1.0, 0.2]), steps)
    return jnp.sum(done.state**2) + jnp.sum(jnp.sin(done.frames["angle"]))


def repeated_map(adjoint, k):
    """A loss of a repeated map with an integer in its carry and a frame of every turn."""

    def body(carry, _=None):
        count, x = carry
        x = x + 0.1 * jnp.sin(k * x)
        return (count + 1, x), {"x": x[None]}

    (_, x), frames = adjoint.repeat(body, (jnp.int32(0), jnp.asarray(0.3)), 7)
    return x**2 + jnp.sum(jnp.cos(frames["x"]))


class TestDerivatives:
    @pytest.mark.parametrize("adjoint", ADJOINTS, ids=str)
    def test_are_those_of_direct(self, adjoint):
        loss, at = loss_and_argument(Direct())
        expected = jax.jit(jax.value_and_grad(loss))(at)
        found = jax.jit(jax.value_and_grad(loss_and_argument(adjoint)[0]))(at)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)

    @pytest.mark.parametrize("adjoint", SMALL, ids=str)
    def test_both_modes_agree_with_finite_differences(self, adjoint):
        check_gradient(lambda k: pendulum_loss(adjoint, k), jnp.asarray(0.7), directions=1)

    @pytest.mark.parametrize(
        "function",
        [
            partial(repeated_map, Binomial(2)),
            partial(repeated_map, Forward()),
            partial(pendulum_loss, Forward()),
        ],
        ids=["Binomial", "Forward", "Forward through simulate"],
    )
    def test_second_derivatives_in_every_order(self, function):
        exact = partial(function.func, Direct())
        k = jnp.asarray(0.7)
        expected = jax.jit(jax.jacfwd(jax.grad(exact)))(k)
        for outer, inner in [
            (jax.jacfwd, jax.grad),
            (jax.jacrev, jax.grad),
            (jax.jacrev, jax.jacfwd),
        ]:
            found = jax.jit(outer(inner(function)))(k)
            np.testing.assert_allclose(found, expected, rtol=1e-10)

    @pytest.mark.parametrize("adjoint", SMALL, ids=str)
    def test_under_vmap_are_those_of_each_member(self, adjoint):
        gradient = jax.jit(jax.grad(partial(pendulum_loss, adjoint)))
        stiffness = jnp.asarray([0.7, 1.3])
        batched = jax.jit(jax.vmap(gradient))(stiffness)
        np.testing.assert_allclose(batched, [gradient(k) for k in stiffness], rtol=1e-12)

    def test_of_records_of_size_zero(self):
        def loss(rate, adjoint):
            body = lambda x, _=None: (rate * x, {"x": x[None], "nothing": jnp.zeros((1, 0))})
            last, records = adjoint.repeat(body, jnp.asarray(1.0), 5)
            return last + jnp.sum(records["x"]) + jnp.sum(records["nothing"])

        found, expected = (jax.grad(loss)(0.9, adjoint) for adjoint in (Binomial(2), Direct()))
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_a_carry_made_outside_of_the_derivative_depends_on_parameters(self):
        """`init` computed the first force outside of the derivative; it still varies with it."""

        def end(k, carry=None):
            sim = Simulation(VelocityVerlet(Springs(k)), 0.1)
            return jnp.sum(simulate(sim, carry or particles(2), 3).state.position)

        carry = init(Simulation(VelocityVerlet(Springs(1.3)), 0.1), particles(2))
        slope = jax.jit(jax.grad(end))
        found, expected = slope(1.3, carry), slope(1.3)
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_of_dynamics_with_noise(self):
        """Keys and step counts are in checkpoints, too, without a derivative."""

        def loss(size, adjoint):
            sim = Simulation(RandomWalk(size), 0.1, adjoint=adjoint)
            end = simulate(sim, particles(2), 6, key=jax.random.key(3)).state
            return jnp.sum(end.position**2)

        found, expected = (jax.grad(loss)(0.3, a) for a in (Binomial(2), Direct()))
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_forward_takes_no_tangents_of_a_state_without_parameters(self):
        """A derivative by the whole initial state has 3 000 columns; by the one parameter it has one."""
        sim = Simulation(VelocityVerlet(Springs()), 0.01, adjoint=Forward())
        state = particles(1000)

        def loss(k):
            changed = eqx.tree_at(lambda s: find(s, Springs).stiffness, sim, k)
            return jnp.sum(simulate(changed, state, 50).state.position ** 2)

        program = jax.jit(jax.grad(loss)).lower(jnp.asarray(1.0)).compile()
        assert program.memory_analysis().temp_size_in_bytes < 40 * state.position.nbytes


@lru_cache
def fewest_forward_steps(length: int, slots: int) -> int:
    """Steps that must be computed again at least, by trying every place for the next state kept."""
    if length == 1:
        return 0
    if slots == 1:
        return length * (length - 1) // 2
    splits = range(1, length)
    return min(
        m + fewest_forward_steps(length - m, slots - 1) + fewest_forward_steps(m, slots)
        for m in splits
    )


class TestBinomialSchedule:
    @pytest.mark.parametrize("slots", [1, 2, 3, 5, 9])
    def test_repeats_the_fewest_steps(self, slots):
        for length in range(1, 40):
            schedule = build_schedule(length, slots)
            first = max(np.flatnonzero(schedule.keep < slots))
            assert schedule.forward_steps + first == fewest_forward_steps(length, slots)

    @pytest.mark.parametrize(("length", "slots"), [(1, 1), (17, 3), (40, 7), (1000, 10)])
    def test_every_backward_step_begins_at_its_state(self, length, slots):
        schedule = build_schedule(length, slots)
        slot_steps = {int(slot): step for step, slot in enumerate(schedule.keep) if slot < slots}
        at, end = None, length
        for is_backward, step, load, save in zip(
            schedule.is_backward, schedule.step, schedule.load, schedule.save, strict=True
        ):
            at = slot_steps[int(load)] if load >= 0 else at
            assert at == step
            if save < slots:
                slot_steps[int(save)] = at
            if is_backward:
                end -= 1
                assert step == end
            else:
                at += 1
        assert end == 0

    def test_forward_passes_are_those_of_the_docstring(self):
        assert build_schedule(1000, 10).forward_steps / 1000 + 1 == pytest.approx(3.6, abs=0.05)


@pytest.mark.parametrize("steps", [50, 250, 1000])
def test_steps_that_no_root_divides_make_no_larger_program(steps):
    """Round numbers of steps are cut into equal stretches, so that no body stands in the program twice."""
    sim, state = Simulation(VelocityVerlet(Springs()), 0.01), particles()

    def loss(position, steps):
        return jnp.sum(simulate(sim, state.replace(position=position), steps).state.position)

    def size(steps):
        return str(jax.make_jaxpr(jax.grad(partial(loss, steps=steps)))(state.position)).count("=")

    assert size(steps) == size(49)


class TestAdjointReport:
    @pytest.mark.parametrize("steps", [30, 240])
    def test_memory_is_that_of_the_compiled_gradient(self, steps):
        state = particles(20_000)
        sim = springs(observers=Every(10, energy=energy_of))
        report = adjoint_report(sim, state, steps)
        carry = init(sim, state).replace(is_initial=False)
        for adjoint in (Direct(), NestedCheckpoint(), Binomial(10)):
            changed = dataclasses.replace(sim, adjoint=adjoint)
            floats, rest = eqx.partition((changed, carry), eqx.is_inexact_array)

            def loss(floats, rest=rest):
                result = simulate(*eqx.combine(floats, rest), steps)
                return jnp.sum(result.state.position**2) + jnp.sum(result.frames["energy"])

            allotted = jax.jit(jax.grad(loss)).lower(floats).compile().memory_analysis()
            predicted = report[adjoint].memory
            assert predicted == pytest.approx(allotted.temp_size_in_bytes, rel=1 / 3)

    def test_prints_a_table_and_finds_rows_by_class(self):
        report = adjoint_report(springs(), particles(), 30)
        text = repr(report)
        assert "› NestedCheckpoint(8)" in text
        assert all(name in text for name in ("Direct", "Binomial(10)", "Forward", "30 steps"))
        assert report[Binomial].relative_time > report[Direct].relative_time
        with pytest.raises(KeyError, match="none of"):
            report[Binomial(2)]

    def test_says_what_does_not_fit_into_memory(self):
        report = adjoint_report(springs(), particles(), 30)._replace(device_memory=1.0)
        assert "does not fit" in repr(report)


@pytest.mark.parametrize("count", [0, -1, True, 2.5])
@pytest.mark.parametrize("adjoint", [Binomial, NestedCheckpoint])
def test_checkpoints_are_counted(adjoint, count):
    with pytest.raises(ParameterError, match="must be a whole number"):
        adjoint(count)
    assert adjoint(np.int64(3)) == adjoint(3)


def test_forward_refuses_complex_numbers():
    sim = Simulation(RK4(lambda t, y: 1j * y), 0.01, adjoint=Forward())
    loss = lambda y: jnp.sum(jnp.abs(simulate(sim, y, 3).state) ** 2)
    with pytest.raises(ParameterError, match="real numbers"):
        jax.grad(loss)(jnp.asarray([1.0 + 0j]))
