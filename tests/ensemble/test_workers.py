"""Workers that share a sweep, and engines that start them."""

import importlib.util
import json
import signal
import subprocess
import sys
import threading
import time

import jax
import numpy as np
import pytest

import physkit as pk
from physkit.core import MissingExtraError, ParameterError, SweepError
from physkit.ensemble import execute, run_worker, status, submit
from physkit.ensemble.cluster._claims import MAX_DEATHS
from physkit.storage import identify_process
from tests.ensemble.test_claims import dead_process


def lorenz(members=12, steps=20):
    simulation, state = pk.systems.lorenz()
    over = pk.SweepAxis(lambda model: model[1][0], np.arange(float(members)), name="x")
    return pk.Sweep((simulation, state), steps, over=over)


@pytest.fixture(autouse=True)
def _outside_slurm(monkeypatch):
    for name in ("SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_CONF"):
        monkeypatch.delenv(name, raising=False)


def _require_submitit():
    # Not importorskip: importing submitit here would reconfigure logging.
    if importlib.util.find_spec("submitit") is None:
        pytest.skip("the cluster extra is not installed")


def claim(folder, number, holder):
    (folder / "chunks" / f"{number:06d}.claim").write_text(json.dumps(holder))


def test_a_worker_computes_its_own_chunks_first(tmp_path):
    result = run_worker(lorenz(), tmp_path, chunk_size=2, worker=(1, 3), progress=False)
    assert result.computed == (1, 4, 2, 5, 0, 3)
    assert result.exit_status == 0
    assert "6 chunks" in repr(result)
    again = run_worker(lorenz(), tmp_path, worker=(0, 2), progress=False)
    assert (again.computed, again.missing) == ((), ())


def test_only_chunks_of_dead_workers_are_taken_over(tmp_path):
    execute(lorenz(), tmp_path, chunk_size=3, chunks=(), progress=False)
    elsewhere = {**identify_process(), "host": "another-machine"}
    claim(tmp_path, 0, elsewhere)
    claim(tmp_path, 1, dead_process())
    claim(tmp_path, 2, {**dead_process(), "deaths": MAX_DEATHS - 1})
    now = status(tmp_path)
    assert (now.missing, list(now.running), now.quarantined) == ((1, 2, 3), [0], (2,))
    result = run_worker(lorenz(), tmp_path, progress=False)
    assert result.computed == (1, 3)
    assert (result.claimed_elsewhere, result.quarantined, result.exit_status) == ((0,), (2,), 1)
    assert "killed 3 workers" in repr(result)
    assert "killed 3 workers" in repr(now)


