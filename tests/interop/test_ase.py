"""Particles from and to ASE, and forces as its calculators."""

import jax
import numpy as np
import pytest

import physkit as pk
from physkit import interop, units
from physkit.core import ParameterError
from physkit.storage import load_component

ase = pytest.importorskip("ase")


def shaken(atoms, seed=0):
    rng = np.random.default_rng(seed)
    # Across the borders of the cell, so that images count.
    atoms.positions += rng.normal(0, 0.05, atoms.positions.shape) - 3
    atoms.set_momenta(rng.normal(0, 1, atoms.positions.shape))
    return atoms


def argon():
    from ase.build import bulk

    return shaken(bulk("Ar", "fcc", a=5.26, cubic=True).repeat(2))


@pytest.mark.parametrize("system", ["metal", "molecular", "SI"])
def test_atoms_come_back_as_they_went(system):
    from ase.build import bulk
    from ase.constraints import FixAtoms

    with jax.enable_x64(True):
        unit = getattr(units, system)
        for atoms in (argon(), shaken(bulk("NaCl", "rocksalt", a=5.64).repeat(2))):
            atoms.set_initial_charges(np.arange(len(atoms)) - 0.5)
            atoms.set_constraint(FixAtoms([1, 4]))
            particles = interop.from_ase(atoms, unit)
            assert np.all((particles.position >= 0) | (particles.space.cell(3)[0, 1] != 0))
            np.testing.assert_allclose(particles.mass[0], atoms.get_masses()[0] * unit.dalton)
            back = interop.to_ase(particles, unit)
            assert back.get_chemical_symbols() == atoms.get_chemical_symbols()
            assert back.pbc.tolist() == atoms.pbc.tolist()
            for name in ("positions", "momenta", "masses", "initial_charges"):
                np.testing.assert_allclose(
                    back.arrays[name], atoms.arrays.get(name, atoms.get_masses()), atol=1e-12
                )
            np.testing.assert_allclose(back.cell, atoms.cell, atol=1e-12)
            assert back.constraints[0].get_indices().tolist() == [1, 4]


def test_cells_without_a_length_and_open_ones():
    molecule = ase.Atoms("OH", [[0, 0, 0], [0, 0, 1.0]])
    assert isinstance(interop.from_ase(molecule).space, pk.Free)
    slab = ase.Atoms("Cu", [[0, 0, 0.0]], cell=[2.5, 2.5, 0], pbc=[True, True, False])
    assert interop.from_ase(slab).space.periodic == (True, True, False)
    slab.set_cell([[2.5, 0, 0], [1.0, 2.5, 0], [0, 0, 9]])
    with pytest.raises(ParameterError, match="tilted cell that is periodic along some axes only"):
        interop.from_ase(slab)
    slab.set_cell([2.5, 2.5, 0])
    slab.set_pbc(True)
    with pytest.raises(ParameterError, match="no length along a periodic axis"):
        interop.from_ase(slab)


def test_fixed_bonds_come_back_as_they_went():
    from ase.build import molecule
    from ase.constraints import FixAtoms, FixBondLengths

    with jax.enable_x64(True):
        water = molecule("H2O", cell=[9.0] * 3, pbc=True)
        pairs = [[0, 1], [0, 2], [1, 2]]
        distances = [water.get_distance(i, j) for i, j in pairs]
        # Across a border of the cell; lengths as the atoms have them, or as they are given.
        water.positions -= water.positions[1] - 1e-3
        for given in (None, distances):
            water.set_constraint([FixBondLengths(pairs, bondlengths=given)])
            particles = interop.from_ase(water, units.molecular)
            (part,) = particles.constraints.parts
            np.testing.assert_allclose(part.lengths, 0.1 * np.array(distances), rtol=1e-12)
            back = interop.to_ase(particles, units.molecular)
            (fixed,) = back.constraints
            assert fixed.pairs.tolist() == pairs
            np.testing.assert_allclose(fixed.bondlengths, distances, rtol=1e-12)
        rigid = pk.RigidWater([[0, 1, 2]], 0.1 * distances[0], 0.1 * distances[2])
        atoms = particles.replace(constraints=None)
        atoms = pk.Particles(
            atoms.position, mass=atoms.mass, space=atoms.space, constraints=rigid,
            species=atoms.species, species_names=atoms.species_names,
        )  # fmt: skip
        (fixed,) = interop.to_ase(atoms, units.molecular).constraints
        assert fixed.pairs.tolist() == pairs
        np.testing.assert_allclose(fixed.bondlengths, distances, rtol=1e-12)
        # Beside frozen ones.
        water.set_constraint([FixBondLengths(pairs[:1]), FixAtoms([2])])
        kinds = [type(c) for c in interop.to_ase(interop.from_ase(water)).constraints]
        assert kinds == [FixAtoms, FixBondLengths]


