"""How many programs are compiled where files are read: none, or one for what is computed of all particles."""

import dataclasses

import jax
import numpy as np
import pytest

import physkit as pk
from physkit import interop, systems
from physkit.geometry import SphericalGrid
from tests.simulate.test_compilations import compiled_programs


def vortices():
    sim, state = systems.taylor_green_2d(resolution=8)
    return sim, state, {"seen": pk.FieldValues(), "number": pk.quantities.Enstrophy()}


def sphere():
    sim, state = systems.rossby_haurwitz_wave(truncation=6)
    return sim, state, {"seen": pk.FieldValues()}


def planets():
    sim, state = systems.kepler()
    return sim, state, {"seen": pk.Positions(), "v": pk.Velocities(), "number": pk.TotalEnergy()}


def liquid():
    sim, state = systems.lennard_jones_melt(4)
    return sim, state, {"seen": pk.Positions(), "v": pk.Velocities(), "number": pk.TotalEnergy()}


@pytest.fixture(
    scope="module",
    params=[vortices, planets, pytest.param(sphere), pytest.param(liquid, marks=pytest.mark.slow)],
    ids=lambda build: build.__name__,
)
def run(request, tmp_path_factory):
    """A folder with a run, and its last carry; programs that wrote it are gone from JAX's caches."""
    sim, state, outputs = request.param()
    sim = dataclasses.replace(sim, observers=(pk.Every(1, **outputs),), guards=())
    folder = tmp_path_factory.mktemp("programs") / "run"
    done = pk.run(sim, state, 2, key=jax.random.key(0), to=folder, progress=False)
    jax.clear_caches()
    return folder, done.carry


def test_recordings_are_read_without_programs(run):
    folder, _ = run
    with compiled_programs() as programs:
        recording = pk.open(folder)
        assert "seen" in repr(recording)
        for series in recording.values():
            assert np.all(np.isfinite(series))
            assert len(series[-2:]) == 2
            assert series.time[0] < series.time[-1]
        recording.to_xarray()
        if "number" in recording:
            assert len(recording.to_pandas(["number"])) == 3
        for kind in ("trajectory.h5md", "fields.vtkhdf", "series.h5"):
            if (folder / kind).is_file():
                assert all(len(series) == 3 for series in pk.open(folder / kind).values())
    assert not programs


def test_frames_are_made_components_without_programs(run):
    with compiled_programs() as programs:
        component = pk.storage.load_component(pk.open(run[0])["seen"], 1)
    assert isinstance(component, pk.Field | pk.Particles)
    assert not programs


def test_checkpoints_are_read_without_programs(run):
    folder, carry = run
    newest = pk.Checkpoints(folder / "checkpoints").paths()[0]
    with compiled_programs() as programs:
        found = pk.load_checkpoint(newest, carry)
    assert found.step == 2
    assert not programs


def test_recordings_are_exported_without_programs(run, tmp_path):
    recording = pk.open(run[0])
    with compiled_programs() as programs:
        pk.export(recording, tmp_path / "all.npz")
        if "v" in recording:
            for ending in ("xyz", "extxyz", "pvd"):
                pk.export(recording, tmp_path / f"all.{ending}", ["seen"])
        if "number" in recording:
            pk.export(recording, tmp_path / "number.csv", ["number"])
    assert not programs


def test_a_sphere_is_made_without_programs():
    jax.clear_caches()
    with compiled_programs() as programs:
        grid = SphericalGrid(2.0, 5)
    assert not programs
    assert float(grid.radius) == 2.0


def test_labeled_fields_are_read_and_written_without_programs():
    xarray = pytest.importorskip("xarray")
    points = {"x": np.arange(5) + 0.5, "y": np.arange(6) + 0.5}
    array = xarray.DataArray(np.ones((5, 6)), points, ("x", "y"))
    jax.clear_caches()
    with compiled_programs() as programs:
        assert interop.to_xarray(interop.from_xarray(array)).shape == (5, 6)
    assert not programs


def counts(read):
    """How many programs are compiled where a file is read, and where it is read again."""
    jax.clear_caches()
    with compiled_programs() as programs:
        read()
        first = len(programs)
        read()
    return first, len(programs) - first


@pytest.mark.parametrize("cubic", [True, False])
def test_atoms_of_ase_are_wrapped_and_unwrapped_by_a_program_each(cubic):
    build = pytest.importorskip("ase.build")
    atoms = build.bulk("Cu", cubic=cubic).repeat(2)
    atoms.positions += 10
    assert counts(lambda: interop.from_ase(atoms)) == (1, 0)
    particles = interop.from_ase(atoms)
    assert counts(lambda: interop.to_ase(particles)) == (1, 0)


def test_atoms_of_mdanalysis_are_wrapped_by_one_program():
    package = pytest.importorskip("MDAnalysis")
    universe = package.Universe.empty(4, trajectory=True)
    universe.atoms.positions = np.arange(12.0).reshape(4, 3)
    universe.dimensions = [5, 5, 5, 90, 90, 90]
    assert counts(lambda: interop.from_mdanalysis(universe)) == (1, 0)


def test_a_system_of_openmm_is_few_programs():
    pytest.importorskip("openmm")
    from openmm import app

    pdb = app.PDBFile(str(systems.alanine_dipeptide_pdb()))
    field = app.ForceField("amber14-all.xml", "amber14/tip3p.xml")
    system = field.createSystem(pdb.topology, constraints=app.HBonds)
    first, second = counts(lambda: interop.from_openmm(system, pdb.topology, pdb.positions))
    assert first <= 8  # mixing rules and checks of constraints
    assert second == 0
