"""Communicators: the only words in which a program speaks to other devices."""

import abc

from physkit.core import Module


class AbstractComm(Module):
    """What geometry may ask of the devices that a domain is cut over.

    Physics never sees a communicator: it asks its space or grid, which asks this one.
    """

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """How many devices there are."""

    @abc.abstractmethod
    def psum(self, x):
        """The sum of `x` over all devices, known to each."""

    @abc.abstractmethod
    def pmax(self, x):
        """The largest `x` of all devices, known to each."""


class Serial(AbstractComm):
    """One device: every question answers itself."""

    @property
    def size(self) -> int:
        return 1

    def psum(self, x):
        return x

    def pmax(self, x):
        return x
