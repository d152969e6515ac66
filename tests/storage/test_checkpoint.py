"""Checkpoints: exact, whole or not at all, and read without trust."""

import dataclasses
import os
import warnings
import zlib
from pathlib import Path

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    DamagedFileError,
    DiskFullError,
    FileError,
    FileInUseError,
    MismatchError,
    find_growables,
    is_random_key,
)
from physkit.observe import Every
from physkit.storage import (
    Checkpoints,
    FolderLock,
    _atomic,
    load_checkpoint,
    save_checkpoint,
)
from physkit.storage.checkpoint._checkpoint_bytes import HEADER_BYTES
from tests.simulate.problems import Table, particles, springs


def all_kinds_of_leaves():
    """A tree of all that a carry may hold."""
    return {
        "particles": particles(),
        "keys": (jax.random.key(3), jax.random.split(jax.random.key(1, impl="rbg"), 2)),
        "complex": jnp.array([1 + 2j, jnp.nan]),
        "flags": [jnp.array([True, False]), None, jnp.int32(-3)],
        "half": jnp.arange(4, dtype=jnp.bfloat16),
        "empty": jnp.zeros((0, 3)),
        "host": np.arange(3, dtype=np.uint8),
        "numbers": (True, 7, 2.5, 1 - 1j),
        "function": jnp.sin,
    }


def same_bits(a, b):
    bits = lambda x: np.asarray(jax.random.key_data(x) if is_random_key(x) else x)
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return jax.tree.structure(a) == jax.tree.structure(b) and all(
        x is y or (bits(x).dtype == bits(y).dtype and bits(x).tobytes() == bits(y).tobytes())
        for x, y in leaves
    )


def zeros_of(tree):
    """The same structure with other numbers."""
    zero = lambda x: (
        (np if isinstance(x, np.ndarray) else jnp).zeros_like(x)
        if isinstance(x, jax.Array | np.ndarray) and not is_random_key(x)
        else x
    )
    return jax.tree.map(zero, tree)


def test_all_kinds_of_leaves_are_restored_bit_for_bit(tmp_path):
    tree = all_kinds_of_leaves()
    save_checkpoint(tmp_path / "a.h5", tree, step=2**40, begin=3, outputs={"x": 1})
    found = load_checkpoint(tmp_path / "a.h5", zeros_of(tree))
    assert same_bits(found.tree, tree)
    assert not same_bits(zeros_of(tree), tree)
    assert (found.step, found.begin, found.outputs) == (2**40, 3, {"x": 1})
    assert isinstance(found.tree["host"], np.ndarray)
    assert found.tree["numbers"] == tree["numbers"]


def test_h5py_reads_the_leaves(tmp_path):
    save_checkpoint(tmp_path / "a.h5", {"x": jnp.arange(3.0)})
    with h5py.File(tmp_path / "a.h5", "r") as file:
        assert file["leaves/000000"][:].tolist() == [0, 1, 2]
    assert (tmp_path / "a.h5").read_bytes().startswith(b"physkit-checkpoint 1\nlength=")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {**t, "empty": jnp.zeros((1, 3))}, r"\['empty'\]: float64\[0, 3\] in the file"),
        (
            lambda t: {**t, "complex": jnp.zeros(2)},
            r"complex128\[2\] in the file, float64\[2\] here",
        ),
        (lambda t: {k: v for k, v in t.items() if k != "half"}, r"\['half'\]: in the file"),
        (lambda t: {**t, "more": jnp.ones(2)}, r"\['more'\]: not in the file"),
        (lambda t: {**t, "keys": (t["keys"][0], t["keys"][0])}, "rbg"),
        (lambda t: {**t, "function": jnp.cos}, "sin>> in the file, .*cos"),
        (lambda t: {**t, "particles": particles(dtype=jnp.float32)}, "JAX_ENABLE_X64"),
        (lambda t: {**t, "flags": tuple(t["flags"])}, "list of 3 in the file, tuple of 3 here"),
        (lambda t: {**t, "numbers": (1, 7, 2.5, 1j)}, "bool in the file, int here"),
    ],
)
def test_another_structure_is_refused_and_differences_are_named(tmp_path, change, message):
    save_checkpoint(tmp_path / "a.h5", all_kinds_of_leaves())
    with pytest.raises(MismatchError, match=message):
        load_checkpoint(tmp_path / "a.h5", change(all_kinds_of_leaves()))


