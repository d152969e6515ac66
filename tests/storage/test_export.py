"""Recordings in other formats: NumPy, CSV, extended XYZ."""

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import (
    FileError,
    ParameterError,
)
from physkit.geometry import Box
from physkit.observe import Every, Positions, Velocities
from physkit.particles import Particles
from physkit.storage import export, open as open_file

from .recordings import numbers, output

# What the fast suite runs of this file; `make test-all` runs the rest, too.
FAST_CASES = (
    "test_a_path_in_the_home",
    "test_export_to_extended_xyz[2]",
    "test_one_frame_or_series_by_itself",
)


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


def test_one_frame_or_series_by_itself(tmp_path):
    frames = recorded(tmp_path / "r")
    for number in (1, -1):
        with np.load(export(tmp_path / "r", tmp_path / "a.npz", "x", frames=number)) as found:
            np.testing.assert_array_equal(found["x"], frames["x"].astype("f4")[[number]])
            assert "v" not in found
    for none in (7, slice(9, None)):
        with pytest.raises(ParameterError, match="no frame of series of 5 and fewer"):
            export(tmp_path / "r", tmp_path / "b.npz", frames=none)
    assert not (tmp_path / "b.npz").exists()
    for wrong in (slice(0.0, 2.0), slice("0", None)):
        with pytest.raises(ParameterError, match="one frame's number or a slice"):
            export(tmp_path / "r", tmp_path / "b.npz", frames=wrong)


def test_a_path_in_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    recorded(tmp_path / "r")
    assert export("~/r", "~/a.npz") == tmp_path / "a.npz"
    assert (tmp_path / "a.npz").exists()


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
