"""Files that grow: what is in them, what refuses to be read, and what survives."""

import functools
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    DamagedFileError,
    DiskFullError,
    FileError,
    MismatchError,
    ParameterError,
    StorageKind,
    static,
)
from physkit.fields import Field, FlowState
from physkit.geometry import Box, Free, Grid, NoSlip, Triclinic
from physkit.observe import AbstractQuantity, Every, FieldValues, Positions, Temperature, Velocities
from physkit.particles import Particles
from physkit.storage import Output, _atomic, export, open as open_file
from physkit.storage._hdf5_transaction import PatchedFile, change_hdf5, journal_path, recover

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_trajectories_are_h5md[box]",
    "test_trajectories_are_h5md[free]",
    "test_fields_are_netcdf_and_vtkhdf_at_once[1]",
    "test_series_of_any_shape_and_kind",
    "test_readers_see_complete_frames_while_a_run_writes",
    "test_recovery_applies_a_complete_journal_and_drops_a_partial_one",
    "test_full_disk_leaves_files_unchanged",
    "test_a_hostile_file_is_refused[soft-link]",
    "test_a_hostile_file_is_refused[absurd]",
    "test_a_hostile_file_is_refused[column]",
    "test_a_hostile_file_is_refused[foreign]",
    "test_killed_writers_lose_no_committed_frame[coupled-4]",
    "test_killed_writers_lose_no_committed_frame[checkpoints-4]",
    "test_damaged_files_never_give_wrong_data[20]",
    "test_export_to_extended_xyz[2]",
)

FAULT_INJECTION = Path(__file__).with_name("fault_injection.py")
ROOT = Path(__file__).parents[2]


def output(folder, observers, state, **frames):
    """An output for frames of which the first are given, with those in it."""
    folder.mkdir(exist_ok=True)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), frames)
    out = Output(folder, observers, state, shapes, t0=1.0, dt=0.25)
    out.create()
    add(out, observers, frames)
    return out


def add(out, observers, frames, first=0):
    intervals = {name: o.interval for o in observers for name in o.outputs}
    count = lambda x: len(jax.tree.leaves(x)[0])
    out.add(frames, {k: first + intervals[k] * np.arange(count(x)) for k, x in frames.items()})
    return out.commit()


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


# --- contents ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "d", "edges"),
    [
        (Box.cube(4.0), 3, [4, 4, 4]),
        (Box([4.0, 5.0]), 2, [4, 5, 5]),
        (Box([4.0, 4.0, 6.0], (True, True, False)), 3, [4, 4, 6]),
        (Free(), 3, None),
        (Triclinic([[4.0, 0, 0], [1, 4, 0], [0, 0, 4]]), 3, [[4, 0, 0], [1, 4, 0], [0, 0, 4]]),
    ],
    ids=["box", "plane", "slab", "free", "triclinic"],
)
def test_trajectories_are_h5md(tmp_path, space, d, edges):
    observers = (Every(2, x=Positions(), v=Velocities()), Every(1, e=lambda now: now.t))
    ids = [2, 0, 1]
    state = Particles(jnp.zeros((3, d)), mass=jnp.array([3.0, 1.0, 2.0]), id=ids, space=space)
    x, v, e = numbers(4, 3, d), numbers(4, 3, d) + 1, numbers(7)
    output(tmp_path, observers, state, x=x, v=v, e=e)
    with h5py.File(tmp_path / "trajectory.h5md") as file:
        assert file["h5md"].attrs["version"].tolist() == [1, 1]
        trajectory = file["particles/trajectory"]
        for name, values in (("position", x), ("velocity", v)):
            assert trajectory[name]["value"].shape == (4, 3, 3)
            assert trajectory[name]["value"].dtype == np.float32
            np.testing.assert_array_equal(trajectory[name]["value"][..., :d], values.astype("f4"))
            assert trajectory[name]["step"][:].tolist() == [0, 2, 4, 6]
            assert trajectory[name]["time"][:].tolist() == [1, 1.5, 2, 2.5]
        assert not trajectory["position/value"][..., d:].any()
        assert trajectory["mass"][:].tolist() == [1, 2, 3]
        if edges is None:
            assert "edges" not in trajectory["box"]
            assert trajectory["box"].attrs["boundary"].tolist() == [b"none"] * 3
        else:
            assert trajectory["box/edges/value"][3].tolist() == edges
            periodic = space.periodic_axes(d) + (False,) * (3 - d)
            expected = [b"periodic" if along else b"none" for along in periodic]
            assert trajectory["box"].attrs["boundary"].tolist() == expected
    found = open_file(tmp_path)
    np.testing.assert_array_equal(found["x"], x.astype("f4"))
    np.testing.assert_array_equal(found["e"], e)
    assert found["e"].dtype == np.float64
    assert found["x"].dims == ("time", "particle", "axis")


