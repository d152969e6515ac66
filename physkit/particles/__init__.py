"""Particles, their neighbors and their forces."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from . import _lattices as lattice
    from ._abstract_bodies import AbstractBodies as AbstractBodies
    from ._abstract_constraints import AbstractConstraint as AbstractConstraint
    from ._arguments import element_symbol as element_symbol
    from ._devices import device_index as device_index, num_devices as num_devices
    from ._minimize import (
        MinimizationResult as MinimizationResult,
        descend as descend,
        minimize as minimize,
    )
    from ._particles import ParticleIncrement as ParticleIncrement, Particles as Particles
    from ._random_positions import random_positions as random_positions
    from ._stretching import stretch as stretch
    from ._velocities import (
        angular_momentum as angular_momentum,
        center_of_mass as center_of_mass,
        degrees_of_freedom as degrees_of_freedom,
        kinetic_energy as kinetic_energy,
        maxwell_boltzmann as maxwell_boltzmann,
        mobile_velocity as mobile_velocity,
        momentum_flux as momentum_flux,
        remove_drift as remove_drift,
        temperature as temperature,
        total_degrees_of_freedom as total_degrees_of_freedom,
        total_momentum as total_momentum,
    )
    from .constraints._constrain import constrain as constrain
    from .constraints._constraints import (
        AbstractClusterConstraint as AbstractClusterConstraint,
        Constraints as Constraints,
    )
    from .constraints._distance_constraints import DistanceConstraints as DistanceConstraints
    from .constraints._rigid_water import RigidWater as RigidWater
    from .decomposition._ownership import Ownership as Ownership
    from .decomposition._sharded_cache import AbstractShardedCache as AbstractShardedCache
    from .rigid._quaternions import random_orientations as random_orientations
    from .rigid._rigid_bodies import RigidBodies as RigidBodies
    from .rigid._rigid_motion import RigidBodyIncrement as RigidBodyIncrement
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
