"""Folders of sweeps: foreign, damaged, hostile, read by others."""

import errno
import json
import os

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.ensemble import SweepFolder, collect, execute, run_worker, status
from physkit.ensemble.store import _chunk_checkpoint
from physkit.ensemble.store._chunk_checkpoint import ChunkCheckpoint

from .sweep_problems import damping, gravity, pendulum


def damping_sweep(values=(0.1, 0.2, 0.3, 0.4, 0.5), steps=20):
    return pk.Sweep(pendulum(), steps, over=pk.SweepAxis(damping, list(values), name="damping"))


@pytest.fixture(scope="module")
def finished_sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps") / "a"
    execute(damping_sweep(), folder, chunk_size=2, progress=False)
    return folder


@pytest.fixture
def folder(finished_sweep, tmp_path):
    copy = tmp_path / "a"
    (copy / "chunks").mkdir(parents=True)
    for path in finished_sweep.rglob("*.h5"):
        (copy / path.relative_to(finished_sweep)).write_bytes(path.read_bytes())
    return copy


def test_a_folder_holds_one_file_per_chunk(finished_sweep):
    assert sorted(p.name for p in (finished_sweep / "chunks").iterdir()) == [
        "000000.h5", "000001.h5", "000002.h5",
    ]  # fmt: skip
    found = pk.open(finished_sweep)
    assert repr(found["angle"]) == "<angle float64[5, 5]>"
    assert found["state"][3, 1:3, 0].shape == (2,)
    np.testing.assert_array_equal(found["state"][1:4], found["state"][:][1:4])
    np.testing.assert_array_equal(found["angle"][-1], np.asarray(found["angle"])[4])
    np.testing.assert_array_equal(found["angle"][1, ::-2], found["angle"][1][::-2])
    np.testing.assert_array_equal(found["angle"][1, [3, 0]], found["angle"][1][[3, 0]])
    with pytest.raises(KeyError, match="nothing called 'speed'"):
        found["speed"]
    with pytest.raises(IndexError, match="has 5 members"):
        found["angle"][5]
    where = SweepFolder(finished_sweep)
    assert (where.num_members, where.chunk_size, where.num_chunks) == (5, 2, 3)
    assert status(finished_sweep).finished == (0, 1, 2)


@pytest.mark.parametrize("links", [True, False])
def test_of_sweeps_that_begin_at_once_the_first_chooses_the_chunks(tmp_path, monkeypatch, links):
    """The default size of a chunk is of the memory that is free, which others may see another amount of."""

    def refuse(source, target):
        raise OSError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    sweep, first = damping_sweep(), SweepFolder(tmp_path / "a")

    def size_while_another_begins():
        assert first.open_or_create(sweep, None, lambda: 2) == 2
        return 4

    second = SweepFolder(tmp_path / "a")
    assert second.open_or_create(sweep, None, size_while_another_begins) == 2
    assert (first.num_chunks, second.num_chunks) == (3, 3)
    assert [p.name for p in sorted((tmp_path / "a").iterdir())] == ["chunks", "sweep.h5"]


def test_members_are_indexed_as_by_numpy(finished_sweep):
    found = pk.open(finished_sweep)["state"]  # [members, times, 2]
    whole = found[:]
    for index in (
        jnp.asarray(3),
        ([0, 4], [1, 2]),
        (0, slice(None), [0, 1]),
        (found.ok, [0, 1, 2, 3, 4]),
        [[0, 1], [3, 4]],
        whole[..., 0] > 0,
    ):
        index = np.asarray(index) if isinstance(index, list) else index
        np.testing.assert_array_equal(found[index], whole[index], strict=True)


class Killed(BaseException):
    """Nothing catches it, as nothing catches kill -9."""


