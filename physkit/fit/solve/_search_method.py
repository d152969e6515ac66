"""Searches: methods without derivatives, which ask for the losses of whole populations."""

import abc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from physkit.core import Key, PyTree

from .._program import ProgramByContent
from ._fit_result import SearchHistory
from ._methods import AbstractMethod, Kind


class LossProgram(NamedTuple):
    """A loss as a program of one vector z, traced once: `program(constants, [z, *arrays])[0]`."""

    program: ProgramByContent
    constants: list[Array]
    arrays: list[Array]


def trace_loss(
    function: Callable[[Float[Array, " p"], PyTree], Float[Array, ""]],
    z: Float[Array, " p"],
    inputs: PyTree,
) -> LossProgram:
    """`function(z, inputs)` as a `LossProgram`."""
    closed, _, _ = eqx.filter_make_jaxpr(function)(z, inputs)
    arrays = jax.tree.leaves(eqx.filter(inputs, eqx.is_array))
    return LossProgram(ProgramByContent(closed), list(closed.consts), arrays)


class SearchRequest(NamedTuple):
    """What a search is asked for.

    - `loss`: of one vector; `start`: the vector to begin at. Coordinates are of order 1.
    - `key`: of all that is drawn.
    - `identity`: what the problem is, as text by title and path, for the folder `to`.
    - `batch_size`: members that one call computes on each of the `devices`; all members and all local devices
      if None.
    - `wall_time`: seconds after which no further generation is begun.
    - `report(generations, text)`: is told after each generation.
    """

    loss: LossProgram
    start: Float[Array, " p"]
    key: Key
    identity: Mapping[str, Mapping[str, str]]
    to: str | Path | None
    batch_size: int | None
    devices: Sequence[jax.Device] | None
    wall_time: float | None
    report: Callable[[int, str], None]


class SearchStart(NamedTuple):
    """One of the restarts of a search: from where, to where, how well."""

    start: np.ndarray
    z: np.ndarray
    loss: float
    generations: int
    converged: bool


class SearchOutcome(NamedTuple):
    """Where a search ended: `z`, the best vector of all, and its loss."""

    z: np.ndarray
    loss: float
    converged: bool
    reason: str
    history: SearchHistory
    starts: tuple[SearchStart, ...]


class AbstractSearch(AbstractMethod):
    """A method that needs no derivatives of the loss.

    Populations are computed where this class is implemented: `fit` knows only what it asks for.
    """

    kind: ClassVar[Kind] = "loss"

    @abc.abstractmethod
    def search(self, request: SearchRequest) -> SearchOutcome:
        """Look for the lowest loss.

        **Errors:** `ParameterError` for what the method cannot do; `ObjectiveError` where no member of the
        first generation has a finite loss.
        """
