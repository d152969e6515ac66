"""What `submit` asks of submitit: a module in its place notes it. Needs neither submitit nor Slurm."""

import sys
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import SweepError
from physkit.ensemble import execute_with_workers, submit


class SbatchRefused(Exception):  # noqa: N818  submitit's is called FailedJobError
    pass


class FakeJob(SimpleNamespace):
    def done(self):
        return False


class FakeExecutor:
    """Notes its parameters and tasks; the jobs of an array are 12_0, 12_1, …"""

    made: list["FakeExecutor"]
    refuses = False

    def __init__(self, folder):
        self.folder, self.parameters, self.tasks = folder, {}, []
        self.made.append(self)

    def update_parameters(self, **parameters):
        self.parameters = parameters

    def submit_array(self, tasks):
        if self.refuses:
            raise SbatchRefused("invalid partition")
        self.tasks = list(tasks)
        return [SimpleNamespace(job_id=f"12_{k}") for k in range(len(self.tasks))]

    def submit(self, task):
        self.tasks = [task]
        return FakeJob(job_id=str(100 + len(self.made)))


@pytest.fixture
def executors(monkeypatch):
    """The executors that `submit` makes, while a fake module is in submitit's place."""
    made = []
    executor = type("Executor", (FakeExecutor,), {"made": made})
    errors = SimpleNamespace(FailedJobError=SbatchRefused, FailedSubmissionError=SbatchRefused)
    submitit = SimpleNamespace(
        SlurmExecutor=executor, LocalExecutor=executor, core=SimpleNamespace(utils=errors)
    )
    monkeypatch.setitem(sys.modules, "submitit", submitit)
    return made


def lorenz():
    over = pk.SweepAxis(lambda model: model[1][0], np.arange(6.0), name="x")
    return pk.Sweep(pk.systems.lorenz(), 20, over=over)


@pytest.mark.parametrize(("max_running", "at_a_time"), [(3, 3), (None, 8)])
def test_max_running_limits_the_elements_that_run_at_a_time(
    executors, tmp_path, max_running, at_a_time
):
    submit(lorenz(), tmp_path / "out", pk.SlurmArray(elements=8, max_running=max_running))
    assert executors[0].parameters["array_parallelism"] == at_a_time
    assert len(executors[0].tasks) == 8


def test_options_of_the_array_reach_submitit(executors, tmp_path):
    engine = pk.SlurmArray(
        elements=2, minutes=30, partition="gpu", gpus=1, memory="16G", warning=60,
        setup=("module load python",), options={"exclude": "node7"},
    )  # fmt: skip
    workers = submit(lorenz(), tmp_path / "out", engine, chunk_size=3)
    (executor,) = executors
    double = int(jnp.zeros(()).dtype == jnp.float64)
    assert executor.folder == tmp_path / "out" / "log"
    assert executor.parameters == {
        "job_name": "sweep-out",
        "time": 30,
        "array_parallelism": 2,
        "setup": [f"export JAX_ENABLE_X64={double}", "module load python"],
        "stderr_to_stdout": True,
        "wckey": None,
        "additional_parameters": {
            "time": "30",
            "partition": "gpu",
            "gres": "gpu:1",
            "mem": "16G",
            "signal": "USR1@60",
            "open-mode": "append",
            "exclude": "node7",
            "requeue": True,
        },
    }
    assert [task.worker for task in executor.tasks] == [(0, 2), (1, 2)]
    assert all(task.chunk_size == 3 and task.requeue for task in executor.tasks)
    assert workers.jobs == ("12_0", "12_1")
    assert (tmp_path / "out" / "log" / "jobs.txt").read_text() == "12\n"


def test_each_local_worker_gets_gpus_of_its_own(executors, tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    workers = submit(lorenz(), tmp_path / "out", pk.LocalWorkers(workers=2, gpus=2))
    assert [e.parameters["visible_gpus"] for e in executors] == [(0, 1), (2, 3)]
    assert [e.parameters["gpus_per_node"] for e in executors] == [2, 2]
    assert [e.tasks[0].worker for e in executors] == [(0, 2), (1, 2)]
    assert not any(e.tasks[0].requeue for e in executors)
    assert len(set(workers.jobs)) == 2


def test_local_workers_get_the_gpus_that_this_process_may_use(executors, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 5,7")
    submit(lorenz(), tmp_path / "out", pk.LocalWorkers(workers=3, gpus=1))
    assert [e.parameters["visible_gpus"] for e in executors] == [(2,), (5,), (7,)]
    submit(lorenz(), tmp_path / "out", pk.LocalWorkers(workers=4))
    assert [e.parameters["visible_gpus"] for e in executors[3:]] == [()] * 4
    for wrong in ("2,5,7", "", "GPU-1f,GPU-2e,GPU-3d,GPU-4c"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", wrong)
        with pytest.raises(pk.errors.ParameterError, match="needs the numbers of 4 GPUs"):
            submit(lorenz(), tmp_path / "b", pk.LocalWorkers(workers=2, gpus=2))
    assert not (tmp_path / "b").exists()


def test_local_workers_that_fail_at_once_are_started_once(executors, tmp_path, monkeypatch):
    monkeypatch.setattr(FakeJob, "done", lambda self: True)
    engine = pk.LocalWorkers(workers=2)
    with pytest.raises(SweepError, match="0 of all chunks are finished, and no worker is left"):
        execute_with_workers(engine, lorenz(), tmp_path / "out", progress=False)
    assert len(executors) == 2


def test_a_refusal_by_sbatch_is_a_sweep_error(executors, tmp_path, monkeypatch):
    monkeypatch.setattr(FakeExecutor, "refuses", True)
    with pytest.raises(SweepError, match="sbatch refused the job: invalid partition"):
        submit(lorenz(), tmp_path / "out", pk.SlurmArray())
