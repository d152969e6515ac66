"""How runs end early, what their progress shows, and what a second run compiles."""

import functools
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    FileError,
    ParameterError,
    SimulationDiverged,
)
from physkit.geometry import Box
from physkit.integrators import Euler, VelocityVerlet
from physkit.observe import Every, Finite, Guard
from physkit.particles import Particles
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import (
    Progress,
    Simulation,
    StopRequest,
    ending_at_once,
    run,
)
from physkit.simulate.loop._advance import _repeat
from tests.compilations import compiled_programs

from .problems import (
    OverflowingForce,
    Springs,
    energy_of,
    particles,
    springs,
    x_of,
)

quiet = functools.partial(run, progress=False)


class TestEarlyStops:
    def test_wall_time_ends_the_run_with_a_result(self):
        sim = springs(observers=Every(100, energy=energy_of))
        start_time = time.monotonic()
        result = quiet(sim, particles(), 10**8, wall_time=2.0)
        assert time.monotonic() - start_time < 20
        assert result.stopped_by == "wall time"
        assert 0 < result.steps < 10**8
        assert result.frames["energy"].shape[0] == result.steps // 100 + 1
        assert "stopped by wall time" in repr(result)
        again = quiet(sim, result.carry, 100)
        assert int(again.carry.step) == result.steps + 100

    @pytest.mark.parametrize("name", [pytest.param("SIGINT", marks=pytest.mark.slow), "SIGTERM"])
    def test_signals_end_the_run_with_a_result(self, name, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            textwrap.dedent("""
            import sys
            import jax.numpy as jnp
            from physkit.integrators import RK4
            from physkit.observe import Every
            from physkit.simulate import Simulation, run

            sim = Simulation(
                RK4(lambda t, y: -y), 1e-3,
                observers=Every(1000, y=lambda now: (now.state, print)[0]),
            )
            first = run(sim, jnp.ones(3), 1000, progress=False)
            print("ready", flush=True)
            result = run(sim, first.carry, 10**10, progress=False)
            print(result.stopped_by, result.steps, len(result.frames["y"]), flush=True)
            more = run(sim, result.carry, 1000, progress=False)
            print(int(more.carry.step) - int(result.carry.step), flush=True)
            """)
        )
        root = Path(__file__).parents[2]
        env = {**os.environ, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}
        process = subprocess.Popen(
            [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=env,
        )  # fmt: skip
        try:
            assert process.stdout.readline().strip() == "ready"
            time.sleep(1.0)
            process.send_signal(getattr(signal, name))
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        lines = out.split()
        assert process.returncode == 0, err
        assert lines[0] == name
        steps, frames = int(lines[1]), int(lines[2])
        assert steps > 0
        assert frames == steps // 1000
        assert lines[3] == "1000"

    @pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
    def test_a_signal_before_the_first_chunk_leaves_a_run_to_resume(self, name, tmp_path):
        signals = [getattr(signal, name)]

        def x_with_signal(now):
            if signals:  # traced first of all by `init`
                os.kill(os.getpid(), signals.pop())
            return now.state.position

        sim = springs(observers=Every(2, x=x_with_signal))
        stopped = quiet(sim, particles(), 6, to=tmp_path / "r")
        assert (stopped.stopped_by, stopped.steps, stopped.exit_status) == (name, 0, 75)
        resumed = quiet(sim, particles(), 6, to=tmp_path / "r", resume=True)
        whole = quiet(springs(observers=Every(2, x=x_of)), particles(), 6)
        assert np.array_equal(resumed.recording["x"], whole["x"])

    def test_a_signal_that_is_ignored_stays_so(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
        try:
            force = Springs()
            guard = Guard(2, lambda now: os.kill(os.getpid(), signal.SIGHUP) is None)
            done = quiet(Simulation(VelocityVerlet(force), 0.05, guards=[guard]), particles(), 4)
        finally:
            signal.signal(signal.SIGHUP, before)
        assert done.stopped_by is None

    def test_programs_without_anything_to_keep_end_at_once(self):
        before = signal.getsignal(signal.SIGTERM)
        with ending_at_once(), StopRequest():
            with pytest.raises(SystemExit, match="143"):
                os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGTERM) is before

    def test_signal_handlers_are_restored(self):
        before = signal.getsignal(signal.SIGTERM)
        quiet(springs(), particles(), 6)
        assert signal.getsignal(signal.SIGTERM) is before


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestProgress:
    def test_a_pipe_gets_a_line_per_tenth(self):
        stream = io.StringIO()
        bar = Progress(1000, title="cooking", stream=stream)
        for done in range(1, 1001):
            bar.update(done, "energy 1.5")
        bar.close()
        lines = stream.getvalue().splitlines()
        assert len(lines) == 10
        assert all(line.startswith("cooking") and line.endswith("energy 1.5") for line in lines)
        assert [int(re.search(r"(\d+) %", line)[1]) for line in lines] == list(range(10, 101, 10))
        assert "done" in lines[-1]
        assert "left" in lines[0]

    def test_progress_over_several_tenths_writes_one_line(self):
        stream = io.StringIO()
        bar = Progress(10, stream=stream)
        for done in (4, 5, 10):
            bar.update(done)
        assert len(stream.getvalue().splitlines()) == 3

    def test_a_terminal_gets_one_line_redrawn(self):
        stream = Terminal()
        bar = Progress(100, stream=stream)
        for done in range(1, 101):
            bar.update(done)
        bar.close()
        text = stream.getvalue()
        assert text.count("\n") == 1
        assert text.startswith("\r")
        assert "█" in text
        assert "100 %" in text

    def test_disabled_progress_writes_nothing(self):
        stream = io.StringIO()
        bar = Progress(10, enabled=False, stream=stream)
        bar.update(10)
        bar.write_line("hello")
        bar.close()
        assert stream.getvalue() == ""

    def test_a_closed_pipe_does_not_end_the_work(self):
        stream = io.StringIO()
        bar = Progress(10, stream=stream)
        stream.close()
        bar.update(5)
        bar.write_line("still here")
        assert not bar.enabled

    def test_run_shows_its_scalars_and_what_it_grew(self, capsys):
        force = OverflowingForce()
        sim = Simulation(VelocityVerlet(force), 0.05, observers=Every(2, speed=_speed))
        p = particles()
        run(sim, p.replace(position=0.1 * p.position, velocity=2 * p.velocity), 60)
        err = capsys.readouterr().err
        assert "recompiling and replaying the chunk" in err
        assert re.search(r"100 %  60/60 steps .* done .*speed \d", err)
        assert len([line for line in err.splitlines() if "%" in line]) <= 10


def _speed(now):
    return jnp.max(jnp.abs(now.state.velocity))


def test_an_empty_folder_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in ({"to": ""}, {"checkpoint": " "}):
        with pytest.raises(FileError, match="name of a file or folder is needed"):
            quiet(springs(), particles(), 6, **arguments)
    assert not list(tmp_path.iterdir())


def test_messages_show_the_time_step_as_typed():
    with pytest.raises(ParameterError, match=r"dt = -0\.1$"):
        Simulation(VelocityVerlet(Springs()), np.float32(-0.1))


def test_a_second_run_compiles_nothing():
    grid = np.stack(np.meshgrid(*[np.arange(3.0)] * 2), -1).reshape(-1, 2) * 1.2
    atoms = Particles(jnp.asarray(grid), jnp.zeros((9, 2)), space=Box([3.6, 3.6]))
    sim = Simulation(VelocityVerlet(Pairwise(LennardJones(), cutoff=1.5)), 1e-3)
    quiet(sim, atoms, 4)
    with compiled_programs() as compiled:
        for _ in range(2):
            quiet(sim, atoms, 4)
    assert not compiled


def test_guards_of_ones_own_come_beside_the_check_for_nan():
    """A condition that holds for NaN must not hide it."""
    blind = Guard(1, lambda now: ~(now.t > 1e9))
    sim = Simulation(Euler(lambda t, x: x * jnp.inf), 0.1, guards=blind)
    assert [type(guard) for guard in sim.guards] == [Guard, Finite]
    with pytest.raises(SimulationDiverged):
        quiet(sim, jnp.ones(2), 3)
    assert Simulation(sim.integrator, 0.1, guards=()).guards == ()


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 50])
def test_loops_in_groups_make_every_turn_once(count, monkeypatch):
    """As on a GPU, which is asked once for a group whether to go on."""
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *a, cpu, default: default(*a))

    def note(i, loop):
        turn, seen = loop
        return turn + 1, seen.at[i].set(turn)

    start = jnp.int32(0), jnp.full(60, -1, jnp.int32)
    turns, seen = jax.jit(lambda n: _repeat(note, 8, n, start))(jnp.int32(count))
    assert turns == count
    np.testing.assert_array_equal(seen, np.where(np.arange(60) < count, np.arange(60), -1))
