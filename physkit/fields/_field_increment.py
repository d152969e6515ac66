"""What is added to a field."""

from jaxtyping import Array, Complex, Inexact

from physkit.core import Module, data, static
from physkit.geometry import Location


class FieldIncrement(Module):
    """An increment, or rate of change, of a field: by values, by Fourier coefficients, or both.

    Keeping the form that a term computed saves transforms: integrators that work on coefficients take
    coefficients as they are.

    - `values`: `[*components, *points]`; None for 0.
    - `location`: where in the cells it sits, as the field that it is added to.
    - `coefficients`: `[*components, *modes]`, added to the values; None for 0.
    """

    values: Inexact[Array, "..."] | None = data(None)
    location: Location = static()
    coefficients: Complex[Array, "..."] | None = data(None)

    def __init__(
        self,
        values: Inexact[Array, "..."] | None,
        location: Location,
        coefficients: Complex[Array, "..."] | None = None,
    ):
        self.values, self.location, self.coefficients = values, location, coefficients
