"""Fields on grids in plain NumPy: ghost cells, Fourier transforms, textbook steps. Knows nothing of physkit."""

import numpy as np

Walls = tuple[
    str, float, float
]  # kind ("periodic", "dirichlet", "neumann"), its numbers below and above


def with_ghosts(u: np.ndarray, axis: int, h: float, walls: Walls) -> np.ndarray:
    """One ghost on each side, for values in the middles of cells."""
    kind, low, high = walls
    take = lambda k: np.take(u, [k], axis)
    if kind == "periodic":
        ends = take(-1), take(0)
    elif kind == "dirichlet":
        ends = 2 * low - take(0), 2 * high - take(-1)
    else:  # the slope along the outward normal
        ends = take(0) + low * h, take(-1) + high * h
    return np.concatenate([ends[0], u, ends[1]], axis)


def second(u, axis, h, walls: Walls, spectral: bool):
    if spectral:
        return fourier(u, axis, h, 2)
    p = with_ghosts(u, axis, h, walls)
    n = u.shape[axis]
    cut = lambda k: np.take(p, range(k, k + n), axis)
    return (cut(0) - 2 * cut(1) + cut(2)) / h**2


def first(u, axis, h, walls: Walls, spectral: bool):
    if spectral:
        return fourier(u, axis, h, 1)
    p = with_ghosts(u, axis, h, walls)
    n = u.shape[axis]
    cut = lambda k: np.take(p, range(k, k + n), axis)
    return (cut(2) - cut(0)) / (2 * h)


def waves(n: int, h: float) -> np.ndarray:
    return 2 * np.pi * np.fft.fftfreq(n, h)


def fourier(u, axis, h, power):
    n = u.shape[axis]
    k = waves(n, h)
    if power % 2 and n % 2 == 0:
        k[n // 2] = 0.0  # the shortest wave has no odd derivative on these points
    shape = [1] * u.ndim
    shape[axis] = n
    out = np.fft.ifft((1j * k.reshape(shape)) ** power * np.fft.fft(u, axis=axis), axis=axis)
    return out if np.iscomplexobj(u) else out.real


def filtered(u):
    """Without the waves that the 2/3 rule drops."""
    out = np.fft.fftn(u)
    for axis, n in enumerate(u.shape):
        shape = [1] * u.ndim
        shape[axis] = n
        out = out * (np.abs(np.fft.fftfreq(n, 1 / n)) < n / 3).reshape(shape)
    return np.fft.ifftn(out).real


def euler(rate, u, t, dt):
    return u + dt * rate(u, t)


def heun(rate, u, t, dt):
    k = rate(u, t)
    return u + dt / 2 * (k + rate(u + dt * k, t + dt))


def ssprk3(rate, u, t, dt):
    a = u + dt * rate(u, t)
    b = 0.75 * u + 0.25 * (a + dt * rate(a, t + dt))
    return u / 3 + 2 / 3 * (b + dt * rate(b, t + dt / 2))


def rk4(rate, u, t, dt):
    k1 = rate(u, t)
    k2 = rate(u + dt / 2 * k1, t + dt / 2)
    k3 = rate(u + dt / 2 * k2, t + dt / 2)
    return u + dt / 6 * (k1 + 2 * k2 + 2 * k3 + rate(u + dt * k3, t + dt))


def in_small_steps(rate, u, t, dt, parts=256):
    """So short that any method has the solution."""
    for k in range(parts):
        u = rk4(rate, u, t + k * dt / parts, dt / parts)
    return u
