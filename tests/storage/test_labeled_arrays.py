"""Runs and recordings as xarray and pandas objects and as files of columns: the numbers are those recorded."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.storage import write_dataframe


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same run with its frames in memory and in files."""
    particles = pk.Particles([[1.0, 0.0], [0.0, 2.0]])
    sim = pk.Simulation(
        pk.VelocityVerlet(pk.HarmonicTrap(1.0)),
        dt=0.1,
        observers=[
            pk.Every(
                2,
                energy=pk.TotalEnergy(),
                phase=lambda now: jax.lax.complex(jnp.cos(now.clock.t), jnp.sin(now.clock.t)),
            ),
            pk.Every(4, x=pk.Positions(), momentum=pk.quantities.Momentum()),
        ],
    )
    folder = tmp_path_factory.mktemp("runs") / "run"
    return (
        pk.run(sim, particles, 8, progress=False),
        pk.run(sim, particles, 8, to=folder, progress=False),
    )


def test_pandas_joins_what_was_recorded_at_different_intervals(runs):
    pytest.importorskip("pandas", reason="the pandas extra is not installed")
    memory, files = runs
    for run in runs:
        table = run.to_pandas()
        names = ["energy", "phase", "momentum[0]", "momentum[1]"]
        assert set(table.columns) - {"step"} == set(names)
        assert table.index.name == "time"
        np.testing.assert_allclose(table.index, 0.2 * np.arange(5), rtol=1e-15)
        np.testing.assert_array_equal(table["energy"], memory["energy"])
        np.testing.assert_array_equal(
            table["momentum[1]"].isna(), [False, True, False, True, False]
        )
        np.testing.assert_array_equal(table["momentum[1]"].dropna(), memory["momentum"][:, 1])
    assert files.recording.to_pandas()["step"].tolist() == [0, 2, 4, 6, 8]
    assert list(files.recording.to_pandas(["energy"])) == ["step", "energy"]
    for run in (memory, files):  # a name by itself; one twice
        for asked in ("energy", ["energy", "energy"]):
            assert set(run.to_pandas(asked)) - {"step"} == {"energy"}
    assert list(files["momentum"].to_pandas()) == ["step", "momentum[0]", "momentum[1]"]
    for bad in (files.recording["x"].to_pandas, lambda: files.recording.to_pandas(["x"])):
        with pytest.raises(pk.errors.ParameterError, match="scalars and vectors"):
            bad()
    with pytest.raises(pk.errors.ParameterError, match="no frames of speed; available"):
        memory.to_pandas(["speed"])


def test_xarray_has_every_axis_by_name(runs, tmp_path):
    pytest.importorskip("xarray", reason="the xarray extra is not installed")
    memory, files = runs
    data = files.to_xarray()
    # A quantity called x is no axis.
    assert data["x"].dims[1:] == ("particle", "axis")
    # Names come in the order of files: the first interval is called time, the other time_1.
    axes = {name: data[name].dims[0] for name in ("energy", "momentum", "x")}
    assert axes["x"] == axes["momentum"] != axes["energy"]
    assert sorted(set(axes.values())) == ["time", "time_1"]
    for name in ("energy", "x", "momentum"):
        np.testing.assert_allclose(data[name], memory[name], rtol=1e-6)
        np.testing.assert_array_equal(data[axes[name]], files[name].time)
    step = "step" if axes["energy"] == "time" else "step_1"
    assert data[step].to_numpy().tolist() == [0, 2, 4, 6, 8]
    assert data["energy"].attrs == {}
    assert any(name.endswith(".physkit") for name in data.attrs)
    unlabeled = memory.to_xarray()
    assert unlabeled["x"].dims == ("time_1", "x_0", "x_1")
    np.testing.assert_array_equal(unlabeled["x"], memory["x"])
    assert files["x"].to_xarray().sel(time=0.4).shape == (2, 2)
    pytest.importorskip("h5netcdf")
    data[["energy", "x"]].to_netcdf(tmp_path / "run.nc", engine="h5netcdf")


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_files_of_columns_hold_the_table(runs, tmp_path, ending):
    pd = pytest.importorskip("pandas", reason="the pandas extra is not installed")
    pytest.importorskip("pyarrow", reason="the pandas extra is not installed")
    memory, files = runs
    target = tmp_path / f"run.{ending}"
    pk.export(files.to, target, ["energy", "phase", "momentum"], frames=slice(1, None))
    table = getattr(pd, f"read_{ending}")(target)
    assert list(table) == [
        "time", "step", "energy", "phase.real", "phase.imag", "momentum[0]", "momentum[1]",
    ]  # fmt: skip
    # Of each quantity the frames after its first.
    assert table["step"].tolist() == [2, 4, 6, 8]
    np.testing.assert_array_equal(table["energy"], memory["energy"][1:])
    np.testing.assert_array_equal(table["phase.imag"], memory["phase"][1:].imag)
    np.testing.assert_array_equal(table["momentum[0]"].dropna(), memory["momentum"][1:, 0])
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("pandas", lambda run, path: run.to_pandas()),
        ("pandas", lambda run, path: pk.export(run.to, path / "a.parquet")),
        ("xarray", lambda run, path: run.to_xarray()),
        ("xarray", lambda run, path: run["energy"].to_xarray()),
    ],
)
def test_the_missing_extra_is_named(runs, tmp_path, monkeypatch, package, call):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(pk.errors.MissingExtraError, match=rf"pip install physkit\[{package}\]"):
        call(runs[1], tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_threads_may_write_one_file_of_columns_at_once(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas", reason="the pandas extra is not installed")
    pytest.importorskip("pyarrow", reason="the pandas extra is not installed")
    both_write, paths = threading.Barrier(2), []

    def to_parquet(self, path):
        path.write_text(f"{self['x'][0]}")
        paths.append(path)
        both_write.wait(timeout=10)

    monkeypatch.setattr(pandas.DataFrame, "to_parquet", to_parquet)
    target = tmp_path / "a.parquet"
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda x: write_dataframe(target, pandas.DataFrame({"x": [x]})), (1, 2)))
    assert len(set(paths)) == 2
    assert target.read_text() in ("1", "2")
    assert list(tmp_path.iterdir()) == [target]
