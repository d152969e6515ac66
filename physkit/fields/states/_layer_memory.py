"""What an absorbing layer remembers between steps."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import AbstractComponent, Rate, replace_fields, static
from physkit.geometry import shard_array, unshard_array


class LayerMemory(AbstractComponent):
    """What an absorbing layer remembers of one derivative: ψ at the points near one side.

    - `values`: `[*points]`, the layer's points along `axis`, all points along the others.
    - `axis`, `side`: of the layer; side 0 is the low one.
    - `shared`: per axis, whether points sit on walls, so that neighboring devices share a layer of them.
    """

    values: Array
    axis: int = static()
    side: int = static()
    shared: tuple[bool, ...] = static()
    is_of_device: ClassVar[bool] = True

    def shift(self, delta: Rate) -> "LayerMemory":
        return self.with_values(self.values + delta)

    def with_values(self, values: Array) -> "LayerMemory":
        """Other values at the same points."""
        return replace_fields(self, {"values": values})

    def shard(self, devices: tuple[int, ...]) -> "LayerMemory":
        # Every device has a layer of its own; only those at the side of the domain use it.
        copies = self._devices_across(devices)
        x = jnp.concatenate([self.values] * copies, axis=self.axis)
        return self.with_values(shard_array(x, devices, self._shared_along()))

    def unshard(self, devices: tuple[int, ...]) -> "LayerMemory":
        x = unshard_array(self.values, devices, self._shared_along())
        blocks = jnp.split(x, self._devices_across(devices), axis=self.axis)
        return self.with_values(blocks[-1 if self.side else 0])

    def _devices_across(self, devices: tuple[int, ...]) -> int:
        return devices[self.axis] if self.axis < len(devices) else 1

    def _shared_along(self) -> tuple[bool, ...]:
        return tuple(s and k != self.axis for k, s in enumerate(self.shared))
