"""`run`: chunks, growth and replay, guards, early stops, diagnose and progress."""

import functools
import importlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    CapacityError,
    CutoffError,
    Fault,
    OverlapError,
    ParameterError,
    RangeError,
    SimulationDiverged,
    StepSizeError,
)
from physkit.integrators import VelocityVerlet
from physkit.observe import Every, Finite, Guard
from physkit.simulate import (
    MAX_GROWTHS,
    ChunkScheduler,
    Simulation,
    diagnose,
    init,
    run,
    simulate,
)
from physkit.simulate.loop._chunk_program import ChunkProgram
from physkit.testing import check_equal

from .problems import (
    AlwaysOverflowingForce,
    Explosive,
    Faulty,
    OverflowingForce,
    RandomWalk,
    Springs,
    Sum,
    particles,
    springs,
    x_of,
)

quiet = functools.partial(run, progress=False)


class TestChunks:
    def test_run_equals_simulate(self):
        host, pure = quiet(springs(), particles(), 24), simulate(springs(), particles(), 24)
        check_equal(host.frames, pure.frames, "frames", "sum")
        check_equal(host.times, pure.times, "times", "round-off")
        check_equal(host.summary, pure.summary, "summary", "sum")
        check_equal(host.state, pure.state, "state", "sum")

    @pytest.mark.parametrize("pieces", [[1] * 8, [3, 5], [2, 1, 5]], ids=str)
    def test_chunks_of_any_length_give_the_same_bits(self, pieces):
        sim = springs()
        carry = quiet(sim, particles(), 6).carry
        program = ChunkProgram(sim, carry)
        chunk = program(carry, 8)
        whole, frames = chunk.after, chunk.frames
        parts = []
        for blocks in pieces:
            piece = program(carry, blocks)
            carry = piece.after
            parts.append(jax.tree.map(lambda x, n=blocks: np.asarray(x)[:n], piece.frames))
            assert piece.health.ok
        check_equal(carry.state, whole.state, "state", "same")
        check_equal(carry.aux, whole.aux, "aux", "same")
        check_equal(carry.observer_state, whole.observer_state, "observer_state", "same")
        joined = jax.tree.map(lambda *x: np.concatenate(x), *parts)
        first = jax.tree.map(lambda x: np.asarray(x)[: sum(pieces)], frames)
        check_equal(joined, first, "frames", "same")
        assert program.compilations == 1

    def test_continuing_equals_one_run_bit_for_bit(self, key):
        sim = Simulation(RandomWalk(), 0.1, observers=(Every(2, x=x_of), Sum(1)))
        whole = quiet(sim, particles(), 40, key=key)
        first = quiet(sim, particles(), 14, key=key)
        rest = quiet(sim, first.carry, 26)
        check_equal(rest.state, whole.state, "state", "same")
        check_equal(rest.summary, whole.summary, "summary", "same")
        joined = np.concatenate([first["x"], rest["x"]])
        check_equal(joined, whole["x"], "frames", "same")
        times = np.concatenate([first.times["x"], rest.times["x"]])
        check_equal(times, whole.times["x"], "times", "round-off")

    def test_one_program_for_all_chunks(self):
        result = quiet(springs(observers=Every(1, x=x_of)), particles(), 5000)
        assert result.compilations == 1
        assert result.frames["x"].shape[0] == 5001
        assert result.times["x"][-1] == pytest.approx(250.0, rel=1e-14)

    def test_another_run_of_the_same_kind_compiles_nothing(self):
        sims = [springs(dt=dt) for dt in (0.05, 0.03)]
        quiet(sims[0], particles(), 6)
        with jax.log_compiles(), _compilations() as names:
            quiet(sims[1], particles(), 12)
            same = [n for n in names if "_chunk" in n]
            quiet(sims[1], particles(7), 6)
        assert same == []
        assert [n for n in names if "_chunk" in n]  # another shape is another program

    def test_repr_lists_steps_frames_and_compilations(self):
        result = quiet(springs(), particles(), 12)
        text = repr(result)
        for part in ("Run of 12 steps to step 12", "energy: float64[7]", "x: float64[3, 5, 2]",
                     "summary: num_observations, total", "MiB of frames", "1 compilation"):  # fmt: skip
            assert part in text
        assert result["num_observations"] == 13
        assert result.steps_per_second > 0
        with pytest.raises(KeyError, match=r"nothing recorded as 'engery'; available: \['energy'"):
            result["engery"]

    def test_chunks_grow_at_most_fourfold_and_never_beyond_the_buffer_of_frames(self):
        scheduler = ChunkScheduler(max_blocks=100, seconds=1.0)
        lengths = []
        for _ in range(6):
            lengths.append(scheduler.blocks)
            scheduler.update(scheduler.blocks, 1e-4 * scheduler.blocks)
        assert lengths == [1, 4, 16, 64, 100, 100]
        scheduler.update(100, 50.0)
        assert scheduler.blocks == 2


