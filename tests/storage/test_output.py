"""Files that grow: what is in them, and how frames are appended and taken back."""

import functools
import json
from typing import ClassVar

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.core import (
    FileError,
    MismatchError,
    StorageKind,
    static,
)
from physkit.fields import Field, FlowState
from physkit.geometry import Box, Free, Grid, NoSlip, Triclinic
from physkit.observe import AbstractQuantity, Every, FieldValues, Positions, Temperature, Velocities
from physkit.particles import Particles
from physkit.storage import open as open_file

from .recordings import ONE, add, numbers, output, simple

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_trajectories_are_h5md[box]",
    "test_trajectories_are_h5md[free]",
    "test_fields_are_netcdf_and_vtkhdf_at_once[1]",
    "test_series_of_any_shape_and_kind",
    "test_series_of_numbers_that_hdf5_lacks_and_of_none[bfloat16]",
    "test_series_of_numbers_that_hdf5_lacks_and_of_none[empty]",
    "test_series_of_numbers_that_hdf5_lacks_and_of_none[int4]",
    "test_readers_see_complete_frames_while_a_run_writes",
)


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


@pytest.mark.parametrize(
    ("like", "stored"),
    [
        (jnp.zeros((4, 2), jnp.bfloat16), np.float32),
        (jnp.zeros((4, 2), jnp.int4), np.int8),
        (jnp.zeros((4, 0, 3), jnp.float32), np.float32),
    ],
    ids=["bfloat16", "int4", "empty"],
)
def test_series_of_numbers_that_hdf5_lacks_and_of_none(tmp_path, like, stored):
    frames = jnp.arange(like.size).reshape(like.shape).astype(like.dtype)
    output(tmp_path, (Every(3, few=lambda now: now.t),), None, few=frames)
    found = open_file(tmp_path)["few"]
    assert found.dtype == stored
    assert found.shape == like.shape
    np.testing.assert_array_equal(found[:], np.asarray(frames).astype(stored))


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
