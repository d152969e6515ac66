"""The control channel: what processes learn of each other, also at the end of their scripts."""

import threading
import time

import pytest

from physkit.core import ClusterError
from physkit.parallel import _control_channel
from physkit.parallel._control_channel import ControlChannel
from physkit.parallel._rendezvous import open_channel
from tests.parallel.launch import free_port, launch, wait_for_all


@pytest.fixture
def ends(monkeypatch):
    """Which processes ended, and why: `(process, reason)`; within this test they only stop watching."""
    found = []

    def note_end(channel, reason, status, reported_by=None):
        if not channel.is_ending:
            channel.is_ending = True
            found.append((channel.process_index, reason))
            message = {"kind": "lost", "reason": reason, "status": status}
            for k in channel._open - {reported_by}:
                channel._send(k, message)

    monkeypatch.setattr(ControlChannel, "_end_process", note_end)
    monkeypatch.setattr(_control_channel, "HEARTBEAT_INTERVAL", 0.1)
    return found


def open_channels(count: int, silence: float = 60.0) -> list[ControlChannel]:
    """Both ends of the channels of `count` processes, all within this one."""
    address, opened = ("localhost", free_port()), {}

    def open_one(k):
        introduction = {"process": k, "processes": count, "job": "a", "host": "h", "pid": k}
        opened[k], _ = open_channel(address, introduction, 20.0, silence, lambda _: {})

    threads = [threading.Thread(target=open_one, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return [opened[k] for k in range(count)]


def close_all(channels: list[ControlChannel]) -> None:
    for channel in channels:
        channel.close()
    for channel in channels:
        channel._watcher.join(20)
        assert not channel._watcher.is_alive()


def wait_until(is_true, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert is_true()


@pytest.mark.parametrize("last", [0, 1])
def test_a_process_may_work_long_after_the_others_have_ended_their_scripts(last, ends):
    channels = open_channels(3, silence=1.0)
    for k in {0, 1, 2} - {last}:
        channels[k].close()
    time.sleep(2.0)
    assert ends == []
    close_all([channels[last]])
    close_all(channels)
    assert ends == []


@pytest.mark.parametrize("last", [0, 1])
def test_processes_that_have_ended_their_scripts_learn_of_a_later_failure(last, ends):
    channels = open_channels(3)
    for k in {0, 1, 2} - {last}:
        channels[k].close()
    wait_until(lambda: len(channels[last]._departed) == (2 if last == 0 else 1))
    channels[last].report_failure("ValueError: late")
    wait_until(lambda: len(ends) == 2)
    assert {k for k, _ in ends} == {0, 1, 2} - {last}
    assert all("ValueError: late" in reason for _, reason in ends)
    close_all(channels)


@pytest.mark.parametrize("waiting", [0, 1])
def test_who_waits_for_a_process_that_has_ended_its_script_gets_an_error(waiting, ends):
    channels = open_channels(2)
    channels[1 - waiting].close()
    # The second time for a caller that caught the first.
    for _ in range(2):
        with pytest.raises(ClusterError, match=r"has ended its script, .* is at 'here'"):
            channels[waiting].all_gather_object(1, "here")
    close_all([channels[waiting]])
    close_all(channels)
    assert ends == []


LATE_SCRIPT = """
import sys, time
import physkit as pk
group = pk.parallel.initialize(wait=60, silence=4)
group.all_gather_object(0, "start")
if group.process_index == int(sys.argv[1]):
    time.sleep(10)
    print("written", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("last", [0, 1])
def test_one_process_writes_results_after_the_others_have_ended(last, tmp_path):
    script = tmp_path / "late.py"
    script.write_text(LATE_SCRIPT)
    outcomes = wait_for_all(launch(script, last))
    assert [status for status, _ in outcomes] == [0, 0], outcomes
    assert "written" in outcomes[last][1]


EXIT_SCRIPT = """
import sys
import physkit as pk
group = pk.parallel.initialize(wait=60)
if group.process_index == int(sys.argv[1]):
    sys.exit(3)
group.all_gather_object(0, "the next step")
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", [0, 1])
def test_sys_exit_in_one_process_ends_the_others(target, tmp_path):
    script = tmp_path / "exit.py"
    script.write_text(EXIT_SCRIPT)
    outcomes = wait_for_all(launch(script, target), timeout=60)
    status, output = outcomes[1 - target]
    assert status == 1, output
    assert f"ClusterError: process {target}" in output
    assert "has ended its script" in output
    # The one that left says whom it takes along, instead of its own status.
    status, output = outcomes[target]
    assert status == 1, output
    assert f"process {1 - target}" in output
    assert "has ended its script" in output
