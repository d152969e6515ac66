"""All cases, in the order in which they are shown."""

from ._case import Case
from .fields import (
    _bodies_in_flows,
    _gas,
    _lattice_fluids,
    _light,
    _ocean,
    _patterns,
    _quantum,
    _reaction,
    _smooth_gas,
    _sound,
    _sphere,
    _taylor_green,
    _walls,
    _waves,
)
from .inference import (
    _ensembles,
    _fits,
    _inverse_problems,
    _posteriors,
    _searches,
    _stochastic,
    _strd_posteriors,
)
from .particles import (
    _barostats,
    _bounces,
    _cosmology,
    _crystals,
    _electrostatics,
    _gravity,
    _liquids,
    _molecules,
    _orders,
    _plasma,
    _reversal,
    _rigid_bodies,
    _sampling,
    _thermostats,
    _transport,
)
from .quantum import _qubits
from .stochastic import _hard_disks, _reactions, _spins

_GROUPS = (
    _liquids,
    _molecules,
    _transport,
    _rigid_bodies,
    _electrostatics,
    _crystals,
    _gravity,
    _thermostats,
    _sampling,
    _barostats,
    _ensembles,
    _orders,
    _bounces,
    _reversal,
    _waves,
    _reaction,
    _patterns,
    _quantum,
    _qubits,
    _plasma,
    _cosmology,
    _taylor_green,
    _walls,
    _bodies_in_flows,
    _lattice_fluids,
    _gas,
    _smooth_gas,
    _light,
    _sound,
    _ocean,
    _sphere,
    _fits,
    _inverse_problems,
    _spins,
    _hard_disks,
    _reactions,
    _stochastic,
    _posteriors,
    _strd_posteriors,
    _searches,
)


def cases() -> tuple[Case, ...]:
    """Every case that ships with physkit."""
    return tuple(case for group in _GROUPS for case in group.CASES)
