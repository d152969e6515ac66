"""A run that is stopped, killed or damaged and then resumed has the bits of one that was not."""

import dataclasses
import json
import os
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

from physkit.core import FileError, FileInUseError, MismatchError, ParameterError
from physkit.fields import Field
from physkit.fields.equations import Burgers
from physkit.geometry import Box, Grid
from physkit.integrators import BAOAB, ETDRK4, NoseHooverChain, ThermostatChain, VelocityVerlet
from physkit.observe import Average, Every, FieldValues, Positions, TotalEnergy
from physkit.particles import Particles
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Simulation, init, run
from physkit.simulate.driver import _run_storage
from physkit.storage import Checkpoints, FolderLock, open as open_file
from physkit.testing import check_equal

from .problems import OverflowingForce, RandomWalk, particles, springs, x_of

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_resumed_equals_uninterrupted_bit_for_bit[random_walk]",
    "test_resumed_equals_uninterrupted_bit_for_bit[burgers]",
    "test_blocks_between_checkpoints",
    "test_resuming_another_structure_or_run_is_refused",
    "test_wall_time_leaves_a_checkpoint",
    "test_frames_before_an_error_are_committed",
)

ROOT = Path(__file__).parents[2]


def quiet(*args, **kwargs):
    return run(*args, progress=False, **kwargs)


def random_walk():
    """A random walk with an average over time."""
    observers = (Every(1, x=x_of), Average(2, mean=x_of))
    return Simulation(RandomWalk(), 0.1, observers=observers), particles()


def overflowing():
    """A list that is too short and grows during the run."""
    sim = Simulation(VelocityVerlet(OverflowingForce()), 0.05, observers=Every(2, x=x_of))
    p = particles()
    return sim, p.replace(position=0.1 * p.position, velocity=2 * p.velocity)


def gas(integrator=VelocityVerlet, component=None):
    """Lennard-Jones with a neighbor list, hot enough to rebuild it."""
    axis = 1.3 * jnp.arange(4.0)
    x = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    v = jax.random.normal(jax.random.key(1), x.shape)
    force = Pairwise(LennardJones(), cutoff=1.6, skin=0.2, component=component)
    sim = Simulation(integrator(force), 0.004, observers=Every(2, e=TotalEnergy(), x=Positions()))
    return sim, Particles(x, v, space=Box.cube(5.2, 2))


def thermostat():
    sim, state = gas(lambda f: NoseHooverChain(f, temperature=1.0, period=0.1), component="gas")
    return sim, {"gas": state, "thermostat": ThermostatChain.at_rest()}


def langevin():
    return gas(lambda f: BAOAB(f, temperature=1.0, friction=1.0))


def burgers():
    """A spectral field, whose coefficients are carried."""
    grid = Grid([2 * np.pi], (16,))
    u = Field.from_function(grid, jnp.sin)
    equation = ETDRK4(Burgers(0.1))
    return Simulation(equation, 0.01, observers=Every(2, u=FieldValues())), u


