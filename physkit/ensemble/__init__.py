"""Ensembles: sweeps over parameters, statistics of members, means and their derivatives."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._api import sweep as sweep
    from .cluster._launch import (
        LocalWorkers as LocalWorkers,
        SubmittedWorkers as SubmittedWorkers,
        execute_with_workers as execute_with_workers,
        submit as submit,
    )
    from .cluster._slurm_array import SlurmArray as SlurmArray
    from .cluster._slurm_queue import requeue_this_job as requeue_this_job
    from .cluster._status import SweepStatus as SweepStatus, status as status
    from .cluster._worker import WorkerResult as WorkerResult, run_worker as run_worker
    from .compute._batch_memory import (
        BatchMemory as BatchMemory,
        predict_batch_memory as predict_batch_memory,
    )
    from .compute._execute import ExecutionResult as ExecutionResult, execute as execute
    from .compute._sweep_progress import SweepProgress as SweepProgress
    from .design._designs import (
        ParameterRange as ParameterRange,
        grid as grid,
        initial_states as initial_states,
        latin_hypercube as latin_hypercube,
        posterior_samples as posterior_samples,
        random as random,
        sobol as sobol,
    )
    from .design._retry import Retry as Retry
    from .design._sweep import Sweep as Sweep
    from .design._sweep_axes import (
        Design as Design,
        SweepAxis as SweepAxis,
        cartesian_product as cartesian_product,
        zip_axes as zip_axes,
    )
    from .exchange._replica_exchange import replica_exchange as replica_exchange
    from .free_energy._free_energies import (
        FreeEnergies as FreeEnergies,
        Profile as Profile,
        free_energies as free_energies,
    )
    from .free_energy._thermodynamic_integration import (
        thermodynamic_integration as thermodynamic_integration,
    )
    from .free_energy._umbrella import umbrella_energies as umbrella_energies, wham as wham
    from .search._cma_es import CMAES as CMAES
    from .search._differential_evolution import DifferentialEvolution as DifferentialEvolution
    from .search._evolution import AbstractEvolution as AbstractEvolution
    from .search._open_es import OpenES as OpenES
    from .search._search_folder import (
        SEARCH_FILE as SEARCH_FILE,
        read_generations as read_generations,
    )
    from .statistics._bootstrap import (
        BootstrapEstimate as BootstrapEstimate,
        bootstrap as bootstrap,
    )
    from .statistics._convergence import Converged as Converged
    from .statistics._ensemble_mean import ensemble_mean as ensemble_mean
    from .statistics._ensemble_statistics import (
        QUANTILES as QUANTILES,
        EnsembleStatistics as EnsembleStatistics,
        ensemble_statistics as ensemble_statistics,
        passage_rate as passage_rate,
    )
    from .statistics._reductions import (
        AbstractReduction as AbstractReduction,
        Histogram as Histogram,
        Mean as Mean,
        Quantiles as Quantiles,
        Reduction as Reduction,
        Variance as Variance,
    )
    from .store._collect import collect as collect, open as open
    from .store._ensemble import Ensemble as Ensemble, FailedMember as FailedMember
    from .store._member_array import MemberArray as MemberArray
    from .store._memory_store import MemoryStore as MemoryStore
    from .store._sweep_folder import SweepFolder as SweepFolder
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
