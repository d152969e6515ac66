"""Frames as the components that they were taken from, and VTK's files of them."""

import base64
import struct
import xml.etree.ElementTree as ET

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import FileError, ParameterError
from physkit.fields import Field
from physkit.geometry import Box, Free, Grid, Triclinic
from physkit.observe import Every, FieldValues, Positions, Velocities
from physkit.particles import Particles
from physkit.storage import export, is_trajectory, load_component, open as open_file
from physkit.storage.recording._frame_sharding import FrameSharding

from .recordings import numbers, output

TILTED = [[4.0, 0, 0], [1, 4, 0], [0, 0, 4]]


def particles(folder, space=None, d=3, v=True):
    state = Particles(
        jnp.zeros((3, d)),
        mass=jnp.array([3.0, 1.0, 2.0]),
        charge=jnp.array([0.0, 1.0, -1.0]),
        species=jnp.array([1, 0, 1]),
        id=jnp.array([2, 0, 1]),
        space=Box.cube(4.0, d) if space is None else space,
    )
    frames = {"x": numbers(4, 3, d), "e": numbers(4)} | ({"v": numbers(4, 3, d) + 1} if v else {})
    more = {"v": Velocities()} if v else {}
    output(
        folder, (Every(2, x=Positions(), e=lambda component: component.t, **more),), state, **frames
    )
    return frames


@pytest.mark.parametrize("space", [None, Free(), Triclinic(TILTED)], ids=["box", "free", "tilted"])
def test_load_particles_of_a_frame(tmp_path, space):
    frames = particles(tmp_path, space)
    found = open_file(tmp_path)
    assert is_trajectory(found["x"])
    assert not is_trajectory(found["v"])
    component = load_component(found["x"], 2)
    np.testing.assert_array_equal(component.position, frames["x"][2].astype("f4"))
    np.testing.assert_array_equal(component.velocity, frames["v"][2].astype("f4"))
    # In the order of the ids, as frames are.
    assert component.id.tolist() == [0, 1, 2]
    assert component.mass.tolist() == [1, 2, 3]
    assert component.charge.tolist() == [1, -1, 0]
    assert component.species.tolist() == [0, 1, 1]
    cell = component.space.cell(3)
    expected = {Box: 4 * np.eye(3), Triclinic: TILTED}.get(type(component.space))
    assert cell is None if expected is None else np.array_equal(cell, expected)
    assert type(component.space) is type(space or Box.cube(1.0))
    with pytest.raises(ParameterError, match="neither positions of particles nor a field"):
        load_component(found["e"])
    with pytest.raises(IndexError):
        load_component(found["x"], 4)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_load_field_of_a_frame(tmp_path, d):
    shape, lengths = (4, 3, 5)[:d], [2.0, 1.5, 2.5][:d]
    grid = Grid(lengths, shape)
    state = {
        "rho": Field(0.0, grid),
        "flow": Field(0.0, grid, vector=True),
        "species": Field(jnp.zeros((d, *shape)), grid),  # as many as axes, and no vector
        "face": Field(0.0, grid, grid.face("x")),
        "psi": Field(jnp.zeros(shape, complex), grid),
    }
    frames = {"rho": numbers(3, *shape), "flow": numbers(3, d, *shape), "face": numbers(3, *shape)}
    frames["species"] = numbers(3, d, *shape)
    frames["psi"] = numbers(3, *shape) * (1 + 2j)
    output(tmp_path, (Every(1, **{name: FieldValues(name) for name in state}),), state, **frames)
    for name, values in frames.items():
        component = load_component(open_file(tmp_path)[name], 1)
        np.testing.assert_allclose(component.data, values[1], atol=1e-6)
        assert component.location == state[name].location
        assert component.vector == state[name].vector
        assert component.grid.shape == shape
        np.testing.assert_allclose(component.grid.space.lengths, lengths, rtol=1e-6)


def test_files_of_several_processes_say_what_is_no_vector(tmp_path):
    """Two species in the plane were taken for one."""
    grid = Grid([2.0, 2.0], (4, 4))
    state = {
        name: Field(jnp.zeros((2, 4, 4)), grid, vector=name == "flow") for name in ("flow", "pair")
    }
    observers = (Every(1, **{name: FieldValues(name) for name in state}),)
    # Two devices along x, both of this process.
    layout = (((1, 0, False),), (2, 4, 4))
    sharding = FrameSharding((2,), ((0, 1),), dict.fromkeys(state, layout))
    frames = {name: numbers(3, 2, 2, 2, 4) for name in state}
    output(tmp_path / "r", observers, state, sharding=sharding, **frames)
    found = open_file(tmp_path / "r")
    for name in state:
        component = load_component(found[name], 1)
        blocks = frames[name][1].astype("f4")
        np.testing.assert_array_equal(component.data, np.concatenate(blocks, axis=1))
        assert component.vector == state[name].vector
    root = ET.fromstring(export(tmp_path / "r", tmp_path / "a.vti").read_text())
    assert [array(root, name).shape for name in state] == [(16, 3), (16, 2)]


