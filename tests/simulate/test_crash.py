"""A run that goes wrong leaves on disk what `diagnose` needs; resuming in another environment warns."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    DamagedFileError,
    FileError,
    MismatchError,
    ParameterError,
    SimulationDiverged,
    StepSizeError,
)
from physkit.geometry import Box
from physkit.integrators import BAOAB, VelocityVerlet
from physkit.observe import Every, Positions
from physkit.particles import Particles
from physkit.particles.forces import ExternalForce, LennardJones, Pairwise
from physkit.simulate import Simulation, diagnose, init, read_crash_record, run
from physkit.simulate.driver import _single_device
from physkit.simulate.loop import _chunk_program
from physkit.storage import open as open_file

from .problems import particles, springs

ROOT = Path(__file__).parents[2]


def spring_force(t, particles, args):
    return jnp.where(t > args["until"], jnp.inf, -1.0) * particles.position


def diverging(until=2.995):
    """A simulation whose force is infinite from step 300 on."""
    force = ExternalForce(spring_force, {"until": jnp.asarray(until)})
    observers = Every(10, x=Positions())
    return Simulation(BAOAB(force, temperature=1.0, friction=1.0), 0.01, observers=observers)


@pytest.fixture
def diverged_run(tmp_path, key):
    with pytest.raises(SimulationDiverged) as caught:
        run(diverging(), particles(), 1000, key=key, to=tmp_path, progress=False)
    return tmp_path, caught.value


def test_a_run_that_diverged_is_diagnosed_from_its_folder(diverged_run):
    folder, error = diverged_run
    record = read_crash_record(folder)
    assert record["error"] == "SimulationDiverged"
    assert record["message"] == str(error)
    assert record["step"] < 300 <= record["step"] + record["steps"]
    assert "folder=" in error.__notes__[0]
    found = diagnose(diverging(), particles(), folder=folder)
    assert found.step == 299
    assert repr(found) == repr(diagnose(error))
    assert any("velocity: 10 of 10 not finite" in line for line in found.findings)
    # Every good frame is there.
    assert open_file(folder)["x"].step[-1] == record["step"]
    assert np.all(np.isfinite(open_file(folder)["x"]))


def test_the_crash_record_is_removed_once_the_run_is_past_it(diverged_run, key):
    folder, _ = diverged_run
    with pytest.warns(UserWarning, match="has changed since"):
        run(
            diverging(99.0),
            particles(),
            1000,
            key=key,
            to=folder,
            resume="changed",
            progress=False,
        )
    assert read_crash_record(folder) is None
    with pytest.raises(FileError, match="no run there went wrong"):
        diagnose(diverging(), particles(), folder=folder)


def test_folders_that_diagnose_refuses(diverged_run):
    folder, _ = diverged_run
    with pytest.raises(MismatchError, match="position"):
        diagnose(diverging(), particles(n=7), folder=folder)
    with pytest.raises(ParameterError, match="state, folder="):
        diagnose(diverging(), folder=folder)
    path = folder / "crash.json"
    good = json.loads(path.read_text())
    for wrong in ("", "[]", json.dumps({**good, "steps": "many"}), "[" * 100_000):
        path.write_text(wrong)
        with pytest.raises(DamagedFileError, match="remove it"):
            diagnose(diverging(), particles(), folder=folder)
    path.write_text(json.dumps({**good, "checkpoint": "../../etc/passwd"}))
    with pytest.raises(FileError, match=r"passwd, which crash\.json names, is gone"):
        diagnose(diverging(), particles(), folder=folder)


def test_diagnosis_names_faults_of_terms(tmp_path):
    """Two particles fly through each other in one step."""
    x = jnp.array([[1.0, 5.0], [4.0, 5.0], [7.0, 8.0]])
    v = jnp.array([[900.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    sim = Simulation(VelocityVerlet(Pairwise(LennardJones(), 2.0, 0.3)), 0.002)
    state = Particles(x, v, space=Box.cube(10.0, 2))
    with pytest.raises((StepSizeError, SimulationDiverged)) as caught:
        run(sim, state, 20, checkpoint=tmp_path, progress=False)
    record = read_crash_record(tmp_path)
    assert record["error"] == type(caught.value).__name__
    found = diagnose(sim, state, folder=tmp_path)
    assert found.step is not None
    if record["error"] == "StepSizeError":
        assert any(line.startswith("DISPLACEMENT") for line in found.findings)


def test_a_run_over_devices_that_diverged_is_diagnosed(tmp_path, monkeypatch):
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    state = Particles(jnp.ones((4, 2)) * jnp.arange(1.0, 5.0)[:, None], space=Box.cube(10.0, 2))
    force = ExternalForce(spring_force, {"until": jnp.asarray(0.295)})
    sim = Simulation(VelocityVerlet(force), 0.01, observers=Every(10, x=Positions()))
    with pytest.raises(SimulationDiverged):
        run(sim, state, 100, to=tmp_path, devices=2, progress=False)
    assert diagnose(sim, state, folder=tmp_path).step == 29


def test_a_crash_without_a_folder_writes_nothing(tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SimulationDiverged) as caught:
        run(diverging(0.05), particles(), 20, key=key, progress=False)
    assert not list(tmp_path.iterdir())
    assert not hasattr(caught.value, "__notes__")


def test_resuming_in_one_process_does_not_recompile(tmp_path, key):
    sim, state = springs(), particles()
    run(sim, state, sim.observation_period, key=key, checkpoint=tmp_path, progress=False)
    program = _chunk_program.program_of(init(sim, state, key=key))
    before = program._cache_size()
    assert before > 0
    done = run(
        sim,
        state,
        9 * sim.observation_period,
        key=key,
        checkpoint=tmp_path,
        resume=True,
        progress=False,
    )
    assert done.resumed_from == sim.observation_period
    assert program._cache_size() == before


@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 75), ("SIGUSR1", 75), ("SIGINT", 130)])
def test_a_signal_ends_the_run_within_two_chunks(name, status, tmp_path, key, monkeypatch):
    """The chunk that it comes in is finished, and no other is begun."""
    chunk_starts = []

    class Counting(_chunk_program.ChunkProgram):
        def __call__(self, carry, blocks):
            chunk_starts.append(int(carry.step))
            if len(chunk_starts) == 3:
                signal.raise_signal(getattr(signal, name))
            return super().__call__(carry, blocks)

    monkeypatch.setattr(_single_device, "ChunkProgram", Counting)
    sim, state = springs(), particles()
    done = run(sim, state, 10**6 * sim.observation_period, key=key, to=tmp_path, progress=False)
    assert done.stopped_by == name
    assert done.exit_status == status
    assert len(chunk_starts) == 3
    assert int(done.carry.step) > chunk_starts[-1]
    assert done.checkpoint.stem.endswith(f"{int(done.carry.step):015d}")
    recorded = next(iter(open_file(tmp_path).values()))
    assert recorded.step[-1] == int(done.carry.step)
    # Signal handlers are restored.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


SCRIPT = """
    import sys, warnings
    import jax, numpy as np
    import physkit as pk

    warnings.simplefilter("always")
    rng = np.random.default_rng(0)
    state = pk.Particles(rng.normal(size=(4, 2)), rng.normal(size=(4, 2)))
    sim = pk.Simulation(pk.BAOAB(pk.HarmonicTrap(1.0), temperature=1.0, friction=1.0), 0.01)
    key = jax.random.key(0, impl=sys.argv[3])
    done = pk.run(
        sim, state, int(sys.argv[2]), key=key, checkpoint=sys.argv[1], resume=True, progress=False
    )
    print("done", int(done.carry.step))
