"""Particles come back from a file, and from an export in the hands of ASE, as they were."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from physkit.geometry import Box, Triclinic
from physkit.observe import Every, Positions, Velocities
from physkit.particles import Particles
from physkit.storage import export, load_component, open as open_file

from .recordings import numbers, output

SLAB = Box([4.0, 5.0, 6.0], (True, True, False))
TILTED = [[4.0, 0, 0], [1, 4, 0], [0, 0, 4]]
SPACES = [
    (SLAB, "T T F"),
    (Box([4.0, 5.0, 6.0], False), "F F F"),
    (Box([4.0, 5.0], (False, True)), "F T F"),
    (Triclinic(TILTED), "T T T"),
]


def write(folder, space, *, velocities=True):
    d = _dimension(space)
    state = Particles(
        jnp.zeros((3, d)),
        mass=jnp.array([3.0, 1.0, 2.0]),
        charge=jnp.array([0.0, 1.0, -1.0]),
        species=jnp.array([1, 0, 1]),
        id=jnp.array([2, 0, 1]),
        space=space,
    )
    frames = {"x": numbers(4, 3, d)} | ({"v": numbers(4, 3, d) + 1} if velocities else {})
    more = {"v": Velocities()} if velocities else {}
    output(folder, (Every(2, x=Positions(), **more),), state, **frames)
    return frames


@pytest.mark.parametrize(("space", "pbc"), SPACES, ids=["slab", "walls", "plane", "tilted"])
def test_the_cell_of_partly_periodic_boxes_comes_back(tmp_path, space, pbc):
    write(tmp_path, space)
    found = load_component(open_file(tmp_path)["x"], 1).space
    assert type(found) is type(space)
    d = _dimension(space)
    np.testing.assert_array_equal(found.cell(d), space.cell(d))
    assert found.periodic_axes(d) == space.periodic_axes(d)
    comment = export(tmp_path, tmp_path / "a.extxyz").read_text().splitlines()[1]
    assert f'pbc="{pbc}"' in comment
    lattice = np.array(re.search('Lattice="(.*?)"', comment)[1].split(), float).reshape(3, 3)
    np.testing.assert_array_equal(lattice[:d, :d], space.cell(d))


def test_columns_of_extended_xyz_are_those_of_ase(tmp_path):
    frames = write(tmp_path, SLAB)
    lines = export(tmp_path, tmp_path / "a.extxyz").read_text().splitlines()
    assert (
        "Properties=species:S:1:pos:R:3:velo:R:3:momenta:R:3:masses:R:1:initial_charges:R:1:"
        "species_number:I:1:id:I:1 "
    ) in lines[1]
    name, *rest = lines[2 + 1].split()
    v = frames["v"][0, 1].astype("f4")
    expected = [*frames["x"][0, 1].astype("f4"), *v, *(2 * v), 2, -1, 1, 1]
    assert name == "He"
    np.testing.assert_array_equal(np.array(rest, "f4"), np.array(expected, "f4"))


def test_ase_reads_velocities_masses_charges_and_cell(tmp_path):
    io = pytest.importorskip("ase.io")
    frames = write(tmp_path, SLAB)
    found = io.read(export(tmp_path, tmp_path / "a.extxyz"), index=2)
    np.testing.assert_allclose(found.positions, frames["x"][2], atol=1e-6)
    np.testing.assert_allclose(found.get_velocities(), frames["v"][2], atol=1e-6)
    assert found.get_masses().tolist() == [1, 2, 3]
    assert found.get_initial_charges().tolist() == [1, -1, 0]
    assert found.pbc.tolist() == [True, True, False]
    np.testing.assert_array_equal(found.cell.lengths(), [4, 5, 6])
    assert found.get_chemical_symbols() == ["H", "He", "He"]
    assert found.arrays["species_number"].tolist() == [0, 1, 1]
    assert found.arrays["id"].tolist() == [0, 1, 2]


def test_velocities_that_were_not_recorded_are_said_to_be_zero(tmp_path):
    write(tmp_path, SLAB, velocities=False)
    positions = open_file(tmp_path)["x"]
    with pytest.warns(UserWarning, match="x was recorded without velocities, which are zero here"):
        assert not np.any(load_component(positions).velocity)
    load_component(positions, quiet=True)
    assert "velo" not in export(tmp_path, tmp_path / "a.xyz").read_text()
    assert "velocity" not in export(tmp_path, tmp_path / "a.vtp").read_text()


def test_velocities_are_those_of_the_same_component(tmp_path):
    state = {"a": Particles(jnp.zeros((2, 3))), "b": Particles(jnp.zeros((2, 3)))}
    observers = (
        Every(1, va=Velocities("a"), xb=Positions("b"), vb=Velocities("b"), xa=Positions("a")),
    )
    frames = {name: numbers(3, 2, 3) + k for k, name in enumerate(("va", "xb", "vb", "xa"))}
    output(tmp_path, observers, state, **frames)
    for name in "ab":
        found = load_component(open_file(tmp_path)[f"x{name}"], 1).velocity
        np.testing.assert_allclose(found, frames[f"v{name}"][1], atol=1e-6)


def _dimension(space):
    return 2 if isinstance(space, Box) and len(space.periodic) == 2 else 3
