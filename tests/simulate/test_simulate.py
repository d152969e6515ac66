"""`simulate`: the nested loop equals a flat one, is pure, and its derivatives are right."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import Fault, ParameterError
from physkit.integrators import RK4, VelocityVerlet
from physkit.observe import Every, Finite, Guard
from physkit.simulate import Direct, NestedCheckpoint, Simulation, init, simulate
from physkit.testing import check_equal, check_gradient, check_simulation

from .problems import (
    RandomWalk,
    Springs,
    Sum,
    energy_of,
    particles,
    reference_states,
    springs,
    x_of,
)

STEPS = 24


@pytest.fixture(scope="module")
def reference():
    return reference_states(springs(), particles(), STEPS)


@pytest.mark.parametrize("adjoint", [Direct(), NestedCheckpoint(), NestedCheckpoint(max_unsplit=2)])
@pytest.mark.parametrize(
    "intervals", [(1,), (3,), (24,), (2, 6), (1, 3, 12), (2, 2, 8), (4, 12)], ids=str
)
def test_nested_intervals_equal_a_flat_loop(reference, intervals, adjoint):
    observers = [Every(n, **{f"x{k}": x_of}) for k, n in enumerate(intervals)]
    sim = springs(observers=observers, adjoint=adjoint)
    result = jax.jit(lambda s: simulate(sim, s, STEPS))(particles())
    result.health.check()
    check_equal(result.state, reference[-1], "the last state", "sum")
    for k, n in enumerate(intervals):
        expected = np.stack([s.position for s in reference[::n]])
        check_equal(result.frames[f"x{k}"], expected, f"frames every {n} steps", "sum")
        times = 0.05 * np.arange(0, STEPS + 1, n)
        check_equal(result.times[f"x{k}"], times, f"times every {n} steps", "round-off")


class TestFrames:
    def test_step_0_is_a_frame(self):
        frames = simulate(springs(), particles(), 6).frames
        assert np.array_equal(frames["x"][0], particles().position)
        assert frames["energy"].shape == (4,)

    def test_without_observers(self):
        result = simulate(springs(observers=()), particles(), 7)
        assert result.frames == result.times == result.summary == {}
        assert int(result.carry.step) == 7

    def test_accumulators_observe_every_step(self, reference):
        result = simulate(springs(), particles(), STEPS)
        assert result.summary["num_observations"] == STEPS + 1
        total = np.sum([s.position for s in reference], axis=0)
        check_equal(result.summary["total"], total, "the sum over all steps", "sum")

    def test_times_start_at_t0(self):
        sim = dataclasses.replace(springs(), t0=jnp.asarray(10.0))
        times = simulate(sim, particles(), 6).times
        assert times["energy"] == pytest.approx([10.0, 10.1, 10.2, 10.3], rel=1e-15)

    def test_time_reaches_the_dynamics(self):
        sim = Simulation(RK4(lambda t, y: jnp.ones_like(y) * t), 0.1, t0=2.0)
        y = simulate(sim, jnp.zeros(1), 10).state
        assert y[0] == pytest.approx((3.0**2 - 2.0**2) / 2, rel=1e-12)

    def test_trees_as_frames(self):
        sim = springs(observers=Every(2, both=lambda now: {"t": now.t, "v": now.state.velocity}))
        frames = simulate(sim, particles(), 4).frames["both"]
        assert frames["v"].shape == (3, 5, 2)
        assert frames["t"] == pytest.approx([0.0, 0.1, 0.2])


class TestCarry:
    def test_continuing_equals_one_run(self):
        sim = springs()
        whole = simulate(sim, particles(), STEPS)
        first = simulate(sim, particles(), 6)
        rest = simulate(sim, first.carry, STEPS - 6)
        check_equal(rest.state, whole.state, "the last state", "sum")
        check_equal(rest.summary, whole.summary, "the summary", "sum")
        assert int(rest.carry.step) == STEPS
        for name in whole.frames:
            joined = np.concatenate([first.frames[name], rest.frames[name]])
            check_equal(joined, whole.frames[name], name, "sum")
            times = np.concatenate([first.times[name], rest.times[name]])
            check_equal(times, whole.times[name], f"times of {name}", "round-off")

    def test_continuing_records_no_frame_of_step_0(self):
        first = simulate(springs(), particles(), 6)
        assert simulate(springs(), first.carry, 6).frames["x"].shape[0] == 1

    def test_init_leaves_the_state_as_it_is(self):
        carry = init(springs(), particles())
        a, b = simulate(springs(), carry, 6), simulate(springs(), particles(), 6)
        check_equal(a.state, b.state, "from a carry against from a state", "same")

    def test_a_key_beside_a_carry_is_refused(self, key):
        sim = Simulation(RandomWalk(), 1.0)
        carry = init(sim, particles(), key=key)
        with pytest.raises(Exception, match="a carry brings its own key"):
            simulate(sim, carry, 2, key=key)

    def test_noise_depends_on_the_step_only(self, key):
        sim = Simulation(RandomWalk(), 1.0)
        whole = simulate(sim, particles(), 9, key=key).state.position
        first = simulate(sim, particles(), 4, key=key)
        assert np.array_equal(simulate(sim, first.carry, 5).state.position, whole)
        other = simulate(sim, particles(), 9, key=jax.random.key(1)).state.position
        assert not np.any(np.asarray(other) == np.asarray(whole))

    def test_noise_follows_the_particle_id(self, key):
        sim = Simulation(RandomWalk(), 1.0)
        p, order = particles(), np.array([3, 1, 4, 0, 2])
        q = p.replace(position=p.position[order], id=p.id[order])
        straight = simulate(sim, p, 3, key=key).state.position
        permuted = simulate(sim, q, 3, key=key).state.position
        assert np.array_equal(permuted, straight[order])

    def test_parameters_take_the_precision_of_the_state(self):
        result = simulate(springs(), particles(dtype=jnp.float32), 6)
        assert result.state.position.dtype == jnp.float32
        assert result.frames["energy"].dtype == jnp.float32
        exact = simulate(springs(), particles(), 6)
        check_equal(result.state, exact.state, "float32 against float64", "precision")


class TestGradients:
    @staticmethod
    def loss_and_argument(adjoint):
        sim = springs(observers=Every(3, energy=energy_of), adjoint=adjoint)

        def loss(at):
            sim, state = at
            result = simulate(sim, state, 30)
            return jnp.sum(result.state.position**2) + jnp.sum(jnp.sin(result.frames["energy"]))

        return loss, (sim, particles())

    @pytest.mark.parametrize(
        "adjoint",
        # That the adjoints agree is another test's.
        [Direct(), pytest.param(NestedCheckpoint(max_unsplit=3), marks=pytest.mark.slow)],
        ids=["direct", "nested"],
    )
    def test_against_finite_differences(self, adjoint):
        loss, at = self.loss_and_argument(adjoint)
        check_gradient(loss, at, ignore=["t0", "space", "charge"], directions=1)

    @pytest.mark.parametrize(
        "adjoint",
        # The other is the same, with loops in loops.
        [pytest.param(NestedCheckpoint(), marks=pytest.mark.slow), NestedCheckpoint(max_unsplit=2)],
        ids=["one level", "levels"],
    )
    def test_adjoints_agree(self, adjoint):
        gradients = []
        for each in (Direct(), adjoint):
            loss, at = self.loss_and_argument(each)
            gradients.append(jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(loss))(at)))
        check_equal(*gradients[::-1], "the gradient by another adjoint", "sum")

    def test_checkpoints_save_memory(self):
        """Compiled, the memory of the backward pass grows as √steps, and as steps without them."""
        state = particles(20_000)

        def temporary_bytes(adjoint, steps):
            sim = Simulation(VelocityVerlet(Springs()), 0.01, adjoint=adjoint)

            def loss(x):
                return jnp.sum(simulate(sim, state.replace(position=x), steps).state.position)

            compiled = jax.jit(jax.grad(loss)).lower(state.position).compile()
            return compiled.memory_analysis().temp_size_in_bytes

        direct = [temporary_bytes(Direct(), n) for n in (225, 900)]
        nested = [temporary_bytes(NestedCheckpoint(), n) for n in (225, 900)]
        assert 3.5 < direct[1] / direct[0] < 4.5
        assert nested[1] / nested[0] < 2.5
        assert nested[1] < direct[1] / 4

    def test_passes_the_test_battery(self):
        check_simulation(springs(observers=Every(2, energy=energy_of)), particles(3), 6)


class TestTransformations:
    def test_vmap_equals_a_loop(self):
        sim = springs()
        states = [particles().replace(position=particles().position * s) for s in (0.5, 1.0, 1.5)]
        batch = jax.tree.map(lambda *x: jnp.stack(x), *states)
        run = lambda s: eqx.filter(simulate(sim, s, 12), eqx.is_array)
        batched = jax.vmap(run)(batch)
        for k, state in enumerate(states):
            single = jax.jit(run)(state)
            member = jax.tree.map(lambda x, k=k: x[k], batched)
            check_equal(member, single, f"member {k}", "sum")

    def test_vmap_over_parameters(self):
        def final(stiffness):
            sim = Simulation(VelocityVerlet(Springs(stiffness)), 0.05)
            return simulate(sim, particles(), 10).state.position

        values = jnp.array([0.5, 1.0, 2.0])
        batched = jax.vmap(final)(values)
        check_equal(batched, jnp.stack([final(v) for v in values]), "a batch of springs", "sum")

    def test_other_values_do_not_recompile(self):
        traces = []

        @eqx.filter_jit
        def final_state(sim, state):
            traces.append(1)
            return simulate(sim, state, 6).state

        for k, dt in ((1.0, 0.05), (2.0, 0.01), (np.float64(3.0), jnp.asarray(0.02))):
            sim = Simulation(VelocityVerlet(Springs(k)), dt, observers=Every(2, energy=energy_of))
            final_state(sim, particles())
        assert len(traces) == 1


class TestHealth:
    def test_a_guard_is_checked_at_its_interval(self):
        guards = [Guard(2, lambda now: jnp.abs(now.state.position[0, 0]) < 1e-3)]
        result = jax.jit(lambda s: simulate(springs(observers=(), guards=guards), s, 10))(
            particles()
        )
        assert result.health.faults() == Fault.GUARD
        assert int(result.carry.guards[0][1].step) == 0

    def test_a_guard_remembers_the_step_it_broke_at(self):
        guards = [Guard(2, lambda now: now.t < 0.33)]
        result = simulate(springs(observers=(), guards=guards), particles(), 10)
        guard_state = result.carry.guards[0][1]
        assert bool(guard_state.broken)
        assert int(guard_state.step) == 8  # t = 0.05 · 8 is the first observation beyond 0.33

    def test_a_state_that_is_not_finite_sets_health(self):
        p = particles()
        broken = p.replace(velocity=p.velocity.at[0, 0].set(jnp.nan))
        result = jax.jit(lambda s: simulate(springs(observers=()), s, 2))(broken)
        assert result.health.faults() == Fault.NOT_FINITE

    def test_without_guards_health_stays_good(self):
        p = particles()
        broken = p.replace(velocity=p.velocity.at[0, 0].set(jnp.nan))
        result = jax.jit(lambda s: simulate(springs(observers=(), guards=()), s, 2))(broken)
        assert result.health.ok

    def test_a_negative_mass_poisons_the_state(self):
        p = particles()
        broken = p.replace(mass=p.mass.at[1].set(-1.0))
        result = jax.jit(lambda s: simulate(springs(observers=()), s, 2))(broken)
        assert Fault.MASS in result.health.faults()
        assert np.all(np.isnan(result.state.position))
        with pytest.raises(ParameterError, match="mass"):
            result.health.check()

    def test_finite_with_an_interval_names_the_step(self):
        sim = springs(observers=(), guards=[Finite(1)])
        p = particles()
        broken = p.replace(position=p.position.at[0, 0].set(1e200))
        result = jax.jit(lambda s: simulate(sim, s, 6))(broken)
        assert result.health.faults() == Fault.NOT_FINITE
        assert int(result.carry.guards[0][1].step) == 1


def test_a_simulation_with_accumulators_only():
    result = simulate(springs(observers=Sum(2)), particles(), 4)
    assert result.summary["num_observations"] == 3
    assert result.frames == {}
