"""Sweeps as tables: pandas objects, Parquet and Feather files, by Python and by the command line."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.cli import main

from .sweep_problems import angle, damping, pendulum

pd = pytest.importorskip("pandas", reason="the pandas extra is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four members, of which the third fails, with a swept vector."""
    folder = tmp_path_factory.mktemp("tables") / "sweep"
    over = pk.designs.zip_axes(
        pk.SweepAxis(damping, [0.1, 0.2, -1e8, 0.4], name="damping"),
        pk.SweepAxis(lambda m: m[1], jnp.arange(8.0).reshape(4, 2) / 8, name="start"),
    )
    pk.sweep(pendulum(), 20, over=over, chunk_size=3, to=folder, progress=False)
    return folder


def test_a_row_for_each_member(folder):
    swept = pk.open(folder)
    table = swept.to_pandas()
    assert list(table) == ["damping", "start[0]", "start[1]", "point", "ok", "last angle"]
    assert table.index.name == "member"
    assert table["ok"].tolist() == [1, 1, 0, 1]
    np.testing.assert_array_equal(table["start[1]"], swept.coordinates["start"][:, 1])
    np.testing.assert_array_equal(table["last angle"], swept["angle"][:, -1])


def test_a_row_for_each_member_and_time(folder):
    swept = pk.open(folder)
    table = swept.to_pandas(frames=True)
    assert table.index.names == ["member", "time"]
    assert list(table)[-3:] == ["angle", "state[0]", "state[1]"]
    assert len(table) == 4 * 5
    np.testing.assert_array_equal(table.loc[1, "state[1]"], swept["state"][1, :, 1])
    np.testing.assert_array_equal(table.loc[3].index, swept.times["angle"])
    np.testing.assert_array_equal(table["damping"], np.repeat(swept.coordinates["damping"], 5))
    last = swept.to_pandas(frames=slice(-1, None))
    np.testing.assert_array_equal(last["angle"], swept["angle"][:, -1])


def test_files_hold_the_tables(folder, tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyarrow", reason="the pandas extra is not installed")
    monkeypatch.chdir(tmp_path)
    swept = pk.open(folder)
    assert main(["export", str(folder), "--to", "members.parquet"]) == 0
    table = pd.read_parquet("members.parquet").set_index("member")
    pd.testing.assert_frame_equal(table, swept.to_pandas())
    assert main(["export", str(folder), "--to", "frames.feather", "--frames", "::2"]) == 0
    frames = pd.read_feather("frames.feather")
    assert list(frames)[:3] == ["member", "time", "damping"]
    assert len(frames) == 4 * 3
    # What `collect` writes is the same; one of four members has failed.
    assert main(["sweep", "collect", str(folder), "--to", "again.parquet"]) == 1
    pd.testing.assert_frame_equal(pd.read_parquet("again.parquet").set_index("member"), table)
    assert main(["export", str(folder), "--to", "members.csv"]) == 0
    # Written as text, so the same to the last digit.
    np.testing.assert_array_equal(pd.read_csv("members.csv")["damping"], table["damping"])
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "again.parquet", "frames.feather", "members.csv", "members.parquet",
    ]  # fmt: skip
    capsys.readouterr()
    for words, says in (
        (["angle", "--to", "a.parquet"], "give no names"),
        (["--to", "a.xyz"], "the ending is one of .csv, .parquet"),
        (["--to", "a.csv", "--frames", "3"], "a row for each member and frame"),
        (["--to", "members.csv"], "is there already"),
    ):
        assert main(["export", str(folder), *words]) == 2
        assert says in capsys.readouterr().err


def test_without_frames_there_is_no_row_for_each_time(folder):
    swept = pk.sweep(
        pendulum(),
        10,
        over=pk.SweepAxis(angle, [0.1, 0.2], name="angle"),
        keep=False,
        progress=False,
    )
    assert list(swept.to_pandas()) == ["angle", "point", "ok"]
    with pytest.raises(pk.errors.ParameterError, match="no scalars or vectors"):
        swept.to_pandas(frames=True)


def test_results_that_are_vectors_have_a_column_for_each_number():
    temperature = pk.SweepAxis(
        lambda m: pk.find(m, pk.Brownian).temperature, [0.05, 9.0], name="kT"
    )
    told = []
    swept = pk.sweep(
        pk.systems.double_well(), 400, over=temperature, key=0, progress=False, on_chunk=told.append
    )
    table = swept.to_pandas()
    assert list(table) == ["kT", "point", "ok", "escape[0]"]
    np.testing.assert_array_equal(table["escape[0]"], swept["escape"][:, 0])
    # A logger gets single numbers, not every bin of a histogram.
    assert list(told[0].metrics()) == ["members", "failed"]


def test_a_logger_is_not_told_of_vectors_that_are_swept():
    trapped = pk.Simulation(
        pk.VelocityVerlet(pk.HarmonicTrap([1.0, 2.0])),
        dt=0.1,
        observers=pk.Every(1, e=pk.TotalEnergy()),
    )
    stiffness = pk.SweepAxis(
        lambda m: pk.find(m, pk.HarmonicTrap).stiffness, [[1.0, 2.0], [3.0, 4.0]], name="k"
    )
    told = []
    swept = pk.sweep(
        (trapped, pk.Particles([[1.0, 0.0]])), 2, over=stiffness, progress=False,
        on_chunk=told.append,
    )  # fmt: skip
    assert list(swept.to_pandas()) == ["k[0]", "k[1]", "point", "ok", "last e"]
    assert list(told[0].metrics()) == ["members", "failed", "mean last e"]
