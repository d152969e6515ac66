"""Files that grow: what refuses to be read, and what survives a full disk, a killed writer and damage."""

import resource
import signal
import sys

import h5py
import numpy as np
import pytest

from physkit.core import (
    DamagedFileError,
    DiskFullError,
    FileError,
)
from physkit.observe import Every
from physkit.storage import _atomic, open as open_file
from physkit.storage._hdf5_transaction import PatchedFile, change_hdf5, journal_path, recover

from .recordings import ONE, add, inject_faults, numbers, simple

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_recovery_applies_a_complete_journal_and_drops_a_partial_one",
    "test_full_disk_leaves_files_unchanged",
    "test_a_hostile_file_is_refused[soft-link]",
    "test_a_hostile_file_is_refused[absurd]",
    "test_a_hostile_file_is_refused[column]",
    "test_a_hostile_file_is_refused[foreign]",
    "test_killed_writers_lose_no_committed_frame[coupled-4]",
    "test_killed_writers_lose_no_committed_frame[checkpoints-4]",
    "test_damaged_files_never_give_wrong_data[20]",
)


def test_recovery_applies_a_complete_journal_and_drops_a_partial_one(tmp_path, monkeypatch):
    out = simple(tmp_path)
    path = tmp_path / "series.h5"
    old = path.read_bytes()

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("physkit.storage._hdf5_transaction._apply", killed)
        with pytest.raises(KeyboardInterrupt):
            add(out, (Every(2, e=lambda now: now.t),), {"e": numbers(4)}, first=6)
    assert journal_path(path).exists()
    assert path.read_bytes()[: len(old)] == old
    np.testing.assert_array_equal(open_file(path)["e"][3:], numbers(4))
    journal = journal_path(path).read_bytes()
    recover(path)
    assert not journal_path(path).exists()
    np.testing.assert_array_equal(open_file(path)["e"][3:], numbers(4))
    committed = path.read_bytes()
    for broken in (journal[:-1], b"", journal[:30] + b"?" + journal[31:]):
        journal_path(path).write_bytes(broken)
        np.testing.assert_array_equal(open_file(path)["e"][3:], numbers(4))
        recover(path)
        assert path.read_bytes() == committed


def test_failed_transaction_changes_nothing(tmp_path):
    simple(tmp_path)
    path = tmp_path / "series.h5"
    old = path.read_bytes()

    def broken():
        with change_hdf5(path) as file:
            file["series/0000/value"].resize(100, axis=0)
            1 / 0  # noqa: B018

    with pytest.raises(ZeroDivisionError):
        broken()
    assert path.read_bytes() == old


def test_patched_file_reads_what_was_written_to_it(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(bytes(range(256)) * 40)
    expected, rng = bytearray(path.read_bytes()), np.random.default_rng(0)
    with PatchedFile(path, writing=True) as patch:
        for _ in range(300):
            offset, n = int(rng.integers(0, 14000)), int(rng.integers(1, 6000))
            data = rng.bytes(n)
            patch.seek(offset)
            patch.write(data)
            expected.extend(bytes(max(0, offset + n - len(expected))))
            expected[offset : offset + n] = data
            out = bytearray(5000)
            patch.seek(int(rng.integers(0, 12000)))
            start = patch.tell()
            count = patch.readinto(out)
            assert out[:count] == expected[start : start + count]
        patch.truncate(12345)
        patch.commit()
    assert path.read_bytes() == expected[:12345]


def test_full_disk_leaves_files_unchanged(tmp_path, monkeypatch):
    out = simple(tmp_path)
    monkeypatch.setattr(_atomic, "RESERVED_BYTES", 2**62)
    with pytest.raises(DiskFullError, match="make room and resume"):
        add(out, ONE, {"x": numbers(5, 20, 3), "e": numbers(5)}, first=6)
    monkeypatch.setattr(_atomic, "RESERVED_BYTES", 0)
    assert len(open_file(tmp_path)["x"]) == 3
    out.commit()  # what waited is still there
    assert len(open_file(tmp_path)["x"]) == 8


@pytest.mark.skipif(sys.platform == "win32", reason="needs file-size limits")
def test_partial_write_leaves_the_old_file(tmp_path):
    out = simple(tmp_path)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = max(p.stat().st_size for p in tmp_path.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, old[1]))
    try:
        with pytest.raises(DiskFullError, match="File too large"):
            add(out, ONE, {"x": numbers(500, 20, 3), "e": numbers(500)}, first=6)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert len(open_file(tmp_path)["x"]) == 3
    out.commit()
    assert len(open_file(tmp_path)["x"]) == 503


