"""Potentials of metals from files, setfl and funcfl."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physkit.core import DamagedFileError, FileError, ParameterError, ShapeError
from physkit.particles.forces import (
    EmbeddedAtom,
    ManyBody,
    read_funcfl,
    read_setfl,
)

from .crystals import CLOCK, FCC, crystal


def write_setfl(path, cut=None, elements=("Xx",)):
    r, rho = np.linspace(0, 2.0, 60), np.linspace(0, 4.0, 50)
    blocks = [-np.sqrt(rho + 0.1), np.exp(-r) * (2 - r) ** 3]
    text = f"made up\n\n\n1 Xx\n50 {rho[1]:.17g} 60 {r[1]:.17g} 1.6\n1 2.0 3.0 fcc\n"
    words = [f"{x:.17g}" for x in np.concatenate([*blocks, (2 - r) ** 3])]
    path.write_text(text + "\n".join(words[:cut]) + "\n")
    return EmbeddedAtom(
        [blocks[0]], [blocks[1]], ((2 - r) ** 3)[None, None], density_spacing=rho[1],
        distance_spacing=r[1], cutoff=1.6, elements=elements,
    )  # fmt: skip


def test_setfl_files(tmp_path):
    expected = write_setfl(tmp_path / "xx.eam.alloy")
    found, atoms = read_setfl(tmp_path / "xx.eam.alloy"), crystal(1.3, FCC, 3, 0.05)
    assert found.elements == ("Xx",)
    with pytest.raises(ShapeError, match="tables of 1 species, but elements Xx, Yy"):
        write_setfl(tmp_path / "two", elements=("Xx", "Yy"))
    # Species without names go by number, whatever they are called.
    unnamed = ManyBody(write_setfl(tmp_path / "none", elements=None))
    named = atoms.replace(species=jnp.zeros(len(atoms.position), jnp.int32), species_names=("Yy",))
    assert unnamed.energy(CLOCK, named) == ManyBody(expected).energy(CLOCK, atoms)
    energies = [ManyBody(p).energy(CLOCK, atoms) for p in (found, expected)]
    assert energies[0] == energies[1]
    write_setfl(tmp_path / "cut.eam.alloy", cut=100)
    with pytest.raises(DamagedFileError, match=r"cut\.eam\.alloy.*cut short"):
        read_setfl(tmp_path / "cut.eam.alloy")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(DamagedFileError, match="no setfl file"):
        read_setfl(tmp_path / "text")
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(FileError, match="cannot be read"):
            read_setfl(path)


def test_elements_of_a_setfl_file_are_those_of_the_particles(tmp_path):
    """Tables by name, in the order of the particles' species; other elements are refused."""
    r, rho = np.linspace(0, 2.0, 60), np.linspace(0, 4.0, 50)
    tables = [[k * f for f in (-np.sqrt(rho + 0.1), np.exp(-r) * (2 - r) ** 3)] for k in (1, 2)]
    pairs = [k * (2 - r) ** 3 for k in (1, 3, 5)]  # Ni–Ni, Al–Ni, Al–Al
    rows = [
        np.concatenate([[28, 58.7, 3.5, 0], *tables[0], [13, 27.0, 4.0, 0], *tables[1], *pairs])
    ]
    head = f"made up\n\n\n2 Ni Al\n50 {rho[1]:.17g} 60 {r[1]:.17g} 1.6\n"
    path = tmp_path / "nial.eam.alloy"
    path.write_text(head + "\n".join(f"{x:.17g}" for x in np.concatenate(rows)))
    atoms = crystal(1.3, FCC, 3, 0.05)
    kinds = jnp.arange(len(atoms.position), dtype=jnp.int32) % 2
    nickel_first = atoms.replace(species=kinds, species_names=("Ni", "Al"))
    aluminum_first = atoms.replace(species=1 - kinds, species_names=("Al", "Ni"))
    as_in_file = ManyBody(read_setfl(path)).energy(CLOCK, nickel_first)
    by_name = ManyBody(read_setfl(path, aluminum_first.species_names))
    np.testing.assert_allclose(by_name.energy(CLOCK, aluminum_first), as_in_file, rtol=1e-12)
    with pytest.raises(ParameterError, match=r"tables for Ni, Al in this order.*are Al, Ni"):
        ManyBody(read_setfl(path)).energy(CLOCK, aluminum_first)
    with pytest.raises(ParameterError, match=r"tables for Ni, Al; there are none for Cu"):
        read_setfl(path, ("Cu",))


def write_funcfl(path, number, spacing, cut=None):
    """Made-up tables of one element: F, Z and ρ."""
    r, rho = spacing * np.arange(81), 0.05 * np.arange(50)
    tables = [
        -np.sqrt(rho + 0.1),
        1.2 * (2 - r) ** 2 * (r < 2),
        np.exp(-r) * (2 - r) ** 3 * (r < 2),
    ]
    words = [f"{x:.17g}" for x in np.concatenate(tables)]
    header = f"made up\n{number} 2.0 3.0 fcc\n50 0.05 81 {spacing:.17g} 1.6\n"
    path.write_text(header + "\n".join(words[:cut]) + "\n")
    return tables


def test_funcfl_files(tmp_path):
    """One file is the tables in it; two of different grids are an alloy, whose parts are those of the files."""
    embedding, charge, density = write_funcfl(tmp_path / "cu", 29, 0.025)
    write_funcfl(tmp_path / "ni", 28, 0.03)
    one, alloy = read_funcfl(tmp_path / "cu"), read_funcfl(tmp_path / "cu", tmp_path / "ni")
    assert one.elements == ("Cu",)
    assert alloy.elements == ("Cu", "Ni")
    expected = EmbeddedAtom(
        [embedding], [density], 27.2 * 0.529 * charge[None, None] ** 2, density_spacing=0.05,
        distance_spacing=0.025, cutoff=1.6,
    )  # fmt: skip
    atoms = crystal(1.3, FCC, 3, 0.05)
    copper = atoms.replace(species=jnp.zeros(len(atoms.position), jnp.int32))
    energy = jax.jit(lambda p, atoms, cache: ManyBody(p).energy(CLOCK, atoms, cache))
    cache = ManyBody(one).init(atoms)
    found = energy(one, atoms, cache)
    np.testing.assert_allclose(found, energy(expected, atoms, cache), rtol=1e-12)
    np.testing.assert_allclose(energy(alloy, copper, cache), found, rtol=1e-6)
    nickel = energy(alloy, atoms.replace(species=copper.species + 1), cache)
    np.testing.assert_allclose(nickel, found, rtol=1e-4)  # the same functions, on another grid
    write_funcfl(tmp_path / "cut", 29, 0.025, cut=200)
    with pytest.raises(DamagedFileError, match=r"cut is no funcfl file, or is cut short: 212 num"):
        read_funcfl(tmp_path / "cut")
    with pytest.raises(ParameterError, match="path of a file"):
        read_funcfl()
