"""Members in chunks: the same numbers whatever the chunks, and none that disturbs another."""

import os
import signal
import threading
import time
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.ensemble import collect, execute, predict_batch_memory, status
from physkit.ensemble.compute import _chunk_runner
from physkit.ensemble.compute._chunk_runner import ChunkRunner
from physkit.simulate import FRAME_BYTES, ChunkScheduler, StopRequest
from physkit.simulate.loop import (
    _chunk_program,
)

from .sweep_problems import angle, brownian, damping, pendulum

DAMPINGS = np.linspace(0.0, 0.4, 7)


def damping_sweep(values=DAMPINGS, steps=40, **more):
    return pk.Sweep(pendulum(), steps, over=pk.SweepAxis(damping, values, name="damping"), **more)


def compute_sweep(sweep, **more):
    return pk.sweep(sweep, progress=False, **more)


class TestNumbers:
    def test_equal_those_of_single_runs_and_of_one_batch(self):
        found = compute_sweep(damping_sweep(), chunk_size=3)
        assert found["angle"].shape == (7, 9)
        assert found["state"].shape == (7, 9, 2)
        np.testing.assert_allclose(found.times["angle"], 0.05 * 5 * np.arange(9), rtol=1e-14)
        for m in (0, 6):
            sim, state, key = damping_sweep().member(m)
            assert key is None
            one = pk.simulate(sim, state, 40)
            np.testing.assert_allclose(found["state"][m], one.frames["state"], rtol=1e-12)
        whole = compute_sweep(damping_sweep())
        np.testing.assert_allclose(found["state"][:], whole["state"][:], rtol=1e-10)
        np.testing.assert_array_equal(found.coordinates["damping"], DAMPINGS)

    @pytest.mark.slow
    def test_results_do_not_depend_on_the_length_of_chunks_in_time(self, monkeypatch):
        long_chunks = compute_sweep(damping_sweep())
        # Not as text: the path would lead to the function `pk.simulate`.
        monkeypatch.setattr(_chunk_program, "MAX_BLOCKS", 3)
        short_chunks = compute_sweep(damping_sweep())
        np.testing.assert_array_equal(long_chunks["state"][:], short_chunks["state"][:])

    def test_noise_depends_on_the_member_alone(self):
        model = brownian()
        sweep = pk.Sweep(model, 20, replicas=5, key=jax.random.key(3))
        two, five = compute_sweep(sweep, chunk_size=2), compute_sweep(sweep, chunk_size=5)
        np.testing.assert_allclose(two["x"][:], five["x"][:], rtol=1e-12)
        assert len(np.unique(two["x"][:][:, -1, 0, 0])) == 5
        sim, state, key = sweep.member(3)
        assert jnp.array_equal(
            jax.random.key_data(key), jax.random.key_data(jax.random.fold_in(jax.random.key(3), 3))
        )
        one = pk.simulate(sim, state, 20, key=key)
        np.testing.assert_allclose(two["x"][3], one.frames["x"], rtol=1e-12)
        by_seed = pk.sweep(model, 20, over=pk.SweepAxis("key", [7, 8]), progress=False)
        one = pk.simulate(*model, 20, key=jax.random.key(8))
        np.testing.assert_allclose(by_seed["x"][1], one.frames["x"], rtol=1e-12)

    def test_costly_members_are_computed_first(self):
        cost = lambda at: at["damping"]
        sweep = damping_sweep(cost=cost)
        assert [list(c) for c in sweep.chunks(4)] == [[6, 5, 4, 3], [2, 1, 0]]
        found = compute_sweep(sweep, chunk_size=4)
        np.testing.assert_array_equal(found.members, np.arange(7))
        np.testing.assert_allclose(
            found["state"][:], compute_sweep(damping_sweep())["state"][:], rtol=1e-12
        )

    def test_groups_and_whole_states(self):
        sim, state = pendulum()
        other = pk.Simulation(
            pk.integrators.Midpoint(sim.integrator.tendency), sim.dt, sim.observers
        )
        starts = [state, 2 * state, 3 * state]
        found = pk.sweep(
            [(sim, state), (other, state)],
            10,
            over=pk.designs.initial_states(starts),
            chunk_size=2,
            progress=False,
        )
        assert len(found["angle"]) == 6
        assert list(found.coordinates["group"]) == [0, 0, 0, 1, 1, 1]
        np.testing.assert_array_equal(found["angle"][:, 0], [0.5, 1.0, 1.5, 0.5, 1.0, 1.5])
        one = pk.simulate(other, starts[1], 10)
        np.testing.assert_allclose(found["state"][4], one.frames["state"], rtol=1e-12)


