"""Floor 7: what is recorded of a simulation."""

from ._observer import (
    AbstractObserver as AbstractObserver,
    AbstractQuantity as AbstractQuantity,
    Every as Every,
    Expression as Expression,
    Finite as Finite,
    Frame as Frame,
    Guard as Guard,
)
from ._snapshot import Snapshot as Snapshot
