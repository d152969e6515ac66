# Written by `python tests/test_public_api.py` from `physkit/_names.py`.

from physkit.fit import (
    AutocorrelatedErrors as AutocorrelatedErrors,
    BFGS as BFGS,
    EquilibriumSamples as EquilibriumSamples,
    Fit as Fit,
    FitProgress as FitProgress,
    GaussNewton as GaussNewton,
    GradientAudit as GradientAudit,
    IndependentErrors as IndependentErrors,
    LBFGS as LBFGS,
    LevenbergMarquardt as LevenbergMarquardt,
    Likelihood as Likelihood,
    LikelihoodProfile as LikelihoodProfile,
    MultipleShooting as MultipleShooting,
    Observations as Observations,
    Optax as Optax,
    fit as fit,
    fit_in_windows as fit_in_windows,
    frames_at as frames_at,
    gradient_audit as gradient_audit,
    gradient_growth as gradient_growth,
    observations as observations,
    profile_likelihood as profile_likelihood,
    reweight as reweight,
)
from physkit.ensemble import (
    CMAES as CMAES,
    DifferentialEvolution as DifferentialEvolution,
    OpenES as OpenES,
)
