"""Files that are planted, forged, held by others or of other kinds: errors of ours, at once."""

import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import struct
import sys
import zlib

import h5py
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import DamagedFileError, FileError
from physkit.storage import (
    Checkpoints,
    Column,
    describe_writer,
    export,
    load_checkpoint,
    open as open_file,
    read_checkpoint_table,
    read_table,
    save_checkpoint,
    to_path,
    write_atomically,
    write_table,
)
from physkit.storage._hdf5_transaction import journal_path, recover
from physkit.storage.checkpoint._checkpoint_bytes import open_checkpoint, pack_checkpoint
from physkit.storage.recording._frame_sharding import parse_sharding

from .recordings import ONE, add, numbers, output, simple

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs pipes and links")


@pytest.fixture(autouse=True)
def no_hang():
    """Whatever hangs ends in an error."""
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# --- held by others -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [20, 20_000])
def test_files_that_another_library_of_the_process_holds_open(tmp_path, size):
    x = numbers(6, size, 3)
    state = pk.Particles(jnp.zeros((size, 3)))
    out = output(tmp_path, ONE, state, x=x[:3], e=numbers(3))
    with (
        h5py.File(tmp_path / "trajectory.h5md", "r") as held,
        h5py.File(tmp_path / "series.h5", "r"),
    ):
        assert len(held["particles/trajectory/position/value"]) == 3
        add(out, ONE, {"x": x[3:], "e": numbers(3)}, first=6)
        np.testing.assert_array_equal(open_file(tmp_path)["x"], x.astype("f4"))
        add(out, ONE, {"e": numbers(3)}, first=12)
    assert len(open_file(tmp_path)["e"]) == 9


@pytest.mark.parametrize("same", [True, False])
def test_threads_save_checkpoints_at_once(tmp_path, same):
    def save(k):
        path = tmp_path / ("a.h5" if same else f"{k}.h5")
        save_checkpoint(path, {"x": np.arange(30.0) + (0 if same else k)}, step=k)
        return load_checkpoint(path, {"x": np.zeros(30)}).tree["x"][0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(save, range(40))) == [0.0 if same else float(k) for k in range(40)]


def test_permission_denied_is_not_damage(tmp_path, monkeypatch):
    simple(tmp_path)
    save_checkpoint(tmp_path / "c.h5", {"x": np.zeros(3)})

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("physkit.storage._atomic.os.open", refuse)
    for read in (open_file, read_checkpoint_table, lambda path: read_table(path, "chunk")):
        with pytest.raises(FileError, match=r"c\.h5: permission denied") as error:
            read(tmp_path / "c.h5")
        assert not isinstance(error.value, DamagedFileError)
    with pytest.raises(FileError, match=r"\.h5: permission denied"):
        open_file(tmp_path)


# --- planted --------------------------------------------------------------------------------------


@posix_only
def test_nothing_is_written_through_a_planted_link(tmp_path):
    victim = tmp_path / "victim"
    folder = tmp_path / "run"
    folder.mkdir()
    for name in (".writing-a", ".writing-a.npz", "a", "a.npz"):
        (folder / name).symlink_to(victim)
    out = simple(folder)
    write_atomically(folder / "a", b"123")
    export(folder, folder / "a.npz")
    assert not victim.exists()
    victim.write_bytes((folder / "series.h5").read_bytes())
    before = victim.read_bytes()
    (folder / "series.h5").unlink()
    (folder / "series.h5").symlink_to(victim)
    journal_path(folder / "series.h5").write_bytes(forged_journal(len(before), len(before), b"x"))
    with pytest.raises(FileError, match="symbolic link"):
        add(out, ONE, {"e": numbers(3)}, first=6)
    with pytest.raises(FileError, match="symbolic link"):
        recover(folder / "series.h5")
    assert victim.read_bytes() == before


def plant_pipe(path):
    os.mkfifo(path)


def plant_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def plant_zeros(path):
    path.symlink_to("/dev/zero")


def plant_folder(path):
    path.mkdir()


