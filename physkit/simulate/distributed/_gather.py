"""What devices recorded, as one device would have recorded it."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from physkit.core import DeclarationError, ObserverError, concrete_value
from physkit.geometry import AXES, concatenate_blocks
from physkit.parallel import addressable_rows, gather_to_host
from physkit.particles import Particles

Layout = tuple[
    tuple[int, int, bool], ...
]  # (array axis, axis of space, shared layer) of what is cut


def gather(found: Any, whole: Any, devices: tuple[int, ...], lead: int) -> Any:
    """`found`, in device layout, put together to the shapes of `whole`.

    What has the same shape on every device as on one is the same on every device, and what is
    shorter by the number of devices along an axis is a block.

    **Arguments:**

    - `whole`: shapes on one device, without the first `lead` axes (of time) of a device's part.

    **Errors:** `ObserverError` for what differs from device to device and should not, and for shapes
    that fit neither. Inside a trace such differences make it NaN; `differs` tells of them.
    """

    def one(path, part, shape):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        return _joined_leaf(part, tuple(shape.shape), devices, lead, name)

    return jax.tree_util.tree_map_with_path(one, found, whole)


def _joined_leaf(x: Any, whole: tuple[int, ...], devices: tuple[int, ...], lead: int, name: str):
    here = x.shape[1 + lead :]
    if here == whole:
        seen = (
            concrete_value(x) if not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else None
        )
        if seen is not None and not _all_alike(seen):
            raise ObserverError(
                f"{name!r} differs from device to device: sums, means and extremes over the domain are "
                "field.integral(), field.mean(), field.max(), grid.sum(x), particles.sum(x)"
            )
        return x[0] if seen is not None else _poisoned(x)
    ways = list(_ways(here, whole, devices))
    if not ways:
        raise ObserverError(
            f"{name!r} has shape {here} on each of {devices} devices and {whole} on one: record "
            "fields, particles (Positions(), Velocities(), particles.whole(x)), or sums over the domain"
        )
    if len(ways) > 1:
        ways = _that_agree(x, ways, devices, name)
    return _put_together(x, ways[0], devices, lead)


def find_layout(
    x: Any, whole: tuple[int, ...], devices: tuple[int, ...], lead: int, name: str
) -> Layout:
    """How the blocks of `x` make up `whole`; () where they are no blocks."""
    here = x.shape[1 + lead :]
    ways = [] if here == whole else list(_ways(here, whole, devices))
    if len(ways) > 1:
        ways = _that_agree(gather_to_host(x), ways, devices, name)
    return ways[0] if ways else ()


def is_part_shape(here: tuple[int, ...], whole: tuple[int, ...], devices: tuple[int, ...]) -> bool:
    """Whether `here` may be the shape of a device's part of what has shape `whole` on one."""
    return here == whole or any(True for _ in _ways(here, whole, devices))


def unique_layout(
    here: tuple[int, ...], whole: tuple[int, ...], devices: tuple[int, ...]
) -> Layout:
    """How blocks of shape `here` make up `whole`.

    **Errors:** `ObserverError` where they do not, or could in several ways.
    """
    ways = list(_ways(here, whole, devices))
    if len(ways) != 1:
        raise ObserverError(
            f"shape {whole} on one device, {here} on each of {devices}"
            + (", which could be cut in several ways" if ways else "")
        )
    return ways[0]


def differs_across_devices(found: Any, whole: Any, lead: int) -> Bool[Array, ""]:
    """Whether, inside a trace, anything differs from device to device that should not."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(whole), strict=True)
    alike = [_alike_traced(x) for x, shape in pairs if x.shape[1 + lead :] == tuple(shape.shape)]
    return ~jnp.all(jnp.stack(alike)) if alike else jnp.array(False)


def _poisoned(x: Array) -> Array:
    """What the first device has; NaN, and so are derivatives, where another has something else."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return x[0]
    return x[0] * jnp.where(_alike_traced(x), 1, jnp.nan).astype(x.dtype)


