"""A domain over the devices of several processes: the same numbers, joined files, failure and restart."""

import json
import re
import shutil
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from physkit.cli import main
from physkit.core import DamagedFileError, FileError, MismatchError
from physkit.simulate import run
from physkit.storage import export, load_checkpoint, load_component, open as open_file
from tests.parallel.launch import launch, wait_for_all
from tests.simulate.diffusion_over_processes import case
from tests.simulate.gradient_over_processes import value_and_gradient

SCRIPT = Path(__file__).parent / "diffusion_over_processes.py"
WAITING = Path(__file__).parent / "waiting_over_processes.py"


def run_script(folder, devices, steps, *, processes=2, each=1, **environment):
    """The script's last state and frames; all processes must exit with status 0."""
    arguments = (folder, "x".join(map(str, devices)), steps)
    started = launch(SCRIPT, *arguments, processes=processes, devices=each, **environment)
    for status, output in wait_for_all(started):
        assert status == 0, output
    return np.load(folder / "last.npz")


@pytest.fixture(scope="module")
def single_process(tmp_path_factory):
    """Folder and results of 60 steps by one process with two devices."""
    folder = tmp_path_factory.mktemp("single-process") / "r"
    return folder, run_script(folder, (2, 1), 60, processes=1, each=2)


def check_same_recordings(joined, single, bits):
    assert set(joined) == set(single)
    for name, whole in single.items():
        assert joined[name].dims == whole.dims
        assert joined[name].dtype == whole.dtype
        assert joined[name].shape == whole.shape
        assert np.array_equal(joined[name].step, whole.step)
        assert np.array_equal(joined[name].time, whole.time)
        assert np.allclose(joined[name], whole, rtol=0, atol=0 if bits else 1e-6)
        every = joined[name][:]
        inside = [(slice(1, 3), 0), (..., 2)] if whole.ndim > 1 else []
        for index in [3, -1, slice(2, 9, 3), np.array([1, 4]), slice(5, 1, -1), *inside]:
            assert np.array_equal(joined[name][index], every[index]), (name, index)


@pytest.mark.slow
def test_files_and_results_of_two_processes_equal_those_of_one(tmp_path, monkeypatch):
    """Against the same devices emulated in this process."""
    two = run_script(tmp_path / "two", (2, 1), 20)
    monkeypatch.setenv("PHYSKIT_SPMD", "vmap")
    one = run(*case(), 20, devices=(2, 1), to=tmp_path / "one", progress=False)
    assert np.allclose(one.state.data, two["last"], rtol=0, atol=1e-13)
    assert np.allclose(one["total"], two["total"], rtol=0, atol=1e-13)
    joined, single = open_file(tmp_path / "two"), open_file(tmp_path / "one")
    check_same_recordings(joined, single, bits=False)
    with pytest.raises(IndexError):
        joined["u"][99]
    fields = [load_component(found["u"], 2) for found in (joined, single)]
    assert np.allclose(fields[0].data, fields[1].data, rtol=0, atol=1e-6)
    assert fields[0].grid.shape == fields[1].grid.shape
    assert np.allclose(fields[0].grid.space.lengths, fields[1].grid.space.lengths)
    assert fields[0].location == fields[1].location
    assert export(joined, tmp_path / "u.vti").stat().st_size > 1000
    with pytest.raises(FileError, match=r"blocks of one process of several: open the folder"):
        open_file(tmp_path / "two" / "shard-0001.h5")
    assert main(["info", str(tmp_path / "two")]) == 0
    for part in (tmp_path / "two" / "checkpoints").glob("part-*0020-*.h5"):
        part.unlink()
    assert main(["info", str(tmp_path / "two")]) == 1


@pytest.mark.slow
def test_two_processes_have_the_bits_of_one(single_process, tmp_path):
    folder, one = single_process
    two = run_script(tmp_path / "r", (2, 1), 60)
    for name in one.files:
        assert np.array_equal(one[name], two[name]), name
    check_same_recordings(open_file(tmp_path / "r"), open_file(folder), bits=True)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pmap", "shard_map"])
