"""Priors: what is known of a parameter before the data, as densities of its value."""

import abc
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import Key, Module, ParameterError, concrete_value, param
from physkit.fit import AbstractBounds, Interval, PositiveBound, Unbounded

# Python's floats, which take the precision of what they meet; NumPy's do not.
_LOG_TWO = math.log(2)
_LOG_TWO_OVER_PI = math.log(2 / math.pi)
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class AbstractPrior(Module):
    """The density of a parameter before the data; numbers of an array are independent.

    Write `log_density`, `sample` and the `support`, and it goes wherever the shipped priors go.
    """

    @property
    @abc.abstractmethod
    def support(self) -> AbstractBounds:
        """The values that have a density, as the bounds of a fit."""

    @abc.abstractmethod
    def log_density(self, value: Float[Array, "*v"]) -> Float[Array, "*v"]:
        """ln p of each number, with its normalization."""

    @abc.abstractmethod
    def sample(self, key: Key, shape: tuple[int, ...]) -> Float[Array, "*v"]:
        """Independent values of this shape."""


class Normal(AbstractPrior):
    """Normal prior.

        p(x) = exp(−(x − μ)²/2σ²) / √(2π) σ

    **Arguments:**

    - `mean`, `std`: μ and σ, numbers or arrays of the parameter's shape, in its unit.

    **Errors:** `ParameterError` for a σ that is not above 0, or a μ that is not finite.
    """

    mean: Float[Array, "..."] = param(0.0)
    std: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        _require_width("Normal", "std", self.std)
        mean = concrete_value(self.mean)
        if mean is not None and not np.all(np.isfinite(mean)):
            raise ParameterError(f"Normal(mean=…) must be finite; got {mean}")

    @property
    def support(self) -> AbstractBounds:
        return Unbounded()

    def log_density(self, value: Float[Array, "*v"]) -> Float[Array, "*v"]:
        return _log_normal_density(value, *_like(value, self.mean, self.std))

    def sample(self, key: Key, shape: tuple[int, ...]) -> Float[Array, "*v"]:
        unit = jax.random.normal(key, shape, self.std.dtype)
        mean, std = _like(unit, self.mean, self.std)
        return mean + std * unit


class LogNormal(AbstractPrior):
    """Log-normal prior: ln x is normal. For scales and rates, known to within a factor.

        p(x) = exp(−(ln x − ln m)²/2σ²) / √(2π) σ x,   x > 0

    **Arguments:**

    - `median`: m, in the parameter's unit. `std`: σ, of ln x: 0.5 means within a factor of 1.6.

    **Errors:** `ParameterError` for a median or σ that is not above 0.
    """

    median: Float[Array, "..."] = param(1.0)
    std: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        _require_width("LogNormal", "median", self.median)
        _require_width("LogNormal", "std", self.std)

    @property
    def support(self) -> AbstractBounds:
        return PositiveBound()

    def log_density(self, value: Float[Array, "*v"]) -> Float[Array, "*v"]:
        median, std = _like(value, self.median, self.std)
        is_inside = value > 0  # wider bounds may lead elsewhere
        log = jnp.log(jnp.where(is_inside, value, 1))
        density = _log_normal_density(log, jnp.log(median), std) - log
        return jnp.where(is_inside, density, -jnp.inf)

    def sample(self, key: Key, shape: tuple[int, ...]) -> Float[Array, "*v"]:
        unit = jax.random.normal(key, shape, self.std.dtype)
        median, std = _like(unit, self.median, self.std)
        return median * jnp.exp(std * unit)


class HalfNormal(AbstractPrior):
    """Half-normal prior: a normal one about 0, for positive numbers. For noise and spreads.

        p(x) = √(2/π) exp(−x²/2σ²) / σ,   x > 0

    **Arguments:**

    - `std`: σ, in the parameter's unit.

    **Errors:** `ParameterError` for a σ that is not above 0.
    """

    std: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        _require_width("HalfNormal", "std", self.std)

    @property
    def support(self) -> AbstractBounds:
        return PositiveBound()

    def log_density(self, value: Float[Array, "*v"]) -> Float[Array, "*v"]:
        (std,) = _like(value, self.std)
        density = _log_normal_density(value, jnp.zeros_like(value), std) + _LOG_TWO
        return jnp.where(value >= 0, density, -jnp.inf)

    def sample(self, key: Key, shape: tuple[int, ...]) -> Float[Array, "*v"]:
        unit = jnp.abs(jax.random.normal(key, shape, self.std.dtype))
        return _like(unit, self.std)[0] * unit


class HalfCauchy(AbstractPrior):
    """Half-Cauchy prior: heavy tails, for spreads of which little is known.

        p(x) = 2 / π s (1 + x²/s²),   x > 0

    **Arguments:**

    - `scale`: s, the median, in the parameter's unit.

    **Errors:** `ParameterError` for an s that is not above 0.

    **Reference:** Gelman, Bayesian Analysis 1, 515 (2006).
    """

    scale: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        _require_width("HalfCauchy", "scale", self.scale)

    @property
    def support(self) -> AbstractBounds:
        return PositiveBound()

    def log_density(self, value: Float[Array, "*v"]) -> Float[Array, "*v"]:
        (scale,) = _like(value, self.scale)
        density = _LOG_TWO_OVER_PI - jnp.log(scale) - jnp.log1p((value / scale) ** 2)
        return jnp.where(value >= 0, density, -jnp.inf)

    def sample(self, key: Key, shape: tuple[int, ...]) -> Float[Array, "*v"]:
        unit = jax.random.uniform(key, shape, self.scale.dtype)
        return _like(unit, self.scale)[0] * jnp.tan(unit * (math.pi / 2))


class Uniform(AbstractPrior):
    """Uniform prior between two ends.

        p(x) = 1 / (b − a),   a < x < b

    **Arguments:**

    - `low`, `high`: a and b, in the parameter's unit.

    **Errors:** `ParameterError` for ends that are not finite and in order.
    """

    low: Float[Array, "..."] = param(0.0)
    high: Float[Array, "..."] = param(1.0)

    def __check_init__(self):
        self.support  # noqa: B018  Interval checks the ends

    @property
    def support(self) -> AbstractBounds:
        return Interval(self.low, self.high)

    def log_density(self, value: Float[Array, "*v"]) -> Float[Array, "*v"]:
        low, high = _like(value, self.low, self.high)
        return jnp.where((value >= low) & (value <= high), -jnp.log(high - low), -jnp.inf)

    def sample(self, key: Key, shape: tuple[int, ...]) -> Float[Array, "*v"]:
        unit = jax.random.uniform(key, shape, self.low.dtype)
        low, high = _like(unit, self.low, self.high)
        return low + (high - low) * unit


def _log_normal_density(x: Array, mean: Array, std: Array) -> Array:
    return -0.5 * ((x - mean) / std) ** 2 - jnp.log(std) - _HALF_LOG_TWO_PI


def _like(value: Array, *numbers: Array) -> tuple[Array, ...]:
    """Numbers of a prior in the shape and precision of a value."""
    return tuple(jnp.broadcast_to(x.astype(value.dtype), value.shape) for x in numbers)


def _require_width(prior: str, name: str, value: Array) -> None:
    numbers = concrete_value(value)
    if numbers is not None and not np.all(np.isfinite(numbers) & (np.asarray(numbers) > 0)):
        raise ParameterError(f"{prior}({name}=…) must be above 0 and finite; got {numbers}")
