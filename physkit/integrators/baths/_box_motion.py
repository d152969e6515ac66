"""The variables of a moving box: part of the state, as those of thermostats are."""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from physkit.core import AbstractComponent, data

from ..particle._nose_hoover import ThermostatChain


class BoxMotion(AbstractComponent):
    """How fast a box is being strained, and the chain of thermostats of that motion.

    **Arguments:**

    - `rate`: v_g, `[d d]`, 1 / time: the box vectors h change as dh/dt = v_g h.
    - `chain`: its thermostats.
    """

    rate: Float[Array, "d d"] = data()
    chain: ThermostatChain

    @staticmethod
    def at_rest(dimension: int = 3, length: int = 3, dtype: DTypeLike | None = None) -> "BoxMotion":
        """A box at rest, with `length` thermostats, in the particles' `dtype`."""
        zeros = jnp.zeros((dimension, dimension), float if dtype is None else dtype)
        return BoxMotion(zeros, ThermostatChain.at_rest(length, dtype))

    def shift(self, delta: "BoxMotion") -> "BoxMotion":
        return BoxMotion(self.rate + delta.rate, self.chain.shift(delta.chain))
