"""Error bars of any statistic of an ensemble, by resampling its members."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from physkit.core import (
    Count,
    Key,
    KeyLike,
    ParameterError,
    PyTree,
    ShapeError,
    as_arrays,
    as_count,
    as_key,
    drop_outdated_programs,
    explain_call,
    warn,
)

_MAX_DRAWN = 2**23  # numbers drawn at a time


@runtime_checkable
class KnowsFailures(Protocol):
    """An array over members that knows which of them did not fail: that of an `Ensemble`."""

    ok: np.ndarray


class BootstrapEstimate(NamedTuple):
    """What `bootstrap` returns; every field has the shape of the statistic.

    - `value`: the statistic of all members; `error`: its standard error.
    - `low`, `high`: ends of the percentile interval.
    """

    value: PyTree
    error: PyTree
    low: PyTree
    high: PyTree


@explain_call
def bootstrap(
    statistic: Callable[[PyTree], PyTree],
    values: PyTree,
    *,
    key: KeyLike,
    resamples: Count = 500,
    level: float = 0.95,
    ok: ArrayLike | None = None,
) -> BootstrapEstimate:
    """A statistic of an ensemble with its error bar: members are resampled, with replacement.

        error² = Var_b[s(x*ᵇ)],   x*ᵇ: n − 1 of n members, b = 1 … resamples

    Nothing is assumed of the distribution but that members are independent; whole members are drawn,
    so correlations along time stay as they are.

    **Arguments:**

    - `statistic`: a JAX function of `values` (or of part of its members) → array.
    - `values`: `[members …]`, or a pytree of such arrays, drawn together.
    - `key`: of the draws.
    - `resamples`: number of draws. The error bar is good to 1/√(2·resamples).
    - `level`: of the interval from `low` to `high`.
    - `ok`: `[members]`, false for members to leave out (`Ensemble.ok`). Arrays of an `Ensemble` leave
      failed members out by themselves, with a warning.

    **Returns:** `BootstrapEstimate(value, error, low, high)`; of one member alone, the value with NaN.

    **Errors:** `ShapeError` where numbers of members differ; `ParameterError` for no members, fewer than
    two resamples, or a level outside of (0, 1).

    **Good values:** 200 resamples for an error bar, 1000 for an interval.

    **Notes:** with n − 1 draws the error of a mean is s/√n without bias, even of three members; with n it
    would be too small by √(1 − 1/n). Intervals of extreme quantiles of few members are too narrow, as in
    every bootstrap.

    **Reference:** Efron & Tibshirani, An Introduction to the Bootstrap (1993), ch. 6 and 13; McCarthy &
    Snowden, NCHS Series 2, 95 (1985), for n − 1.
    """
    drop_outdated_programs(statistic)
    key = require_key(key)
    resamples = as_count(resamples, "resamples", ParameterError)
    if resamples < 2:
        raise ParameterError(f"a bootstrap needs two resamples or more; got {resamples}")
    if not 0 < level < 1:
        raise ParameterError(f"level is a probability between 0 and 1; got {level!r}")
    values, count = select_members(values, ok)
    value = statistic(values)
    if count < 2:
        unknown = jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), value)
        return BootstrapEstimate(value, unknown, unknown, unknown)
    # Resamples are drawn side by side as far as memory allows; the draws do not depend on it.
    size = sum(x.size for x in jax.tree.leaves(values))
    batch = max(1, min(resamples, _MAX_DRAWN // max(size, 1)))
    # An array, not a static number: another level needs no other program.
    traced_level = jnp.asarray(level, float)
    error, low, high = _resample(statistic, values, key, traced_level, count, resamples, batch)
    return BootstrapEstimate(value, error, low, high)


@partial(jax.jit, static_argnames=("statistic", "count", "resamples", "batch"))
def _resample(
    statistic: Callable[[PyTree], PyTree],
    values: PyTree,
    key: Key,
    level: Array,
    count: int,
    resamples: int,
    batch: int,
) -> tuple[PyTree, PyTree, PyTree]:
    """Standard error and interval of a statistic, `batch` resamples at a time."""

    def resampled_statistic(i):
        # By the number of the resample alone, so that `batch` changes no draw. n − 1 draws: see the notes.
        draw = jax.random.randint(jax.random.fold_in(key, i), (count - 1,), 0, count)
        return statistic(jax.tree.map(lambda x: x[draw], values))

    samples = jax.lax.map(resampled_statistic, jnp.arange(resamples), batch_size=batch)

    def quantile(p):
        return jax.tree.map(lambda x: jnp.quantile(x, p.astype(x.dtype), axis=0), samples)

    error = jax.tree.map(lambda x: jnp.std(x, axis=0, ddof=1), samples)
    return error, quantile((1 - level) / 2), quantile((1 + level) / 2)


def require_key(key: KeyLike) -> Key:
    """A random key, from a key or a whole number."""
    converted = as_key(key)
    if converted is None:
        raise ParameterError("a random key is missing: key=0, or key=jax.random.key(0)")
    return converted


def known_ok(values: PyTree, ok: ArrayLike | None) -> ArrayLike | None:
    """`ok`, or what arrays of an `Ensemble` know about their own members, which is said."""
    if ok is not None:
        return ok
    known = [x.ok for x in jax.tree.leaves(values) if isinstance(x, KnowsFailures)]
    if not known or all(np.all(x) for x in known):
        return None
    all_ok = np.all(known, axis=0)
    failed = np.sum(np.logical_not(all_ok))
    warn(
        f"{failed} of {len(all_ok)} members failed and are left out; ok=ensemble.ok says so without this "
        "warning"
    )
    return all_ok


def select_members(values: PyTree, ok: ArrayLike | None = None) -> tuple[PyTree, int]:
    """`values` as floating arrays of those members that are `ok`, and how many these are."""
    ok = known_ok(values, ok)
    values = jax.tree.map(_floating, as_arrays(values))
    counts = {x.shape[:1] for x in jax.tree.leaves(values)}
    if len(counts) != 1 or () in counts:
        shapes = [x.shape for x in jax.tree.leaves(values)]
        raise ShapeError(
            f"values need the members as their first axis, equally many in each array; got shapes {shapes}"
        )
    ((count,),) = counts
    if ok is not None:
        indices = jnp.asarray(np.flatnonzero(as_mask(ok, count)))
        values, count = jax.tree.map(lambda x: x[indices], values), len(indices)
    if count == 0:
        raise ParameterError("no members are left to take a statistic of")
    return values, count


def as_mask(ok: ArrayLike, count: int) -> np.ndarray:
    """`ok` as bools, `[count]`; numbers 0 and 1 are taken, too, as tables of an ensemble hold them.

    **Errors:** `ShapeError` for anything else, as numbers of members.
    """
    mask = np.asarray(ok)
    is_mask = mask.dtype == bool or (mask.dtype.kind in "iu" and np.isin(mask, (0, 1)).all())
    if mask.shape != (count,) or not is_mask:
        raise ShapeError(
            f"ok is a mask of the members, bool [{count}]; got {mask.dtype} {list(mask.shape)}"
        )
    return mask.astype(bool)


def _floating(x: Any) -> Array:
    array = jnp.asarray(x if isinstance(x, jax.Array) else np.asarray(x))
    return array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(float)
