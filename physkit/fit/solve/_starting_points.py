"""Where a fit starts: the model's own numbers, others about them, or given ones."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Count,
    KeyLike,
    ParameterError,
    ShapeError,
    as_count,
    as_device_array,
    as_key,
)

from ._coordinates import Coordinates, require_inside_bounds


def starting_points(
    coordinates: Coordinates,
    values: dict[str, Array],
    starts: Count | Mapping[str, Any],
    start_std: float,
    key: KeyLike | None,
) -> Float[Array, "s p"]:
    """Coordinates of all starts, `[s p]`; the first is the model's own if they are drawn."""
    zero = coordinates.origin  # the model's own
    if isinstance(starts, Mapping):
        return _given_starts(coordinates, values, starts)
    starts = as_count(starts, "starts (or arrays of starts by name)", ParameterError)
    if starts == 1:
        return as_device_array(np.asarray(zero)[None])
    key = as_key(0 if key is None else key)
    if not (np.isfinite(start_std) and start_std >= 0):
        raise ParameterError(f"start_std is a standard deviation, 0 or more; got {start_std!r}")
    # z is in units of the parameters' size, so one standard deviation serves all of them.
    others = start_std * jax.random.normal(key, (starts - 1, zero.size), zero.dtype)
    return jnp.concatenate([zero[None], others])


def _given_starts(
    coordinates: Coordinates, values: dict[str, Array], starts: Mapping[str, Any]
) -> Float[Array, "s p"]:
    unknown = sorted(set(starts) - set(values))
    if unknown or not starts:
        raise ParameterError(f"starts for {unknown or 'nothing'}, but where selects {list(values)}")
    given = {name: jnp.asarray(x, values[name].dtype) for name, x in starts.items()}
    counts = {x.shape[0] if x.ndim else 0 for x in given.values()}
    for name, x in given.items():
        if len(counts) > 1 or 0 in counts or x.shape[1:] != values[name].shape:
            raise ShapeError(
                f"starts of {name} must be [s, *{values[name].shape}], s the same for all; got {x.shape}"
            )
    (count,) = counts
    bounds = dict(zip(coordinates.names, coordinates.bounds, strict=True))
    rows = []
    for k in range(count):
        row = {**values, **{name: x[k] for name, x in given.items()}}
        for name in given:
            require_inside_bounds(f"start {k} of {name}", row[name], bounds[name])
        rows.append(coordinates.vector(row))
    return jnp.stack(rows)
