"""Designs: which points of a parameter space to compute."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from physkit.core import (
    ParameterError,
    PyTree,
    ShapeError,
    as_count,
    as_generator,
    count_of,
    explain_call,
    explain_class,
)
from physkit.fit import Fit

from ._sweep_axes import STATE, Design, SweepAxis, Where, cartesian_product, zip_axes

_as_members = count_of("members")


@explain_class
@dataclasses.dataclass(frozen=True, eq=False)
class ParameterRange:
    """The range of a quantity, for designs to choose values from.

    **Arguments:**

    - `where`: as for `SweepAxis`; a single number of the model.
    - `low`, `high`: limits.
    - `logarithmic`: evenly in the logarithm; limits are positive.
    - `name`: what it is called in tables.

    **Errors:** `ParameterError` for limits that are not finite, not in order, or not positive.
    """

    where: Where
    low: float | int
    high: float | int
    logarithmic: bool = False
    name: str | None = None

    def __post_init__(self):
        low, high = float(self.low), float(self.high)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ParameterError(
                f"the limits of a range must be finite, low < high; got {low}, {high}"
            )
        if self.logarithmic and low <= 0:
            raise ParameterError(f"a logarithmic range begins above 0; got {low}")

    def axis_at(self, fractions: np.ndarray) -> SweepAxis:
        """The axis of values at these fractions of the way from low to high."""
        if self.logarithmic:
            low, high = np.log(self.low), np.log(self.high)
            values = np.exp(low + fractions * (high - low))
        else:
            values = self.low + fractions * (self.high - self.low)
        return SweepAxis(self.where, values, self.name)


@explain_call
def grid(points: int | Sequence[int], *ranges: ParameterRange) -> Design:
    """A regular grid, limits included: `points` values of each quantity, or so many of each.

    **Errors:** `ParameterError` for fewer than one point.
    """
    counts = list(points) if np.ndim(points) else [points] * len(ranges)
    if len(counts) != len(ranges):
        raise ShapeError(f"a grid of {len(ranges)} quantities needs as many counts; got {counts}")
    counts = [as_count(n, "points", ParameterError) for n in counts]
    # A single point of a quantity is put into the middle of its range.
    fractions = [np.linspace(0, 1, n) if n > 1 else np.array([0.5]) for n in counts]
    axes = [r.axis_at(f) for r, f in zip(_check_ranges(ranges), fractions, strict=True)]
    return cartesian_product(*axes)


@explain_call
def random(members: int, *ranges: ParameterRange, seed: int = 0) -> Design:
    """Independent uniform points.

    **Arguments:**

    - `ranges`: `ParameterRange(where, low, high)`, one for each quantity.
    """
    generator = as_generator(seed)
    shape = (_as_members(members), len(_check_ranges(ranges)))
    return _from_unit_cube(generator.random(shape), ranges)


@explain_call
def latin_hypercube(members: int, *ranges: ParameterRange, seed: int = 0) -> Design:
    """Points of which each slice of 1/members of any quantity's range holds exactly one.

    **Good values:** some tens of members per quantity. The mean of a smooth function has a smaller
    error than with independent points.

    **Reference:** McKay, Beckman & Conover, Technometrics 21, 239 (1979).
    """
    from scipy.stats import qmc  # here: it takes a noticeable part of a second to import

    sampler = qmc.LatinHypercube(len(_check_ranges(ranges)), rng=as_generator(seed))
    return _from_unit_cube(sampler.random(_as_members(members)), ranges)


@explain_call
def sobol(members: int, *ranges: ParameterRange, seed: int = 0) -> Design:
    """A scrambled Sobol sequence: fills the space evenly, errors of means ~ 1/members.

    **Arguments:**

    - `members`: a power of two.

    **Errors:** `ParameterError` for another number, with which the sequence loses its balance.

    **Reference:** Owen, J. Complexity 14, 466 (1998).
    """
    from scipy.stats import qmc

    # n & (n − 1) clears the lowest bit: zero for powers of two alone.
    members = _as_members(members)
    if members & (members - 1):
        near = 2 ** (members.bit_length() - 1)
        raise ParameterError(
            f"a Sobol design has a power of two of members: {near} or {2 * near}, not {members}"
        )
    sampler = qmc.Sobol(len(_check_ranges(ranges)), rng=as_generator(seed))
    return _from_unit_cube(sampler.random_base2(members.bit_length() - 1), ranges)


@explain_call
def posterior_samples(fitted: Fit, where: Where, members: int, *, seed: int = 0) -> Design:
    """Normal samples of fitted numbers, with the fit's covariance.

    **Arguments:**

    - `where`: as it was given to `fit`, for a model made like the fitted one.

    **Errors:** `ParameterError` for a fit without standard errors, or with a number that the data leave open.

    **Notes:** the covariance is that of the numbers themselves: where bounds matter, the normal law
    around the minimum is a poor one and samples may lie outside of them.
    """
    if fitted.covariance is None:
        raise ParameterError("this fit has no standard errors; its table says why")
    if not np.all(np.isfinite(fitted.covariance)):
        raise ParameterError(
            "the data leave some fitted numbers open: their standard errors are infinite"
        )
    generator = as_generator(seed)
    # The covariance is of all fitted numbers in one row, arrays flattened, in the order of the values.
    sizes = [np.size(v) for v in fitted.values.values()]
    center = np.concatenate([np.ravel(np.asarray(v, float)) for v in fitted.values.values()])
    if len(center) != len(fitted.covariance):
        raise ParameterError("the covariance of this fit is of other coordinates than its values")
    samples = generator.multivariate_normal(center, fitted.covariance, _as_members(members))
    columns = np.split(samples, np.cumsum(sizes)[:-1], axis=1)
    shapes = {name: np.shape(v) for name, v in fitted.values.items()}
    values = {
        name: column.reshape(members, *shape)
        for (name, shape), column in zip(shapes.items(), columns, strict=True)
    }
    return zip_axes(SweepAxis(where, values if len(values) > 1 else next(iter(values.values()))))


@explain_call
def initial_states(states: PyTree, name: str = STATE) -> SweepAxis:
    """An axis of whole states: a list of them, or one whose every array has points first."""
    if not jax.tree.leaves(states):
        raise ShapeError("an axis of whole states needs states; got none")
    return SweepAxis(STATE, states, name)


def _from_unit_cube(points: np.ndarray, ranges: tuple[ParameterRange, ...]) -> Design:
    """The design of points of the unit cube, `[members, quantities]`, stretched to the ranges."""
    return zip_axes(*(r.axis_at(column) for r, column in zip(ranges, points.T, strict=True)))


def _check_ranges(ranges: tuple[ParameterRange, ...]) -> tuple[ParameterRange, ...]:
    if not ranges or not all(isinstance(r, ParameterRange) for r in ranges):
        raise ParameterError(
            f"a design is made of ParameterRange(where, low, high); got {ranges!r:.80}"
        )
    return ranges
