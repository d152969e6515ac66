"""Fields from and to xarray and netCDF; states as NumPy arrays."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk


@pytest.fixture(scope="module")
def xr():
    return pytest.importorskip("xarray", reason="the xarray extra is not installed")


def labeled(xr, n=(6, 4), spacing=(0.5, 0.25), origin=(10.0, -1.0), *, values=None):
    x, y = (o + h * (0.5 + np.arange(m)) for o, h, m in zip(origin, spacing, n, strict=True))
    values = np.sin(x)[:, None] * np.cos(y)[None, :] if values is None else values
    labels = {"lat": ("lat", y, {"units": "degrees"}), "lon": ("lon", x, {"units": "degrees"})}
    return xr.DataArray(values.T, labels, ("lat", "lon"), name="temperature", attrs={"units": "K"})


def test_a_field_comes_back_as_it_was(xr):
    array = labeled(xr)
    found = pk.interop.from_xarray(
        array, axes=("lon", "lat"), periodic=(True, False), boundary=pk.boundaries.Neumann()
    )
    grid = found.field.grid
    assert grid.shape == (6, 4)
    assert grid.periodic == (True, False)
    np.testing.assert_allclose(grid.space.lengths, [3.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(found.origin, [10.0, -1.0], rtol=1e-13)
    assert (found.name, found.units, found.axis_units) == ("temperature", "K", ("degrees",) * 2)
    np.testing.assert_array_equal(found.field.data, array.to_numpy().T)
    again = pk.interop.to_xarray(found)
    xr.testing.assert_allclose(again, array.transpose("lon", "lat"), rtol=1e-13)
    assert again.attrs == array.attrs
    assert again["lon"].attrs == array["lon"].attrs
    # The field is one that equations move: its boundary is known.
    assert jnp.all(jnp.isfinite(pk.operators.laplacian(found.field, pk.schemes.Central(2)).data))


def test_nodes_include_both_walls_and_components_come_first(xr):
    x = np.linspace(0.0, 2.0, 5)
    data = np.arange(10, dtype=np.float32).reshape(5, 2)
    array = xr.DataArray(data, {"x": x}, ("x", "component"))
    node = pk.spaces.Location((True,))
    wall = pk.boundaries.Neumann()
    found = pk.interop.from_xarray(array, periodic=False, location=node, boundary=wall)
    assert found.field.grid.shape == (4,)
    assert found.origin == (0.0,)
    assert found.field.components == (2,)
    assert found.field.data.dtype == jnp.float32
    np.testing.assert_array_equal(found.field.data, data.T)
    back = pk.interop.to_xarray(found.field, name="u", units="m/s")
    assert back.dims == ("component_0", "x")
    np.testing.assert_allclose(back["x"], x)
    assert (back.name, back.attrs["units"]) == ("u", "m/s")


def test_a_netcdf_file_is_read(xr, tmp_path):
    pytest.importorskip("h5netcdf")
    array = labeled(xr)
    path = tmp_path / "sea.nc"
    xr.Dataset({"temperature": array, "depth": 2 * array}).to_netcdf(path, engine="h5netcdf")
    found = pk.interop.from_xarray(path, name="depth", axes=("lon", "lat"))
    np.testing.assert_array_equal(found.field.data, 2 * array.to_numpy().T)
    assert found.axis_units == ("degrees", "degrees")
    with pytest.raises(pk.errors.ParameterError, match=r"which of .*'temperature'"):
        pk.interop.from_xarray(path)
    with pytest.raises(pk.errors.FileError, match="cannot be read"):
        pk.interop.from_xarray(tmp_path / "gone.nc")


def test_a_recorded_field_opens_as_it_was(xr, tmp_path):
    grid = pk.Grid([2.0, 1.0], (8, 4))
    start = pk.Field.from_function(grid, lambda x, y: jnp.sin(jnp.pi * x) + y)
    sim = pk.Simulation(
        pk.RK4(pk.equations.Diffusion(0.01)), dt=0.01, observers=pk.Every(1, u=pk.FieldValues())
    )
    pk.run(sim, start, 2, to=tmp_path / "run", progress=False)
    frames = pk.open(tmp_path / "run").to_xarray()
    assert frames["u"].dims == ("time", "x", "y")
    found = pk.interop.from_xarray(frames["u"].isel(time=0))
    assert found.origin == pytest.approx((0.0, 0.0), abs=1e-6)
    np.testing.assert_allclose(found.field.data, start.data, rtol=1e-6)
    np.testing.assert_allclose(found.field.grid.space.lengths, [2.0, 1.0], rtol=1e-6)


def test_what_is_no_grid_is_refused(xr):
    array = labeled(xr)
    uneven = array.assign_coords(lon=array["lon"].to_numpy() ** 2)
    holes = labeled(xr, values=np.where(np.eye(6, 4) > 0, np.nan, 1.0))
    axes = ("lon", "lat")
    for bad, says in (
        (uneven, "one spacing along 'lon'"),
        (array.sortby("lat", ascending=False), r"fall: array.sortby\('lat'\)"),
        (array.drop_vars("lat"), "'lat' has no coordinates"),
        (array.isel(lon=[0]), "two numbers or more"),
        (holes, "4 of 24 values are missing"),
        (array.expand_dims("time"), "one moment"),
        (np.zeros(3), "DataArray"),
    ):
        with pytest.raises(pk.errors.ParameterError, match=says):
            pk.interop.from_xarray(bad, axes=axes)
    with pytest.raises(pk.errors.ParameterError, match="names the one to three dimensions"):
        pk.interop.from_xarray(array)
    with pytest.raises(pk.errors.ParameterError, match="has not the 2 axes"):
        pk.interop.from_xarray(array, axes=axes, location=pk.spaces.Location((True,)))
    # Rounded coordinates, as files have them, are regular.
    rounded = array.assign_coords(lon=array["lon"].astype(np.float32) + 1000)
    assert pk.interop.from_xarray(rounded, axes=axes).field.grid.shape == (6, 4)


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    with pytest.raises(pk.errors.MissingExtraError, match=r"from_xarray needs xarray.*\[xarray\]"):
        pk.interop.from_xarray("sea.nc")


def test_numbers_of_a_state():
    box = pk.Box([4.0, 4.0])
    atoms = pk.Particles(np.ones((3, 2)), 2.0 * np.ones((3, 2)), [1.0, 2.0, 3.0], box)
    state = {"atoms": atoms, "field": pk.Field(1.5, pk.Grid(box, (2, 2))), "y": (1.0, jnp.ones(2))}
    found = pk.interop.to_numpy(state)
    assert isinstance(found["atoms"]["velocity"], np.ndarray)
    np.testing.assert_array_equal(found["atoms"]["mass"], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found["atoms"]["space"]["lengths"], [4.0, 4.0])
    assert "charge" not in found["atoms"]
    np.testing.assert_array_equal(atoms.to_numpy()["velocity"], found["atoms"]["velocity"])
    assert list(state["field"].to_numpy()) == list(found["field"])
    np.testing.assert_array_equal(found["field"]["data"], np.full((2, 2), 1.5))
    assert all(isinstance(x, np.ndarray) for x in jax.tree.leaves(found))
    layer = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    assert pk.interop.to_numpy({"net": layer})["net"]["weight"].shape == (3, 2)
    # And in again.
    again = pk.Particles(found["atoms"]["position"], found["atoms"]["velocity"], space=box)
    np.testing.assert_array_equal(again.velocity, atoms.velocity)
    key = pk.interop.to_numpy(jax.random.key(3))
    np.testing.assert_array_equal(key, jax.random.key_data(jax.random.key(3)))
    with pytest.raises(pk.errors.DeclarationError, match="not inside of jit"):
        jax.jit(lambda x: pk.interop.to_numpy(x)["mass"].sum())(atoms)
