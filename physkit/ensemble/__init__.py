"""Floor 11: ensembles: sweeps over parameters, statistics of members, means and their derivatives."""

from ._bootstrap import Bootstrapped as Bootstrapped, bootstrap as bootstrap
from ._mean import ensemble_mean as ensemble_mean
from ._statistics import (
    QUANTILES as QUANTILES,
    EnsembleStatistics as EnsembleStatistics,
    ensemble_statistics as ensemble_statistics,
    passage_rate as passage_rate,
)