def test_static_fields_are_compared(tmp_path):
    save_checkpoint(tmp_path / "b.h5", Every(2, x=lambda now: now.t))
    with pytest.raises(MismatchError, match=r"interval: 2 in the file, 4 here"):
        load_checkpoint(tmp_path / "b.h5", Every(4, x=lambda now: now.t))


def test_changes_of_the_simulation_are_reported(tmp_path):
    save_checkpoint(tmp_path / "a.h5", {"x": jnp.ones(2)}, sim=springs())
    load = lambda sim: load_checkpoint(tmp_path / "a.h5", {"x": jnp.ones(2)}, sim=sim)
    assert load(springs()).simulation_changes == ()
    changed = load(dataclasses.replace(springs(), dt=jnp.asarray(0.5))).simulation_changes
    assert len(changed) == 1
    assert changed[0].startswith(".dt:")


def test_capacity_comes_from_the_file(tmp_path):
    full = Table(jnp.arange(20, dtype=jnp.int32), jnp.int32(20))
    small = Table(jnp.full(4, -1, jnp.int32), jnp.int32(0))
    save_checkpoint(tmp_path / "a.h5", {"list": full})
    found = load_checkpoint(tmp_path / "a.h5", {"list": small}).tree
    assert find_growables(found)[0].capacity == 20
    assert same_bits(found, {"list": full})
    other = Table(jnp.full((2, 4), -1, jnp.int32), jnp.int32(0))
    with pytest.raises(MismatchError, match="entries"):
        load_checkpoint(tmp_path / "a.h5", {"list": other})


# --- damage ---------------------------------------------------------------------------------------


def test_flipped_bits_and_truncation_are_detected(tmp_path):
    path, tree = tmp_path / "a.h5", {"x": jnp.arange(1000.0)}
    save_checkpoint(path, tree)
    intact = path.read_bytes()
    for damaged, message in (
        (intact[:-5], "cut short"),
        (intact[:700] + bytes([intact[700] ^ 4]) + intact[701:], "checksum"),
        (b"", "not a checkpoint"),
        (b"\x89HDF\r\n\x1a\n" + intact[8:], "not a checkpoint"),
        (intact.replace(b"checkpoint 1", b"checkpoint 9", 1), "upgrade physkit"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match=message):
            load_checkpoint(path, tree)
    with pytest.raises(FileError, match="is not there"):
        load_checkpoint(tmp_path / "none.h5", tree)
    with pytest.raises(FileError, match="no regular file"):
        load_checkpoint(tmp_path, tree)


def reseal(path: Path, change):
    """Alter the HDF5 part of a checkpoint and give it a header that says all is well."""
    image = path.read_bytes()[HEADER_BYTES:]
    inner = path.with_name("inner.h5")
    inner.write_bytes(image)
    with h5py.File(inner, "r+") as file:
        change(file)
    image = inner.read_bytes()
    words = f"physkit-checkpoint 1\nlength={len(image)}\ncrc32={zlib.crc32(image):08x}\n"
    path.write_bytes(words.encode().ljust(HEADER_BYTES - 1) + b"\n" + image)


def relink(link):
    def change(file):
        del file["leaves/000000"]
        file["leaves/000000"] = link(file)

    return change


def external_storage(file):
    """A dataset whose numbers are read from another file of the system."""
    del file["leaves/000000"]
    file["leaves"].create_dataset("000000", (4,), "f8", external=[("/etc/hostname", 0, 32)])


def virtual(file):
    del file["leaves/000000"]
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(4,))
    file["leaves"].create_virtual_dataset("000000", layout)


