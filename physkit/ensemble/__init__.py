"""Floor 11: ensembles: sweeps over parameters, statistics of members, means and their derivatives."""

from ._bootstrap import Bootstrapped as Bootstrapped, bootstrap as bootstrap
from ._carry_out import Memory as Memory, Work as Work, carry_out as carry_out
from ._collect import Status as Status, collect as collect, open as open, status as status
from ._designs import (
    Between as Between,
    around as around,
    grid as grid,
    latin_hypercube as latin_hypercube,
    random as random,
    sobol as sobol,
    whole_states as whole_states,
)
from ._ensemble import Ensemble as Ensemble, Failed as Failed, Gathered as Gathered
from ._folder import SweepFolder as SweepFolder
from ._launch import (
    LocalWorkers as LocalWorkers,
    Submitted as Submitted,
    carry_out_by as carry_out_by,
    submit as submit,
)
from ._mean import ensemble_mean as ensemble_mean
from ._memory import MemoryNeed as MemoryNeed, memory_need as memory_need
from ._over import Design as Design, Over as Over, product as product, zipped as zipped
from ._reduce import (
    AbstractReduction as AbstractReduction,
    Histogram as Histogram,
    Mean as Mean,
    Quantiles as Quantiles,
    Reduction as Reduction,
    Variance as Variance,
)
from ._retry import Retry as Retry
from ._slurm_array import SlurmArray as SlurmArray
from ._statistics import (
    QUANTILES as QUANTILES,
    EnsembleStatistics as EnsembleStatistics,
    ensemble_statistics as ensemble_statistics,
    passage_rate as passage_rate,
)
from ._stop_when import Converged as Converged
from ._sweep import Sweep as Sweep
from ._verb import sweep as sweep
from ._work import Worked as Worked, work as work
