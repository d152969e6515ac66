"""Which of several devices holds given particles, for work that all devices divide among themselves."""

from jaxtyping import Array, Int

from ._particles import Particles


def num_devices(particles: Particles) -> int:
    """The number of devices that the domain of `particles` is sharded over."""
    ownership = particles.ownership
    return 1 if ownership is None else ownership.num_devices(particles.space)


def device_index(particles: Particles) -> int | Int[Array, ""]:
    """The index of this device among them, from 0."""
    ownership = particles.ownership
    return 0 if ownership is None else ownership.device_index(particles.space)
