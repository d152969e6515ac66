"""What a bath holds: a temperature or a pressure, constant or a function of time."""

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    DeclarationError,
    Module,
    Network,
    PyTree,
    ShapeError,
    as_parameter,
    call_user_function,
    poison_where,
    static,
)

from .._integrator import AbstractIntegrator

# A number, a function of time, or a Module called like one, whose parameters have derivatives.
Target: TypeAlias = Any


class TimeFunction(Module):
    """A plain function t → number."""

    function: Callable = static()

    def __call__(self, t: Float[Array, ""]) -> Any:
        return call_user_function(self.function, (t,), "the target of a bath", "(t)")


def as_target(value: Target) -> Target:
    """The field of a bath from what a user gives: numbers become parameters, functions a Module."""
    if isinstance(value, Module):
        return value
    if isinstance(value, eqx.Module):
        return Network(value)
    # JAX arrays have a dtype; some array-like classes can be called, too.
    is_function = callable(value) and not hasattr(value, "dtype") and type(value) is not object
    return TimeFunction(value) if is_function else as_parameter(value)


def target_at(target: Target, clock: Clock) -> Float[Array, ""]:
    """The value of a target at `clock.t`."""
    if not isinstance(target, Module):
        return target
    value = jnp.asarray(cast(Callable, target)(clock.t), clock.dt.dtype)
    if value.ndim:
        raise ShapeError(
            f"the target of a bath is one number at each time; its function returned shape {value.shape}"
        )
    return value


def temperature_at(target: Target, clock: Clock) -> Float[Array, ""]:
    """k_B T at `clock.t`; NaN where it is negative, which a trace or a function may have hidden."""
    value = target_at(target, clock)
    return poison_where(value, value < 0)


def positive(value: Float[Array, ""]) -> Float[Array, ""]:
    """`value`, or NaN where it is not positive: what `require_positive` cannot see in a trace."""
    return poison_where(value, ~(value > 0))


def thermostat_temperature(integrator: AbstractIntegrator, owner: str) -> Target:
    """The temperature of the one thermostat in `integrator`, which `owner` holds.

    **Errors:** `DeclarationError` where there is none, or several.
    """

    def is_thermostat(node: PyTree) -> bool:
        return isinstance(node, AbstractIntegrator) and hasattr(node, "temperature")

    nodes = jax.tree.leaves(integrator, is_leaf=is_thermostat)
    found = [node.temperature for node in nodes if is_thermostat(node)]
    if len(found) != 1:
        raise DeclarationError(
            f"{owner} holds the temperature of the thermostat inside of it, and found {len(found)}: write, "
            f"e.g., {owner}(VelocityRescaling(VelocityVerlet(force), temperature=…, relaxation_time=…), …)"
        )
    return found[0]
