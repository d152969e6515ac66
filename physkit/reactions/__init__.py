"""Networks of reactions: by mass action, well stirred and in space; copy numbers of molecules."""

from ._populations import Populations as Populations, require_populations as require_populations
from ._reaction_network import RateEquations as RateEquations, ReactionNetwork as ReactionNetwork
