"""The readers of others open what we write: run where PHYSKIT_READERS names a Python that has them."""

import os
import subprocess
import textwrap

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.fields import Field
from physkit.geometry import Box, Grid
from physkit.observe import Every, FieldValues, Positions, Velocities
from physkit.particles import Particles
from physkit.storage import export

from .recordings import numbers, output

PYTHON = os.environ.get("PHYSKIT_READERS")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHON,
        reason="PHYSKIT_READERS names no Python with MDAnalysis, vtk, pyvista, xarray, h5netcdf, ase, ovito",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Particles, and fields in two and three dimensions, four frames each; and all of it exported."""
    folder = tmp_path_factory.mktemp("readers")
    plane, space = Grid([1.5, 2.0], (3, 4)), Grid([1.5, 2.0, 2.5], (3, 4, 5))
    state = {
        "gas": Particles(jnp.zeros((20, 3)), space=Box.cube(4.0), species=jnp.arange(20) % 2),
        "disc": Particles(jnp.zeros((5, 2)), space=Box.cube(4.0, 2)),
        "u": Field(0.0, plane),
        "w": Field(0.0, space),
        "flow": Field(0.0, space, vector=True),
    }
    frames = {
        "x": numbers(4, 20, 3), "v": numbers(4, 20, 3), "y": numbers(4, 5, 2),
        "u": numbers(4, 3, 4), "w": numbers(4, 3, 4, 5), "flow": numbers(4, 3, 3, 4, 5),
    }  # fmt: skip
    observers = (
        Every(2, x=Positions("gas"), v=Velocities("gas"), y=Positions("disc")),
        Every(2, u=FieldValues("u"), w=FieldValues("w"), flow=FieldValues("flow")),
    )
    output(folder, observers, state, **frames)
    export(folder, folder / "a.extxyz", ["x"])
    export(folder, folder / "a.vti", ["w"])
    export(folder, folder / "flow.vti", ["flow"])
    export(folder, folder / "u.vti", ["u"])
    export(folder, folder / "a.vtp", ["x"])
    export(folder, folder / "a.pvd", ["w"])
    export(folder, folder / "x.pvd", ["x"])
    np.savez(folder / "want.npz", **frames)
    return folder


def read(folder, script):
    """Run a script beside the files, with `want` what was recorded."""
    start = "import warnings\nimport numpy as np\nwarnings.simplefilter('ignore')\n"
    start += "want = np.load('want.npz')\ntime = [1.0, 1.5, 2.0, 2.5]\n"
    done = subprocess.run(
        [PYTHON, "-c", start + textwrap.dedent(script) + "\nprint('read')"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.endswith("read\n"), done.stdout + done.stderr


def test_mdanalysis(folder):
    read(
        folder,
        """
        import MDAnalysis
        for name, file, n, d in (("x", "trajectory-gas.h5md", 20, 3), ("y", "trajectory-disc.h5md", 5, 2)):
            u = MDAnalysis.Universe.empty(n, velocities=name == "x")
            u.load_new(file, format="H5MD", convert_units=False)
            assert len(u.trajectory) == 4
            for k, now in enumerate(u.trajectory):
                assert np.array_equal(now.positions[:, :d], want[name][k].astype("f4"))
                assert not now.positions[:, d:].any()
                assert now.time == time[k] and np.allclose(now.dimensions[:3], 4)
                if name == "x":
                    assert np.array_equal(now.velocities, want["v"][k].astype("f4"))
            u.trajectory[1]
            assert np.array_equal(u.atoms.positions[:, :d], want[name][1].astype("f4"))
        """,
    )


def test_vtk_reads_fields(folder):
    read(
        folder,
        """
        import vtk
        from vtk.util.numpy_support import vtk_to_numpy
        key = vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS()
        for name, counts in (("u", (4, 3)), ("w", (5, 4, 3)), ("flow", (5, 4, 3, 3))):
            reader = vtk.vtkHDFReader()
            reader.SetFileName(f"fields-{name}.vtkhdf")
            reader.UpdateInformation()
            steps = reader.GetOutputInformation(0).Get(key)
            assert list(steps) == time
            for k, t in enumerate(steps):
                reader.UpdateTimeStep(t)
                image = reader.GetOutputDataObject(0)
                cells = vtk_to_numpy(image.GetCellData().GetArray(name)).reshape(counts)
                back = cells.transpose(*reversed(range(cells.ndim)))
                assert np.allclose(back, want[name][k], atol=1e-6)
                assert np.allclose(image.GetSpacing(), 0.5) and np.allclose(image.GetOrigin(), 0)
        """,
    )


def test_pyvista_reads_fields(folder):
    read(
        folder,
        """
        import pyvista
        for name, order in (("u", (3, 4)), ("w", (3, 4, 5))):
            reader = pyvista.get_reader(f"fields-{name}.vtkhdf")
            for k in range(4):
                reader.reader.SetStep(k)
                mesh = reader.read()
                cells = np.asarray(mesh.cell_data[name]).reshape(order, order="F")
                assert np.allclose(cells, want[name][k], atol=1e-6)
                assert mesh.bounds[1] == 1.5
        """,
    )


def test_vtk_reads_what_is_exported(folder):
    read(
        folder,
        """
        import pyvista
        image = pyvista.read("a.vti")
        assert np.allclose(np.asarray(image.cell_data["w"]).reshape((3, 4, 5), order="F"), want["w"][-1])
        assert np.allclose(image.bounds, (0, 1.5, 0, 2, 0, 2.5)) and image.field_data["TimeValue"][0] == 2.5
        flow = np.asarray(pyvista.read("flow.vti").cell_data["flow"])
        for c in range(3):
            part = flow[:, c].reshape((3, 4, 5), order="F")
            assert np.allclose(part, want["flow"][-1][c], atol=1e-6)
        plane = pyvista.read("u.vti")
        assert np.allclose(np.asarray(plane.cell_data["u"]).reshape((3, 4), order="F"), want["u"][-1])
        points = pyvista.read("a.vtp")
        assert np.array_equal(points.points, want["x"][-1].astype("f4")) and points.n_verts == 20
        assert np.array_equal(points["velocity"], want["v"][-1].astype("f4"))
        assert np.array_equal(points["species"], np.arange(20) % 2)
        for name, of in (("a.pvd", "w"), ("x.pvd", "x")):
            reader = pyvista.get_reader(name)
            assert list(reader.time_values) == time
            for k, t in enumerate(time):
                reader.set_active_time_value(t)
                (block,) = reader.read()
                if of == "w":
                    cells = np.asarray(block.cell_data["w"]).reshape((3, 4, 5), order="F")
                    assert np.allclose(cells, want["w"][k], atol=1e-6)
                else:
                    assert np.array_equal(block.points, want["x"][k].astype("f4"))
        """,
    )


def test_xarray(folder):
    read(
        folder,
        """
        import xarray
        data = xarray.open_dataset("fields-u.vtkhdf", engine="h5netcdf")
        assert data.u.dims == ("time", "z", "y", "x") and list(data.time) == time
        assert np.allclose(data.u[:, 0].transpose("time", "x", "y"), want["u"], atol=1e-6)
        assert np.allclose(data.x, [0.25, 0.75, 1.25]) and list(data.step) == [0, 2, 4, 6]
        deep = xarray.open_dataset("fields-w.vtkhdf", engine="h5netcdf")
        assert np.allclose(deep.w.transpose("time", "x", "y", "z"), want["w"], atol=1e-6)
        assert np.allclose(deep.w.sel(time=1.5).mean(), want["w"][1].mean(), atol=1e-6)
        flow = xarray.open_dataset("fields-flow.vtkhdf", engine="h5netcdf").flow
        assert np.allclose(flow.transpose("time", "component_3", "x", "y", "z"), want["flow"], atol=1e-6)
        """,
    )


def test_ase(folder):
    read(
        folder,
        """
        import ase.io
        atoms = ase.io.read("a.extxyz", ":")
        assert len(atoms) == 4 and atoms[0].cell[0, 0] == 4 and atoms[0].pbc.all()
        assert np.allclose([a.positions for a in atoms], want["x"], atol=1e-6)
        assert atoms[0].get_atomic_numbers().tolist() == [1, 2] * 10
        assert atoms[2].info["Step"] == 4 and atoms[2].info["Time"] == 2.0
        """,
    )


def test_ovito(folder):
    read(
        folder,
        """
        try:
            from ovito.io import import_file
        except ImportError:
            print("read")
            raise SystemExit
        pipeline = import_file("a.extxyz")
        assert pipeline.num_frames == 4
        for k in range(4):
            now = pipeline.compute(k)
            assert np.allclose(now.particles.positions, want["x"][k], atol=1e-6)
            assert np.allclose(now.particles["Velocity"], want["v"][k], atol=1e-6)
            assert np.allclose(now.cell[:, :3], 4 * np.eye(3)) and all(now.cell.pbc)
        """,
    )