class ScaledPositions(AbstractQuantity):
    """A quantity that no layer of physkit knows by name."""

    factor: float = static()
    component: str | None = static(default=None)
    storage_kind: ClassVar[StorageKind] = StorageKind.POSITIONS

    def __call__(self, snapshot):
        return self.factor * snapshot.state.position


def test_user_defined_positions_are_stored_as_a_trajectory(tmp_path):
    observers = (Every(2, x=ScaledPositions(2.0), v=Velocities()), Every(2, e=lambda now: now.t))
    state = Particles(jnp.zeros((3, 2)), space=Box([4.0, 5.0]))
    x, v = numbers(4, 3, 2), numbers(4, 3, 2) + 1
    output(tmp_path, observers, state, x=x, v=v, e=numbers(4))
    with h5py.File(tmp_path / "trajectory.h5md") as file:
        np.testing.assert_array_equal(
            file["particles/trajectory/position/value"][..., :2], x.astype("f4")
        )
        assert "velocity" in file["particles/trajectory"]
    assert sorted(open_file(tmp_path / "series.h5")) == ["e"]
    frame = jax.ShapeDtypeStruct((3, 2), jnp.float64)
    assert ScaledPositions(2.0).stored_bytes(frame) == 3 * 3 * 4
    assert Temperature().stored_bytes(jax.ShapeDtypeStruct((), jnp.float64)) == 8
    assert FieldValues().stored_bytes(jax.ShapeDtypeStruct((3, 2), jnp.complex64)) == 6 * 8


@pytest.mark.parametrize("d", [1, 2, 3])
def test_fields_are_netcdf_and_vtkhdf_at_once(tmp_path, d):
    shape = (3, 4, 5)[:d]
    grid = Grid([1.5, 2.0, 2.5][:d], shape)
    state = {
        "rho": Field(0.0, grid),
        "flow": Field(0.0, grid, vector=True),
        "psi": Field(jnp.zeros(shape, complex), grid),
        "face": Field(0.0, grid, grid.face("x")),
    }
    observers = (Every(2, **{name: FieldValues(name) for name in state}),)
    frames = {"rho": numbers(3, *shape), "flow": numbers(3, d, *shape), "face": numbers(3, *shape)}
    frames["psi"] = numbers(3, *shape) + 1j * numbers(3, *shape)[::-1]
    output(tmp_path, observers, state, **frames)
    found = open_file(tmp_path)
    for name, values in frames.items():
        np.testing.assert_allclose(np.asarray(found[name]), values, atol=1e-6)
        np.testing.assert_array_equal(found[name][1], np.asarray(found[name])[1])
        np.testing.assert_array_equal(found[name][1:, ..., 2], np.asarray(found[name])[1:, ..., 2])
        np.testing.assert_array_equal(found[name][[0, 2]], np.asarray(found[name])[[0, 2]])
    assert found["psi"].dtype == np.complex64
    counts = (*shape, 1, 1, 1)[:3]
    with h5py.File(tmp_path / "fields-rho.vtkhdf") as file:
        image = file["VTKHDF"]
        assert image.attrs["Type"] == b"ImageData"
        assert image.attrs["WholeExtent"].tolist() == [
            0,
            counts[0],
            0,
            counts[1],
            0,
            counts[2],
        ]
        assert image["Steps"].attrs["NSteps"] == 3
        assert image["Steps/Values"][:].tolist() == [1, 1.5, 2]
        assert image["CellData/rho"] == file["rho"]
        assert file["rho"].shape == (3, *counts[::-1])
        assert [dim[0].name for dim in file["rho"].dims] == ["/time", "/z", "/y", "/x"]
        np.testing.assert_allclose(file["x"][:], 0.25 + 0.5 * np.arange(3))
        assert image.attrs["Origin"].tolist() == [0, 0, 0]
    with h5py.File(tmp_path / "fields-face.vtkhdf") as file:
        assert file["x"][0] == 0
        assert file["VTKHDF"].attrs["Origin"][0] == -0.25
    with h5py.File(tmp_path / "fields-flow.vtkhdf") as file:
        assert file["flow"].shape == (3, *counts[::-1], d)


