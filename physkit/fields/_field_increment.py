"""What is added to a field."""

from jaxtyping import Array, Complex, Inexact

from physkit.core import Module, data, static
from physkit.geometry import Location


class FieldIncrement(Module):
    """A change, or rate of change, of a field: by values, by Fourier coefficients, or both; None is 0.

    Keeping the form that a term computed saves transforms: integrators that work on coefficients take
    coefficients as they are.
    """

    values: Inexact[Array, "..."] | None = data(None)
    location: Location = static()
    coefficients: Complex[Array, "..."] | None = data(None)

    def __init__(self, values, location, coefficients=None):
        self.values, self.location, self.coefficients = values, location, coefficients
