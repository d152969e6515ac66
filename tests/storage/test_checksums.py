"""What is read is what was written, or an error: also where HDF5's own checksums see nothing."""

import shutil

import h5py
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import DamagedFileError
from physkit.fields import Field
from physkit.geometry import Box, Grid
from physkit.observe import Every, FieldValues, Positions, Velocities
from physkit.particles import Particles
from physkit.storage import Column, load_component, open as open_file, read_table, write_table
from physkit.storage._checksums import block_checksums, read_checked

from .recordings import add, numbers, output

OBSERVERS = (
    Every(1, x=Positions("gas"), v=Velocities("gas"), u=FieldValues("u"), e=lambda now: now.t),
)
FRAMES = {
    "x": numbers(5, 40, 3),
    "v": numbers(5, 40, 3) + 1,
    "u": numbers(5, 6, 4),
    "e": numbers(5, 2),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a trajectory, a field and a series."""
    folder = tmp_path_factory.mktemp("run")
    gas = Particles(jnp.zeros((40, 3)), mass=jnp.arange(1.0, 41), space=Box.cube(3.0))
    state = {"gas": gas, "u": Field(1.0, Grid([1.0, 2.0], (6, 4)))}
    output(folder, OBSERVERS, state, **FRAMES)
    return folder


def zero(path, dataset):
    """Zero a whole dataset as a lost extent would: each chunk together with its checksum."""
    with h5py.File(path) as file:
        found = file[dataset]
        if found.chunks is None:
            places = [(found.id.get_offset(), found.id.get_storage_size())]
        else:
            infos = [found.id.get_chunk_info(k) for k in range(found.id.get_num_chunks())]
            places = [(info.byte_offset, info.size) for info in infos]
    with open(path, "r+b") as file:
        for offset, size in places:
            file.seek(offset)
            file.write(bytes(size))


ZEROED = [
    ("trajectory-gas.h5md", "particles/trajectory/position/value", lambda found: found["x"][1]),
    ("trajectory-gas.h5md", "particles/trajectory/velocity/value", lambda found: found["v"][:]),
    ("trajectory-gas.h5md", "particles/trajectory/position/time", lambda found: found["x"].time),
    ("trajectory-gas.h5md", "particles/trajectory/mass", lambda found: load_component(found["x"])),
    (
        "trajectory-gas.h5md",
        "particles/trajectory/box/edges/value",
        lambda found: load_component(found["x"]),
    ),
    ("fields-u.vtkhdf", "u", lambda found: found["u"][2]),
    ("fields-u.vtkhdf", "y", lambda found: found["u"].coordinates()),
    ("series.h5", "series/0000/value", lambda found: np.asarray(found["e"])),
    ("series.h5", "series/0000/step", lambda found: found["e"].step),
    ("series.h5", "physkit_checksums/0000", lambda found: found["e"][0]),
]


@pytest.mark.parametrize(("name", "dataset", "read"), ZEROED, ids=[row[1] for row in ZEROED])
def test_a_chunk_zeroed_with_its_checksum_is_seen(written, tmp_path, name, dataset, read):
    folder = tmp_path / "copy"
    shutil.copytree(written, folder)
    read(open_file(folder))
    zero(folder / name, dataset)
    with pytest.raises(DamagedFileError, match="checksum"):
        read(open_file(folder))


@pytest.mark.parametrize("rows", [1, 3, 1024])
def test_any_rows_are_checked_as_they_are_read(tmp_path, rows):
    values = numbers(20, 2)
    checksums = block_checksums("a", values[:7], rows)
    partial = checksums.pop() if 7 % rows else 0
    checksums += block_checksums("a", values[7:], rows, first_row=7, partial=partial)
    assert checksums == block_checksums("a", values, rows)

    def read(part, source=values):
        return read_checked(
            lambda k: source[k], "a", part, 20, rows, lambda k: checksums[k], tmp_path
        )

    for part in (slice(0, 20), slice(3, 4), slice(2, 19, 7), slice(0, 20, 19), slice(5, 5)):
        np.testing.assert_array_equal(read(part), values[part])
    exchanged = values.copy()
    exchanged[[4, 9]] = values[[9, 4]]
    for wrong in (exchanged, np.zeros_like(values)):
        with pytest.raises(DamagedFileError, match="a: rows from"):
            read(slice(4, 5), wrong)


def test_frames_are_checked_after_a_run_went_back(tmp_path):
    observers, state = (Every(1, e=lambda now: now.t),), Particles(jnp.zeros((2, 3)))
    out = output(tmp_path, observers, state, e=numbers(1500))
    marks = out.commit()
    add(out, observers, {"e": numbers(900)}, first=1500)
    for _ in range(2):  # back into the middle of a block, twice
        out.rewind(marks)
        add(out, observers, {"e": numbers(3000)}, first=1500)
        expected = np.concatenate([numbers(1500), numbers(3000)])
        np.testing.assert_array_equal(open_file(tmp_path)["e"], expected)
        np.testing.assert_array_equal(open_file(tmp_path)["e"][::700], expected[::700])
    marks["files"]["series.h5"] = dict.fromkeys(marks["files"]["series.h5"], 1024)
    out.rewind(marks)  # to the border of a block
    np.testing.assert_array_equal(open_file(tmp_path)["e"][:], numbers(1500)[:1024])


@pytest.mark.parametrize("at_once", [True, False])
def test_flipped_bits_of_a_table_are_seen(tmp_path, at_once):
    path = tmp_path / "table.h5"
    columns = {
        "k": Column(np.arange(300.0), ("k",)),
        "frames x": Column(numbers(300, 3), ("k", "time")),
        "flag": Column(np.array(True), ()),
    }
    write_table(path, "chunk", columns, {})
    table = read_table(path, "chunk", lambda name, metadata: at_once)
    for name, column in columns.items():
        np.testing.assert_array_equal(table[name], column.values)
    some = [0, 2] if at_once else slice(7, 9)
    np.testing.assert_array_equal(table.read("frames x", some), numbers(300, 3)[some])
    with h5py.File(path) as file:
        offset = file["frames x"].id.get_offset()
    data = bytearray(path.read_bytes())
    data[offset + 1000] ^= 16
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match="checksum"):
        read_table(path, "chunk", lambda name, metadata: at_once).read("frames x", 41)