def test_a_killed_sweep_goes_on_within_its_chunk(finished_sweep, tmp_path, monkeypatch):
    monkeypatch.setattr(_chunk_checkpoint, "SECONDS_BETWEEN", 0.0)
    save, load = ChunkCheckpoint.save, ChunkCheckpoint.load

    def save_and_die(self, partial):
        save(self, partial)
        raise Killed

    begun = []

    def load_and_tell(self, batch, first):
        found = load(self, batch, first)
        begun.append(0 if found is None else found.blocks)
        return found

    def go_on():
        execute(damping_sweep(), tmp_path / "a", chunk_size=2, progress=False)

    monkeypatch.setattr(ChunkCheckpoint, "load", load_and_tell)
    with monkeypatch.context() as patch:
        patch.setattr(ChunkCheckpoint, "save", save_and_die)
        with pytest.raises(Killed):
            go_on()
    chunks = tmp_path / "a" / "chunks"
    assert [p.name for p in chunks.iterdir()] == ["000000.partial"]
    assert status(tmp_path / "a").finished == ()
    go_on()
    assert begun[:2] == [0, 1]
    assert sorted(p.name for p in chunks.iterdir()) == [f"00000{k}.h5" for k in range(3)]
    for name in ("angle", "state"):
        np.testing.assert_array_equal(
            pk.open(tmp_path / "a")[name][:], pk.open(finished_sweep)[name][:]
        )
    # One that is damaged, or another chunk's, is not believed.
    (chunks / "000001.h5").unlink()
    (chunks / "000001.partial").write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="from its start"):
        go_on()
    np.testing.assert_array_equal(
        pk.open(tmp_path / "a")["angle"][:], pk.open(finished_sweep)["angle"][:]
    )


