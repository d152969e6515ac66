"""Learned terms: any network as a part of an equation."""

from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array

from physkit.core import (
    Clock,
    DeclarationError,
    Module,
    Network,
    ParameterError,
    ShapeError,
    describe,
    static,
)

from .._equation import AbstractEquation
from .._field import Field


def as_network(network: Callable) -> Callable:
    """A network whose weights are parameters, whatever else it holds.

    **Errors:** `DeclarationError` for what cannot be called.
    """
    if not callable(network) and type(network) is not object:  # a place without a value, in a tree
        raise DeclarationError(f"a network must be a function; got {describe(network)}")
    return network if isinstance(network, Module) else Network(network)


class Closure(AbstractEquation):
    """A network's output as the rate of a field: a learned closure.

        ∂u/∂t = network(u and its neighbors)

    The network sees `[c, *points + 2·padding]`, the components and a border of ghost cells from the
    field's own boundary, and returns `[c, *points]`: convolutions without padding of their own,
    whose kernels take off `2·padding` altogether, see walls and wrap where the box does. Weights are
    parameters of the simulation, with gradients through every step.

    **Arguments:**

    - `network`: an Equinox network, or any Module that is called with one array.
    - `padding`: ghost cells on every side. 0 for a network that acts point by point (kernels of
      size 1).
    - `component`: the field's name, where the state has several components.

    **Errors:** `ShapeError` for a network that returns another shape, and for a complex field.
    """

    network: Callable = eqx.field(converter=as_network)
    padding: int = static(default=0)
    component: str | None = static(default=None)

    def __check_init__(self):
        if isinstance(self.padding, bool) or self.padding < 0:
            raise ParameterError(f"padding counts ghost cells: 0, 1, …; got {self.padding!r}")

    def nonlinear(self, clock: Clock, field: Field) -> Field:
        del clock
        if not field.is_real:
            raise ShapeError("Closure acts on real fields: split complex ones in two components")
        values = field.padded(self.padding) if self.padding else field.data
        # Networks take (channels, points): a scalar field is one channel.
        channels = values if field.components else values[None]
        rate: Array = self.network(channels)
        expected = channels.shape[:1] + field.data.shape[len(field.components) :]
        if rate.shape != expected:
            raise ShapeError(
                f"the network made {list(rate.shape)} of {list(channels.shape)}; a closure returns "
                f"{list(expected)}: padding={self.padding} on every side must be what its kernels "
                "take off"
            )
        return field.with_values(rate if field.components else rate[0])
