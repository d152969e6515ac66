"""Numbers of OpenMM in the units of a simulation."""

from typing import Any

import numpy as np

from physkit.core import UnitSystem, import_extra, molecular


def require_openmm() -> Any:
    """The package openmm.

    **Errors:** `MissingExtraError` without the extra `physkit[md]`.
    """
    return import_extra("openmm", "md", "this")


class Converter:
    """Factors from OpenMM's units (nm, ps, Da, kJ/mol, e), which are `molecular`, to `units`."""

    def __init__(self, units: UnitSystem):
        self.units = units
        self.length = molecular.length / units.length
        self.energy = molecular.energy / units.energy
        self.mass = molecular.mass / units.mass
        self.charge = molecular.charge / units.charge
        self.time = molecular.time / units.time


def plain(quantity: Any) -> Any:
    """`quantity`, which may have a unit of OpenMM's, as numbers in its standard units."""
    if hasattr(quantity, "value_in_unit_system"):
        from openmm import unit  # pyright: ignore[reportMissingImports]

        return quantity.value_in_unit_system(unit.md_unit_system)
    return quantity


def plain_array(quantity: Any) -> np.ndarray:
    """`quantity` as an array of floats."""
    return np.asarray(plain(quantity), float)


def rows(count: int, read: Any) -> list[tuple[Any, ...]]:
    """`read(k)` for k < `count`, each a list of numbers without units."""
    return [tuple(plain(x) for x in read(k)) for k in range(count)]
