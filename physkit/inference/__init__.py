"""Bayesian inference: priors, posteriors, sampling, and the assimilation of data."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._diagnostics import (
        bulk_sample_size as bulk_sample_size,
        monte_carlo_error as monte_carlo_error,
        r_hat as r_hat,
        tail_sample_size as tail_sample_size,
    )
    from ._ensemble_kalman_filter import (
        EnsembleKalmanFilter as EnsembleKalmanFilter,
        ensemble_kalman_filter as ensemble_kalman_filter,
    )
    from ._ensemble_kalman_inversion import (
        EnsembleKalmanInversion as EnsembleKalmanInversion,
        ensemble_kalman_inversion as ensemble_kalman_inversion,
    )
    from ._kalman_update import Localization as Localization
    from ._laplace import (
        LaplaceApproximation as LaplaceApproximation,
        laplace_approximation as laplace_approximation,
    )
    from ._methods import HMC as HMC, NUTS as NUTS
    from ._posterior import Posterior as Posterior
    from ._posterior_samples import PosteriorSamples as PosteriorSamples
    from ._priors import (
        AbstractPrior as AbstractPrior,
        HalfCauchy as HalfCauchy,
        HalfNormal as HalfNormal,
        LogNormal as LogNormal,
        Normal as Normal,
        Uniform as Uniform,
    )
    from ._sample_posterior import (
        chain_sweep as chain_sweep,
        sample_posterior as sample_posterior,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