@posix_only
@pytest.mark.parametrize("plant", [plant_pipe, plant_socket, plant_zeros, plant_folder])
@pytest.mark.parametrize("name", ["x.h5", "run.json", "crash.json", "lock", "series.h5.journal"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, plant, name, monkeypatch):
    from physkit.simulate import read_crash_record
    from physkit.storage.recording._frame_sharding import read_index

    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    if name.startswith("series"):
        simple(tmp_path)
    path = tmp_path / name
    plant(path)
    if name == "lock":
        assert describe_writer(tmp_path) is not None
        return
    readers = {
        "x.h5": [open_file, read_checkpoint_table, lambda _: open_file(tmp_path)],
        "run.json": [lambda _: read_index(tmp_path, name)],
        "crash.json": [lambda _: read_crash_record(tmp_path)],
        "series.h5.journal": [lambda _: open_file(tmp_path)],
    }[name]
    for read in readers:
        with pytest.raises(FileError, match=r"no regular file|is a folder|no recording"):
            read(path)


# --- forged ---------------------------------------------------------------------------------------


def forged_journal(old_size, size, data, offset=0, count=1, length=None):
    """A journal whose checksum is right."""
    extents = struct.pack("<QQ", offset, len(data) if length is None else length) + data
    checked = struct.pack("<QQQ", old_size, size, count) + extents
    return struct.pack("<17sI", b"physkit-journal-1", zlib.crc32(checked)) + checked


@pytest.mark.parametrize(
    "forge",
    [
        lambda n: forged_journal(n, 2**60, b"x"),
        lambda n: forged_journal(2**63, n, b"x", offset=2**62),
        lambda n: forged_journal(n, n, b"x", length=2**40),
        lambda n: forged_journal(n, n, b"x", count=2**50),
        lambda n: forged_journal(n, n, b"", count=0) + bytes(2**25 + 2 * n),
    ],
    ids=["size", "offset", "length", "count", "long"],
)
def test_forged_journals_are_refused_or_without_effect(tmp_path, forge):
    simple(tmp_path)
    path = tmp_path / "series.h5"
    size = path.stat().st_size
    journal_path(path).write_bytes(forge(size))
    for use in (open_file, recover):
        with contextlib.suppress(DamagedFileError):
            use(path)
        assert path.stat().st_size == size


def forge_series(**changes):
    def change(table):
        table["names"]["e"] |= changes

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update(names=[1, 2]),
        lambda table: table.update(names={"e": 3}),
        lambda table: table.update(format=[2]),
        lambda table: table.update(kind={}),
        lambda table: table.update(checksums=None),
        lambda table: table["checksums"].update(streams=[[[]]]),
        lambda table: table["checksums"].update(constants=7),
        lambda table: table["checksums"]["streams"][0].update(rows=0),
        lambda table: table["checksums"]["streams"][0].update(datasets=[]),
        lambda table: table["checksums"]["streams"][0].update(path="series/0000/value"),
        lambda table: table["checksums"]["streams"][0].update(counter="nowhere"),
        forge_series(shape=[2**62]),
        forge_series(shape=[-1]),
        forge_series(shape=[float("inf")]),
        forge_series(shape={"a": 1}),
        forge_series(dims=7),
        forge_series(values=[]),
        forge_series(values=7),
        forge_series(step=None),
        forge_series(counter=[]),
    ],
)
def test_forged_tables_are_refused(tmp_path, change):
    simple(tmp_path)
    path = tmp_path / "series.h5"
    with h5py.File(path, "r+") as file:
        table = json.loads(file.attrs["physkit"])
        change(table)
        file.attrs["physkit"] = np.bytes_(json.dumps(table).encode())
    with pytest.raises(DamagedFileError, match=r"series\.h5"):
        np.asarray(open_file(path)["e"])


@pytest.mark.parametrize("text", [b"[" * 100_000, b"7", b"{", b'{"kind": ' + b"9" * 9000])
def test_absurd_json_is_refused(tmp_path, text):
    simple(tmp_path)
    with h5py.File(tmp_path / "series.h5", "r+") as file:
        del file.attrs["physkit"]
        file.attrs["physkit"] = np.bytes_(text)
    with pytest.raises(DamagedFileError):
        open_file(tmp_path / "series.h5")


@pytest.mark.parametrize("attribute", [np.arange(9), np.float64(2), "three", np.int64(2**62)])
def test_absurd_counts_are_refused(tmp_path, attribute):
    simple(tmp_path)
    with h5py.File(tmp_path / "series.h5", "r+") as file:
        del file["series/0000"].attrs["frames"]
        file["series/0000"].attrs["frames"] = attribute
    with pytest.raises(DamagedFileError):
        open_file(tmp_path / "series.h5")