def external_storage(file):
    del file["series/0000/value"]
    file.create_dataset("series/0000/value", (3,), "f8", external=[("/etc/hostname", 0, 24)])


def virtual(file):
    del file["series/0000/value"]
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(3,))
    file.create_virtual_dataset("series/0000/value", layout)


def relink(link):
    def change(file):
        del file["series/0000"]
        file["series/0000"] = link

    return change


def absurd_size(file):
    file["series/0000"].attrs["frames"] = 2**60
    file["series/0000/value"].resize(2**60, axis=0)


def edit_table(old, new):
    def change(file):
        file.attrs["physkit"] = np.bytes_(file.attrs["physkit"].replace(old, new))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (relink(h5py.ExternalLink("/etc/passwd", "/x")), "link .ExternalLink"),
        (relink(h5py.SoftLink("/elsewhere")), "link .SoftLink"),
        (external_storage, "other files"),
        (virtual, "other files"),
        (absurd_size, "claims"),
        (lambda f: f["series/0000"].attrs.modify("frames", np.int64(4)), "not 4 frames"),
        (lambda f: f["series/0000"].attrs.modify("frames", np.int64(-1)), "not -1 frames"),
        (edit_table(b"/value", b"/step"), "checksum"),
        (edit_table(b'"values"', b'"worth"'), "cannot be read"),
        (edit_table(b'"format": 2', b'"format": 7'), "upgrade"),
        (lambda f: f.attrs.pop("physkit"), "not written by physkit"),
    ],
    ids=["external-link", "soft-link", "external", "virtual", "absurd", "long", "negative", "column",
         "row", "version", "foreign"],
)  # fmt: skip
def test_a_hostile_file_is_refused(tmp_path, change, message):
    simple(tmp_path)
    path = tmp_path / "series.h5"
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(DamagedFileError, match=message) as error:
        np.asarray(open_file(path)["e"])
    assert str(path) in str(error.value)


def test_missing_files_are_errors(tmp_path):
    with pytest.raises(FileError, match="is not there"):
        open_file(tmp_path / "x")
    with pytest.raises(FileError, match="no recording"):
        open_file(tmp_path)
    (tmp_path / "a.h5").write_text("not HDF5")
    with pytest.raises(DamagedFileError, match="cannot be opened as HDF5"):
        open_file(tmp_path)


# Writers of both write what those of particles and of fields alone do, in one process that is killed.
@pytest.mark.parametrize("count", [4, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "writer",
    [
        "coupled",
        pytest.param("particles", marks=pytest.mark.slow),
        pytest.param("fields", marks=pytest.mark.slow),
        "checkpoints",
    ],
)
def test_killed_writers_lose_no_committed_frame(writer, count, tmp_path):
    found = inject_faults("kill", tmp_path / "r", count, writer)
    assert [found[k] for k in ("right", "kept", "saved")] == [count] * 3, found


@pytest.mark.parametrize("count", [20, pytest.param(540, marks=pytest.mark.slow)])
def test_damaged_files_never_give_wrong_data(count, tmp_path):
    found = inject_faults("mutate", tmp_path / "r", count)
    assert {k.split()[-1] for k in found} <= {"refused", "harmless"}, found
    assert found["checkpoint refused"] == count
