"""Cosine and sine transforms: the Fourier series of fields between walls."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# What a series does at the two walls of an axis: a mirror makes it even (zero slope), a wall where the
# value is zero makes it odd. None on an axis that repeats.
Parity = Literal["even", "odd"]
Parities = tuple[tuple[Parity, Parity] | None, ...]


def forward(x: Float[Array, "..."], axis: int, parity: tuple[Parity, Parity]) -> Array:
    """Coefficients of the series whose waves have this parity at the walls, half a cell beyond the ends.

        even, even: Σ_j x_j cos(π m (j + ½)/n)            m = 0 … n − 1      (DCT-II)
        odd, odd:   Σ_j x_j sin(π m (j + ½)/n)            m = 1 … n          (DST-II)
        even, odd:  Σ_j x_j cos(π (m + ½)(j + ½)/n)       m = 0 … n − 1      (DCT-IV)
        odd, even:  Σ_j x_j sin(π (m + ½)(j + ½)/n)       m = 0 … n − 1      (DST-IV)

    By one real FFT of n points, or one complex of n/2.

    **Reference:** Makhoul, IEEE Trans. Acoust. Speech Signal Process. 28, 27 (1980).
    """
    x = jnp.moveaxis(x, axis, -1)
    if parity == ("even", "even"):
        out = _dct2(x)
    elif parity == ("odd", "odd"):
        out = jnp.flip(_dct2(_alternating(x)), -1)
    elif parity == ("even", "odd"):
        out = _dct4(x)
    else:
        out = _alternating(_dct4(jnp.flip(x, -1)))
    return jnp.moveaxis(out, -1, axis)


def backward(c: Float[Array, "..."], axis: int, parity: tuple[Parity, Parity]) -> Array:
    """The values whose coefficients `forward` gives as `c`."""
    c = jnp.moveaxis(c, axis, -1)
    n = c.shape[-1]
    if parity == ("even", "even"):
        out = _inverse_dct2(c)
    elif parity == ("odd", "odd"):
        out = _alternating(_inverse_dct2(jnp.flip(c, -1)))
    elif parity == ("even", "odd"):
        out = _dct4(c) * (2 / n)
    else:
        out = jnp.flip(_dct4(_alternating(c)), -1) * (2 / n)
    return jnp.moveaxis(out, -1, axis)


def wave_phases(n: int, parity: tuple[Parity, Parity]) -> np.ndarray:
    """The phase θ = kh from one cell to the next of every wave."""
    m = np.arange(n) + (parity == ("odd", "odd")) + 0.5 * (parity[0] != parity[1])
    return m * (np.pi / n)


def _dct2(x: Array) -> Array:
    n = x.shape[-1]
    v = jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], -1)
    z = jnp.fft.rfft(v) * _turn(np.arange(n // 2 + 1) / (2 * n), x)
    high = -jnp.flip(z.imag[..., 1 : (n + 1) // 2], -1)
    return jnp.concatenate([z.real, high], -1)


def _inverse_dct2(c: Array) -> Array:
    n = c.shape[-1]
    low = c[..., : n // 2 + 1]
    high = jnp.flip(c[..., n - n // 2 :], -1)
    high = jnp.concatenate([jnp.zeros_like(c[..., :1]), high], -1)
    z = jax.lax.complex(low, -high) * _turn(-np.arange(n // 2 + 1) / (2 * n), c)
    v = jnp.fft.irfft(z, n)
    evens, odds = v[..., : (n + 1) // 2], jnp.flip(v[..., (n + 1) // 2 :], -1)
    if n % 2:
        paired = jnp.stack([evens[..., :-1], odds], -1).reshape(*v.shape[:-1], n - 1)
        return jnp.concatenate([paired, evens[..., -1:]], -1)
    return jnp.stack([evens, odds], -1).reshape(v.shape)


def _dct4(x: Array) -> Array:
    n = x.shape[-1]
    if n % 2:  # no halves to pair: one transform of twice the length
        j = np.arange(n)
        turn = _turn(j / (2 * n), x)
        z = jnp.fft.fft(jax.lax.complex(x * turn.real, x * turn.imag), 2 * n)[..., :n]
        return (z * _turn((2 * j + 1) / (4 * n), x)).real
    turn = _turn((4 * np.arange(n // 2) + 1) / (4 * n), x)
    z = jax.lax.complex(x[..., ::2], jnp.flip(x[..., 1::2], -1)) * turn
    z = jnp.fft.fft(z) * _turn(np.arange(n // 2) / n, x)
    return jnp.stack([z.real, -jnp.flip(z.imag, -1)], -1).reshape(x.shape)


def _turn(half_turns: np.ndarray, like: Array) -> Array:
    """exp(−iπ·half_turns), ready to broadcast."""
    kind = jnp.complex128 if like.dtype == jnp.float64 else jnp.complex64
    turn = jnp.asarray(np.exp(-1j * np.pi * half_turns), kind)
    return turn.reshape((1,) * (like.ndim - 1) + turn.shape)


def _alternating(x: Array) -> Array:
    signs = jnp.asarray((-1.0) ** np.arange(x.shape[-1]), x.dtype)
    return x * signs.reshape((1,) * (x.ndim - 1) + signs.shape)


def transform_values(x: Array, parities: Parities) -> Array:
    """Coefficients of real `x` over its last axes: waves between walls, Fourier where the box repeats."""
    axes, wraps = _split(parities)
    for axis in axes:
        x = forward(x, axis, _known(parities, axis))
    return jnp.fft.rfftn(x, axes=wraps) if wraps else x


def inverse_transform_values(c: Array, parities: Parities, shape: tuple[int, ...]) -> Array:
    """The real array of this `shape` that `c` are the coefficients of."""
    axes, wraps = _split(parities)
    if wraps:
        c = jnp.fft.irfftn(c, s=[shape[k] for k in wraps], axes=wraps)
    for axis in axes:
        c = backward(c, axis, _known(parities, axis))
    return c


def _split(parities: Parities) -> tuple[list[int], list[int]]:
    d = len(parities)
    walls = [k - d for k, p in enumerate(parities) if p is not None]
    return walls, [k - d for k, p in enumerate(parities) if p is None]


def _known(parities: Parities, axis: int) -> tuple[Parity, Parity]:
    parity = parities[axis]
    assert parity is not None
    return parity