def test_a_signal_stops_a_worker_between_chunks(tmp_path, monkeypatch):
    """It finishes its current chunk, begins no other, and the job goes back into the queue."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    requeue_requests = []
    monkeypatch.setattr(
        "physkit.ensemble.cluster._worker.requeue_this_job",
        lambda: requeue_requests.append(1) or True,
    )
    monkeypatch.setattr("physkit.ensemble.cluster._worker.job_seconds_left", lambda: None)

    def send_signal():
        while not list(tmp_path.glob("chunks/*.h5")):
            time.sleep(0.001)
        signal.raise_signal(signal.SIGUSR1)

    sender = threading.Thread(target=send_signal)
    sender.start()
    result = run_worker(lorenz(400), tmp_path, chunk_size=2, requeue=True, progress=False)
    sender.join()
    assert 0 < len(result.computed) < 200
    assert (result.stopped_by, result.exit_status, result.requeued, requeue_requests) == (
        "SIGUSR1",
        75,
        True,
        [1],
    )
    assert not list(tmp_path.glob("chunks/*.claim"))
    assert (tmp_path / "log/jobs.txt").read_text() == "7\n"


def test_a_job_too_short_for_a_chunk_is_not_requeued(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(
        "physkit.ensemble.cluster._worker.requeue_this_job", lambda: pytest.fail("asked")
    )
    monkeypatch.setattr("physkit.ensemble.cluster._worker.job_seconds_left", lambda: None)
    result = run_worker(
        lorenz(), tmp_path, chunk_size=2, requeue=True, wall_time=0.0, progress=False
    )
    assert (result.stopped_by, result.requeued, result.exit_status) == ("wall time", False, 75)
    assert "smaller chunks" in repr(result)


@pytest.mark.parametrize("is_saved", [True, False])
def test_a_job_is_requeued_if_its_chunk_goes_on_from_where_it_was(tmp_path, monkeypatch, is_saved):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr("physkit.ensemble.cluster._worker.requeue_this_job", lambda: True)
    monkeypatch.setattr("physkit.ensemble.cluster._worker.job_seconds_left", lambda: 21.5)
    if not is_saved:  # as of members that are sharded over devices
        monkeypatch.setattr(
            "physkit.ensemble.store._sweep_folder.SweepFolder.checkpoint", lambda *_: None
        )
    # Slurm's signal comes before the end of the time.
    sender = threading.Timer(1.2, signal.raise_signal, [signal.SIGUSR1])
    sender.start()
    result = run_worker(lorenz(4, 10**9), tmp_path, chunk_size=4, requeue=True, progress=False)
    sender.join()
    assert result.stopped_by in ("SIGUSR1", "wall time")
    assert (result.computed, result.requeued, result.too_long) == ((), is_saved, not is_saved)
    assert (tmp_path / "chunks" / "000000.partial").exists() == is_saved


def test_the_time_limit_of_the_job_is_a_wall_time(tmp_path, monkeypatch):
    monkeypatch.setattr("physkit.ensemble.cluster._worker.job_seconds_left", lambda: 3.0)
    wall_times = []

    def record_wall_time(*_, wall_time=None, claim=None, **options):
        wall_times.append(wall_time)
        return execute(*_, wall_time=wall_time, claim=claim, **options)

    monkeypatch.setattr("physkit.ensemble.cluster._worker.execute", record_wall_time)
    run_worker(lorenz(2), tmp_path, chunk_size=2, progress=False)
    assert 0 <= wall_times[-1] <= 1.0


@pytest.mark.parametrize("worker", [(2, 2), (-1, 2), (0, 0)])
def test_impossible_worker_indices_are_refused(tmp_path, worker):
    with pytest.raises(ParameterError, match="worker"):
        run_worker(lorenz(), tmp_path, worker=worker)


def test_impossible_engines_are_refused(tmp_path, monkeypatch):
    model = pk.systems.lorenz()
    with pytest.raises(ParameterError, match="'slurm'"):
        pk.sweep(model, 20, engine="cloud")
    with pytest.raises(ParameterError, match="to="):
        pk.sweep(model, 20, engine="local")
    with pytest.raises(ParameterError, match="wall_time"):
        pk.sweep(model, 20, engine="local", to=tmp_path, wall_time=3.0)
    with pytest.raises(ParameterError, match="workers"):
        pk.LocalWorkers(0)
    monkeypatch.setenv("PATH", "/nowhere")
    _require_submitit()
    with pytest.raises(SweepError, match="no Slurm here"):
        pk.sweep(model, 20, engine="slurm", to=tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "submitit", None)
    with pytest.raises(MissingExtraError, match=r"physkit\[cluster\]"):
        submit(lorenz(), tmp_path, pk.LocalWorkers())


def test_status_and_collect_read_each_chunk_once(tmp_path):
    """A thousand chunks then take less than two seconds of a processor."""
    program = """
import sys, h5py, physkit.ensemble as e
opened = []
sys.addaudithook(lambda event, args: opened.append(args) if event == "open" else None)
make = h5py.File.__init__
h5py.File.__init__ = lambda file, *args, **options: opened.append(args) or make(file, *args, **options)
e.status(sys.argv[1])  # what is imported on the way is not counted
for folder in sys.argv[1:]:
    for read in (e.status, e.collect):
        opened.clear()
        assert read(folder).complete
        print(len(opened))
"""
    folders = {chunks: str(tmp_path / f"{chunks}") for chunks in (10, 30)}
    for chunks, to in folders.items():
        assert len(run_worker(lorenz(chunks), to, chunk_size=1, progress=False).computed) == chunks
    command = [sys.executable, "-c", program, *folders.values()]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    of_ten, of_thirty = np.array(said.stdout.split(), int).reshape(2, 2)
    by_status, by_collect = (of_thirty - of_ten) / 20
    assert by_status <= 1
    assert 1 <= by_collect <= 3  # is it a file, its bytes, and the HDF5 file that they are


@pytest.mark.slow
def test_sweep_waits_for_local_workers(tmp_path):
    _require_submitit()
    in_this_process = pk.sweep(lorenz(), chunk_size=2, progress=False)
    found = pk.sweep(lorenz(), to=tmp_path, chunk_size=2, engine=pk.LocalWorkers(2), progress=False)
    assert found.complete
    assert (
        np.asarray(found["position"]).tobytes() == np.asarray(in_this_process["position"]).tobytes()
    )
    assert found["position"].dtype == jax.numpy.zeros(()).dtype


@pytest.mark.slow
def test_local_workers_killed_at_random_moments_lose_nothing(tmp_path):
    """Twelve times; in every fourth both are, with the process that started them."""
    from tests.ensemble.kill_campaign import CHUNKS, campaign

    kills = campaign(tmp_path, 12, seed=1)
    assert all(kill.equal and kill.in_the_end == CHUNKS for kill in kills), kills
    alone = [kill for kill in kills if kill.victim == "one of two"]
    assert all(kill.by_the_other == CHUNKS for kill in alone), alone
    assert sum(kill.held_claim for kill in kills) >= 3, "too few were killed at work"
