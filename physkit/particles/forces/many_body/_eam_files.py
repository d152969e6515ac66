"""Potentials of the embedded-atom method from files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from physkit.core import DamagedFileError, FileError, ParameterError

from ._embedded_atom import EmbeddedAtom

# Z(r) in files is in √(Hartree · Bohr radius), by the constants that the files were fitted with.
_HARTREE_BOHR = 27.2 * 0.529  # eV Å

_SYMBOLS = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr "
    "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb "
    "Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U"
)


def read_setfl(path: str | Path, elements: Sequence[str] | None = None) -> EmbeddedAtom:
    """The potential of a setfl file (`eam/alloy` in LAMMPS), in its units: eV and Å.

    - `elements`: those of species 0, 1, …, such as `particles.species_names`; in the order of the file if left
      out.

    **Errors:** `FileError` for a file that cannot be read; `DamagedFileError` for one that is cut short, or is
    no setfl file; `ParameterError` for an element that it has no tables of.

    **Reference:** Daw, Foiles & Baskes, Mater. Sci. Rep. 9, 251 (1993); the LAMMPS manual, pair_style eam.
    """
    found = _read(path, "setfl", _parse_setfl)
    wanted = found.elements if elements is None else tuple(elements)
    missing = [x for x in wanted if x not in found.elements]
    if missing or not wanted:
        raise ParameterError(
            f"{path} has tables for {', '.join(found.elements)}; there are none for "
            f"{', '.join(missing) or 'no element at all'}"
        )
    order = np.array([found.elements.index(x) for x in wanted])
    return EmbeddedAtom(
        found.embedding[order], found.density[order], found.pair[np.ix_(order, order)],
        density_spacing=found.density_spacing, distance_spacing=found.distance_spacing,
        cutoff=found.cutoff, elements=wanted,
    )  # fmt: skip


def read_funcfl(*paths: str | Path) -> EmbeddedAtom:
    """The potential of funcfl files, one for each element (`eam` in LAMMPS), in their units: eV and Å.

        r φ(r) = 27.2 · 0.529 eV Å · Z_a(r) Z_b(r)

    Several files make an alloy, whose tables are brought to the finest grid by cubic splines; its species are
    in the order of the files.

    **Errors:** `FileError` for a file that cannot be read; `DamagedFileError` for one that is cut short, or is
    no funcfl file; `ParameterError` without a file.

    **Good values:** copper, Foiles' universal functions (`Cu_u3.eam`): −3.54 eV per atom at a = 3.615 Å.

    **Reference:** Foiles, Baskes & Daw, Phys. Rev. B 33, 7983 (1986); the LAMMPS manual, pair_style eam.
    """
    if not paths:
        raise ParameterError("read_funcfl needs the path of a file")
    found = [_read(path, "funcfl", _parse_funcfl) for path in paths]
    density_spacing = min(x.density_spacing for x in found)
    spacing = min(x.distance_spacing for x in found)
    most = max(x.density_spacing * (len(x.embedding) - 1) for x in found)
    furthest = max(x.distance_spacing * (len(x.density) - 1) for x in found)
    densities = density_spacing * np.arange(round(most / density_spacing) + 1)
    distances = spacing * np.arange(round(furthest / spacing) + 1)
    charges = np.array([_at(distances, x.charge, x.distance_spacing, ends=True) for x in found])
    return EmbeddedAtom(
        np.array([_at(densities, x.embedding, x.density_spacing, ends=False) for x in found]),
        np.array([_at(distances, x.density, x.distance_spacing, ends=True) for x in found]),
        _HARTREE_BOHR * (charges[:, None] * charges[None]),
        density_spacing=density_spacing, distance_spacing=spacing,
        cutoff=max(x.cutoff for x in found), elements=tuple(x.element for x in found),
    )  # fmt: skip


class _Alloy(NamedTuple):
    """What a setfl file holds."""

    elements: tuple[str, ...]
    embedding: Float[np.ndarray, "s g"]
    density: Float[np.ndarray, "s k"]
    pair: Float[np.ndarray, "s s k"]
    density_spacing: float
    distance_spacing: float
    cutoff: float


class _OneElement(NamedTuple):
    """What a funcfl file holds."""

    element: str
    embedding: Float[np.ndarray, " g"]
    charge: Float[np.ndarray, " k"]
    density: Float[np.ndarray, " k"]
    density_spacing: float
    distance_spacing: float
    cutoff: float


def _at(
    x: Float[np.ndarray, " m"], values: Float[np.ndarray, " g"], spacing: float, ends: bool
) -> Float[np.ndarray, " m"]:
    """A table at other places; beyond its last value 0, or straight on."""
    from scipy.interpolate import CubicSpline  # here: it takes part of a second to import

    last = spacing * (len(values) - 1)
    spline = CubicSpline(spacing * np.arange(len(values)), values)
    inside = spline(np.minimum(x, last))
    beyond = np.maximum(x - last, 0)
    if ends:
        return np.where(beyond > 1e-9 * last, 0.0, inside)
    return inside + spline(last, 1) * beyond


def _read(path: str | Path, kind: str, parse: Callable[[list[str]], Any]) -> Any:
    try:
        lines = Path(path).expanduser().read_text(errors="replace").splitlines()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return parse(lines)
    except (ValueError, IndexError) as error:
        raise DamagedFileError(f"{path} is no {kind} file, or is cut short: {error}") from error


class _Numbers:
    """The numbers of a file one after the other, in whatever lines."""

    def __init__(self, lines: list[str]):
        self.words, self.at = [word for line in lines for word in line.split()], 0

    def skip(self, count: int) -> None:
        self.at += count

    def take(self, size: int) -> Float[np.ndarray, " n"]:
        part = self.words[self.at : self.at + size]
        if len(part) < size:
            raise ValueError(f"{self.at + size} numbers wanted, {len(self.words)} found")
        self.at += size
        values = np.array([float(word.replace("D", "E").replace("d", "e")) for word in part])
        if not np.isfinite(values).all():
            raise ValueError("numbers that are not finite")
        return values


def _grids(words: list[str]) -> tuple[int, float, int, float, float]:
    """Numbers and spacings of densities and distances, and the cutoff."""
    num_densities, num_distances = int(words[0]), int(words[2])
    if not (4 <= num_densities <= 10**7 and 4 <= num_distances <= 10**7):
        raise ValueError(f"tables of {num_densities} and {num_distances} values")
    return num_densities, float(words[1]), num_distances, float(words[3]), float(words[4])


def _parse_setfl(lines: list[str]) -> _Alloy:
    count, *elements = lines[3].split()
    num_densities, density_spacing, num_distances, spacing, cutoff = _grids(lines[4].split())
    s = len(elements)
    if int(count) != s or not 1 <= s <= 100:
        raise ValueError(f"{count} elements, of which {s} are named")
    numbers = _Numbers(lines[5:])
    embedding, density = [], []
    for _ in range(s):
        numbers.skip(4)  # atomic number, mass, lattice constant, lattice
        embedding.append(numbers.take(num_densities))
        density.append(numbers.take(num_distances))
    pair = np.zeros((s, s, num_distances))
    for i in range(s):
        for j in range(i + 1):
            pair[i, j] = pair[j, i] = numbers.take(num_distances)
    tables = np.array(embedding), np.array(density), pair
    return _Alloy(tuple(elements), *tables, density_spacing, spacing, cutoff)


def _parse_funcfl(lines: list[str]) -> _OneElement:
    number = int(lines[1].split()[0])
    if not 1 <= number <= len(_SYMBOLS.split()):
        raise ValueError(f"an atomic number {number}")
    num_densities, density_spacing, num_distances, spacing, cutoff = _grids(lines[2].split())
    numbers = _Numbers(lines[3:])
    embedding = numbers.take(num_densities)
    charge, density = numbers.take(num_distances), numbers.take(num_distances)
    symbol = _SYMBOLS.split()[number - 1]
    return _OneElement(symbol, embedding, charge, density, density_spacing, spacing, cutoff)
