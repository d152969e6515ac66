"""Means, spreads and quantiles of an ensemble with error bars, per time and per swept coordinate."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import Module, ParameterError, SelectionError, ShapeError, static
from physkit.observe import Estimate

from ._bootstrap import BootstrapEstimate, bootstrap, select_members

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class EnsembleStatistics(NamedTuple):
    """What `ensemble_statistics` returns: `Estimate(value, error)`s of the shape of one member's values.

    - `mean`, `deviation` (standard deviation), with bootstrap errors.
    - `quantile`: `[levels …]`, likewise; `levels`: which.
    - `members`: how many there were.
    - `points`: swept coordinates by name, `[points]`, where it was asked for by coordinates; the
      arrays above then begin with the points.
    """

    mean: Estimate
    deviation: Estimate
    quantile: Estimate
    levels: tuple[float, ...]
    members: Any
    points: Mapping[str, Any]

    def at(self, **point: float) -> "EnsembleStatistics":
        """Of one point: `at(temperature=1.5)`, the nearest to it.

        **Errors:** `SelectionError` for a coordinate that there is not, or that leaves several points.
        """
        unknown = sorted(set(point) - set(self.points))
        if unknown:
            raise SelectionError(f"no coordinate {unknown}; available: {sorted(self.points)}")
        near = np.ones(np.shape(self.members), bool)
        for name, wanted in point.items():
            away = np.abs(np.asarray(self.points[name]) - wanted)
            near &= away == np.min(away)
        places = np.flatnonzero(near)
        if len(places) != 1:
            raise SelectionError(
                f"{point} is {len(places)} points; say all of {sorted(self.points)}, at values that exist"
            )
        (k,) = places
        pick = lambda tree: jax.tree.map(lambda x: x[k], tree)
        return self._replace(
            mean=pick(self.mean),
            deviation=pick(self.deviation),
            quantile=pick(self.quantile),
            members=self.members[k],
            points=pick(dict(self.points)),
        )


def ensemble_statistics(
    values: Any,
    *,
    key: Array,
    by: Mapping[str, Any] | None = None,
    quantiles: Sequence[float] = QUANTILES,
    resamples: int = 200,
    ok: Any = None,
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
    - `ok`: `[members]`, false for members to leave out (`Ensemble.ok`).

    **Errors:** `ShapeError` for shapes that do not go together, `ParameterError` for levels outside of
    [0, 1] or no members at all.

    **Notes:** members must be independent: whole-state ensembles grown from one parent by short runs
    are not. Of one member alone the errors are NaN. See `bootstrap`.
    """
    levels = tuple(float(q) for q in quantiles)
    if not levels or not all(0 <= q <= 1 for q in levels):
        raise ParameterError(f"quantiles are levels from 0 to 1; got {levels}")
    values = np.asarray(values)
    if by is None:
        return _of(values, key, levels, resamples, ok)
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
    table = np.stack([np.asarray(column, float) for column in by.values()], axis=1)
    good = np.ones(len(table), bool) if ok is None else np.asarray(ok)
    points, group = np.unique(table[good], axis=0, return_inverse=True)
    rows = np.flatnonzero(good)
    found = [
        _of(
            array[jnp.asarray(rows[group.ravel() == k])],
            jax.random.fold_in(key, k),
            levels,
            resamples,
        )
        for k in range(len(points))
    ]
    if not found:
        raise ParameterError("no members are left: nothing to take a statistic of")
    stack = lambda name: Estimate(
        *(jnp.stack(parts) for parts in zip(*(getattr(f, name) for f in found), strict=True))
    )
    return EnsembleStatistics(
        stack("mean"),
        stack("deviation"),
        stack("quantile"),
        levels,
        jnp.stack([f.members for f in found]),
        {name: points[:, i] for i, name in enumerate(by)},
    )


class _Summary(Module):
    """The statistic itself; equal levels are one compiled program."""

    levels: tuple[float, ...] = static()

    def __call__(self, x: Array) -> tuple[Array, Array, Array]:
        mean = jnp.mean(x, axis=0)
        many = x.shape[0] > 1
        spread = jnp.std(x, axis=0, ddof=1) if many else jnp.full_like(mean, jnp.nan)
        return mean, spread, jnp.quantile(x, jnp.asarray(self.levels, x.dtype), axis=0)


def _of(values, key, levels, resamples, ok=None) -> EnsembleStatistics:
    array, count = select_members(values, ok)
    found: BootstrapEstimate = bootstrap(_Summary(levels), array, key=key, resamples=resamples)
    parts = [Estimate(v, e) for v, e in zip(found.value, found.error, strict=True)]
    return EnsembleStatistics(parts[0], parts[1], parts[2], levels, jnp.asarray(count), {})


def passage_rate(
    times: Any, end: Any, *, key: Array, resamples: int = 200, ok: Any = None
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

    **Returns:** `Bootstrapped(value, error, low, high)`, 1 / time.

    **Errors:** `ShapeError` unless times are one number a member.

    **Good values:** `end` of three mean passage times, where waiting members no longer matter.

    **Reference:** Cox & Oakes, Analysis of Survival Data (1984), eq. 3.5.
    """
    array, _ = select_members(np.asarray(times), ok)
    if array.ndim != 1:
        raise ShapeError(
            f"passage_rate needs one time a member, [members]; got shape {array.shape}"
        )
    passed = jnp.isfinite(array) & (array <= jnp.asarray(end, array.dtype))
    waited = jnp.where(passed, array, jnp.asarray(end, array.dtype))
    return bootstrap(_rate, (passed.astype(array.dtype), waited), key=key, resamples=resamples)


def _rate(pair: tuple[Array, Array]) -> Array:
    passed, waited = pair
    return jnp.sum(passed) / jnp.sum(waited)
