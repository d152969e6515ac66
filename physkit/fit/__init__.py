"""Floor 10: which numbers of a model, fits of them, and how far to trust their derivatives."""

from ._audit import gradient_audit as gradient_audit
from ._audit_report import GradientAudit as GradientAudit
from ._bounds import (
    AboveZero as AboveZero,
    AbstractBounds as AbstractBounds,
    Interval as Interval,
    Simplex as Simplex,
    Unbounded as Unbounded,
)
from ._chaos import GradientGrowth as GradientGrowth, gradient_growth as gradient_growth
from ._fit import fit as fit
from ._fitted import Attempt as Attempt, Fit as Fit, History as History
from ._frames import FramesAt as FramesAt, frames_at as frames_at
from ._methods import (
    BFGS as BFGS,
    AbstractMethod as AbstractMethod,
    GaussNewton as GaussNewton,
    LevenbergMarquardt as LevenbergMarquardt,
    Optax as Optax,
)
from ._reweight import (
    EquilibriumSamples as EquilibriumSamples,
    Reweighted as Reweighted,
    reweighted as reweighted,
)
from ._shooting import MultipleShooting as MultipleShooting, fit_in_windows as fit_in_windows
from ._spectrum import FisherSpectrum as FisherSpectrum
from ._uncertainty import (
    AbstractErrors as AbstractErrors,
    Autocorrelated as Autocorrelated,
    Independent as Independent,
    Likelihood as Likelihood,
)
from ._where import Selection as Selection, Where as Where, select as select