def _compilations():
    """Names of what JAX compiles inside the block."""
    import contextlib
    import logging

    @contextlib.contextmanager
    def listen():
        names: list[str] = []

        class Listener(logging.Handler):
            def emit(self, record):
                names.append(record.getMessage())

        listener, logger = Listener(), logging.getLogger("jax")
        logger.addHandler(listener)
        try:
            yield names
        finally:
            logger.removeHandler(listener)

    return listen()


class TestGrowth:
    def sim(self, force=None):
        return Simulation(
            VelocityVerlet(force or OverflowingForce()), 0.05, observers=(Every(2, x=x_of), Sum(2))
        )

    def state(self):
        p = particles()
        return p.replace(position=0.1 * p.position, velocity=2 * p.velocity)

    def test_overflows_are_replayed_with_the_same_bits(self):
        carry_with_capacity = init(self.sim(), self.state(), capacity=100)
        enough_capacity = quiet(self.sim(), carry_with_capacity, 60)
        grown = quiet(self.sim(), self.state(), 60)
        assert enough_capacity.growths == ()
        assert grown.growths
        assert grown.compilations == 1 + len(grown.growths)
        check_equal(grown.frames, enough_capacity.frames, "frames", "same")
        check_equal(grown.state, enough_capacity.state, "state", "same")
        check_equal(grown.summary, enough_capacity.summary, "summary", "same")
        assert re.match(r"Table 4 → \d+", grown.growths[0].what)
        assert "grew at step" in repr(grown)

    def test_simulate_flags_the_overflow_that_run_replays(self):
        result = simulate(self.sim(), self.state(), 60)
        assert Fault.OVERFLOW in result.health.faults()
        with pytest.raises(CapacityError, match=r"init\(simulation, state, capacity=…\)"):
            result.health.check()
        assert np.any(np.isnan(result.state.position))

    def test_overflow_bits_of_a_batch(self):
        carry = init(self.sim(), self.state())
        scales = jnp.array([1.0, 0.3])
        batch = jax.vmap(lambda s: simulate(self.sim(), _scaled(carry, s), 20).health.bits)(scales)
        assert batch.shape == (2,)

    def test_a_cache_that_overflows_at_any_capacity_raises(self, monkeypatch):
        # Each time compiles a program.
        driver = importlib.import_module("physkit.simulate.driver._chunk_driver")
        monkeypatch.setattr(driver, "MAX_GROWTHS", 3)
        sim = self.sim(AlwaysOverflowingForce())
        with pytest.raises(
            CapacityError, match=r"still overflow at step 0, although grown \w+ times in a row"
        ):
            quiet(sim, init(sim, particles(), capacity=5), 4)
        assert MAX_GROWTHS < 20


def _scaled(carry, s):
    state = carry.state
    return carry.replace(state=state.replace(velocity=state.velocity * s))