class TestDeviceMemory:
    def test_buffered_frames_have_a_byte_limit(self):
        sweep, many = damping_sweep(steps=5000), 10_000
        need = predict_batch_memory(sweep)
        runner = ChunkRunner(sweep, 0, many, jax.local_devices()[:1])
        batch = runner.init_batch(np.zeros(many, int))
        needed = runner.program_bytes(batch, many, runner.max_blocks)
        assert need.bytes_for(many) == pytest.approx(needed, rel=0.05)
        assert FRAME_BYTES < needed < 1.2 * FRAME_BYTES
        for free in (2**16, 2**20, 2**25, 2**26, 2**28, 2**32):
            fit = need.max_members(free)
            assert all(
                need.bytes_for(m) <= free for m in {fit // 3, fit // 2, fit - 1, fit} if m > 0
            )
        assert need.max_members(2**32) > 0.9 * (2**32 - FRAME_BYTES) / need.per_member

    def test_blocks_of_the_buffer_that_were_not_computed_are_not_fetched(self, monkeypatch):
        """From devices with memory of their own; here they are the host, which shares it."""
        expected = compute_sweep(damping_sweep(), chunk_size=4)["angle"]
        fetched, merge = [], ChunkRunner._merge_blocks

        def record(runner, x, blocks):
            fetched.append((x.shape[0], blocks, runner.max_blocks))
            return merge(runner, x, blocks)

        monkeypatch.setattr(ChunkRunner, "_merge_blocks", record)
        monkeypatch.setattr(_chunk_runner, "_shares_memory", lambda device: False)
        monkeypatch.setattr(_chunk_runner, "_WORTH_A_PROGRAM", 0)
        np.testing.assert_array_equal(
            compute_sweep(damping_sweep(), chunk_size=4)["angle"], expected
        )
        assert any(blocks < most for _, blocks, most in fetched)
        assert all(rows == blocks for rows, blocks, _ in fetched)


class TestFailedMembers:
    def test_are_flagged_and_do_not_change_the_others(self):
        with_two_failures = DAMPINGS.copy()
        with_two_failures[2], with_two_failures[5] = np.nan, -1e5
        without_failures, found = (
            compute_sweep(damping_sweep(), chunk_size=4),
            compute_sweep(damping_sweep(with_two_failures), chunk_size=4),
        )
        assert list(np.flatnonzero(~found.ok)) == [2, 5]
        assert [f.member for f in found.failed] == [2, 5]
        assert all("not finite" in f.reason for f in found.failed)
        assert found.failed[0].step == 5
        assert 5 < found.failed[1].step < 40  # blows up before it is infinite
        assert np.isnan(found["angle"][2, 1:]).all()
        assert found["angle"][2, 0] == 0.5
        others = [0, 1, 3, 4, 6]
        np.testing.assert_array_equal(
            found["state"][:][others], without_failures["state"][:][others]
        )
        assert "2 by step 5" in repr(found)

    def test_may_be_all_members(self):
        found = compute_sweep(damping_sweep(np.full(3, np.nan)))
        assert not found.ok.any()
        assert np.isnan(found["angle"][:, 1:]).all()

    def test_with_a_nan_temperature_are_flagged(self):
        sim, state = brownian()
        warm = pk.SweepAxis(lambda m: m[0].integrator.temperature, [np.nan, 1.0], name="T")
        found = pk.sweep((sim, state), 20, over=warm, key=jax.random.key(0), progress=False)
        assert list(found.ok) == [False, True]
        assert "over T: 1 … 1" in repr(found)

    def test_have_the_step_at_which_a_guard_broke(self):
        sim, state = pendulum()
        slow = pk.Guard(5, lambda now: jnp.abs(now.state[1]) < 1.5)
        sim = pk.Simulation(sim.integrator, sim.dt, sim.observers, (slow,))
        over = pk.SweepAxis(angle, [0.1, 1.0], name="angle")
        found = pk.sweep((sim, state), 40, over=over, progress=False)
        (failed,) = found.failed
        assert failed.member == 1
        assert 0 < failed.step <= 20
        assert "guard" in failed.reason

    def test_are_retried_with_smaller_steps(self):
        stiff = np.array([0.1, 100.0])  # RK4 holds to 2.8 / dt = 56
        not_retried = compute_sweep(damping_sweep(stiff, steps=2000))
        assert list(not_retried.ok) == [True, False]
        retried = compute_sweep(
            damping_sweep(stiff, steps=2000, retry=pk.sweeping.Retry(step_divisor=2))
        )
        assert retried.ok.all()
        assert list(retried.attempts) == [1, 2]
        np.testing.assert_array_equal(retried["angle"][0], not_retried["angle"][0])
        sim, state, _ = damping_sweep(stiff).member(1)
        finer = pk.Simulation(sim.integrator, sim.dt / 2, pk.Every(10, angle=lambda n: n.state[0]))
        one = pk.simulate(finer, state, 4000)
        np.testing.assert_allclose(retried["angle"][1], one.frames["angle"], rtol=1e-9)

    def test_are_retried_with_smaller_steps_where_dt_is_swept(self):
        sim, state = pendulum()
        small_angle = pk.Guard(5, lambda now: jnp.abs(now.state[0]) < 0.6)
        sim = pk.Simulation(sim.integrator, sim.dt, sim.observers, (small_angle,))
        over = pk.SweepAxis(lambda m: m[0].dt, [0.05, 1.2], name="dt")
        found = pk.sweep((sim, state), 40, over=over, retry=pk.sweeping.Retry(4), progress=False)
        assert list(found.attempts) == [1, 2]
        assert found.ok.all()
        finer = pk.Simulation(sim.integrator, 0.3, pk.Every(20, angle=lambda n: n.state[0]))
        one = pk.simulate(finer, state, 160)
        np.testing.assert_allclose(found["angle"][1], one.frames["angle"], rtol=1e-9)

    def test_have_no_integer_or_boolean_frames(self):
        sim, state = pendulum()
        count = pk.Every(
            5, n=lambda now: jnp.sum(now.state > -9), above=lambda now: now.state[0] > -9
        )
        model = pk.Simulation(sim.integrator, sim.dt, count), state
        over = pk.SweepAxis(damping, [0.1, np.nan], name="damping")
        found = pk.sweep(model, 10, over=over, progress=False)
        least = np.iinfo(found["n"].dtype).min
        np.testing.assert_array_equal(found["n"][:], [[2, 2, 2], [2, least, least]])
        np.testing.assert_array_equal(found["above"][:], [[True] * 3, [True, False, False]])

    def test_health_is_checked_at_fixed_steps_where_nothing_is_recorded(self):
        steady = pk.Function(lambda t, y: jnp.ones_like(y))
        sixteenth = pk.Guard(None, lambda now: jnp.round(now.state[0]) % 16 == 0)
        sim = pk.Simulation(pk.Euler(steady), dt=1.0, guards=(sixteenth,))
        found = pk.sweep((sim, jnp.zeros(1)), 512, progress=False)
        assert found.ok.all()
        last = pk.sweep((sim, jnp.zeros(1)), 500, progress=False)
        assert last.failed[0].step == 500

    @pytest.mark.slow
    def test_that_fail_again_record_their_attempts(self):
        retry = pk.sweeping.Retry(step_divisor=2, attempts=2)
        found = compute_sweep(damping_sweep(np.array([0.1, np.nan]), retry=retry))
        assert list(found.attempts) == [1, 3]
        assert list(found.ok) == [True, False]


class TestFolder:
    def test_resumed_equals_uninterrupted(self, tmp_path):
        whole = compute_sweep(damping_sweep(), chunk_size=2)
        done = execute(damping_sweep(), tmp_path / "a", chunk_size=2, chunks=[3, 1], progress=False)
        assert done.computed == (3, 1)
        part = pk.open(tmp_path / "a")
        assert part.missing == (0, 2)
        assert list(part.members) == [2, 3, 6]
        np.testing.assert_array_equal(part["state"][:], whole["state"][:][[2, 3, 6]])
        assert not part.complete
        with pytest.raises(pk.errors.ParameterError, match="4 of 7 members are missing"):
            part.require_complete()
        found = compute_sweep(damping_sweep(), to=tmp_path / "a")
        np.testing.assert_array_equal(found["state"][:], whole["state"][:])
        assert execute(damping_sweep(), tmp_path / "a", progress=False).computed == ()
        assert status(tmp_path / "a").complete

    @pytest.mark.slow
    def test_a_signal_gives_up_the_current_chunk(self, tmp_path):
        # A chunk of a minute or more, in 400 blocks: far from its end when the signal comes.
        steps = 400_000_000
        sim, state = pendulum(interval=steps // 400)
        long = pk.Sweep((sim, state), steps, over=pk.SweepAxis(damping, DAMPINGS))
        timer = threading.Timer(4.0, os.kill, (os.getpid(), signal.SIGTERM))
        began = time.monotonic()
        timer.start()
        found = compute_sweep(long, to=tmp_path / "a", chunk_size=4)
        assert time.monotonic() - began < 120
        assert found.stopped_by == "SIGTERM"
        assert 0 in found.missing or 1 in found.missing
        assert not list((tmp_path / "a" / "chunks").glob(".writing*"))

    def test_wall_time_stops_a_sweep(self, tmp_path):
        found = compute_sweep(damping_sweep(), to=tmp_path / "a", chunk_size=2, wall_time=0.0)
        assert found.stopped_by == "wall time"
        assert found.missing == (0, 1, 2, 3)

    def test_users_statistics_need_the_sweep(self, tmp_path):
        largest = pk.reductions.Reduction(
            "angle", "largest", lambda x: {"m": x.max(0)},
            lambda a, b: {"m": np.maximum(a["m"], b["m"])}, lambda w: w["m"],
        )  # fmt: skip
        sweep = damping_sweep(reduce=(largest, pk.reductions.Mean("angle")), keep=False)
        found = compute_sweep(sweep, to=tmp_path / "a", chunk_size=3)
        np.testing.assert_array_equal(
            found.reduced["largest"], compute_sweep(damping_sweep())["angle"][:].max(0)
        )
        assert list(pk.open(tmp_path / "a").reduced) == ["mean angle"]
        assert list(collect(tmp_path / "a", sweep).reduced) == ["largest", "mean angle"]
        assert not found.frames


def test_a_signal_stops_a_chunk_whose_pace_is_not_known():
    """After the first call, which compiled."""
    runner = object.__new__(ChunkRunner)
    runner._driver = SimpleNamespace(scheduler=ChunkScheduler(8))
    stop = StopRequest()
    assert not runner._should_stop(stop, 100)
    stop.reason = "SIGTERM"
    assert runner._should_stop(stop, 100)
    runner._driver.scheduler.update(1, 0.01)
    assert not runner._should_stop(stop, 1)  # almost done


def test_members_that_no_memory_holds_are_a_clear_error():
    sim, start = pendulum()

    def huge(s):
        return jnp.broadcast_to(s.state[0], (2**30, 2**14))

    sim = pk.Simulation(sim.integrator, dt=sim.dt, observers=pk.Every(5, huge=huge))
    sweep = pk.Sweep((sim, start), 10, over=pk.SweepAxis(damping, [0.0, 0.1], name="damping"))
    with pytest.raises(
        pk.errors.CapacityError, match=r"2 members at a time do not fit on .* chunk_size="
    ):
        compute_sweep(sweep, chunk_size=2)
