"""Networks of reactions: by mass action, well stirred and in space; copy numbers of molecules."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._one_step import one_step_distribution as one_step_distribution
    from ._populations import Populations as Populations
    from ._reaction_network import (
        RateEquations as RateEquations,
        ReactionNetwork as ReactionNetwork,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
