"""Components whose parts change devices: their arrays have slots, some of which are empty."""

import abc
from typing import Any

import equinox as eqx

from ._components import AbstractComponent


class AbstractSlottedComponent(AbstractComponent):
    """A component that is spread over devices by where its parts are, not in equal blocks.

    In device layout its arrays are `[device, slot, …]` with more slots than parts, so that parts can move on
    to another device. What the run-time layer asks of it to choose how many slots, without knowing what
    the parts are; all of it on the host.
    """

    # Path of the leaf `[device, slot]` that tells which slots are filled, as checkpoints write it.
    slot_mask_path: eqx.AbstractClassVar[str]

    @property
    @abc.abstractmethod
    def num_slots(self) -> int:
        """Slots of a device; on one device as many as there are parts."""

    @property
    @abc.abstractmethod
    def max_slots(self) -> int:
        """More slots than this no run has ever needed; 0 on one device."""

    @property
    @abc.abstractmethod
    def num_required_slots(self) -> int | None:
        """The most slots that a device has needed so far; None on one device."""

    @abc.abstractmethod
    def require_slots(self, count: int) -> "AbstractSlottedComponent":
        """This component as if a device had needed `count` slots."""

    @abc.abstractmethod
    def resize_slots(self, count: int) -> "AbstractSlottedComponent":
        """This component in device layout with `count` slots a device: its form, all numbers zero."""

    @abc.abstractmethod
    def widen_migration_margin(self, dt: Any, has_halo: bool) -> "AbstractSlottedComponent":
        """This component in device layout, with a margin that its fastest part does not cross in some steps.

        - `has_halo`: some term reads copies of parts near a slab, which a wide margin makes many.
        """

    def describe_slots(self) -> str:
        """What a device has of it, and how to take from an array what belongs to that."""
        name = type(self).__name__.lower()
        return (
            f"each has {self.num_slots} slots for some of the {name}: take theirs by {name}.local_rows(x), "
            f"and lengths from {name}.num_slots"
        )