def test_parts_of_a_flow_in_cells_and_where_they_are(tmp_path):
    """Staggered parts averaged to cells for ParaView and xarray, and as they are."""
    grid = Grid(Box([2.0, 1.0], periodic=(True, False)), (4, 3))
    flow = FlowState.of(grid, [lambda x, y: jnp.sin(jnp.pi * x) * y, 0.5], NoSlip())
    part = lambda name: FieldValues("flow", part=name)
    watch = Every(
        1, u=part("velocity"), p=part("pressure"), ux=part("velocity_x"), w=part("vorticity")
    )
    law = pk.equations.IncompressibleFlow(0.01, "flow")
    sim = pk.Simulation(pk.integrators.ARS222(law), dt=0.01, observers=watch)
    run = pk.run(sim, {"flow": flow}, 2, to=tmp_path, progress=False)
    found, end = open_file(tmp_path), run.state["flow"]
    np.testing.assert_allclose(found["u"][-1], end.cell_velocity().data, atol=1e-6)
    np.testing.assert_allclose(found["ux"][-1], end.velocity_x.data, atol=1e-6)
    np.testing.assert_allclose(found["w"][-1], end.vorticity()[0].data, atol=1e-6)
    assert found["u"].path == found["p"].path
    assert len({found[name].path for name in ("u", "ux", "w")}) == 3
    assert found["u"].shape == (3, 2, 4, 3)
    with h5py.File(found["ux"].path) as file:
        assert file["x"][0] == 0
        assert file["y"][0] > 0
    dataset = found.to_xarray()
    across = lambda name: dataset[dataset[name].dims[-2]].values[0]
    assert across("u") == pytest.approx(0.25)
    assert across("ux") == 0
    for name, match in (("speed", "has no field 'speed'"), (None, r"made of several fields")):
        sim = pk.Simulation(pk.integrators.ARS222(law), 0.01, observers=Every(1, u=part(name)))
        with pytest.raises(pk.errors.ComponentError, match=match):
            pk.simulate(sim, {"flow": flow}, 1)


def test_parts_of_other_components():
    """By the name that components of a vector have in common; of a gas what is computed from its fields."""
    systems = pk.systems
    for made, part, shape, location in (
        (systems.baroclinic_channel((4, 4, 3)), "velocity", (2, 4, 4, 3), "cell"),
        (systems.orszag_tang(4), "velocity", (3, 4, 4), "cell"),
        (systems.orszag_tang(4), "magnetic_x", (4, 4), "face(x)"),
        (systems.elastic_half_space(cells=40), "stress", (3, 40, 20), "cell"),
        (systems.electromagnetic_cavity(cells=(3, 4, 5)), "Ez", (4, 5, 5), "edge(z)"),
    ):
        like = FieldValues(part=part).stored_field(made[1])
        assert (like.data.shape, repr(like.location)) == (shape, location)


def test_series_of_any_shape_and_kind(tmp_path):

    both = lambda now: (now.t, {"b": now.t})
    observers = (Every(3, both=both, flag=both, z=both),)
    frames = {
        "both": (numbers(4), {"b": numbers(4, 2)}),
        "flag": numbers(4) > 0,
        "z": numbers(4, 2) + 1j,
    }
    output(tmp_path, observers, None, **frames)
    found = open_file(tmp_path)
    assert sorted(found) == ["both[0]", "both[1]['b']", "flag", "z"]
    np.testing.assert_array_equal(found["both[1]['b']"], frames["both"][1]["b"])
    np.testing.assert_array_equal(found["flag"], frames["flag"])
    np.testing.assert_array_equal(found["z"], frames["z"])
    np.testing.assert_array_equal(found["z"][-1, 1], frames["z"][-1, 1])
    with pytest.raises(IndexError, match="4 frames"):
        found["z"][4]
    with pytest.raises(KeyError, match="available"):
        found["y"]
    assert "z (time: 4, axis_0: 2) complex128" in repr(found)
    assert found.provenance["series.h5"]["jax"] == jax.__version__


