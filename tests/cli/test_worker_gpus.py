"""Workers of a sweep on one machine have GPUs of their own, and results are not written over."""

import argparse
import subprocess
import types
from unittest import mock

import h5py  # noqa: F401  starts a process when it is imported
import pytest

from physkit.cli.common._report import Report
from physkit.cli.sweep import _local_workers
from physkit.cli.sweep._local_workers import visible_gpus, worker_environment


@pytest.mark.parametrize(
    ("workers", "gpus", "devices"),
    [
        (2, ["0", "1"], ["0", "1"]),
        (3, ["4", "5", "6", "7"], ["4,7", "5", "6"]),
        (4, ["GPU-a", "GPU-b"], ["GPU-a", "GPU-b", "GPU-a", "GPU-b"]),
    ],
)
def test_gpus_go_round(monkeypatch, workers, gpus, devices):
    monkeypatch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION", raising=False)
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    found = [worker_environment(k, workers, gpus) for k in range(workers)]
    assert [one["CUDA_VISIBLE_DEVICES"] for one in found] == devices
    shared = workers > len(gpus)
    assert [one.get("XLA_PYTHON_CLIENT_MEM_FRACTION") for one in found] == [
        "0.450" if shared else None
    ] * workers


def test_settings_of_the_user_stay(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 3")
    assert visible_gpus() == ["2", "3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert worker_environment(0, 2, visible_gpus()) == {}
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    assert worker_environment(1, 2, ["0"]) == {"CUDA_VISIBLE_DEVICES": "0"}


def test_the_driver_is_asked(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible_gpus() == []
    script = tmp_path / "nvidia-smi"
    script.write_text("#!/bin/sh\necho 0\necho 1\n")
    script.chmod(0o755)
    assert visible_gpus() == ["0", "1"]


def test_workers_are_started_with_their_gpus(monkeypatch):
    started = []

    class Process(subprocess.Popen):
        returncode = 0

        def __init__(self, command, env, **_):
            started.append(env["CUDA_VISIBLE_DEVICES"])

        def poll(self):
            return 0

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,6")
    monkeypatch.setattr(_local_workers.subprocess, "Popen", Process)
    args = argparse.Namespace(
        case="case.py",
        to="nowhere",
        values=[],
        double=False,
        chunk_size=None,
        workers=2,
        worker="0/1",
    )
    stop, report = types.SimpleNamespace(reason=None), mock.Mock(spec=Report, shows_progress=False)
    ended = _local_workers._run_round(args, None, stop, report)
    assert [worker.exit_code for worker in ended] == [0, 0]
    assert started == ["5", "6"]
