"""Floor 10: which numbers of a model, fits of them, and how far to trust their derivatives."""

from ._bounds import (
    AbstractBounds as AbstractBounds,
    Free as Free,
    Interval as Interval,
    Positive as Positive,
    Simplex as Simplex,
)
from ._chaos import GradientGrowth as GradientGrowth, gradient_growth as gradient_growth
from ._fit import fit as fit
from ._fitted import Attempt as Attempt, Fit as Fit, History as History
from ._methods import (
    BFGS as BFGS,
    AbstractMethod as AbstractMethod,
    GaussNewton as GaussNewton,
    LevenbergMarquardt as LevenbergMarquardt,
    Optax as Optax,
)
from ._spectrum import FisherSpectrum as FisherSpectrum
from ._uncertainty import (
    AbstractErrors as AbstractErrors,
    Autocorrelated as Autocorrelated,
    Independent as Independent,
    Likelihood as Likelihood,
)
from ._where import Selection as Selection, Where as Where, select as select
