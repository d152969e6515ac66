"""Tables whose small arrays are read with the file: what is refused at once, and what when it is read."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from physkit.core import DamagedFileError, MismatchError
from physkit.storage import Column, read_table, set_aside, write_table


@pytest.fixture
def path(tmp_path):
    """A table of a small array and a large one."""
    path = tmp_path / "table.h5"
    small = Column(np.arange(4), ("member",))
    flags = Column(np.array([True, False, True, True]), ("member",))
    large = Column(np.arange(12.0).reshape(4, 3), ("member", "time"))
    write_table(path, "chunk", {"number": small, "ok": flags, "frames x": large}, {"a": 1})
    return path


def is_small(name, metadata):
    del metadata
    return name in ("number", "ok")


def test_eager_and_lazy_arrays_read_the_same(path):
    table = read_table(path, "chunk", is_small)
    assert (table["number"].tolist(), table["ok"].dtype) == ([0, 1, 2, 3], bool)
    assert table.read("number", slice(1, 3)).tolist() == [1, 2]
    path.rename(path.with_name("gone"))
    assert table["ok"].tolist() == [True, False, True, True]
    path.with_name("gone").rename(path)
    np.testing.assert_array_equal(table["frames x"], np.arange(12.0).reshape(4, 3))


def corrupt(path, name, fault, tmp_path):
    """Replace an array of the file by something that it must not be."""
    with h5py.File(path, "r+") as file:
        dataset = next(
            n for n in file if n == name or file[n].attrs.get("long_name") == name.encode()
        )
        shape, dtype = file[dataset].shape, file[dataset].dtype
        # What the link leads to is what was there: nothing but the link is wrong.
        file.move(dataset, "elsewhere")
        if fault == "soft link":
            file[dataset] = h5py.SoftLink("/elsewhere")
            return
        del file["elsewhere"]
        if fault == "external link":
            file[dataset] = h5py.ExternalLink("/etc/hostname", "/x")
        elif fault == "virtual":
            layout = h5py.VirtualLayout(shape, dtype)
            layout[...] = h5py.VirtualSource("other.h5", "x", shape)
            file.create_virtual_dataset(dataset, layout)
        elif fault == "external storage":
            secret = tmp_path / "secret"
            secret.write_bytes(b"7" * 1000)
            file.create_dataset(dataset, shape, dtype, external=[(str(secret), 0, 1000)])
        elif fault == "absurd":
            file.create_dataset(dataset, (10**12,), dtype)
        elif fault == "packed":
            file.create_dataset(dataset, shape, dtype, chunks=shape, compression="gzip")
        elif fault == "another shape":
            file.create_dataset(dataset, (2,), dtype)
        elif fault == "another type":
            file.create_dataset(dataset, shape, np.float32)
        elif fault == "a group":
            file.create_group(dataset)


FAULTS = [
    *("soft link", "external link", "virtual", "external storage", "absurd", "packed"),
    *("another shape", "another type", "a group", "missing"),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_unsafe_eager_arrays_are_refused_on_opening(path, tmp_path, fault):
    corrupt(path, "number", fault, tmp_path)
    with pytest.raises(DamagedFileError):
        read_table(path, "chunk", is_small)


@pytest.mark.parametrize("fault", FAULTS)
def test_unsafe_lazy_arrays_are_refused_on_reading(path, tmp_path, fault):
    corrupt(path, "frames x", fault, tmp_path)
    table = read_table(path, "chunk", is_small)
    with pytest.raises(DamagedFileError):
        table["frames x"]


def test_files_of_another_kind_and_truncated_files_are_refused(path, tmp_path):
    with pytest.raises(MismatchError):
        read_table(path, "sweep", is_small)
    path.write_bytes(path.read_bytes()[:1500])
    with pytest.raises(DamagedFileError):
        read_table(path, "chunk", is_small)


def test_a_damaged_file_that_cannot_be_renamed_is_still_called_damaged(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    damaged = DamagedFileError(f"{path}: cut")
    set_aside(path, damaged, "never said")  # another process has renamed it

    def refuse(source, target):
        raise PermissionError(13, "Permission denied", str(source))

    path.write_bytes(b"")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(DamagedFileError, match="cut"):
        set_aside(path, damaged, "never said")
    assert path.exists()