def array(root, name):
    """A binary array of a VTK file, by hand."""
    (found,) = [x for x in root.iter("DataArray") if x.get("Name") == name]
    raw = base64.b64decode(found.text)
    (size,) = struct.unpack_from("<Q", raw)
    assert size == len(raw) - 8
    kind = found.get("type").replace("Float", "f").replace("UInt", "u").replace("Int", "i")
    values = np.frombuffer(raw[8:], f"<{kind[0]}{int(kind[1:]) // 8}")
    parts = int(found.get("NumberOfComponents") or 1)
    return values.reshape(-1, parts) if parts > 1 else values


@pytest.mark.parametrize("d", [2, 3])
def test_vti_of_fields(tmp_path, d):
    shape, lengths = (4, 3, 5)[:d], [2.0, 1.5, 2.5][:d]
    grid = Grid(lengths, shape)
    state = {"flow": Field(0.0, grid, vector=True)}
    frames = {"flow": numbers(3, d, *shape)}
    output(tmp_path / "r", (Every(2, flow=FieldValues("flow")),), state, **frames)
    root = ET.fromstring(export(tmp_path / "r", tmp_path / "a.vti").read_text())
    image = root.find("ImageData")
    counts = (*shape, 1)[:3]
    assert image.get("WholeExtent") == " ".join(f"0 {n}" for n in counts)
    assert [float(x) for x in image.get("Spacing").split()] == [0.5] * 3
    assert [float(x) for x in image.get("Origin").split()] == [0.0] * 3
    flow = array(root, "flow")
    assert flow.shape == (int(np.prod(shape)), 3)
    expected = frames["flow"][-1].reshape(d, -1, order="F").T
    np.testing.assert_allclose(flow[:, :d], expected, atol=1e-6)
    assert not flow[:, d:].any()
    assert array(root, "TimeValue").tolist() == [2.0]


def test_vtp_of_particles_and_collections(tmp_path):
    frames = particles(tmp_path / "r")
    root = ET.fromstring(export(tmp_path / "r", tmp_path / "a.vtp", frames=slice(1, 2)).read_text())
    np.testing.assert_array_equal(array(root, "position"), frames["x"][1].astype("f4"))
    np.testing.assert_array_equal(array(root, "velocity"), frames["v"][1].astype("f4"))
    assert array(root, "mass").tolist() == [1, 2, 3]
    assert array(root, "offsets").tolist() == [1, 2, 3]
    progress = []
    target = tmp_path / "all.pvd"
    export(tmp_path / "r", target, frames=slice(0, None, 2), progress=lambda *x: progress.append(x))
    assert progress == [(1, 2), (2, 2)]
    sets = list(ET.fromstring(target.read_text()).iter("DataSet"))
    assert [float(x.get("timestep")) for x in sets] == [1.0, 2.0]
    for entry, k in zip(sets, (0, 2), strict=True):
        points = array(ET.fromstring((tmp_path / entry.get("file")).read_text()), "position")
        np.testing.assert_array_equal(points, frames["x"][k].astype("f4"))


def test_series_that_vtk_cannot_hold_are_refused(tmp_path):
    particles(tmp_path / "r")
    for name, names, message in (
        ("a.vti", None, "holds fields recorded together; there are none"),
        ("a.vtp", ["e"], "name those"),
        ("a.pvd", ["e"], "name those"),
    ):
        with pytest.raises(ParameterError, match=message):
            export(tmp_path / "r", tmp_path / name, names)
    with pytest.raises(ParameterError, match="no frame of series"):
        export(tmp_path / "r", tmp_path / "a.vtp", frames=slice(9, 10))
    with pytest.raises(ParameterError, match="forward"):
        export(tmp_path / "r", tmp_path / "a.vtp", frames=slice(None, None, -1))
    with pytest.raises(FileError):
        export(tmp_path / "r", tmp_path / "none" / "a.vtp")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r"]


def test_selected_frames_are_exported(tmp_path):
    frames = particles(tmp_path / "r")
    some = slice(1, None, 2)
    with np.load(export(tmp_path / "r", tmp_path / "a.npz", frames=some)) as found:
        np.testing.assert_array_equal(found["x"], frames["x"][some].astype("f4"))
        assert found["e.step"].tolist() == [2, 6]
    lines = export(tmp_path / "r", tmp_path / "a.csv", ["e"], frames=some).read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["step", "2", "6"]
    text = export(tmp_path / "r", tmp_path / "a.extxyz", ["x"], frames=some).read_text()
    assert text.count("Properties=") == 2
    assert "Step=6 " in text
