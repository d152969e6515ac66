"""Networks of reactions: by mass action, well stirred and in space; copy numbers of molecules."""

from ._one_step import one_step_distribution as one_step_distribution
from ._populations import Populations as Populations
from ._reaction_network import RateEquations as RateEquations, ReactionNetwork as ReactionNetwork
