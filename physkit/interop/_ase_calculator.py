"""An ASE calculator of any force of physkit."""

from typing import Any, ClassVar

import numpy as np

from physkit.core import UnitSystem, explain_call, metal
from physkit.particles.forces import AbstractForce, Forces

from ._ase import from_ase, require_ase
from ._single_point import single_point


@explain_call
def ase_calculator(
    force: AbstractForce | Forces,
    units: UnitSystem = metal,
    *,
    species_names: tuple[str, ...] | None = None,
) -> Any:
    """An `ase.calculators.calculator.Calculator` that evaluates a force, for ASE's optimizers, phonons, bands.

        atoms.calc = ase_calculator(Pairwise(LennardJones(0.0103, 3.405), cutoff=8.5))

    Energy, forces and, in a cell, stress; in eV and Å, as ASE wants them.

    **Arguments:**

    - `force`: a force or a sum of forces, in `units`.
    - `units`: of the force.
    - `species_names`: the numbers of the species by name, as the tables of the force count them; in the order
      of appearance if left out.

    **Errors:** as of `from_ase` and `single_point`; `MissingExtraError` without ASE.

    **Notes:** double precision needs `jax_enable_x64`. Each call builds its lists anew: for dynamics, `run` is
    far faster.
    """
    require_ase()
    from ase.calculators.calculator import (  # pyright: ignore[reportMissingImports]
        Calculator,
        all_changes,
    )
    from ase.stress import full_3x3_to_voigt_6_stress  # pyright: ignore[reportMissingImports]

    energy_unit = units.energy / metal.energy
    force_unit = energy_unit * metal.length / units.length

    class PhyskitCalculator(Calculator):
        implemented_properties: ClassVar[list[str]] = ["energy", "forces", "stress", "free_energy"]

        def calculate(
            self,
            atoms: Any = None,
            properties: Any = ("energy",),
            system_changes: Any = all_changes,
        ):
            Calculator.calculate(self, atoms, properties, system_changes)
            bare = self.atoms.copy()
            bare.set_constraint()  # ASE itself sees to constraints
            point = single_point(force, from_ase(bare, units, species_names=species_names))
            energy = energy_unit * point.energy
            self.results = {
                "energy": energy,
                "free_energy": energy,
                "forces": force_unit * np.asarray(point.force, float),
            }
            if point.stress is not None:
                stress = energy_unit * (metal.length / units.length) ** 3 * point.stress
                self.results["stress"] = full_3x3_to_voigt_6_stress(np.asarray(stress, float))

    return PhyskitCalculator()
