"""Several processes: rendezvous, equal programs, agreement, and the end of all with one."""

import os
import signal
import socket
import sys
import threading
import time

import jax
import pytest

from physkit.core import ClusterError
from physkit.parallel import _process_group, initialize, process_group
from physkit.parallel._control_channel import ControlChannel
from physkit.parallel._messages import receive_message, send_message
from physkit.parallel._process_group import _join_jax
from physkit.parallel._process_info import ProcessInfo
from physkit.parallel._rendezvous import connect_to_first, open_channel
from tests.parallel.launch import free_port, launch, wait_for_all

SUM_SCRIPT = """
import os, signal, sys, time
import physkit as pk
group = pk.parallel.initialize(wait=60)
assert pk.parallel.initialize() is group and pk.parallel.process_group() is group
import jax, numpy as np

def total(comm, x):
    return comm.psum(x)

sum_of_all = pk.parallel.Spmd(total, (jax.device_count(),))
numbers = 4.0 + np.arange(jax.device_count())
members = group.all_gather_object(group.process_index, "who")
print("sum", np.asarray(sum_of_all(numbers).addressable_data(0)), members, flush=True)
if len(sys.argv) > 1:
    action, target = sys.argv[1], int(sys.argv[2])
    if group.process_index == target:
        if action == "raise":
            raise ArithmeticError("on purpose")
        if action == "diverge":
            group.all_gather_object(1, "elsewhere")
            time.sleep(60)
        print("dying at", time.time(), flush=True)
        os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "end": signal.SIGTERM}[action])
    if action == "diverge":
        group.all_gather_object(1, "here")
    sum_of_all(numbers).block_until_ready()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "sum.py"
    path.write_text(SUM_SCRIPT)
    return path


@pytest.mark.slow
def test_two_processes_compute_one_sum(script):
    for status, output in wait_for_all(launch(script, devices=2)):
        assert status == 0, output
        assert "sum [22.] [0, 1]" in output, output


@pytest.mark.slow
@pytest.mark.parametrize("target", [0, 1])
def test_a_killed_process_ends_the_others(target, script):
    outcomes = wait_for_all(launch(script, "kill", target))
    end = time.time()
    assert outcomes[target][0] == -signal.SIGKILL
    status, output = outcomes[1 - target]
    # Where process 0 dies, JAX may end the others first, with an abort of its own.
    assert status in ((75,) if target else (75, 1, -signal.SIGABRT)), output
    assert end - float(outcomes[target][1].split("dying at")[1]) < 15
    if status == 75:
        assert f"process {target}" in output
        assert "is gone: it was killed" in output


@pytest.mark.slow
def test_sigterm_ends_a_process_outside_of_run(script):
    """JAX installs a handler of its own for SIGTERM."""
    (status, output), (other, _) = wait_for_all(launch(script, "end", 1))
    assert other == -signal.SIGTERM
    assert status == 75
    assert "process 1" in output


@pytest.mark.slow
def test_an_uncaught_error_ends_all_processes(script):
    (status, output), (other, other_output) = wait_for_all(launch(script, "raise", 1))
    assert other == 1
    assert "ArithmeticError: on purpose" in other_output
    assert status == 1
    assert "failed: ArithmeticError: on purpose" in output


@pytest.mark.slow
def test_processes_at_different_collectives_raise(script):
    outcomes = wait_for_all(launch(script, "diverge", 1))
    assert all(status == 1 for status, _ in outcomes)
    assert any("are out of step" in output and "'elsewhere'" in output for _, output in outcomes)


@pytest.mark.slow
def test_different_versions_are_refused(script, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text(
        "import platform; platform.python_version = lambda: '3.99.0'"
    )
    path = f"{tmp_path / 'other'}{os.pathsep}{os.getcwd()}"
    outcomes = wait_for_all(launch(script, each={1: {"PYTHONPATH": path, "JAX_ENABLE_X64": "0"}}))
    for status, output in outcomes:
        assert status == 1
        assert "ClusterError: the processes are not alike" in output
        assert "has python 3.99.0, process 0 on" in output
        assert "has precision float32" in output


@pytest.mark.slow
def test_initialize_after_jax_found_its_devices_raises(tmp_path):
    script = tmp_path / "late.py"
    script.write_text(
        "import jax; jax.devices(); import physkit as pk; pk.parallel.initialize(wait=60)"
    )
    for status, output in wait_for_all(launch(script)):
        assert status == 1
        assert "must come before anything else that uses JAX" in output


def test_jax_waits_an_hour_for_the_last_process_to_end_its_script(monkeypatch):
    """It aborts all of them then, also one that is still working."""
    given = {}
    monkeypatch.setattr(
        jax.distributed, "initialize", lambda *_, **settings: given.update(settings)
    )
    _join_jax(ProcessInfo("the script", 0, 2, "localhost", 5000), "localhost:5001", 5.0)
    assert given["shutdown_timeout_seconds"] >= 3600


def test_a_group_whose_devices_could_not_be_joined_is_none(monkeypatch, open_group_channel):
    """A script that catches the error gets it again, not half of a group."""
    jax.devices()
    monkeypatch.setattr(_process_group, "_initialized", [])
    monkeypatch.setattr(_process_group, "open_channel", open_group_channel)
    monkeypatch.setattr(_process_group, "_report_end", lambda _: None)
    for _ in range(2):
        with pytest.raises(ClusterError, match="before anything else that uses JAX"):
            initialize("localhost:5000", 2, 1, wait=1.0)
        assert process_group().process_count == 1


@pytest.fixture
def open_group_channel():
    """`open_channel` of process 1 of 2, without a process 0."""
    channels, others = [], []

    def open_one(address, introduction, wait, silence, decide):
        this, other = socket.socketpair()
        others.append(other)
        channels.append(ControlChannel(1, {0: this}, ["process 0", "process 1"], silence))
        return channels[-1], {"coordinator": "localhost:5001"}

    yield open_one
    for channel, other in zip(channels, others, strict=True):
        channel.close()
        send_message(other, {"kind": "bye"})
        other.close()
        channel._watcher.join(20)


def test_errors_of_the_rendezvous_name_what_is_missing():
    with pytest.raises(ClusterError, match=r"found no process 0 at localhost:\d+ within"):
        initialize(f"localhost:{free_port()}", 2, 1, wait=0.3)
    with pytest.raises(ClusterError, match=r"process \[1, 2\] of 3 did not come"):
        initialize(f"localhost:{free_port()}", 3, 0, wait=0.3)
    with pytest.raises(ClusterError, match="together, or neither"):
        initialize("localhost:5000", 2)
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=f"cannot listen at port {port}"):
            initialize(f"localhost:{port}", 2, 0, wait=0.3)


def test_processes_of_other_jobs_are_refused():
    """Strangers at the port, and processes of another job, do not keep the right ones from connecting."""
    address = ("localhost", free_port())
    opened = {}

    def introduction(k, job="a"):
        return {"process": k, "processes": 2, "job": job, "host": "h", "pid": k}

    def decide(introductions):
        return {"count": len(introductions)}

    def listen():
        opened[0] = open_channel(address, introduction(0), 20.0, 60.0, decide)

    thread = threading.Thread(target=listen)
    thread.start()
    refusals = {
        "another job listens where this one (b) looks for its process 0: a. Set PHYSKIT_COORD": (
            1,
            "b",
        ),
        "there is a process 0 already": (0, "a"),
        "or none of this number among 2": (2, "a"),
    }
    for refusal, (k, job) in refusals.items():
        with connect_to_first(address, introduction(k, job), 10.0) as foreign:
            foreign.settimeout(10)
            assert refusal in receive_message(foreign)["refused"]
    with socket.create_connection(address) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        opened[1] = open_channel(address, introduction(1), 20.0, 60.0, decide)
    thread.join(20)
    (channel, answer), (other_channel, other_answer) = opened[0], opened[1]
    assert answer["count"] == other_answer["count"] == 2
    gathered = []

    def gather():
        gathered.append(other_channel.all_gather_object("b", "x"))

    thread = threading.Thread(target=gather)
    thread.start()
    assert channel.all_gather_object("a", "x") == ["a", "b"]
    thread.join(20)
    assert gathered == [["a", "b"]]
    opened_sockets = [
        each
        for end in (channel, other_channel)
        for each in (*end._connections.values(), end._signal_reader, end._signal_writer)
    ]
    channel.close()
    other_channel.close()
    channel._watcher.join(20)
    other_channel._watcher.join(20)
    assert [each.fileno() for each in opened_sockets] == [-1] * 6


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGSTOP there")
@pytest.mark.slow
def test_a_silent_process_counts_as_lost(script):
    script.write_text(script.read_text().replace("wait=60", "wait=60, silence=4"))
    started = launch(script, "stop", 1)
    try:
        output, _ = started[0].communicate(timeout=60)
        assert started[0].returncode == 75, output
        assert "has been silent for 4 s" in output
    finally:
        for process in started:
            process.kill()
            process.communicate()
