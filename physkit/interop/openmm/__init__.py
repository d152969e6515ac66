"""Force fields from OpenMM: one file for each kind of force."""

from ._system import MolecularSystem as MolecularSystem, from_openmm as from_openmm
