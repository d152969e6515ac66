"""Bounds: the values that a parameter may take, as smooth maps from all real numbers."""

import abc
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import Module, ParameterError, concrete_value, param


class AbstractBounds(Module):
    """The values that a parameter may take: value = `value(u)`, u any real numbers."""

    @abc.abstractmethod
    def value(self, u: Float[Array, "*u"]) -> Float[Array, "*v"]:
        """The parameter for coordinates u, any real numbers."""

    @abc.abstractmethod
    def inverse(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        """The coordinates u of an allowed value; the inverse of `value`."""

    @abc.abstractmethod
    def natural_scale(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        """How much u changes when the value changes by as much as it is large."""

    @abc.abstractmethod
    def why_invalid(self, value: np.ndarray) -> str:
        """Why `value` cannot be a start; empty if it can."""

    def active_bound(self, value: np.ndarray) -> str:
        """Which end of its range a fitted value ran into; empty if none."""
        del value
        return ""

    def log_volume(self, u: Float[Array, "*u"]) -> Float[Array, ""]:
        """ln |det ∂value/∂u|, by which densities of values become densities of u.

        By differentiation, which needs as many coordinates as values; shipped bounds have formulas.
        """
        slopes = jax.jacfwd(lambda flat: self.value(flat.reshape(u.shape)).reshape(-1))(
            u.reshape(-1)
        )
        return jnp.linalg.slogdet(slopes)[1]


class Unbounded(AbstractBounds):
    """Any real number.

        value = u

    **Arguments:**

    - `scale`: by how much the value may well change, of its shape or a number; its own size if left
      out (where it is 0: the typical size of the others in the same array, or 1).
    """

    scale: Float[Array, "..."] | None = param(None)

    def value(self, u: Float[Array, "*u"]) -> Float[Array, "*v"]:
        return u

    def inverse(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        return value

    def natural_scale(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        if self.scale is not None:
            return jnp.broadcast_to(self.scale.astype(value.dtype), value.shape)
        # A 0 has no size of its own: it takes that of its neighbors in the array.
        size = jnp.abs(value)
        typical = jnp.sqrt(jnp.mean(value * value))
        return jnp.where(size > 0, size, jnp.where(typical > 0, typical, 1))

    def log_volume(self, u: Float[Array, "*u"]) -> Float[Array, ""]:
        return jnp.zeros((), u.dtype)

    def why_invalid(self, value: np.ndarray) -> str:
        scale = concrete_value(self.scale)
        if scale is not None and not np.all(scale > 0):
            return f"needs a positive scale, got {scale}"
        return "" if np.all(np.isfinite(value)) else "is not finite"


class PositiveBound(AbstractBounds):
    """Numbers above zero.

        value = eᵘ

    Steps are relative, so a start that is off by a factor of ten is no harder from below than from
    above.
    """

    def value(self, u: Float[Array, "*u"]) -> Float[Array, "*v"]:
        return jnp.exp(u)

    def inverse(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        return jnp.log(value)

    def natural_scale(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        return jnp.ones_like(value)

    def log_volume(self, u: Float[Array, "*u"]) -> Float[Array, ""]:
        return jnp.sum(u)

    def why_invalid(self, value: np.ndarray) -> str:
        return "" if np.all((value > 0) & np.isfinite(value)) else "must start above 0"

    def active_bound(self, value: np.ndarray) -> str:
        # eᵘ reaches 0 by underflow only.
        return "0" if np.any(value < np.finfo(value.dtype).tiny * 1e6) else ""


class Interval(AbstractBounds):
    """Numbers between two ends, which are never reached.

        value = a + (b − a) / (1 + e⁻ᵘ)

    **Arguments:**

    - `low`, `high`: a and b, numbers or arrays of the parameter's shape.
    """

    low: Float[Array, "..."] = param()
    high: Float[Array, "..."] = param()

    def __check_init__(self):
        low, high = concrete_value(self.low), concrete_value(self.high)
        if low is None or high is None:
            return
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
            raise ParameterError(f"Interval(a, b) needs finite a < b; got {low} and {high}")

    def value(self, u: Float[Array, "*u"]) -> Float[Array, "*v"]:
        low, high = self._ends(u)
        return low + (high - low) * jax.nn.sigmoid(u)

    def inverse(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        low, high = self._ends(value)
        # A difference of logarithms, not the log of a ratio, which overflows near an end.
        return jnp.log(value - low) - jnp.log(high - value)

    def natural_scale(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        return jnp.ones_like(value)

    def log_volume(self, u: Float[Array, "*u"]) -> Float[Array, ""]:
        low, high = self._ends(u)
        # Of the logistic function s: s' = s (1 − s), each factor without cancellation.
        return jnp.sum(jnp.log(high - low) + jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u))

    def why_invalid(self, value: np.ndarray) -> str:
        inside = (value > np.asarray(self.low)) & (value < np.asarray(self.high))
        return "" if np.all(inside) else f"must start between {self.low} and {self.high}"

    def active_bound(self, value: np.ndarray) -> str:
        low, high = np.asarray(self.low), np.asarray(self.high)
        position = (value - low) / (high - low)
        for near, end in ((position < 1e-3, low), (position > 1 - 1e-3, high)):
            if np.any(near):
                return f"{np.broadcast_to(end, near.shape)[near][0]:g}"
        return ""

    def _ends(self, like: Float[Array, "..."]) -> tuple[Array, Array]:
        # In the precision of the parameter, which may be lower than that of the bounds.
        low = jnp.broadcast_to(self.low.astype(like.dtype), like.shape)
        high = jnp.broadcast_to(self.high.astype(like.dtype), like.shape)
        return low, high


class Simplex(AbstractBounds):
    """Fractions: positive numbers along the last axis that add up to 1.

        value = eᵘⁱ / Σⱼ eᵘʲ,   the last u being 0

    n fractions have n − 1 coordinates.
    """

    def value(self, u: Float[Array, "*u"]) -> Float[Array, "*v"]:
        last = jnp.zeros((*u.shape[:-1], 1), u.dtype)
        return jax.nn.softmax(jnp.concatenate([u, last], axis=-1), axis=-1)

    def inverse(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        return jnp.log(value[..., :-1]) - jnp.log(value[..., -1:])

    def natural_scale(self, value: Float[Array, "*v"]) -> Float[Array, "*u"]:
        return jnp.ones_like(value[..., :-1])

    def log_volume(self, u: Float[Array, "*u"]) -> Float[Array, ""]:
        # The volume of the first n − 1 fractions: the product of all n.
        last = jnp.zeros((*u.shape[:-1], 1), u.dtype)
        return jnp.sum(jax.nn.log_softmax(jnp.concatenate([u, last], axis=-1), axis=-1))

    def why_invalid(self, value: np.ndarray) -> str:
        if value.ndim == 0 or value.shape[-1] < 2:
            return f"needs at least two fractions along its last axis; its shape is {value.shape}"
        excess = np.abs(value.sum(-1) - 1)
        # Added up to 1 but for rounding, which grows with the number of fractions.
        fine = np.all(value > 0) and np.all(excess < 10 * value.size * np.finfo(value.dtype).eps)
        return "" if fine else "must start with fractions above 0 that add up to 1"

    def active_bound(self, value: np.ndarray) -> str:
        return "0" if np.any(value < 1e-6) else ""


# One for all parameters, some by name, or one each in order. `make_coordinates` says what is wrong.
BoundsLike: TypeAlias = Any
