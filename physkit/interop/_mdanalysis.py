"""Particles from the trajectories and selections of MDAnalysis."""

from typing import Any

import numpy as np
from jax.typing import DTypeLike

from physkit.core import (
    ParameterError,
    UnitSystem,
    as_device_array,
    explain_call,
    import_extra,
    metal,
)
from physkit.geometry import Box, Free, Triclinic
from physkit.particles import Particles

from ._wrapping import wrap_with_image


@explain_call
def from_mdanalysis(
    atoms: Any,
    units: UnitSystem = metal,
    *,
    dtype: DTypeLike = float,
    species_names: tuple[str, ...] | None = None,
) -> Particles:
    """The particles of an MDAnalysis `Universe` or of a selection, at its current frame.

        universe = MDAnalysis.Universe("protein.psf", "run.dcd")
        universe.trajectory[-1]
        water = from_mdanalysis(universe.select_atoms("resname TIP3"))

    Positions, the cell, and where the files have them velocities, masses and charges are taken over. Species
    are the elements, or where there are none the types of atoms. Atoms outside of the cell are wrapped into it;
    their images are counted, so that `unwrapped` are the positions given.

    **Arguments:**

    - `atoms`: a `Universe` or `AtomGroup`, of PSF, PDB, GRO with DCD, XTC, TRR …, all that MDAnalysis reads.
    - `units`: of the particles; MDAnalysis' are Å, ps, Da and e.
    - `dtype`: precision.
    - `species_names`: the numbers of the species by name, where tables of a force are already in an order.

    **Errors:** `ParameterError` for an empty selection and for anything that has no atoms; `MissingExtraError`
    without MDAnalysis.

    **Notes:** one frame; a loop over `universe.trajectory` makes particles of each. Coordinates of such files
    are of single precision.

    **Reference:** Gowers et al., Proc. 15th Python in Science Conf., 98 (2016).
    """
    import_extra("MDAnalysis", "md", "from_mdanalysis")
    group = getattr(atoms, "atoms", None)
    if group is None or not hasattr(group, "positions"):
        raise ParameterError(
            f"from_mdanalysis takes an MDAnalysis Universe or AtomGroup; got {type(atoms).__name__}"
        )
    if len(group) == 0:
        raise ParameterError("the selection has no atoms")
    length = units.nanometer / 10
    position = length * np.asarray(group.positions, float)
    cell = group.universe.trajectory.ts.triclinic_dimensions
    if cell is None or not np.any(cell):
        space = Free()
    elif np.all(cell == np.diag(np.diag(cell))):
        space = Box(length * np.diag(cell).astype(float))
    else:
        space = Triclinic(length * np.asarray(cell, float))
    image = None
    if not isinstance(space, Free):
        wrapped, crossed = wrap_with_image(space, as_device_array(position, dtype))
        position, image = np.asarray(wrapped), np.asarray(crossed)
    velocity = None
    if group.universe.trajectory.ts.has_velocities:
        velocity = length / units.picosecond * np.asarray(group.velocities, float)
    mass, charge = _given(group, "masses"), _given(group, "charges")
    names = _given(group, "elements")
    if names is None or not all(names):
        names = _given(group, "types")
    return Particles(
        as_device_array(position, dtype),
        velocity,
        1.0 if mass is None else metal.mass / units.mass * mass.astype(float),
        space,
        charge=None if charge is None else metal.charge / units.charge * charge.astype(float),
        species=None if names is None else [str(name) for name in names],
        species_names=species_names,
        image=image,
    )


def _given(group: Any, name: str) -> np.ndarray | None:
    """What the topology says of each atom, None where it says nothing."""
    return np.asarray(getattr(group, name)) if hasattr(group, name) else None
