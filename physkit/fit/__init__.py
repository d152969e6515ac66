"""Which numbers of a model, fits of them, and how far to trust their derivatives."""

from typing import TYPE_CHECKING

from physkit.core import import_on_use as _import_on_use

if TYPE_CHECKING:
    from ._frames_at import FramesAt as FramesAt, frames_at as frames_at
    from ._observations import Observations as Observations, observations as observations
    from ._profile_likelihood import (
        LikelihoodProfile as LikelihoodProfile,
        profile_likelihood as profile_likelihood,
    )
    from ._reweighting import (
        EquilibriumSamples as EquilibriumSamples,
        ReweightedAverage as ReweightedAverage,
        reweight as reweight,
    )
    from ._select import Selection as Selection, Where as Where, select as select
    from .audit._audit_table import GradientAudit as GradientAudit
    from .audit._gradient_audit import gradient_audit as gradient_audit
    from .chaos._gradient_growth import (
        GradientGrowth as GradientGrowth,
        gradient_growth as gradient_growth,
    )
    from .chaos._multiple_shooting import (
        MultipleShooting as MultipleShooting,
        fit_in_windows as fit_in_windows,
    )
    from .files._audit_file import AUDIT_FILE as AUDIT_FILE
    from .files._fit_file import FIT_FILE as FIT_FILE
    from .files._samples_file import (
        SAMPLES_FILE as SAMPLES_FILE,
        read_samples as read_samples,
        write_samples as write_samples,
    )
    from .solve._bounds import (
        AbstractBounds as AbstractBounds,
        Interval as Interval,
        PositiveBound as PositiveBound,
        Simplex as Simplex,
        Unbounded as Unbounded,
    )
    from .solve._coordinates import (
        Coordinates as Coordinates,
        element_labels as element_labels,
        make_coordinates as make_coordinates,
    )
    from .solve._fit import fit as fit
    from .solve._fit_progress import FitProgress as FitProgress
    from .solve._fit_result import (
        Attempt as Attempt,
        Fit as Fit,
        History as History,
        SearchHistory as SearchHistory,
    )
    from .solve._methods import (
        BFGS as BFGS,
        LBFGS as LBFGS,
        AbstractMethod as AbstractMethod,
        GaussNewton as GaussNewton,
        LevenbergMarquardt as LevenbergMarquardt,
        Optax as Optax,
    )
    from .solve._problem import (
        ObjectiveInputs as ObjectiveInputs,
        Problem as Problem,
        make_problem as make_problem,
    )
    from .solve._search_method import (
        AbstractSearch as AbstractSearch,
        LossProgram as LossProgram,
        SearchOutcome as SearchOutcome,
        SearchRequest as SearchRequest,
        SearchStart as SearchStart,
    )
    from .uncertainty._fisher_spectrum import FisherSpectrum as FisherSpectrum
    from .uncertainty._standard_errors import (
        AbstractErrors as AbstractErrors,
        AutocorrelatedErrors as AutocorrelatedErrors,
        IndependentErrors as IndependentErrors,
        Likelihood as Likelihood,
    )
else:
    __getattr__, __dir__, __all__ = _import_on_use(__name__)
