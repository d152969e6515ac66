"""Where in a space of parameters to look: designs."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from physkit.core import ParameterError, ShapeError
from physkit.fit import Fit

from ._sweep_axes import STATE, Design, SweepAxis, cartesian_product, zip_axes


@dataclasses.dataclass(frozen=True, eq=False)
class ParameterRange:
    """A quantity that designs may choose values of, between two limits.

    **Arguments:**

    - `where`: as for `Over`; a single number of the model.
    - `low`, `high`: limits.
    - `logarithmic`: even in the logarithm; limits are positive.
    - `name`: what it is called in tables.

    **Errors:** `ParameterError` for limits that are not finite, not in order, or not positive.
    """

    where: Any
    low: float | int
    high: float | int
    logarithmic: bool = False
    name: str | None = None

    def __post_init__(self):
        low, high = float(self.low), float(self.high)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ParameterError(f"limits must be finite, low < high; got {low}, {high}")
        if self.logarithmic and low <= 0:
            raise ParameterError(f"a logarithmic range begins above 0; got {low}")

    def over(self, shares: np.ndarray) -> SweepAxis:
        """The values at `shares` of the way from low to high."""
        if self.logarithmic:
            low, high = np.log(self.low), np.log(self.high)
            values = np.exp(low + shares * (high - low))
        else:
            values = self.low + shares * (self.high - self.low)
        return SweepAxis(self.where, values, self.name)


def grid(points: int | Sequence[int], *between: ParameterRange) -> Design:
    """A regular grid, limits included: `points` values of each quantity, or so many of each.

    **Errors:** `ParameterError` for fewer than one point.
    """
    counts = [points] * len(between) if isinstance(points, int) else list(points)
    if len(counts) != len(between):
        raise ShapeError(f"a grid of {len(between)} quantities needs as many counts; got {counts}")
    for count in counts:
        _need_members(count)
    shares = [np.linspace(0, 1, n) if n > 1 else np.array([0.5]) for n in counts]
    return cartesian_product(*(b.over(s) for b, s in zip(_need(between), shares, strict=True)))


def random(members: int, *between: ParameterRange, seed: int = 0) -> Design:
    """Independent uniform points.

    **Arguments:**

    - `between`: `Between(where, low, high)`, a quantity each.
    """
    generator = np.random.default_rng(seed)
    return _of(generator.random((_need_members(members), len(_need(between)))), between)


def latin_hypercube(members: int, *between: ParameterRange, seed: int = 0) -> Design:
    """Points of which each slice of 1/members of any quantity's range holds exactly one.

    **Good values:** some tens of members per quantity. The mean of a smooth function has a smaller
    error than with independent points.

    **Reference:** McKay, Beckman & Conover, Technometrics 21, 239 (1979).
    """
    from scipy.stats import qmc

    sampler = qmc.LatinHypercube(len(_need(between)), rng=np.random.default_rng(seed))
    return _of(sampler.random(_need_members(members)), between)


def sobol(members: int, *between: ParameterRange, seed: int = 0) -> Design:
    """A scrambled Sobol sequence: fills the space evenly, errors of means ~ 1/members.

    **Arguments:**

    - `members`: a power of two.

    **Errors:** `ParameterError` for another number, with which the sequence loses its balance.

    **Reference:** Owen, J. Complexity 14, 466 (1998).
    """
    from scipy.stats import qmc

    if _need_members(members) & (members - 1):
        near = 2 ** (members.bit_length() - 1)
        raise ParameterError(
            f"a Sobol design has a power of two of members: {near} or {2 * near}, not {members}"
        )
    sampler = qmc.Sobol(len(_need(between)), rng=np.random.default_rng(seed))
    return _of(sampler.random_base2(members.bit_length() - 1), between)


def posterior_samples(fitted: Fit, where: Any, members: int, *, seed: int = 0) -> Design:
    """Normal samples of fitted numbers, with the fit's covariance.

    **Arguments:**

    - `where`: as it was given to `fit`, for a model made like the fitted one.

    **Errors:** `ParameterError` for a fit without errors, or of which the data do not see a number.

    **Notes:** the covariance is that of the numbers themselves: where bounds matter, the normal law
    around the minimum is a poor one and samples may lie outside of them.
    """
    if fitted.covariance is None:
        raise ParameterError("this fit has no standard errors: its table says why")
    if not np.all(np.isfinite(fitted.covariance)):
        raise ParameterError("the data do not see every fitted number: there are infinite errors")
    generator = np.random.default_rng(seed)
    sizes = [np.size(v) for v in fitted.values.values()]
    center = np.concatenate([np.ravel(np.asarray(v, float)) for v in fitted.values.values()])
    if len(center) != len(fitted.covariance):
        raise ParameterError("this fit's covariance is of other coordinates than its values")
    found = generator.multivariate_normal(center, fitted.covariance, _need_members(members))
    parts = np.split(found, np.cumsum(sizes)[:-1], axis=1)
    shapes = {name: np.shape(v) for name, v in fitted.values.items()}
    values = {
        name: part.reshape(members, *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }
    return zip_axes(SweepAxis(where, values if len(values) > 1 else next(iter(values.values()))))


def initial_states(states: Any, name: str = STATE) -> SweepAxis:
    """Whole states as points: a list of them, or one whose every array has points first."""
    if not jax.tree.leaves(states):
        raise ShapeError("whole states: none are given")
    return SweepAxis(STATE, states, name)


def _of(shares: np.ndarray, between: tuple[ParameterRange, ...]) -> Design:
    return zip_axes(*(b.over(column) for b, column in zip(between, shares.T, strict=True)))


def _need(between: tuple[ParameterRange, ...]) -> tuple[ParameterRange, ...]:
    if not between or not all(isinstance(b, ParameterRange) for b in between):
        raise ParameterError(f"a design is made of Between(where, low, high); got {between!r:.80}")
    return between


def _need_members(members: Any) -> int:
    if isinstance(members, bool) or not isinstance(members, int) or members < 1:
        raise ParameterError(f"members must be a whole number from 1; got {members!r}")
    return members
