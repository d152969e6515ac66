"""Tendencies: a good one, and one for each mistake."""

import jax
from jaxtyping import Array, Float

from physkit.core import (
    AbstractTendency,
    param,
)


class Decay(AbstractTendency):
    """Good: two coupled components, da/dt = −k a, db/dt = k a − b."""

    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        flow = self.rate_constant * state["a"]
        return {"a": -flow, "b": flow - state["b"]}


class ReturnsUnknownComponent(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return {"c": -self.rate_constant * state["a"]}


class ReturnsBareArray(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return -self.rate_constant * state["a"]


class WrongShape(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return {"a": -self.rate_constant * state["a"][:, None]}


class ForgetsParameter(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return {"a": -state["a"]}


class StoppedTendency(AbstractTendency):
    rate_constant: Float[Array, ""] = param(0.7)

    def rate(self, clock, state):
        return {"a": -self.rate_constant * jax.lax.stop_gradient(state["a"])}


BROKEN_TENDENCIES = [
    (ReturnsUnknownComponent, r"drives \['c'\], but the state has only \['a', 'b'\]"),
    (ReturnsBareArray, r"takes rates by their names"),
    (WrongShape, r"after adding|cannot be added"),
    (ForgetsParameter, r"rate_constant has no effect"),
    (StoppedTendency, r"\['a'\]'?\]?.* is exactly 0, but the finite difference is"),
]