@pytest.mark.parametrize(
    "changes",
    [
        {"devices": [10**9, 10**9]},
        {"devices": [2**62]},
        {"rows": [[0, 10**15]]},
        {"rows": 7},
        {"names": []},
        {"names": {"u": {"way": [[0, 0, 0]], "shape": [float("inf")], "dims": ["time", "x"]}}},
    ],
)
def test_forged_indices_of_shards_are_refused(tmp_path, changes):
    row = {"way": [[0, 0, 0]], "shape": [4], "dims": ["time", "x"]}
    index = {"devices": [2], "rows": [[0, 1]], "files": ["shard-0000.h5"], "names": {"u": row}}
    parse_sharding(index, tmp_path / "run.json")
    with pytest.raises(DamagedFileError, match="its table of shards"):
        parse_sharding(index | changes, tmp_path / "run.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.update(shape=[10**15, 3]),
        lambda row: row.update(shape=[-3]),
        lambda row: row.update(dtype="V1000000000"),
        lambda row: row.update(dtype="O"),
        lambda row: row.update(crc32=[[[]]]),
        lambda row: row.update(block=0),
        lambda row: row.pop("crc32"),
    ],
)
def test_forged_tables_of_sweeps_are_refused(tmp_path, change):
    path = tmp_path / "a.h5"
    write_table(path, "chunk", {"x": Column(numbers(5, 3), ("a", "b"))}, {})
    with h5py.File(path, "r+") as file:
        table = json.loads(file.attrs["physkit"])
        change(table["names"]["x"])
        file.attrs["physkit"] = np.bytes_(json.dumps(table).encode())
    with pytest.raises(DamagedFileError):
        read_table(path, "chunk")["x"]


@pytest.mark.parametrize(
    "changes",
    [
        {"devices": [2**24]},
        {"devices": [10**30]},
        {"parts": ["../../etc/passwd"]},
        {"together": "a", "parts": []},
        {"leaves": {"['x']": {"name": "000000", "shape": [10**15], "rows": [0]}}},
        {"numbers": {"['x']": [[]]}},
        {"step": 10**400},
    ],
)
def test_forged_checkpoints_are_refused(tmp_path, changes):
    path = tmp_path / "checkpoint-000000000000003.h5"
    save_checkpoint(path, {"x": np.arange(3.0), "n": 2}, step=3)
    with open_checkpoint(path) as (table, _, _path):
        pass
    header, image = pack_checkpoint({"000000": np.arange(3.0)}, table | changes)
    path.write_bytes(header + image)
    template = {"x": np.zeros(3), "n": 0}
    try:
        found = load_checkpoint(path, template, make_template=lambda devices, shapes: template)
        assert found.tree["x"].tolist() == [0, 1, 2]  # the change did not concern what was read
    except FileError:
        pass


def test_terminal_escapes_from_files_are_not_printed(tmp_path, capsys):
    from physkit.cli import main

    evil = "\x1b[2Je\x07\u202e\nhealth: sound"
    observers = (pk.Every(1, **{evil: lambda now: now.t}),)
    output(tmp_path / "a", observers, None, **{evil: numbers(3)})
    path = tmp_path / "a" / "series.h5"
    shown = repr(open_file(path))
    assert "\x1b" not in shown
    assert shown.count("\n") == 1
    assert main(["info", str(path)]) == 0
    printed = capsys.readouterr()
    assert not set("\x1b\x07\u202e") & set(printed.out + printed.err)
    assert "\nhealth: sound" not in printed.out
    assert "\x1b" not in str(DamagedFileError(f"{path}: {evil}"))


# --- of other kinds -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("a.npz", "np.load"), ("a.csv", "pandas"), ("a.xyz", r"ase\.io\.read"), ("a.xtc", "MDAnalysis"),
        ("a.vti", "ParaView"), ("a.nc", "xarray"), ("a.foo", "the program that wrote it"),
        ("checkpoint-1.h5", r"resume=True.*pk\.load_checkpoint"),
    ],
)  # fmt: skip
def test_files_of_other_formats_are_named(tmp_path, name, remedy):
    path = tmp_path / name
    if name.startswith("checkpoint"):
        save_checkpoint(path, {"x": np.zeros(3)})
    else:
        path.write_bytes(b"something")
    with pytest.raises(FileError, match=remedy) as error:
        pk.open(path)
    assert "backup" not in str(error.value)


def test_a_part_of_a_sweep_names_its_folder(tmp_path):
    write_table(tmp_path / "000000.h5", "chunk", {"x": Column(numbers(5), ("a",))}, {})
    with pytest.raises(FileError, match="part of a sweep: open its folder"):
        pk.open(tmp_path / "000000.h5")


@pytest.mark.parametrize("path", ["", " ", "a\0b"])
def test_paths_without_a_name_are_refused(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    tree = {"x": np.zeros(3)}
    uses = [
        to_path, open_file, pk.open, read_checkpoint_table, Checkpoints,
        lambda path: save_checkpoint(path, tree), lambda path: load_checkpoint(path, tree),
        lambda path: export(simple_run, path),
    ]  # fmt: skip
    simple_run = tmp_path / "run"
    simple(simple_run)
    for use in uses:
        with pytest.raises(FileError, match="needed"):
            use(path)
    with pytest.raises(FileError, match="ends in a name"):
        save_checkpoint(".", tree)
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