def test_four_devices_of_two_processes(backend, single_process, tmp_path):
    one = single_process[1]
    for devices in ((2, 2), (1, 4)):
        folder = tmp_path / f"{devices[0]}"
        two = run_script(folder, devices, 60, each=2, PHYSKIT_SPMD=backend)
        for name in one.files:
            assert np.allclose(one[name], two[name], rtol=0, atol=1e-13 if name != "u" else 1e-6)
        in_memory = run_script(
            tmp_path / f"{devices[0]}-" / "memory", devices, 60, each=2, PHYSKIT_SPMD=backend
        )
        assert np.array_equal(in_memory["last"], two["last"])
        assert np.allclose(in_memory["u"], two["u"], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_killed_process_ends_the_others_and_the_run_resumes(tmp_path):
    folder, steps = tmp_path / "r", 40_000
    started = launch(SCRIPT, folder, "2x1", steps, "slow")
    until = time.monotonic() + 90
    while not len(list((folder / "checkpoints").glob("checkpoint-*.h5"))) > 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    started[1].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    started[1].wait()
    (status, output), _ = wait_for_all(started, 30)
    assert time.monotonic() - killed < 15
    assert status == 75, output
    assert "process 1" in output
    assert "is gone: it was killed" in output
    newest = max((folder / "checkpoints").glob("checkpoint-*.h5")).name
    steps = int(newest[11:26]) + 200
    started = launch(SCRIPT, folder, "2x1", steps, "slow")
    for status, output in wait_for_all(started):
        assert status == 0, output
        assert f"resumed from {steps - 200}, at step {steps}" in output
    whole = run_script(tmp_path / "whole", (2, 1), steps)
    again = np.load(folder / "last.npz")
    for name in whole.files:
        assert np.array_equal(whole[name], again[name]), name


@pytest.mark.slow
def test_a_signal_to_one_process_stops_all(tmp_path):
    folder = tmp_path / "r"
    started = launch(SCRIPT, folder, "2x1", 10**6, "slow")
    until = time.monotonic() + 90
    while not list((folder / "checkpoints").glob("checkpoint-*.h5")):
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(1)
    started[1].send_signal(signal.SIGTERM)
    for status, output in wait_for_all(started, 60):
        assert status == 0, output
        assert "resumed from None, at step" in output
    found = open_file(folder)
    assert found["u"].step[-1] == found["total"].step[-1] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("difference", "message"),
    [("steps", "steps is 10 on process 0"), ("state", "the state.data is float64[16, 16]")],
)
def test_processes_that_begin_differently_are_told_so(difference, message):
    for status, output in wait_for_all(launch(WAITING, difference), 60):
        assert status == 1, output
        assert "do not run the same" in output
        assert message in output


@pytest.mark.slow
def test_a_process_that_waits_for_another_can_be_ended():
    started = launch(WAITING, "absence")
    while "running" not in started[0].stdout.readline():
        pass
    time.sleep(2)
    for _ in range(2):
        assert started[0].poll() is None  # one signal asks for a stop at the next chunk
        started[0].send_signal(signal.SIGTERM)
        time.sleep(1.5)
    for status, output in wait_for_all(started, 20):
        assert status == 75, output
    # The other one is told, and need not wait for its turn.