def test_each_interval_and_component_gets_its_own_file(tmp_path):
    grid = Grid([1.0], (4,))
    state = {
        "a": Particles(jnp.zeros((2, 3))),
        "b": Particles(jnp.zeros((3, 3))),
        "u": Field(0.0, grid),
    }
    observers = (
        Every(1, xa=Positions("a"), xb=Positions("b"), va=Velocities("a"), u=FieldValues("u")),
        Every(2, xu=Positions("a", unwrapped=True), vb=Velocities("b"), slow=FieldValues("u")),
    )
    frames = {
        "xa": numbers(5, 2, 3), "va": numbers(5, 2, 3), "xu": numbers(3, 2, 3),
        "xb": numbers(5, 3, 3), "vb": numbers(3, 3, 3), "u": numbers(5, 4), "slow": numbers(3, 4),
    }  # fmt: skip
    output(tmp_path, observers, state, **frames)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "fields-u-2.vtkhdf", "fields-u.vtkhdf", "run.json", "series.h5", "trajectory-a-2.h5md",
        "trajectory-a.h5md", "trajectory-b.h5md",
    ]  # fmt: skip
    for name, series in open_file(tmp_path).items():
        np.testing.assert_allclose(series, frames[name], atol=1e-6)
    files = json.loads((tmp_path / "run.json").read_text())["files"]
    assert files["fields-u.vtkhdf"] == "fields"


# --- appending and truncating ---------------------------------------------------------------------

ONE = (Every(2, x=Positions(), e=lambda now: now.t),)


def simple(folder, count=3):
    state = Particles(jnp.zeros((20, 3)))
    return output(folder, ONE, state, x=numbers(count, 20, 3), e=numbers(count))


def test_frames_are_appended_and_rewound(tmp_path):
    out = simple(tmp_path)
    marks = out.commit()
    x, e = numbers(100, 20, 3), numbers(100)
    add(out, ONE, {"x": x, "e": e}, first=6)
    found = open_file(tmp_path)
    assert len(found["x"]) == 103
    np.testing.assert_array_equal(found["x"][3:], x.astype("f4"))
    assert found["e"].step.tolist() == list(range(0, 206, 2))
    out.rewind(marks)
    assert len(open_file(tmp_path)["x"]) == 3
    add(out, ONE, {"x": x + 1, "e": e}, first=6)
    np.testing.assert_array_equal(open_file(tmp_path)["x"][3:], (x + 1).astype("f4"))
    marks["files"]["trajectory.h5md"] = dict.fromkeys(marks["files"]["trajectory.h5md"], 1000)
    with pytest.raises(MismatchError, match="has 103 frames, the checkpoint says 1000"):
        out.rewind(marks)


def test_readers_see_complete_frames_while_a_run_writes(tmp_path):
    out = simple(tmp_path)
    with h5py.File(tmp_path / "series.h5", "r", locking=False) as held:
        before = held["series/0000/value"][:]
        add(out, ONE, {"x": numbers(5, 20, 3), "e": numbers(5)}, first=6)
        np.testing.assert_array_equal(before, numbers(3))
    assert len(open_file(tmp_path)["e"]) == 8


def test_frames_without_a_checkpoint_are_not_overwritten(tmp_path):
    simple(tmp_path)
    with pytest.raises(FileError, match="holds frames of a run without a checkpoint"):
        simple(tmp_path)


def test_frames_beside_those_of_another_run_are_refused(tmp_path):
    run = functools.partial(pk.run, steps=2, progress=False, to=tmp_path / "out")
    start = pk.Particles([[1.0, 0.3]], [[0.0, 0.5]])
    method = pk.VelocityVerlet(pk.HarmonicTrap(1.0))
    run(
        pk.Simulation(method, dt=0.1, observers=pk.Every(1, x=pk.Positions())),
        start,
        checkpoint=tmp_path / "a",
    )
    energies = pk.Simulation(method, dt=0.1, observers=pk.Every(1, e=pk.TotalEnergy()))
    with pytest.raises(FileError, match="is of another run, which recorded other quantities"):
        run(energies, start, checkpoint=tmp_path / "b")
    assert list(pk.open(tmp_path / "out")) == ["x"]


