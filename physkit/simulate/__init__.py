"""Floor 9: the simulation, its loop, and the verbs that act on it."""

from ._adjoint import (
    AbstractAdjoint as AbstractAdjoint,
    Direct as Direct,
    NestedCheckpoint as NestedCheckpoint,
)
from ._binomial import Binomial as Binomial
from ._carry import Carry as Carry, start as start
from ._crash import crash_record as crash_record
from ._diagnose import Diagnosis as Diagnosis, diagnose as diagnose
from ._forward import Forward as Forward
from ._probe import Probe as Probe, probe as probe
from ._progress import Progress as Progress
from ._report import Growth as Growth, Run as Run
from ._reversible import Reversible as Reversible
from ._run import run as run
from ._simulate import Result as Result, simulate as simulate
from ._simulation import Simulation as Simulation