CASES = [
    random_walk,
    overflowing,
    langevin,
    burgers,
    pytest.param(thermostat, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_resumed_equals_uninterrupted_bit_for_bit(case, tmp_path, key):
    sim, state = case()
    whole = quiet(sim, state, 40, key=key)
    for number, cuts in enumerate([(2, 6, 30), (14, 38)]):
        folder = tmp_path / str(number)
        for steps in (*cuts, 40):
            part = quiet(sim, state, steps, key=key, checkpoint=folder, resume=True)
        assert part.resumed_from == cuts[-1]
        assert part.steps == 40 - cuts[-1]
        check_equal(part.state, whole.state, "state", "same")
        check_equal(part.carry.aux, whole.carry.aux, "aux", "same")
        check_equal(part.carry.observer_state, whole.carry.observer_state, "observer_state", "same")
        check_equal(part.summary, whole.summary, "summary", "same")
        for name, frames in whole.frames.items():
            last = len(part.frames[name])
            check_equal(part.frames[name], frames[-last:], name, "same")
            check_equal(part.times[name], whole.times[name][-last:], name, "same")
    if case is overflowing:
        assert whole.growths


@pytest.mark.parametrize("case", [langevin, burgers], ids=lambda c: c.__name__)
def test_files_continue_at_the_checkpoint(case, tmp_path, key):
    sim, state = case()
    whole = quiet(sim, state, 12, key=key)
    checkpoints = Checkpoints(tmp_path / "c", blocks=2, keep=9)
    quiet(sim, state, 8, key=key, to=tmp_path / "r", checkpoint=checkpoints)
    # As if killed after step 8 was written to the files, before its checkpoint.
    checkpoints.paths()[0].unlink()
    part = quiet(sim, state, 12, key=key, to=tmp_path / "r", checkpoint=checkpoints, resume=True)
    assert part.resumed_from == 4
    assert part.frames == {}
    for name, frames in whole.frames.items():
        single = frames.astype(np.float32) if name in ("x", "u") else frames
        assert np.array_equal(part[name], single)
        assert np.array_equal(part[name].time, whole.times[name])
        assert part[name].step[-1] == 12


def test_blocks_between_checkpoints(tmp_path):
    sim, state = springs(), particles()
    folder = Checkpoints(tmp_path, blocks=3, keep=100)
    quiet(sim, state, 8 * sim.observation_period, checkpoint=folder)
    steps = [int(p.stem.split("-")[1]) // sim.observation_period for p in reversed(folder.paths())]
    assert steps == [0, 3, 6, 8]
    # Counted from the beginning of the run, not from where it is resumed.
    quiet(sim, state, 13 * sim.observation_period, checkpoint=folder, resume=True)
    steps = [int(p.stem.split("-")[1]) // sim.observation_period for p in reversed(folder.paths())]
    assert steps == [0, 3, 6, 8, 9, 12, 13]


def test_resuming_a_finished_run_does_nothing(tmp_path):
    sim, state = random_walk()
    done = quiet(sim, state, 4, key=jax.random.key(0), checkpoint=tmp_path)
    again = quiet(sim, state, 4, key=jax.random.key(0), checkpoint=tmp_path, resume=True)
    assert (again.steps, again.resumed_from, again.exit_status) == (0, 4, 0)
    check_equal(again.state, done.state, "state", "same")
    assert "resumed at step 4" in repr(again)
    with pytest.warns(UserWarning, match="has come to step 4, past the 2 asked"):
        quiet(sim, state, 2, key=jax.random.key(0), checkpoint=tmp_path, resume=True)


# --- refusals -------------------------------------------------------------------------------------


def test_a_folder_in_use_or_with_another_run_is_refused(tmp_path):
    sim, state = springs(), particles()
    with pytest.raises(ParameterError, match="resume=True needs checkpoint"):
        quiet(sim, state, sim.observation_period, resume=True)
    quiet(sim, state, sim.observation_period, to=tmp_path / "a")
    with pytest.raises(FileError, match="resume=True continues it"):
        quiet(sim, state, sim.observation_period, to=tmp_path / "a")
    with pytest.raises(FileError, match="another folder"):
        quiet(
            sim, state, sim.observation_period, to=tmp_path / "a", checkpoint=tmp_path / "elsewhere"
        )
    lock = FolderLock(tmp_path / "a")
    with pytest.raises(FileInUseError):
        quiet(sim, state, sim.observation_period, to=tmp_path / "a", resume=True)
    lock.release()
    assert not list(tmp_path.rglob("lock"))


def test_resuming_another_structure_or_run_is_refused(tmp_path):
    sim, state = springs(), particles()
    quiet(sim, state, sim.observation_period, to=tmp_path / "a")
    again = lambda *args, **more: quiet(
        *args, sim.observation_period, to=tmp_path / "a", resume=True, **more
    )
    with pytest.raises(MismatchError, match=r"position: float64\[5, 2\] in the file"):
        again(sim, particles(n=6))
    later = quiet(sim, state, sim.observation_period).carry
    with pytest.raises(MismatchError, match="begins at step"):
        again(sim, later)
    name = next(iter((tmp_path / "a").glob("*.h5")))
    content = name.read_bytes()
    quiet(sim, state, sim.observation_period, to=tmp_path / "b")
    name.write_bytes((tmp_path / "b" / name.name).read_bytes())
    with pytest.raises(MismatchError, match="of another run"):
        again(sim, state)
    name.unlink()
    with pytest.raises(MismatchError, match="is missing"):
        again(sim, state)
    name.write_bytes(content)
    again(sim, state)


def test_a_changed_simulation_is_refused_unless_told_otherwise(tmp_path):
    sim, state = springs(), particles()
    quiet(sim, state, sim.observation_period, checkpoint=tmp_path)
    softer = dataclasses.replace(sim, dt=jnp.asarray(0.001))
    steps = 2 * sim.observation_period
    with pytest.raises(
        MismatchError, match=r"the simulation: \.dt float64\[\] .*\n.*resume=\"changed\""
    ) as caught:
        quiet(softer, state, steps, checkpoint=tmp_path, resume=True)
    assert "the code" not in str(caught.value)
    with pytest.warns(
        UserWarning, match=r"has changed since: the simulation: \.dt .*at t = t0 \+ n·dt = "
    ):
        quiet(softer, state, steps, checkpoint=tmp_path, resume="changed")


def test_resuming_with_other_versions_warns(tmp_path, monkeypatch):
    sim, state = springs(), particles()
    quiet(sim, state, sim.observation_period, checkpoint=tmp_path)
    from physkit.storage import _provenance

    here = _provenance.collect_provenance()
    monkeypatch.setattr(_provenance, "collect_provenance", lambda: {**here, "jax": "99.0"})
    with pytest.warns(UserWarning, match=r"jax .* → 99.0.*last bit"):
        quiet(sim, state, 2 * sim.observation_period, checkpoint=tmp_path, resume=True)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="native code is for CPUs")
def test_resuming_without_native_code_warns(tmp_path, monkeypatch):
    sim, state = springs(), particles()
    monkeypatch.setattr("physkit.storage._provenance.native_code_is_used", lambda: True)
    quiet(sim, state, sim.observation_period, checkpoint=tmp_path)
    monkeypatch.setattr("physkit.storage._provenance.native_code_is_used", lambda: False)
    with pytest.warns(UserWarning, match=r"native code used → not used.*last bit"):
        quiet(sim, state, 2 * sim.observation_period, checkpoint=tmp_path, resume=True)


# --- stopping -------------------------------------------------------------------------------------


def test_wall_time_leaves_a_checkpoint(tmp_path):
    sim, state = springs(), particles()
    stopped = quiet(sim, state, 400 * sim.observation_period, checkpoint=tmp_path, wall_time=0.0)
    assert stopped.stopped_by == "wall time"
    assert stopped.exit_status == 75
    assert stopped.checkpoint == Checkpoints(tmp_path).paths()[0]
    rest = quiet(sim, state, 2 * stopped.steps, checkpoint=tmp_path, resume=True)
    assert rest.resumed_from == stopped.steps
    assert rest.exit_status == 0


SCRIPT = """
    import sys, time
    import jax, jax.numpy as jnp, numpy as np
    import physkit as pk

    def slow(now):
        return now.state.position[:, 0]

    rng = np.random.default_rng(0)
    state = pk.Particles(rng.normal(size=(6, 2)), rng.normal(size=(6, 2)))
    force = pk.HarmonicTrap(1.0)
    sim = pk.Simulation(
        pk.BAOAB(force, temperature=1.0, friction=1.0), 0.01,
        observers=(pk.Every(500, x=pk.Positions()), pk.Every(500, e=pk.TotalEnergy())),
    )
    done = pk.run(
        sim, state, 500 * int(sys.argv[2]), key=jax.random.key(0), to=sys.argv[1], resume=True,
        checkpoint=pk.Checkpoints(sys.argv[1] + "/checkpoints", seconds=0.05), progress=False,
    )
    print(done)
    sys.exit(done.exit_status)
"""


def launch_script(folder, blocks):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder), str(blocks)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_progress(process, folder, beyond):
    """Wait for a checkpoint of a step after `beyond`."""
    checkpoints = Checkpoints(folder / "checkpoints")
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        paths = checkpoints.paths()
        if paths and int(paths[0].stem.split("-")[1]) > beyond:
            return
        time.sleep(0.01)
    raise AssertionError(process.communicate(timeout=10)[0])


def last_checkpoint_step(folder):
    return int(Checkpoints(folder / "checkpoints").paths()[0].stem.split("-")[1])


@pytest.mark.parametrize("name", ["SIGTERM", pytest.param("SIGUSR1", marks=pytest.mark.slow),
                                  pytest.param("SIGINT", marks=pytest.mark.slow)])  # fmt: skip
def test_a_signal_ends_the_run_cleanly(name, tmp_path):
    process = launch_script(tmp_path / "r", 10**7)
    wait_for_progress(process, tmp_path / "r", 0)
    process.send_signal(getattr(signal, name))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == (130 if name == "SIGINT" else 75), output
    assert f"stopped by {name}" in output
    found = open_file(tmp_path / "r")
    assert found["e"].step[-1] == last_checkpoint_step(tmp_path / "r")
    assert json.loads((tmp_path / "r" / "run.json").read_text())["files"]


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_killed_runs_continue_with_the_same_bits(kills, tmp_path):
    folder, beyond = tmp_path / "r", 0
    for number in range(kills):
        process = launch_script(folder, 10**7)
        wait_for_progress(process, folder, beyond)
        time.sleep(0.03 * (number % 7))
        process.kill()
        process.communicate(timeout=60)
        open_file(folder)["x"][-1]
        beyond = last_checkpoint_step(folder)
    blocks = beyond // 500 + 200
    for where in (folder, tmp_path / "whole"):
        process = launch_script(where, blocks)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
    resumed, whole = open_file(folder), open_file(tmp_path / "whole")
    for name in ("x", "e"):
        assert np.array_equal(resumed[name], whole[name])
        assert np.array_equal(resumed[name].step, 500 * np.arange(blocks + 1))


def test_frames_before_an_error_are_committed(tmp_path, monkeypatch):
    sim, state = springs(), particles()

    def interrupt(self, carry, done):
        raise KeyboardInterrupt

    monkeypatch.setattr(_run_storage.RunStorage, "save_if_due", interrupt)
    with pytest.raises(KeyboardInterrupt):
        quiet(sim, state, 400 * sim.observation_period, to=tmp_path)
    found = open_file(tmp_path)
    assert len(next(iter(found.values()))) > 1
    assert not list(tmp_path.rglob("lock"))


def test_a_carry_continues_in_new_files(tmp_path):
    sim, state = springs(), particles()
    carry = init(sim, state)
    first = quiet(sim, carry, 2 * sim.observation_period)
    second = quiet(sim, first.carry, 2 * sim.observation_period, to=tmp_path)
    plain = quiet(sim, first.carry, 2 * sim.observation_period)
    for name in plain.frames:
        assert np.array_equal(second[name].time, plain.times[name])