class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "error"),
        [
            (Fault.CUTOFF, CutoffError),
            (Fault.DISPLACEMENT, StepSizeError),
            (Fault.OVERLAP, OverlapError),
            (Fault.EXACT_SUM_RANGE, RangeError),
            (Fault.SPACE, ParameterError),
        ],
    )
    def test_a_fault_in_a_cache_raises_its_error(self, fault, error):
        p = particles(1)
        p = p.replace(position=jnp.zeros((1, 2)), velocity=jnp.ones((1, 2)))
        sim = Simulation(VelocityVerlet(Faulty(fault)), 0.25)
        quiet(sim, p, 4)
        with pytest.raises(error, match=r"between steps \d+ and \d+: "):
            quiet(sim, p, 8)

    def test_divergence_is_raised_with_its_steps(self):
        sim = Simulation(VelocityVerlet(Explosive()), 0.05, observers=Every(1, x=x_of))
        with pytest.raises(SimulationDiverged, match=r"between steps (\d+) and (\d+)") as caught:
            quiet(sim, particles(), 400)
        error = caught.value
        assert error.steps >= 1
        assert np.all(np.isfinite(error.carry.state.position))

    def test_a_guard_with_an_interval_names_its_step(self):
        guards = (Finite(), Guard(2, lambda now: now.t < 0.5))
        sim = springs(observers=(), guards=guards)
        with pytest.raises(SimulationDiverged, match=r"Guard at step 10\): a guard is broken"):
            quiet(sim, particles(), 40)

    def test_a_finite_blow_up_is_found_by_a_guard_only(self):
        """dt beyond 2/ω: the energy grows to 10⁵⁵ without a NaN."""
        wild = Simulation(VelocityVerlet(Springs(stiffness=1.0, quartic=0.0)), 2.5)
        assert np.all(np.isfinite(quiet(wild, particles(), 40).state.position))
        guards = [Guard(1, lambda now: jnp.all(jnp.abs(now.state.position) < 1e3))]
        wild = Simulation(wild.integrator, 2.5, guards=guards)
        with pytest.raises(SimulationDiverged, match="Guard at step"):
            quiet(wild, particles(), 40)


class TestDiagnose:
    def test_finds_step_term_and_leaf(self):
        sim = Simulation(VelocityVerlet(Explosive()), 0.05, observers=Every(1, x=x_of))
        with pytest.raises(SimulationDiverged) as caught:
            quiet(sim, particles(), 400)
        found = diagnose(caught.value)
        text = repr(found)
        assert f"step {found.step} is good, step {found.step + 1} is not" in text
        assert "Explosive" in text
        assert re.search(r"state\.(position|velocity): \d+ of 10 not finite, first at index", text)
        # Check against single runs that it is the first bad step.
        assert np.all(np.isfinite(found.carry.state.position))
        assert int(found.carry.step) == found.step
        steps = [simulate(Simulation(sim.integrator, sim.dt, guards=()), particles(), n).state
                 for n in (found.step, found.step + 1)]  # fmt: skip
        finite = [bool(jnp.all(jnp.isfinite(s.position) & jnp.isfinite(s.velocity))) for s in steps]
        assert finite == [True, False]

    def test_takes_the_error_of_a_step_that_is_too_large(self):
        sim = Simulation(VelocityVerlet(Faulty(Fault.DISPLACEMENT)), 0.1)
        with pytest.raises(StepSizeError) as caught:
            quiet(sim, particles().replace(position=jnp.full((5, 2), -9.0)), 400)
        found = diagnose(caught.value)
        assert found.step is not None
        assert jnp.max(found.carry.state.position) <= 1
        assert "DISPLACEMENT" in repr(found)

    def test_finds_a_guard_that_was_broken_for_a_moment(self):
        sim = springs(observers=(), guards=[Guard(1, lambda now: (now.t < 0.62) | (now.t > 0.74))])
        assert diagnose(sim, particles(), 40).step == 12

    def test_finds_the_step_that_broke_a_guard(self):
        sim = springs(observers=(), guards=[Guard(1, lambda now: now.t < 0.62)])
        found = diagnose(sim, particles(), 40)
        assert found.step == 12

    def test_diagnosis_of_a_sound_run(self):
        assert "nothing is wrong" in repr(diagnose(springs(), particles(), 6))

    def test_diagnose_refuses_incomplete_arguments(self):
        with pytest.raises(ParameterError, match="diagnose needs"):
            diagnose(springs())