def _alike_traced(x: Array) -> Bool[Array, ""]:
    """`_all_alike` of what only a program will know."""
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
        return jnp.array(True)
    x = jax.lax.stop_gradient(x)
    first = x[:1]
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.all(x == first)
    size = jnp.max(jnp.where(jnp.isfinite(x), jnp.abs(x), 0), initial=0)
    same = (x == first) | (jnp.isnan(x) & jnp.isnan(first))
    return jnp.all(same | (jnp.abs(x - first) <= 1e-6 * size))


def replicated_leaves(state: Any, whole: Any) -> dict[str, tuple[Any, Any]]:
    """What of a state in device layout is one for the domain, being as large on each device as in the whole:
    arrays and their shapes, by name."""
    is_particles = lambda x: isinstance(x, Particles)
    flat, _ = jax.tree_util.tree_flatten_with_path(state, is_leaf=is_particles)
    found = {}
    for (path, x), shape in zip(flat, jax.tree.leaves(whole, is_leaf=is_particles), strict=True):
        numbers = eqx.is_array(x) and not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended)
        if numbers and x.shape[1:] == shape.shape:
            found[jax.tree_util.keystr(path, simple=True, separator=".")] = x, shape
    return found


def require_replicated(state: Any, whole: Any) -> None:
    """What `shared` finds must be the same everywhere; of several processes each looks at its own devices.

    **Errors:** `DeclarationError` names what differs.
    """
    for name, (x, _) in replicated_leaves(state, whole).items():
        if not _all_alike(addressable_rows(x)[1]):
            raise DeclarationError(
                f"{name or 'a number'} of the state differs from device to device, where it should be one for "
                "the whole domain: what moves it must be sums over the domain (field.mean(), grid.sum(x), "
                "particles.sum(x)), not over a device's part"
            )


def _all_alike(x: np.ndarray) -> bool:
    if not np.issubdtype(x.dtype, np.inexact):
        return bool((x == x[:1]).all())
    # Sums over devices come out in one order everywhere; nothing but NaN may differ from itself.
    size = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
    return bool(np.allclose(x, x[:1], rtol=0, atol=1e-6 * size, equal_nan=True))


def _ways(here, whole, devices):
    """The ways in which blocks of shape `here` can make up `whole`."""
    if len(here) != len(whole):
        return
    cut = [k for k, (a, b) in enumerate(zip(here, whole)) if a != b]
    spread = [k for k, p in enumerate(devices) if p > 1]
    for chosen in itertools.combinations(spread, len(cut)):
        way = []
        for axis, k in zip(cut, chosen):
            a, b, p = here[axis], whole[axis], devices[k]
            shared = a != 1 and (a - 1) * p + 1 == b
            if a * p == b or shared:
                way.append((axis, k, a * p != b))
        if len(way) == len(cut):
            yield tuple(way)


def _that_agree(x, ways, devices, name):
    """Of several ways, those for which the devices along axes that are not cut hold the same."""
    seen = concrete_value(x)
    if seen is not None:
        grid = seen.reshape(*devices, *seen.shape[1:])
        fits = []
        for way in ways:
            first = grid
            for k in set(range(len(devices))) - {k for _, k, _ in way}:
                first = np.take(first, [0], axis=k)
            if np.allclose(grid, first, rtol=1e-6, atol=0, equal_nan=True):
                fits.append(way)
        if fits:
            return fits
    raise ObserverError(
        f"which of the axes {', '.join(AXES[: len(devices)])} the blocks of {name!r} lie along cannot be "
        "told from their shapes: record the field itself, or take another grid of devices"
    )


def _put_together(x: Any, way: Layout, devices: tuple[int, ...], lead: int) -> Any:
    """One array from blocks: along axes of space that are not cut, the first device's."""
    x = x.reshape(*devices, *x.shape[1:])
    along = {k for _, k, _ in way}
    for k in reversed(range(len(devices))):
        if k not in along:
            x = x.take(0, axis=k)
    for number, (axis, _, shared) in enumerate(way):
        left = len(way) - number  # axes of devices, of which the first is joined now
        x = concatenate_blocks(x, left + lead + axis, shared)
    return x