def test_other_constraints_are_named():
    from ase.constraints import FixedPlane

    molecule = ase.Atoms("OH", [[0, 0, 0], [0, 0, 1.0]])
    molecule.set_constraint(FixedPlane(0, [0, 0, 1]))
    with pytest.raises(ParameterError, match="FixedPlane"):
        interop.from_ase(molecule)


def test_what_is_no_atoms_or_has_none_is_said():
    with pytest.raises(ParameterError, match="take one frame"):
        interop.from_ase([ase.Atoms("Ar")])
    with pytest.raises(ParameterError, match="got a Particles"):
        interop.from_ase(interop.from_ase(ase.Atoms("Ar")))
    with pytest.raises(ParameterError, match="no atoms"):
        interop.from_ase(ase.Atoms())


def test_calculator_is_that_of_ase():
    from ase.calculators.lj import LennardJones

    with jax.enable_x64(True):
        atoms = argon().repeat(2)
        reference = atoms.copy()
        reference.calc = LennardJones(epsilon=0.0103, sigma=3.405, rc=8.0, smooth=False)
        force = pk.Pairwise(pk.LennardJones(0.0103, 3.405), cutoff=8.0, truncation="shifted")
        kelvin = pk.Pairwise(
            pk.LennardJones(0.0103 * units.molecular.electronvolt, 0.3405),
            cutoff=0.8,
            truncation="shifted",
        )
        cases = (
            interop.ase_calculator(force),
            interop.ase_calculator(kelvin, units.molecular),
        )
        for calculator in cases:
            atoms.calc = calculator
            energy = reference.get_potential_energy()
            np.testing.assert_allclose(atoms.get_potential_energy(), energy, rtol=1e-12)
            np.testing.assert_allclose(atoms.get_forces(), reference.get_forces(), atol=1e-12)
            np.testing.assert_allclose(atoms.get_stress(), reference.get_stress(), atol=1e-14)


@pytest.mark.parametrize("pbc", [(True, True, False), (False, False, False)])
def test_cells_with_open_axes_have_energies_and_no_stress(pbc):
    """Slabs, and molecules in a cell: there is no volume that a stress could be over."""
    pair = ase.Atoms("Ar2", [[1, 1, 1], [1, 1, 5.0]], cell=[20, 20, 20], pbc=pbc)
    pair.calc = interop.ase_calculator(pk.Pairwise(pk.LennardJones(0.01, 3.4), cutoff=9.0))
    alone = interop.single_point(
        pk.Pairwise(pk.LennardJones(0.01, 3.4), cutoff=9.0), pk.Particles(pair.positions)
    )
    assert pair.get_potential_energy() == pytest.approx(alone.energy, rel=1e-5)
    np.testing.assert_allclose(pair.get_forces(), alone.force, rtol=1e-4, atol=1e-9)
    with pytest.raises(NotImplementedError, match="stress"):
        pair.get_stress()


