"""Cosine and sine transforms, for fields at cell centers between walls."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# The parity of a series about each of the two walls of an axis: even with zero slope (a mirror), odd with value
# zero. None on a periodic axis.
Parity = Literal["even", "odd"]
Parities = tuple[tuple[Parity, Parity] | None, ...]


def cosine_sine_transform(
    x: Float[Array, "..."], axis: int, parity: tuple[Parity, Parity]
) -> Array:
    """Coefficients along `axis` of the series whose waves have this parity about the walls.

    The walls lie half a cell beyond the first and the last value.

        even, even: Σ_j x_j cos(π m (j + ½)/n)            m = 0 … n − 1      (DCT-II)
        odd, odd:   Σ_j x_j sin(π m (j + ½)/n)            m = 1 … n          (DST-II)
        even, odd:  Σ_j x_j cos(π (m + ½)(j + ½)/n)       m = 0 … n − 1      (DCT-IV)
        odd, even:  Σ_j x_j sin(π (m + ½)(j + ½)/n)       m = 0 … n − 1      (DST-IV)

    The cost is one real FFT of n points, or one complex FFT of n/2 points.

    **Reference:** Makhoul, IEEE Trans. Acoust. Speech Signal Process. 28, 27 (1980).
    """
    x = jnp.moveaxis(x, axis, -1)
    # Sines from cosines: alternating signs and reversed order turn one into the other.
    if parity == ("even", "even"):
        out = _dct2(x)
    elif parity == ("odd", "odd"):
        out = jnp.flip(_dct2(_alternating(x)), -1)
    elif parity == ("even", "odd"):
        out = _dct4(x)
    else:
        out = _alternating(_dct4(jnp.flip(x, -1)))
    return jnp.moveaxis(out, -1, axis)


def inverse_cosine_sine_transform(
    c: Float[Array, "..."], axis: int, parity: tuple[Parity, Parity]
) -> Array:
    """The values whose coefficients by `cosine_sine_transform` are `c`."""
    c = jnp.moveaxis(c, axis, -1)
    n = c.shape[-1]
    if parity == ("even", "even"):
        out = _inverse_dct2(c)
    elif parity == ("odd", "odd"):
        out = _alternating(_inverse_dct2(jnp.flip(c, -1)))
    elif parity == ("even", "odd"):
        # The DCT-IV is its own inverse, but for the factor.
        out = _dct4(c) * (2 / n)
    else:
        out = jnp.flip(_dct4(_alternating(c)), -1) * (2 / n)
    return jnp.moveaxis(out, -1, axis)


def wave_phases(n: int, parity: tuple[Parity, Parity]) -> np.ndarray:
    """The phase θ = kh of every wave from one cell to the next, `[n]`."""
    m = np.arange(n) + (parity == ("odd", "odd")) + 0.5 * (parity[0] != parity[1])
    return m * (np.pi / n)


def _dct2(x: Array) -> Array:
    """The DCT-II along the last axis, by a real FFT of the same length."""
    n = x.shape[-1]
    # Makhoul's order: even indices upwards, then odd ones downwards.
    v = jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], -1)
    z = jnp.fft.rfft(v) * _rotation(np.arange(n // 2 + 1) / (2 * n), x)
    # Real parts are the coefficients 0 … n/2, imaginary parts the others in reverse.
    high = -jnp.flip(z.imag[..., 1 : (n + 1) // 2], -1)
    return jnp.concatenate([z.real, high], -1)


def _inverse_dct2(c: Array) -> Array:
    """The inverse of `_dct2`, step by step in reverse."""
    n = c.shape[-1]
    low = c[..., : n // 2 + 1]
    high = jnp.flip(c[..., n - n // 2 :], -1)
    high = jnp.concatenate([jnp.zeros_like(c[..., :1]), high], -1)
    z = jax.lax.complex(low, -high) * _rotation(-np.arange(n // 2 + 1) / (2 * n), c)
    v = jnp.fft.irfft(z, n)
    evens, odds = v[..., : (n + 1) // 2], jnp.flip(v[..., (n + 1) // 2 :], -1)
    # Interleave them again; of an odd number the last even one has no partner.
    if n % 2:
        paired = jnp.stack([evens[..., :-1], odds], -1).reshape(*v.shape[:-1], n - 1)
        return jnp.concatenate([paired, evens[..., -1:]], -1)
    return jnp.stack([evens, odds], -1).reshape(v.shape)


def _dct4(x: Array) -> Array:
    """The DCT-IV along the last axis, by a complex FFT of half the length (twice the length for odd n)."""
    n = x.shape[-1]
    if n % 2:
        j = np.arange(n)
        rotation = _rotation(j / (2 * n), x)
        z = jnp.fft.fft(jax.lax.complex(x * rotation.real, x * rotation.imag), 2 * n)[..., :n]
        return (z * _rotation((2 * j + 1) / (4 * n), x)).real
    # Pairs of values (first and last, third and third to last …) become one complex number each.
    rotation = _rotation((4 * np.arange(n // 2) + 1) / (4 * n), x)
    z = jax.lax.complex(x[..., ::2], jnp.flip(x[..., 1::2], -1)) * rotation
    z = jnp.fft.fft(z) * _rotation(np.arange(n // 2) / n, x)
    return jnp.stack([z.real, -jnp.flip(z.imag, -1)], -1).reshape(x.shape)


def _rotation(half_turns: np.ndarray, like: Array) -> Array:
    """exp(−iπ·half_turns) in the precision of `like`, ready to broadcast over its last axis."""
    dtype = jnp.complex128 if like.dtype == jnp.float64 else jnp.complex64
    # On the host in double precision, and rounded once.
    rotation = jnp.asarray(np.exp(-1j * np.pi * half_turns), dtype)
    return rotation.reshape((1,) * (like.ndim - 1) + rotation.shape)


def _alternating(x: Array) -> Array:
    """`x` with the sign of every other value reversed."""
    signs = jnp.asarray((-1.0) ** np.arange(x.shape[-1]), x.dtype)
    return x * signs.reshape((1,) * (x.ndim - 1) + signs.shape)


def transform_values(x: Array, parities: Parities) -> Array:
    """Coefficients of real `x` along its last axes: cosines or sines between walls, else Fourier modes."""
    walled, periodic = _walled_and_periodic(parities)
    # Real transforms first: the Fourier transform, which makes complex numbers, comes last.
    for axis in walled:
        x = cosine_sine_transform(x, axis, _parity_of(parities, axis))
    return jnp.fft.rfftn(x, axes=periodic) if periodic else x


def inverse_transform_values(c: Array, parities: Parities, shape: tuple[int, ...]) -> Array:
    """The real array of this `shape` whose coefficients by `transform_values` are `c`."""
    walled, periodic = _walled_and_periodic(parities)
    if periodic:
        c = jnp.fft.irfftn(c, s=[shape[k] for k in periodic], axes=periodic)
    for axis in walled:
        c = inverse_cosine_sine_transform(c, axis, _parity_of(parities, axis))
    return c


def _walled_and_periodic(parities: Parities) -> tuple[list[int], list[int]]:
    """Array axes between walls and periodic ones, counted from the end."""
    d = len(parities)
    walled = [k - d for k, p in enumerate(parities) if p is not None]
    return walled, [k - d for k, p in enumerate(parities) if p is None]


def _parity_of(parities: Parities, axis: int) -> tuple[Parity, Parity]:
    """The parity of an axis that has walls."""
    parity = parities[axis]
    assert parity is not None
    return parity
