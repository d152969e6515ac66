"""Components whose parts change devices: their arrays have slots, some of which are empty."""

import abc
from typing import ClassVar

import equinox as eqx
from jaxtyping import ArrayLike

from ._components import AbstractComponent


class AbstractSlottedComponent(AbstractComponent):
    """A component whose parts are distributed over devices by their positions, not in equal blocks.

    In device layout its arrays are `[device, slot, …]` with more slots than parts, so that parts can migrate
    to another device. By this contract the run-time layer chooses the number of slots, without knowing what
    the parts are. All of it runs on the host.
    """

    # Path of the leaf `[device, slot]` that tells which slots are filled, as checkpoints spell paths.
    slot_mask_path: eqx.AbstractClassVar[str]
    is_of_device: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def num_slots(self) -> int:
        """Number of slots of each device; on one device the number of parts."""

    @property
    @abc.abstractmethod
    def max_slots(self) -> int:
        """An upper bound of slots, beyond which a number in a file is not believed; 0 on one device."""

    @property
    @abc.abstractmethod
    def num_required_slots(self) -> int | None:
        """The largest number of slots that any device has needed so far; None on one device."""

    @abc.abstractmethod
    def require_slots(self, count: int) -> "AbstractSlottedComponent":
        """This component with `num_required_slots` set to `count`, so that it grows to that."""

    @abc.abstractmethod
    def resize_slots(self, count: int) -> "AbstractSlottedComponent":
        """This component in device layout with `count` slots per device: shapes only, all numbers zero."""

    @abc.abstractmethod
    def widen_migration_margin(self, dt: ArrayLike, has_halo: bool) -> "AbstractSlottedComponent":
        """This component in device layout, with a margin that its fastest part crosses in several steps.

        **Arguments:**

        - `dt`: length of a step, in time units.
        - `has_halo`: whether some term reads copies of parts near a slab. A wider margin adds to them.
        """

    def describe_slots(self) -> str:
        """What a device holds of this component, and how to take its part of an array: for error messages."""
        name = type(self).__name__.lower()
        return (
            f"each has {self.num_slots} slots for some of the {name}: take theirs by {name}.local_rows(x), "
            f"and lengths from {name}.num_slots"
        )
