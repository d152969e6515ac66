"""Several processes: they find each other, are alike, agree, and die together."""

import os
import signal
import socket
import sys
import threading
import time

import pytest

from physkit.core import ClusterError
from physkit.parallel import initialize
from physkit.parallel._messages import receive_message
from physkit.parallel._rendezvous import connect_to_first, open_channel
from tests.parallel.launch import ended, free_port, launch

SUM = """
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
    how, who = sys.argv[1], int(sys.argv[2])
    if group.process_index == who:
        if how == "raise":
            raise ArithmeticError("of purpose")
        if how == "apart":
            group.all_gather_object(1, "elsewhere")
            time.sleep(60)
        print("dying at", time.time(), flush=True)
        os.kill(os.getpid(), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "end": signal.SIGTERM}[how])
    if how == "apart":
        group.all_gather_object(1, "here")
    sum_of_all(numbers).block_until_ready()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "sum.py"
    path.write_text(SUM)
    return path


def test_two_processes_share_a_sum(script):
    for status, said in ended(launch(script, devices=2)):
        assert status == 0, said
        assert "sum [22.] [0, 1]" in said, said


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1])
def test_a_killed_process_ends_the_others(who, script):
    outcomes = ended(launch(script, "kill", who))
    over = time.time()
    assert outcomes[who][0] == -signal.SIGKILL
    status, said = outcomes[1 - who]
    # Where process 0 dies, JAX may end the others first, with an abort of its own.
    assert status in ((75,) if who else (75, 1, -signal.SIGABRT)), said
    assert over - float(outcomes[who][1].split("dying at")[1]) < 15
    if status == 75:
        assert f"process {who}" in said
        assert "is gone: it was killed" in said


@pytest.mark.slow
def test_sigterm_ends_a_process_outside_of_run(script):
    """JAX installs a handler of its own for SIGTERM."""
    (status, said), (other, _) = ended(launch(script, "end", 1))
    assert other == -signal.SIGTERM
    assert status == 75
    assert "process 1" in said


@pytest.mark.slow
def test_an_uncaught_error_ends_all_processes(script):
    (status, said), (other, words) = ended(launch(script, "raise", 1))
    assert other == 1
    assert "ArithmeticError: of purpose" in words
    assert status == 1
    assert "failed: ArithmeticError: of purpose" in said


@pytest.mark.slow
def test_processes_at_different_places_raise(script):
    outcomes = ended(launch(script, "apart", 1))
    assert all(status == 1 for status, _ in outcomes)
    assert any("have come apart" in said and "'elsewhere'" in said for _, said in outcomes)


@pytest.mark.slow
def test_different_versions_are_refused(script, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text(
        "import platform; platform.python_version = lambda: '3.99.0'"
    )
    path = f"{tmp_path / 'other'}{os.pathsep}{os.getcwd()}"
    outcomes = ended(launch(script, each={1: {"PYTHONPATH": path, "JAX_ENABLE_X64": "0"}}))
    for status, said in outcomes:
        assert status == 1
        assert "ClusterError: the processes are not alike" in said
        assert "has python 3.99.0, process 0 on" in said
        assert "has precision float32" in said


@pytest.mark.slow
def test_initialize_after_jax_found_its_devices_raises(tmp_path):
    script = tmp_path / "late.py"
    script.write_text(
        "import jax; jax.devices(); import physkit as pk; pk.parallel.initialize(wait=60)"
    )
    for status, said in ended(launch(script)):
        assert status == 1
        assert "must come before anything else that uses JAX" in said


def test_missing_processes_are_named():
    with pytest.raises(ClusterError, match=r"found no process 0 at localhost:\d+ within"):
        initialize(f"localhost:{free_port()}", 2, 1, wait=0.3)
    with pytest.raises(ClusterError, match=r"process \[1, 2\] of 3 did not come"):
        initialize(f"localhost:{free_port()}", 3, 0, wait=0.3)
    with pytest.raises(ClusterError, match="together, or none"):
        initialize("localhost:5000", 2)
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=f"cannot listen at port {port}"):
            initialize(f"localhost:{port}", 2, 0, wait=0.3)


def test_processes_of_other_jobs_are_refused():
    """Noise and processes of another job at the port do not keep the right ones from meeting."""
    address = ("localhost", free_port())
    me = lambda k, job="a": {"process": k, "processes": 2, "job": job, "host": "h", "pid": k}
    found = {}

    def first():
        found[0] = open_channel(
            address, me(0), 20.0, 60.0, lambda introductions: {"count": len(introductions)}
        )

    thread = threading.Thread(target=first)
    thread.start()
    foreign = connect_to_first(address, me(1, "b"), 10.0)
    foreign.settimeout(10)
    assert "this is job a" in receive_message(foreign)["refused"]
    foreign.close()
    with socket.create_connection(address) as noise:
        noise.sendall(b"GET / HTTP/1.1\r\n\r\n")
        found[1] = open_channel(address, me(1), 20.0, 60.0, lambda introductions: {})
    thread.join(20)
    (one, word), (two, same) = found[0], found[1]
    assert word["count"] == same["count"] == 2
    told = []
    other = threading.Thread(target=lambda: told.append(two.all_gather_object("b", "x")))
    other.start()
    assert one.all_gather_object("a", "x") == ["a", "b"]
    other.join(20)
    assert told == [["a", "b"]]
    one.close()
    two.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGSTOP there")
@pytest.mark.slow
def test_a_silent_process_counts_as_lost(script):
    script.write_text(script.read_text().replace("wait=60", "wait=60, silence=4"))
    started = launch(script, "stop", 1)
    try:
        said, _ = started[0].communicate(timeout=60)
        assert started[0].returncode == 75, said
        assert "has been silent for 4 s" in said
    finally:
        for process in started:
            process.kill()
            process.communicate()
