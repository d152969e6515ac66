"""Means, standard deviations and quantiles of an ensemble with error bars, per time and swept coordinate."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from numpy.typing import ArrayLike

from physkit.core import (
    Count,
    Key,
    KeyLike,
    Module,
    ParameterError,
    SelectionError,
    ShapeError,
    explain_call,
    static,
)
from physkit.observe import Estimate

from ._bootstrap import (
    BootstrapEstimate,
    as_mask,
    bootstrap,
    known_ok,
    require_key,
    select_members,
)

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class EnsembleStatistics(NamedTuple):
    """What `ensemble_statistics` returns: `Estimate(value, error)`s of the shape of one member's values.

    - `mean`, `std` (standard deviation), with bootstrap errors.
    - `quantile`: `[levels …]`, likewise; `levels`: which.
    - `num_members`: how many there were.
    - `points`: swept coordinates by name, `[points]`, of statistics by coordinates; the arrays above
      then begin with the points.
    """

    mean: Estimate
    std: Estimate
    quantile: Estimate
    levels: tuple[float, ...]
    num_members: Int[Array, "*points"]
    points: Mapping[str, np.ndarray]

    def nearest(self, **point: float) -> "EnsembleStatistics":
        """The statistics of the point nearest to the given one: `nearest(temperature=1.5)`.

        **Errors:** `SelectionError` for a coordinate that does not exist, or that leaves several points.
        """
        unknown = sorted(set(point) - set(self.points))
        if unknown:
            raise SelectionError(f"no coordinate {unknown}; available: {sorted(self.points)}")
        near = np.ones(np.shape(self.num_members), bool)
        for name, value in point.items():
            distance = np.abs(np.asarray(self.points[name]) - value)
            near &= distance == np.min(distance)
        indices = np.flatnonzero(near)
        if len(indices) != 1:
            raise SelectionError(
                f"{point} is {len(indices)} points; give all of {sorted(self.points)}, at values that exist"
            )
        (k,) = indices

        def pick(tree):
            return jax.tree.map(lambda x: x[k], tree)

        return self._replace(
            mean=pick(self.mean),
            std=pick(self.std),
            quantile=pick(self.quantile),
            num_members=self.num_members[k],
            points=pick(dict(self.points)),
        )


@explain_call
def ensemble_statistics(
    values: ArrayLike,
    *,
    key: KeyLike,
    by: Mapping[str, ArrayLike] | None = None,
    quantiles: Sequence[float] = QUANTILES,
    resamples: Count = 200,
    ok: ArrayLike | None = None,
) -> EnsembleStatistics:
    """Mean, standard deviation and quantiles over members, with bootstrap error bars.

    Element by element, so of frames `[members times]` these are curves over time.

    **Arguments:**

    - `values`: `[members …]`: a frame of an `Ensemble`, or what `vmap` of `simulate` left.
    - `key`: of the bootstrap's draws.
    - `by`: swept coordinates by name, `[members]` each (`Ensemble.coordinates`, or some of them):
      statistics of the replicas at every point, points in order.
    - `quantiles`: levels between 0 and 1.
    - `resamples`: of the bootstrap.
    - `ok`: `[members]`, false for members to leave out (`Ensemble.ok`). Frames of an `Ensemble` leave
      failed members out by themselves, with a warning.

    **Errors:** `ShapeError` for shapes that do not go together, `ParameterError` for levels outside of
    [0, 1] or no members at all.

    **Notes:** members must be independent: whole-state ensembles grown from one parent by short runs
    are not. Of one member alone the errors are NaN. See `bootstrap`.
    """
    levels = tuple(float(q) for q in quantiles)
    if not levels or not all(0 <= q <= 1 for q in levels):
        raise ParameterError(f"quantile levels lie between 0 and 1; got {levels}")
    key, ok = require_key(key), known_ok(values, ok)
    values = np.asarray(values)
    if by is None:
        return _statistics(values, key, levels, resamples, ok)
    array, _ = select_members(values, None)
    if not by:
        raise ParameterError(
            "by={} names no coordinate: leave it out for statistics of all members"
        )
    for name, column in by.items():
        if np.shape(column) != array.shape[:1]:
            raise ShapeError(
                f"coordinate {name!r} has one number for each of {len(array)} members; "
                f"got shape {np.shape(column)}"
            )
    # (members, coordinates): members with equal rows are replicas of one point.
    table = np.stack([np.asarray(column, float) for column in by.values()], axis=1)
    healthy = np.ones(len(table), bool) if ok is None else as_mask(ok, len(table))
    points, point_of = np.unique(table[healthy], axis=0, return_inverse=True)
    members = np.flatnonzero(healthy)
    of_points = []
    # On the host, a point at a time: points may have different numbers of replicas.
    for k in range(len(points)):
        replicas = array[jnp.asarray(members[point_of.ravel() == k])]
        of_points.append(_statistics(replicas, jax.random.fold_in(key, k), levels, resamples))
    if not of_points:
        raise ParameterError("no members are left to take a statistic of")

    def stack(*estimates: Estimate) -> Estimate:
        return Estimate(*(jnp.stack(column) for column in zip(*estimates, strict=True)))

    return EnsembleStatistics(
        mean=stack(*(s.mean for s in of_points)),
        std=stack(*(s.std for s in of_points)),
        quantile=stack(*(s.quantile for s in of_points)),
        levels=levels,
        num_members=jnp.stack([s.num_members for s in of_points]),
        points={name: points[:, i] for i, name in enumerate(by)},
    )


class _Summary(Module):
    """Mean, standard deviation and quantiles, as one statistic to bootstrap.

    A Module and not a closure: the compiled program is reused for equal levels.
    """

    levels: tuple[float, ...] = static()

    def __call__(self, x: Array) -> tuple[Array, Array, Array]:
        mean = jnp.mean(x, axis=0)
        # One member says nothing of the spread.
        several = x.shape[0] > 1
        std = jnp.std(x, axis=0, ddof=1) if several else jnp.full_like(mean, jnp.nan)
        return mean, std, jnp.quantile(x, jnp.asarray(self.levels, x.dtype), axis=0)


def _statistics(
    values: ArrayLike,
    key: Key,
    levels: tuple[float, ...],
    resamples: Count,
    ok: ArrayLike | None = None,
) -> EnsembleStatistics:
    """Statistics of all members together."""
    array, count = select_members(values, ok)
    estimate = bootstrap(_Summary(levels), array, key=key, resamples=resamples)
    mean, std, quantile = (
        Estimate(value, error) for value, error in zip(estimate.value, estimate.error, strict=True)
    )
    return EnsembleStatistics(mean, std, quantile, levels, jnp.asarray(count), {})


@explain_call
def passage_rate(
    times: ArrayLike,
    end: ArrayLike | float,
    *,
    key: KeyLike,
    resamples: Count = 200,
    ok: ArrayLike | None = None,
) -> BootstrapEstimate:
    """Rate of first passages in an ensemble, of which some have not happened yet.

        k = N / Σᵢ min(Tᵢ, end),   N: passages up to `end`

    The number of passages over the time that members were waiting: the maximum-likelihood rate of an
    exponential law, unbiased by members that were still waiting; as `end` grows it becomes
    1 / (mean first-passage time), whatever the law.

    **Arguments:**

    - `times`: `[members]`, first-passage times, NaN (or inf) for members that did not pass; what
      `FirstPassage` summarizes.
    - `end`: how long members were watched.
    - `key`, `resamples`, `ok`: as in `bootstrap`.

    **Returns:** `BootstrapEstimate(value, error, low, high)`, 1 / time.

    **Errors:** `ShapeError` unless times are one number a member.

    **Good values:** `end` of three mean passage times, where waiting members no longer matter.

    **Reference:** Cox & Oakes, Analysis of Survival Data (1984), eq. 3.5.
    """
    array, _ = select_members(np.asarray(times), known_ok(times, ok))
    if array.ndim != 1:
        raise ShapeError(
            f"passage_rate needs one time a member, [members]; got shape {array.shape}"
        )
    # A passage after `end` counts as one that has not happened: `end` may lie before the end of the runs.
    passed = jnp.isfinite(array) & (array <= jnp.asarray(end, array.dtype))
    waited = jnp.where(passed, array, jnp.asarray(end, array.dtype))
    return bootstrap(_rate, (passed.astype(array.dtype), waited), key=key, resamples=resamples)


def _rate(passed_and_waited: tuple[Array, Array]) -> Array:
    passed, waited = passed_and_waited
    return jnp.sum(passed) / jnp.sum(waited)