def test_a_single_point_has_derivatives_by_the_force():
    """That of a pair's force by the depth of its well is the force over the depth."""
    pair = pk.Particles([[0.0], [1.5]])

    def push(epsilon):
        force = pk.Pairwise(pk.LennardJones(epsilon), use_neighbor_list=False)
        return interop.single_point(force, pair).force[0, 0]

    value, slope = jax.jit(jax.value_and_grad(push))(2.0)
    assert slope == pytest.approx(float(value) / 2, rel=1e-5)
    assert value == pytest.approx(2 * 24 * (1.5**-7 - 2 * 1.5**-13), rel=1e-5)


def test_single_point_in_open_space_has_no_stress():
    found = interop.single_point(
        pk.Pairwise(pk.LennardJones()), pk.Particles([[0.0], [1.5]], [[3.0], [0.0]])
    )
    assert found.stress is None
    exact = 4 * (1.5**-12 - 1.5**-6)
    np.testing.assert_allclose(found.energy, exact, rtol=1e-5)
    slope = 4 * (12 * 1.5**-13 - 6 * 1.5**-7)
    np.testing.assert_allclose(found.force, [[-slope], [slope]], rtol=1e-5)


@pytest.mark.parametrize("format", ["extxyz", "proteindatabank", "gromacs", "lammps-data"])
def test_structures_are_read(format, tmp_path):
    from ase.io import write

    atoms = argon()
    atoms.wrap()
    path = tmp_path / "structure"
    write(path, atoms, format=format)
    if format == "extxyz":  # without a format, the file itself says what it is
        named = path.rename(tmp_path / "structure.extxyz")
        assert interop.read_structure(named).species_names == ("Ar",)
        path = named
    if format == "lammps-data":
        with pytest.raises(ParameterError, match="no section Masses"):
            interop.read_structure(path, format=format)
    # Names that other tables count in another order are kept, too.
    names = ("Ar",) if format == "lammps-data" else ("Ne", "Ar")
    read = interop.read_structure(path, format=format, species_names=names)
    assert read.species_names == names
    assert np.all(read.species == names.index("Ar"))
    np.testing.assert_allclose(read.mass, 39.95, atol=0.01)
    apart = read.space.displacement(read.position, interop.from_ase(atoms).position)
    assert np.abs(apart).max() < 6e-3  # GRO has three decimals of nm
    np.testing.assert_allclose(np.diag(read.space.cell(3)), 10.52, atol=1e-3)


def test_unreadable_structures_say_why(tmp_path):
    with pytest.raises(ParameterError, match="no such file"):
        interop.read_structure(tmp_path / "none.pdb")
    broken = tmp_path / "broken.extxyz"
    broken.write_text('3\nLattice="1 0 0 0 1 0 0 0 1"\nAr 0 0 0\n')
    with pytest.raises(ParameterError, match=r"broken\.extxyz: ASE cannot read it"):
        interop.read_structure(broken)


def test_exported_species_keep_their_names(tmp_path):
    """Argon that is recorded goes out as Ar; names that are no elements stand in a column."""
    from ase.io import read

    for names, symbols in ((("Ar", "Ne"), ["Ar", "Ne", "Ar"]), (("OW", "H"), ["X", "H", "X"])):
        atoms = pk.Particles(
            np.eye(3), space=pk.Box([9.0] * 3), species=[names[0], names[1], names[0]]
        )
        assert atoms.species_names == names
        record = pk.Every(1, x=pk.Positions())
        sim = pk.Simulation(pk.VelocityVerlet(pk.HarmonicTrap(1.0)), dt=0.1, observers=record)
        path = tmp_path / f"run-{names[0]}"
        pk.run(sim, atoms, 1, to=path, progress=False)
        found = read(pk.export(path, tmp_path / f"{names[0]}.extxyz"), index=-1)
        assert found.get_chemical_symbols() == symbols
        if symbols[0] == "X":
            assert found.arrays["species_name"].tolist() == ["OW", "H", "OW"]
        loaded = load_component(pk.open(path)["x"], quiet=True)
        assert loaded.species_names == names
        assert loaded.species.tolist() == [0, 1, 0]
