"""The public test battery. One line examines a term as physkit's own are examined.

Every check is a plain function that returns nothing, or raises `AssertionError` saying which
parameter or leaf is wrong, what was computed, what was expected, and within which tolerance.
"""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._compare import (
        TOLERANCES as TOLERANCES,
        check_equal as check_equal,
        check_finite as check_finite,
        tolerance as tolerance,
    )
    from ._devices import check_devices as check_devices
    from ._force import check_force as check_force
    from ._gradient import check_gradient as check_gradient
    from ._integrator import check_integrator as check_integrator
    from ._observer import check_observer as check_observer
    from ._potential import check_potential as check_potential
    from ._reversible import check_reversible as check_reversible
    from ._simulation import check_simulation as check_simulation
    from ._tendency import check_tendency as check_tendency
    from ._units import Units as Units, check_units as check_units
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