@pytest.mark.slow
def test_mismatched_files_of_processes_are_refused(single_process, tmp_path):
    whole = tmp_path / "r"
    run_script(whole, (2, 1), 60)

    def copy(name):
        shutil.copytree(whole, tmp_path / name)
        return tmp_path / name

    lacking = copy("lacking")
    (lacking / "shard-0001.h5").unlink()
    with pytest.raises(FileError, match=r"2 processes, of whose files shard-0001.h5 is not there"):
        open_file(lacking)
    foreign = copy("foreign")
    run_script(tmp_path / "other", (2, 1), 60)
    shutil.copy(tmp_path / "other" / "shard-0001.h5", foreign)
    with pytest.raises(DamagedFileError, match="of another run"):
        open_file(foreign)
    lost = copy("lost")
    (lost / "run.json").unlink()
    with pytest.raises(DamagedFileError, match="no index"):
        open_file(lost)
    for number, change in enumerate(
        [
            lambda s: s.update(files=["../shard-0000.h5", "shard-0001.h5"]),
            lambda s: s.update(rows=[[0], [0]]),
            lambda s: s["names"]["u"].update(shape=[10**9, 16]),
            lambda s: s["names"]["u"].update(way=[[7, 0, False]]),
            lambda s: s["names"]["u"].update(points=[[0.0, float("nan")]] * 2),
            lambda s: s["names"]["u"].update(points="here"),
            lambda s: s.update(devices="all"),
        ]
    ):
        bad = copy(f"bad{number}")
        output = json.loads((bad / "run.json").read_text())
        change(output["shards"])
        (bad / "run.json").write_text(json.dumps(output))
        with pytest.raises(DamagedFileError):
            open_file(bad)
    last = max((whole / "checkpoints").glob("checkpoint-*.h5"))
    part = max((whole / "checkpoints").glob("part-*.h5"))
    with pytest.raises(DamagedFileError, match="a part of a checkpoint"):
        load_checkpoint(part, {})
    part.unlink()
    with pytest.raises((DamagedFileError, MismatchError)):
        load_checkpoint(last, {})


@pytest.mark.slow
def test_a_damaged_part_falls_back_to_the_checkpoint_before(single_process, tmp_path):
    folder = tmp_path / "r"
    run_script(folder, (2, 1), 60)
    part = max((folder / "checkpoints").glob("part-*.h5"))
    data = bytearray(part.read_bytes())
    data[-100] ^= 1
    part.write_bytes(data)
    started = launch(SCRIPT, folder, "2x1", 60)
    for status, output in wait_for_all(started):
        assert status == 0, output
        assert "resumed from 50" in output
    assert np.array_equal(np.load(folder / "last.npz")["last"], single_process[1]["last"])


@pytest.mark.slow
def test_derivatives_go_through_shard_map():
    script = SCRIPT.with_name("gradient_over_processes.py")
    wanted = [float(x) for x in value_and_gradient(None)]
    for status, output in wait_for_all(launch(script, devices=2, PHYSKIT_SPMD="shard_map")):
        assert status == 0, output
        found = re.search(r"value (\S+) (\S+)", output).groups()
        assert np.allclose([float(x) for x in found], wanted, rtol=1e-12, atol=0)
    for status, output in wait_for_all(launch(script, devices=2, PHYSKIT_SPMD="pmap")):
        assert status == 1
        assert "DeviceError" in output
        assert "take the backend shard_map (PHYSKIT_SPMD=shard_map)" in output


@pytest.mark.slow
def test_frames_continue_in_another_folder_with_other_processes(single_process, tmp_path):
    run_script(tmp_path / "r", (2, 1), 30)
    status, output = wait_for_all(
        launch(SCRIPT, tmp_path / "r", "2x1", 60, processes=1, devices=2)
    )[0]
    assert status == 1
    assert "Frames can go on in another folder" in output
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        more = run(
            *case(),
            60,
            to=tmp_path / "more",
            checkpoint=tmp_path / "r" / "checkpoints",
            resume=True,
            progress=False,
        )
    wanted = "was written over 2 devices, the run goes on over one device"
    assert any(wanted in str(warning.message) for warning in caught)
    assert more.resumed_from == 30
    assert np.allclose(more.state.data, single_process[1]["last"], rtol=0, atol=1e-13)
    assert open_file(tmp_path / "more")["u"].step.tolist() == list(range(35, 65, 5))


@pytest.mark.slow
def test_devices_of_some_processes_only(tmp_path):
    for status, output in wait_for_all(launch(SCRIPT, tmp_path / "r", "2x1", 10, devices=2)):
        assert status == 1
        assert "belong to 1 of 2 processes: ask for all 4" in output
    for status, output in wait_for_all(launch(SCRIPT, tmp_path / "r", "8x1", 10, devices=2)):
        assert status == 1
        assert "asks for 8 devices; in all 2 processes there are 4" in output
