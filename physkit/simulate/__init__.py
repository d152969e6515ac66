"""Floor 9: the simulation, its loop, and the verbs that act on it."""

from ._adjoint import (
    AbstractAdjoint as AbstractAdjoint,
    Direct as Direct,
    NestedCheckpoint as NestedCheckpoint,
)
from ._adjoint_report import (
    AdjointCost as AdjointCost,
    AdjointReport as AdjointReport,
    adjoint_report as adjoint_report,
)
from ._binomial import Binomial as Binomial
from ._carry import Carry as Carry, start as start
from ._chunk import (
    LARGE_STATE_BYTES as LARGE_STATE_BYTES,
    TWO_CORES as TWO_CORES,
    Pace as Pace,
)
from ._crash import crash_record as crash_record
from ._devices import Domain as Domain
from ._diagnose import Diagnosis as Diagnosis, diagnose as diagnose
from ._forward import Forward as Forward
from ._loop import first_look as first_look, judged_block as judged_block
from ._probe import Probe as Probe, probe as probe
from ._progress import Progress as Progress
from ._report import Growth as Growth, Run as Run
from ._retrace import Retraced as Retraced, retrace as retrace
from ._reversible import Reversible as Reversible
from ._run import run as run
from ._simulate import (
    Result as Result,
    simulate as simulate,
    summary as summary,
    whole_blocks as whole_blocks,
)
from ._simulation import Simulation as Simulation
from ._stop import StopRequest as StopRequest
from ._traffic import Traffic as Traffic, traffic as traffic
