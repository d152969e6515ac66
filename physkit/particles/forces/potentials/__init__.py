"""Pair potentials, one a file."""

from ._lennard_jones import LennardJones as LennardJones
from ._potential import AbstractPairPotential as AbstractPairPotential
