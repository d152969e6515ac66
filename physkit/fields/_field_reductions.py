"""Integrals, means, norms and extremes of fields over the whole domain, whatever devices hold it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import ShapeError, safe_power, safe_sqrt

from ._field_arithmetic import AbstractFieldArithmetic


class AbstractFieldReductions(AbstractFieldArithmetic):
    """What fields are over the whole domain."""

    components: eqx.AbstractVar[tuple[int, ...]]
    real_dtype: eqx.AbstractVar[jnp.dtype]

    def integral(self) -> Array:
        """∫ u dV, per component."""
        return self.grid.integrate(self._weighted(self.data))

    def mean(self) -> Array:
        """The volume average, per component."""
        return self.integral() / self.grid.space.volume

    def norm(self, power: int = 2) -> Array:
        """(∫ |u|ᵖ dV / V)^(1/p) over all components: root mean square for 2, mean magnitude for 1.

        An average over the box, so that the norm of 1 is 1. Wave functions with ∫ |ψ|² dV = 1 are
        `psi.normalized()`.
        """
        total = self.grid.integrate(self._weighted(jnp.abs(self.data) ** power))
        mean = jnp.sum(total) / self.grid.space.volume
        if power == 2:  # a root is exact to its last bit, a power is not
            return safe_sqrt(mean)
        return mean if power == 1 else safe_power(mean, 1 / power)

    def max(self) -> Array:
        """The largest value, per component.

        **Errors:** `ShapeError` for complex values, which have no order.
        """
        return self.grid.max(self._ordered())

    def min(self) -> Array:
        """The smallest value, per component; errors as `max`."""
        return -self.grid.max(-self._ordered())

    def _ordered(self) -> Array:
        if jnp.iscomplexobj(self.data):
            raise ShapeError(
                "complex values have no largest or smallest: take abs(field), or field.map(jnp.real)"
            )
        return self.data

    def _weighted(self, values: Array) -> Array:
        """`values` times the part of a cell's volume that every point stands for: half on walls."""
        for weights in self.grid.quadrature_weights(self.location):
            # NumPy arrays: weights of 1 are left out of the program.
            if (weights != 1).any():
                shape = (1,) * len(self.components) + weights.shape
                values = values * weights.astype(self.real_dtype).reshape(shape)
        return values