def test_commits_wait_until_they_are_due(tmp_path):
    out = simple(tmp_path)
    out.add({"e": numbers(1)}, {"e": np.array([6])})
    out.commit_if_due()
    assert len(open_file(tmp_path)["e"]) == 3
    out._committed_at -= 100
    out.commit_if_due()
    assert len(open_file(tmp_path)["e"]) == 4


# --- faults ---------------------------------------------------------------------------------------


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


def inject_faults(verb, folder, count, *more):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, str(FAULT_INJECTION), verb, str(folder), str(count), *more],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


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


# --- other formats --------------------------------------------------------------------------------


def recorded(folder, d=3):
    state = {
        "a": Particles(jnp.zeros((2, d)), species=jnp.array([0, 1]), space=Box.cube(4.0, d)),
        "b": Particles(jnp.zeros((2, d))),
    }
    observers = (
        Every(2, x=Positions("a"), v=Velocities("a"), e=lambda now: now.t, p=lambda now: now.t),
        Every(1, y=Positions("b"), often=lambda now: now.t),
    )
    frames = {"x": numbers(3, 2, d), "v": numbers(3, 2, d), "e": numbers(3), "p": numbers(3, 2)}
    frames |= {"y": numbers(5, 2, d), "often": numbers(5)}
    output(folder, observers, state, **frames)
    return frames


def test_export_to_numpy(tmp_path):
    frames = recorded(tmp_path / "r")
    with np.load(export(tmp_path / "r", tmp_path / "a.npz")) as found:
        np.testing.assert_array_equal(found["x"], frames["x"].astype("f4"))
        assert found["often.step"].tolist() == [0, 1, 2, 3, 4]
        assert found["e.time"].tolist() == [1, 1.5, 2]


def test_export_to_csv(tmp_path):
    frames = recorded(tmp_path / "r")
    path = export(open_file(tmp_path / "r"), tmp_path / "a.csv", ["e", "p"])
    assert path.read_text().splitlines()[0] == "step,time,e,p[0],p[1]"
    found = np.loadtxt(path, delimiter=",", skiprows=1)
    expected = np.column_stack([[0, 2, 4], [1, 1.5, 2], frames["e"], frames["p"]])
    np.testing.assert_array_equal(found, expected)
    for names, message in ((None, "one interval"), (["x"], "scalars and vectors")):
        with pytest.raises(ParameterError, match=message):
            export(tmp_path / "r", tmp_path / "b.csv", names)
    assert not list(tmp_path.glob("*b.csv"))


@pytest.mark.parametrize("d", [2, 3])
def test_export_to_extended_xyz(tmp_path, d):
    frames = recorded(tmp_path / "r", d)
    lines = export(tmp_path / "r", tmp_path / "a.extxyz", ["x"]).read_text().splitlines()
    assert len(lines) == 3 * 4
    assert lines[4] == "2"
    assert lines[5] == (
        f'Lattice="4.0 0.0 0.0 0.0 4.0 0.0 0.0 0.0 4.0" pbc="T T {"FT"[d == 3]}" '
        "Properties=species:S:1:pos:R:3:velo:R:3:momenta:R:3:masses:R:1:species_number:I:1:id:I:1 "
        "Step=2 Time=1.5"
    )
    name, *values = lines[7].split()
    assert name == "He"
    vectors = (frames["x"][1, 1], frames["v"][1, 1], frames["v"][1, 1])  # masses are 1
    expected = [a for vector in vectors for a in (*vector, *[0] * (3 - d))] + [1, 1, 1]
    assert [np.float32(v) for v in values] == [np.float32(v) for v in expected]
    lines = export(tmp_path / "r", tmp_path / "b.xyz", ["y"]).read_text().splitlines()
    assert lines[1].startswith('pbc="F F F" Properties=species:S:1:pos:R:3:masses')
    assert lines[2].startswith("X ")
    with pytest.raises(ParameterError, match=r"one trajectory; there are \['x', 'y'\], name one"):
        export(tmp_path / "r", tmp_path / "c.xyz")
    with pytest.raises(ParameterError, match="there are none"):
        export(tmp_path / "r", tmp_path / "c.xyz", ["e"])
    with pytest.raises(ParameterError, match=r"cannot write .\.doc"):
        export(tmp_path / "r", tmp_path / "c.doc")
    with pytest.raises(FileError, match="No such file"):
        export(tmp_path / "r", tmp_path / "none" / "c.npz")
