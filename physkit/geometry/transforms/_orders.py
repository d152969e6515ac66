"""Fourier transforms along circles of latitude, of a sphere on one device or sharded over many.

Legendre transforms need all latitudes of an order m, and Fourier transforms all longitudes of a latitude. So
devices in line along latitudes exchange parts by one all-to-all each way: each has all latitudes of some orders
then. Where longitudes are cut, too, those devices first give each other whole circles.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from physkit.parallel import AbstractComm

from ._distributed_transform import resize

LONGITUDE, LATITUDE = -2, -1


def num_local_orders(comm: AbstractComm, truncation: int) -> int:
    """How many orders m each device holds, with those beyond L that fill up the last."""
    return -(-(truncation + 1) // comm.size)


def local_orders(comm: AbstractComm, x: np.ndarray) -> np.ndarray | Array:
    """This device's part of `x`, which has an entry for each order 0 ≤ m ≤ L along its first axis; then 0."""
    if comm.size == 1:
        return x
    count = num_local_orders(comm, x.shape[0] - 1)
    padding = [(0, count * comm.size - x.shape[0])] + [(0, 0)] * (x.ndim - 1)
    return jax.lax.dynamic_slice_in_dim(
        jnp.asarray(np.pad(x, padding)), first_order(comm, x.shape[0] - 1), count
    )


def first_order(comm: AbstractComm, truncation: int) -> int | Int[Array, ""]:
    """The least order m of this device."""
    rank = comm.axis_index(0) * comm.axis_size(1) + comm.axis_index(1)
    return rank * num_local_orders(comm, truncation)


def to_orders(comm: AbstractComm, x: Array, truncation: int) -> Array:
    """Coefficients of e^{imλ} `[…, m, latitude]` of values `[…, longitude, latitude]`, means for m = 0."""
    latitudes = x.shape[LATITUDE]
    x = _whole_circles(comm, x)
    modes = jnp.fft.rfft(x, axis=LONGITUDE, norm="forward")[..., : truncation + 1, :]
    if comm.size == 1:
        return modes
    modes = resize(modes, LONGITUDE, num_local_orders(comm, truncation) * comm.size)
    longitude, latitude = modes.ndim + LONGITUDE, modes.ndim + LATITUDE
    if comm.axis_size(0) > 1:
        modes = resize(comm.all_to_all(modes, 0, longitude, latitude), LATITUDE, latitudes)
    return comm.all_to_all(modes, 1, longitude, latitude) if comm.axis_size(1) > 1 else modes


def from_orders(
    comm: AbstractComm, modes: Array, truncation: int, longitudes: int, latitudes: int
) -> Array:
    """The inverse of `to_orders`: this device's `[…, longitude, latitude]`.

    - `longitudes`: of the whole sphere; `latitudes`: of this device.
    """
    longitude, latitude = modes.ndim + LONGITUDE, modes.ndim + LATITUDE
    if comm.axis_size(1) > 1:
        modes = comm.all_to_all(modes, 1, latitude, longitude)
    if comm.axis_size(0) > 1:
        modes = comm.all_to_all(_padded(comm, modes), 0, latitude, longitude)
    modes = resize(modes, LONGITUDE, truncation + 1)
    x = jnp.fft.irfft(modes, n=longitudes, axis=LONGITUDE, norm="forward")
    if comm.axis_size(0) == 1:
        return x
    return resize(comm.all_to_all(x, 0, longitude, latitude), LATITUDE, latitudes)


def _whole_circles(comm: AbstractComm, x: Array) -> Array:
    """All longitudes of some of this device's latitudes."""
    if comm.axis_size(0) == 1:
        return x
    return comm.all_to_all(_padded(comm, x), 0, x.ndim + LATITUDE, x.ndim + LONGITUDE)


def _padded(comm: AbstractComm, x: Array) -> Array:
    """`x` with as many latitudes as devices along longitude divide."""
    count = comm.axis_size(0)
    return resize(x, LATITUDE, -(-x.shape[LATITUDE] // count) * count)
