"""Floor 3: particles, their neighbours and their forces."""

from . import _lattices as lattice
from ._minimise import Minimum as Minimum, minimise as minimise
from ._particles import Motion as Motion, Particles as Particles
from ._random import random_positions as random_positions
from ._share import Share as Share, wide_enough as wide_enough
from ._velocities import (
    angular_momentum as angular_momentum,
    center_of_mass as center_of_mass,
    degrees_of_freedom as degrees_of_freedom,
    kinetic_energy as kinetic_energy,
    maxwell_boltzmann as maxwell_boltzmann,
    moving_velocity as moving_velocity,
    temperature as temperature,
    total_momentum as total_momentum,
    without_drift as without_drift,
)
