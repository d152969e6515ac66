"""What the chapter on ensembles measures, for its tables and its pictures."""

from typing import NamedTuple

import numpy as np

# Units of argon, ε = 120 K and σ = 3.4 Å: what one reduced unit is.
KELVIN = 120.0
MEGAPASCAL = 42.153
GRAMS_PER_CM3 = 39.948 / 0.602214076 / 3.4**3


class EscapeRates(NamedTuple):
    """Rates of escape by temperature with error bars, and the exact ones."""

    temperature: np.ndarray
    rate: np.ndarray
    error: np.ndarray
    exact: np.ndarray


class FluidPressures(NamedTuple):
    """Pressure of every box with its error bar, and the published one, reduced units."""

    temperature: np.ndarray
    density: np.ndarray
    pressure: np.ndarray
    error: np.ndarray
    published: np.ndarray
