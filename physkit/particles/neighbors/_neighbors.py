"""The contract of neighbors: what a sum over pairs asks of them, whether a list holds them or not."""

import abc

import equinox as eqx
from jaxtyping import Array, Bool

from physkit.core import Module, PyTree, poison_where

from .._particles import Particles
from ._pairs import AbstractPairs


class AbstractNeighbors(Module):
    """The pairs of particles that a sum runs over, kept up to date as particles move.

    - `pairs`: the pairs that sums run over.
    """

    pairs: eqx.AbstractVar[AbstractPairs]

    @property
    @abc.abstractmethod
    def is_complete(self) -> Bool[Array, "*b"]:
        """Whether no pair is missing; where this is False, sums over the pairs must be poisoned."""

    @abc.abstractmethod
    def update(self, particles: Particles) -> "AbstractNeighbors":
        """The same, rebuilt if a pair that it leaves out may have come within the cutoff."""

    def exchange_halo(self, particles: Particles, arrays: PyTree) -> PyTree:
        """`arrays`, `[n …]`, of these particles, and behind them those of all others in `pairs`."""
        del particles
        return arrays

    def poison_if_incomplete(self, sums: PyTree) -> PyTree:
        """`sums` over the pairs, or NaN where pairs are missing."""
        # An overflow is noticed only at the end of the chunk, which is then replayed: until then nothing that
        # was computed with missing pairs may look like a number.
        return poison_where(sums, ~self.is_complete)
