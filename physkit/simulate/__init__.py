"""The simulation, its loop, and the verbs that act on it."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from .adjoint._adjoint import AbstractAdjoint as AbstractAdjoint, Direct as Direct
    from .adjoint._binomial import Binomial as Binomial
    from .adjoint._forward_mode import Forward as Forward
    from .adjoint._nested_checkpoint import NestedCheckpoint as NestedCheckpoint
    from .analysis._adjoint_report import (
        AdjointCost as AdjointCost,
        AdjointReport as AdjointReport,
        adjoint_report as adjoint_report,
    )
    from .analysis._communication_report import (
        CommunicationReport as CommunicationReport,
        communication_report as communication_report,
    )
    from .analysis._diagnose import Diagnosis as Diagnosis, diagnose as diagnose
    from .analysis._evaluate import evaluate as evaluate
    from .analysis._probe import Probe as Probe, probe as probe
    from .distributed._domain import DistributedDomain as DistributedDomain
    from .driver._chunk_driver import MAX_GROWTHS as MAX_GROWTHS, ChunkDriver as ChunkDriver
    from .driver._crash_record import read_crash_record as read_crash_record
    from .driver._progress import Progress as Progress
    from .driver._run import run as run
    from .driver._run_identity import member_code_digest as member_code_digest
    from .driver._run_progress import RunProgress as RunProgress
    from .driver._run_result import Growth as Growth, Run as Run
    from .driver._simulate import (
        Result as Result,
        count_blocks as count_blocks,
        simulate as simulate,
        summary as summary,
    )
    from .driver._stop_request import StopRequest as StopRequest, ending_at_once as ending_at_once
    from .loop._advance import advance_member as advance_member, observe_initial as observe_initial
    from .loop._carry import Carry as Carry, check_terms as check_terms
    from .loop._chunk_program import (
        FRAME_BYTES as FRAME_BYTES,
        ChunkAttempt as ChunkAttempt,
        CompiledKinds as CompiledKinds,
        compiled_bytes as compiled_bytes,
        compiler_options as compiler_options,
        frame_bytes_per_block as frame_bytes_per_block,
        max_blocks_per_chunk as max_blocks_per_chunk,
    )
    from .loop._chunk_scheduler import ChunkScheduler as ChunkScheduler
    from .loop._garbage import without_garbage_collection as without_garbage_collection
    from .loop._init import (
        init as init,
        init_and_observe as init_and_observe,
        plan_start as plan_start,
    )
    from .loop._simulation import Simulation as Simulation
    from .reversible._reversibility_report import (
        ReversibilityReport as ReversibilityReport,
        reversibility_report as reversibility_report,
    )
    from .reversible._reversible import Reversible as Reversible
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