"""


def run_script(folder, steps, impl="threefry2x32", **environment):
    """The output of a process with another environment."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
    settings |= {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"} | environment
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(folder), str(steps), impl],
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_resuming_on_another_backend_and_precision(tmp_path):
    """Another number of devices warns; another precision or kind of key is refused."""
    assert "done 10" in run_script(tmp_path, 10)
    output = run_script(tmp_path, 20, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    assert "devices 1 × cpu cpu → 2 × cpu cpu" in output
    assert "last bit" in output
    assert "done 20" in output
    for steps, more in ((30, {"JAX_ENABLE_X64": "1"}), (40, {"impl": "rbg"})):
        output = run_script(tmp_path, steps, **more)
        assert "MismatchError" in output
        assert "done" not in output
    assert "JAX_ENABLE_X64 decides" in run_script(tmp_path, 30, JAX_ENABLE_X64="1")
    assert "done 20" in run_script(tmp_path, 20)


def test_a_key_that_is_missing_or_new_is_refused(tmp_path):
    sim = diverging(99.0)
    run(sim, particles(), 10, key=jax.random.key(0), checkpoint=tmp_path, progress=False)
    with pytest.raises((MismatchError, ParameterError)):
        run(sim, particles(), 20, checkpoint=tmp_path, resume=True, progress=False)