def swapped_leaves(file):
    file.move("leaves/000000", "leaves/t")
    file.move("leaves/000001", "leaves/000000")
    file.move("leaves/t", "leaves/000001")


def absurd_size(file):
    del file["leaves/000000"]
    file["leaves"].create_dataset("000000", (2**50,), "f8", chunks=(2**10,))


def compressed(file):
    del file["leaves/000000"]
    file["leaves"].create_dataset("000000", data=np.zeros(4), compression="gzip")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (relink(lambda f: h5py.ExternalLink("/etc/passwd", "/x")), "link .ExternalLink"),
        (relink(lambda f: h5py.SoftLink("/leaves/000001")), "link .SoftLink"),
        (external_storage, "other files"),
        (virtual, "other files"),
        (swapped_leaves, "checksum"),
        (absurd_size, "claims"),
        (compressed, "filters"),
        (lambda f: f["leaves"].pop("000000"), "missing"),
        (lambda f: f["table"].write_direct(np.zeros(f["table"].shape, "u1")), "table"),
    ],
    ids=["external-link", "soft-link", "external", "virtual", "swapped", "absurd", "packed", "gone",
         "table"],
)  # fmt: skip
def test_a_hostile_file_is_refused(tmp_path, change, message):
    path, tree = tmp_path / "a.h5", {"a": jnp.arange(4.0), "b": -jnp.arange(4.0)}
    save_checkpoint(path, tree)
    reseal(path, lambda file: None)
    assert same_bits(load_checkpoint(path, tree).tree, tree)
    reseal(path, change)
    with pytest.raises(DamagedFileError, match=message) as error:
        load_checkpoint(path, tree)
    assert str(path) in str(error.value)


# --- the folder -----------------------------------------------------------------------------------


def test_last_checkpoints_are_kept_and_a_damaged_one_falls_back(tmp_path):
    checkpoints = Checkpoints(tmp_path / "c", keep=2)
    for step in (5, 10, 1000):
        checkpoints.save({"x": jnp.full(3, float(step))}, step)
    assert [p.name[-7:-3] for p in checkpoints.paths()] == ["1000", "0010"]
    template = {"x": jnp.zeros(3)}
    assert checkpoints.restore(template).step == 1000
    newest = checkpoints.paths()[0]
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"cut short.*going back to the one before"):
        found = checkpoints.restore(template)
    assert found.step == 10
    assert found.tree["x"][0] == 10
    assert newest.with_suffix(".damaged").exists()
    checkpoints.paths()[0].write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DamagedFileError, match="no checkpoint is sound"):
            checkpoints.restore(template)
    assert Checkpoints(tmp_path / "empty").restore(template) is None
    with pytest.raises(FileError, match="keep"):
        Checkpoints(tmp_path, keep=0)


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    save_checkpoint(path, {"x": jnp.ones(3)})
    before = path.read_bytes()
    monkeypatch.setattr(_atomic, "RESERVED_BYTES", 2**62)
    with pytest.raises(DiskFullError, match=r"free. Nothing was changed"):
        save_checkpoint(path, {"x": jnp.zeros(3)})
    monkeypatch.setattr(_atomic, "RESERVED_BYTES", 0)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFullError, match="No space left"):
        save_checkpoint(path, {"x": jnp.zeros(3)})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


def test_second_writer_is_refused_and_stale_lock_is_taken_over(tmp_path):
    lock = FolderLock(tmp_path)
    with pytest.raises(FileInUseError, match=f"process {os.getpid()}"):
        FolderLock(tmp_path)
    lock.release()
    again = FolderLock(tmp_path)
    # The process of another lock is gone: it is taken over.
    again.path.write_text(again.path.read_text().replace('"process": ', '"process": 99999'))
    FolderLock(tmp_path).release()
    for foreign in ("", "[]", '{"host": "elsewhere", "process": 1}'):
        (tmp_path / "lock").write_text(foreign)
        with pytest.raises(FileInUseError, match="remove"):
            FolderLock(tmp_path)