def test_chunks_of_another_size_are_refused(folder):
    (folder / "sweep.h5").unlink()
    with pytest.raises(pk.errors.MismatchError, match="other members than chunk 0"):
        pk.sweep(damping_sweep(), to=folder, chunk_size=3, progress=False)


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path):
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(pk.errors.FileError, match=r"not empty \(mine.txt\)"):
        run_worker(damping_sweep(), tmp_path, progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_other_programs_can_read_a_chunk(finished_sweep):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    with xarray.open_dataset(finished_sweep / "chunks" / "000001.h5", engine="h5netcdf") as data:
        assert data["frames angle"].dims == ("member", "time of angle")
        np.testing.assert_array_equal(data["at damping"], [0.3, 0.4])
        np.testing.assert_array_equal(data["member"], [2, 3])
    with xarray.open_dataset(finished_sweep / "sweep.h5", engine="h5netcdf") as index:
        np.testing.assert_array_equal(index["damping"], [0.1, 0.2, 0.3, 0.4, 0.5])
    table = pk.open(finished_sweep).to_xarray()
    assert table["angle"].dims == ("member", "time")
    np.testing.assert_allclose(table["time"], 0.25 * np.arange(5), rtol=1e-14)
    np.testing.assert_array_equal(table["damping"], [0.1, 0.2, 0.3, 0.4, 0.5])


def test_to_xarray_names_the_missing_extra(finished_sweep, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    with pytest.raises(pk.errors.MissingExtraError, match=r"pip install physkit\[xarray\]"):
        pk.open(finished_sweep).to_xarray()


def test_members_of_different_dt_have_times_of_their_own():
    over = pk.SweepAxis(lambda m: m[0].dt, [0.01, 0.02], name="dt")
    found = pk.sweep(pendulum(), 10, over=over, progress=False)
    np.testing.assert_allclose(found.times["angle"], [[0, 0.05, 0.1], [0, 0.1, 0.2]])


class TestForeign:
    def test_folders_of_another_sweep_are_refused(self, folder):
        for other in (damping_sweep(steps=40), damping_sweep([0.1, 0.2])):
            with pytest.raises(
                pk.errors.MismatchError, match=r"is of another sweep.*another folder"
            ):
                execute(other, folder, progress=False)
        with pytest.raises(pk.errors.MismatchError, match="is of another sweep"):
            collect(folder, damping_sweep(steps=40))

    def test_another_chunk_size_is_refused(self, folder):
        with pytest.raises(pk.errors.MismatchError, match="2 members in a chunk, not 3"):
            execute(damping_sweep(), folder, chunk_size=3, progress=False)

    def test_folders_with_other_files_are_refused(self, tmp_path):
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(pk.errors.FileError, match=r"not empty \(notes.txt\)"):
            execute(damping_sweep(), tmp_path, progress=False)
        with pytest.raises(pk.errors.FileError, match="holds no sweep"):
            status(tmp_path)
        with pytest.raises(pk.errors.FileError, match="holds no recording"):
            pk.open(tmp_path)

    def test_chunks_of_another_sweep_are_refused(self, folder, tmp_path):
        execute(damping_sweep(steps=40), tmp_path / "b", chunk_size=2, progress=False)
        other = tmp_path / "b" / "chunks" / "000001.h5"
        (folder / "chunks" / "000001.h5").write_bytes(other.read_bytes())
        with pytest.raises(pk.errors.MismatchError, match=r"000001.h5 belongs to another sweep"):
            pk.open(folder)
        chunk_two = (folder / "chunks" / "000002.h5").read_bytes()
        (folder / "chunks" / "000001.h5").write_bytes(chunk_two)
        with pytest.raises(pk.errors.MismatchError, match=r"000001.h5 is chunk 2: remove it"):
            pk.open(folder)

    def test_other_versions_are_a_warning(self, folder):
        with h5py.File(folder / "sweep.h5", "r+") as file:
            table = json.loads(file.attrs["physkit"])
            table["said"]["provenance"]["jax"] = "0.0.1"
            file.attrs["physkit"] = np.bytes_(json.dumps(table).encode())
        with pytest.warns(UserWarning, match="begun elsewhere: jax 0.0.1"):
            execute(damping_sweep(), folder, progress=False)


class TestDamaged:
    @pytest.mark.parametrize("name", ["sweep.h5", "chunks/000001.h5"])
    @pytest.mark.parametrize("fraction", [0.0, 0.3, 0.95])
    def test_truncated_files_are_refused(self, folder, name, fraction):
        path = folder / name
        data = path.read_bytes()
        path.write_bytes(data[: int(fraction * len(data))])
        with pytest.raises(pk.errors.DamagedFileError, match=path.name):
            pk.open(folder)["angle"][:]

    def test_a_damaged_chunk_removed_is_computed_anew(self, folder, finished_sweep):
        (folder / "chunks" / "000001.h5").unlink()
        (folder / "chunks" / ".writing-abc-000001.h5").write_bytes(b"half")
        assert pk.open(folder).missing == (1,)
        assert "1 chunks missing: 1" in repr(pk.open(folder))
        execute(damping_sweep(), folder, progress=False)
        np.testing.assert_array_equal(
            pk.open(folder)["state"][:], pk.open(finished_sweep)["state"][:]
        )

    def test_forged_tables_are_refused(self, folder):
        path = folder / "chunks" / "000001.h5"
        for change in (
            lambda t: t["names"]["frames angle"].update(shape=[10**9, 5]),
            lambda t: t["names"]["frames angle"].update(path="/etc/passwd"),
            lambda t: t.update(names=[1, 2]),
            lambda t: t.update(said="nothing"),
        ):
            before = path.read_bytes()
            with h5py.File(path, "r+") as file:
                table = json.loads(file.attrs["physkit"])
                change(table)
                file.attrs["physkit"] = np.bytes_(json.dumps(table).encode())
            with pytest.raises(pk.errors.FileError, match=r"000001\.h5"):
                pk.open(folder)["angle"][:]
            path.write_bytes(before)

    def test_external_links_are_refused(self, folder, tmp_path):
        path = folder / "chunks" / "000001.h5"
        with h5py.File(tmp_path / "secret.h5", "w") as file:
            file["angle"] = np.zeros((2, 5))
        with h5py.File(path, "r+") as file:
            where = json.loads(file.attrs["physkit"])["names"]["frames angle"]["path"]
            del file[where]
            file[where] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "angle")
        with pytest.raises(pk.errors.DamagedFileError, match="link"):
            pk.open(folder)["angle"][:]


def test_other_keys_and_swept_leaves_are_other_sweeps(folder):
    over = pk.SweepAxis(gravity, [0.1, 0.2, 0.3, 0.4, 0.5], name="damping")
    with pytest.raises(pk.errors.MismatchError):
        execute(pk.Sweep(pendulum(), 20, over=over), folder, progress=False)
    keyed = pk.Sweep(pendulum(), 20, over=damping_sweep().over, key=jax.random.key(0))
    with pytest.raises(pk.errors.MismatchError):
        execute(keyed, folder, progress=False)
