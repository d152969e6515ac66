"""Particles from files of atoms, through ASE's readers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jax.typing import DTypeLike

from physkit.core import ParameterError, UnitSystem, explain_call, metal
from physkit.particles import Particles

from ._ase import from_ase, require_ase


@explain_call
def read_structure(
    path: str | Path,
    units: UnitSystem = metal,
    *,
    index: int = -1,
    format: str | None = None,
    dtype: DTypeLike = float,
    species_names: tuple[str, ...] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Particles:
    """Particles from a file of atoms: extended XYZ, PDB, GRO, LAMMPS data, CIF, POSCAR …, all that ASE reads.

    **Arguments:**

    - `path`: the file.
    - `units`: of the particles.
    - `index`: which frame, where there are several.
    - `format`: by ASE's name, where the file's ending does not say it: `"extxyz"`, `"proteindatabank"`,
      `"gromacs"`, `"lammps-data"` …
    - `dtype`: precision.
    - `species_names`: the numbers of the species by name, where tables of a force are already in an order. For
      LAMMPS data: the elements of its atom types 1, 2 …
    - `options`: further arguments of ASE's reader, such as `{"units": "real", "atom_style": "full"}` for LAMMPS
      data, whose files do not say their units (`metal` by default).

    **Errors:** `ParameterError` for a file that ASE cannot read, with its reason, and for LAMMPS data that give
    neither masses nor names; `MissingExtraError` without ASE.

    **Notes:** topologies and parameters of force fields come through OpenMM: `from_openmm`.
    """
    require_ase()
    from ase.data import atomic_numbers  # pyright: ignore[reportMissingImports]
    from ase.io import read  # pyright: ignore[reportMissingImports]
    from ase.io.formats import filetype  # pyright: ignore[reportMissingImports]

    path, arguments = Path(path), dict(options or {})
    if not path.is_file():
        raise ParameterError(f"{path}: there is no such file")
    try:
        kind = format or filetype(str(path))  # it takes other paths for open files
        if kind == "lammps-data" and "Z_of_type" not in arguments:
            if species_names is not None:
                numbers = [atomic_numbers.get(name, 0) for name in species_names]
                arguments["Z_of_type"] = dict(enumerate(numbers, 1))
            elif not any(line.startswith("Masses") for line in path.read_text().splitlines()):
                # ASE would call the types H, He, Li …, with the masses of these.
                raise ParameterError(
                    f"{path} has no section Masses: give species_names=(…), the elements of its atom types"
                )
        atoms = read(path, index=index, format=kind, **arguments)
    except ParameterError:
        raise
    except Exception as error:  # ASE's readers raise whatever their parsing stumbles on
        reason = str(error) or type(error).__name__
        raise ParameterError(f"{path}: ASE cannot read it: {reason}") from error
    return from_ase(atoms, units, dtype=dtype, species_names=species_names)
