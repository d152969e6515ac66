"""Particles on grids in plain NumPy: B-splines by recursion, images one by one. Knows nothing of physkit."""

import dataclasses
from collections.abc import Callable

import numpy as np

from .newton import Total


@dataclasses.dataclass(frozen=True)
class Axis:
    """Points along one axis of a box.

    - `walls`: kind ("periodic", "dirichlet", "neumann") and its numbers below and above.
    - `staggered`: the first point is on the lower end, not half a cell above it.
    """

    cells: int
    length: float
    walls: tuple[str, float, float]
    staggered: bool = False

    @property
    def h(self) -> float:
        return self.length / self.cells

    @property
    def periodic(self) -> bool:
        return self.walls[0] == "periodic"

    @property
    def count(self) -> int:
        return self.cells + (self.staggered and not self.periodic)

    def points(self, ghosts: int = 0) -> np.ndarray:
        numbers = np.arange(-ghosts, self.count + ghosts)
        return (numbers + (0.0 if self.staggered else 0.5)) * self.h

    def fold(self, x: np.ndarray) -> np.ndarray:
        return x % self.length if self.periodic else np.clip(x, 0, self.length)


def spline(order: int, s: np.ndarray) -> np.ndarray:
    """The B-spline of `order` boxes at a distance of `s` cells."""
    if order == 1:
        return ((s >= -0.5) & (s < 0.5)).astype(float)
    low, high = spline(order - 1, s + 0.5), spline(order - 1, s - 0.5)
    return ((order / 2 + s) * low + (order / 2 - s) * high) / (order - 1)


def slope(order: int, s: np.ndarray) -> np.ndarray:
    return spline(order - 1, s + 0.5) - spline(order - 1, s - 0.5)


def extended(u: np.ndarray, k: int, axis: Axis, ghosts: int) -> np.ndarray:
    """`u` with ghosts along its array axis `k`, one after the other."""
    kind, low, high = axis.walls
    n, on_wall = u.shape[k], axis.staggered
    take = lambda i: np.take(u, [i % n], k)
    below, above = [], []
    for j in range(1, ghosts + 1):
        inside = j if on_wall else j - 1
        if kind == "periodic":
            below.append(take(-j))
            above.append(take(j - 1))
        elif kind == "dirichlet":
            below.append(2 * low - take(inside))
            above.append(2 * high - take(n - 1 - inside))
        else:
            distance = (2 * j if on_wall else 2 * j - 1) * axis.h
            below.append(take(inside) + low * distance)
            above.append(take(n - 1 - inside) + high * distance)
    return np.concatenate([*below[::-1], u, *above], k)


LETTERS = "ijk"


def interpolate(u, x, axes: list[Axis], order: int, along: int | None = None) -> np.ndarray:
    """`u`, `[components, *points]`, at `x`: `[n, components]`; or its derivative along an axis."""
    weights = []
    for k, axis in enumerate(axes):
        u = extended(u, k + 1, axis, 3)
        s = (axis.fold(x[:, k])[:, None] - axis.points(3)) / axis.h
        weights.append(slope(order, s) / axis.h if k == along else spline(order, s))
    letters = LETTERS[: len(axes)]
    return np.einsum(",".join(f"p{i}" for i in letters) + f",c{letters}->pc", *weights, u)


def deposit(q, x, axes: list[Axis], order: int) -> np.ndarray:
    """`q`, `[n, components]`, as a density `[components, *points]`."""
    weights = []
    for k, axis in enumerate(axes):
        at = axis.fold(x[:, k])
        # Behind a wall stands a mirror image; on periodic axes the box repeats.
        images = [at, -at, 2 * axis.length - at]
        if axis.periodic:
            images = [at + m * axis.length for m in range(-4, 5)]
        points = axis.points()
        weights.append(sum(spline(order, (i[:, None] - points) / axis.h) for i in images) / axis.h)
    letters = LETTERS[: len(axes)]
    return np.einsum(",".join(f"p{i}" for i in letters) + f",pc->c{letters}", *weights, q)


def symbols(axis: Axis, scheme: str) -> tuple[np.ndarray, np.ndarray]:
    """What a scheme's first derivative (without i) and minus its second make of each wave."""
    n, h = axis.cells, axis.h
    k = 2 * np.pi * np.fft.fftfreq(n, h)
    p = k * h
    if scheme == "spectral":
        return np.where(2 * np.abs(np.fft.fftfreq(n, 1 / n)) == n, 0.0, k), k**2
    if scheme == "central2":
        return np.sin(p) / h, (2 - 2 * np.cos(p)) / h**2
    first = (8 * np.sin(p) - np.sin(2 * p)) / (6 * h)
    return first, (30 - 32 * np.cos(p) + 2 * np.cos(2 * p)) / (12 * h**2)


@dataclasses.dataclass(frozen=True)
class Mesh:
    """Charges `q` that act through a periodic mesh; `green` is φ_k / ρ_k as a function of k²."""

    q: np.ndarray
    axes: list[Axis]
    order: int
    scheme: str
    green: Callable
    conserves: str
    deconvolved: bool

    def potential(self, x, axes) -> tuple[np.ndarray, np.ndarray]:
        rho = deposit(self.q[:, None], x, axes, self.order)[0]
        grid = lambda a, k: a.reshape([-1 if j == k else 1 for j in range(len(axes))])
        k2 = sum(grid(symbols(a, self.scheme)[1], k) for k, a in enumerate(axes)) + 0 * rho
        k2[(0,) * len(axes)] = 1.0
        response = self.green(k2)
        if self.deconvolved:
            for k, a in enumerate(axes):
                response = response / grid(np.sinc(np.fft.fftfreq(a.cells)) ** (2 * self.order), k)
        response[(0,) * len(axes)] = 0.0
        return rho, np.fft.ifftn(response * np.fft.fftn(rho)).real

    def energy(self, x, axes) -> float:
        rho, phi = self.potential(x, axes)
        return float(np.sum(rho * phi) / 2 * np.prod([a.h for a in axes]))

    def __call__(self, x, v, t) -> Total:
        _, phi = self.potential(x, self.axes)
        force = np.zeros(x.shape)
        for k, axis in enumerate(self.axes):
            if self.conserves == "energy":
                pull = interpolate(phi[None], x, self.axes, self.order, along=k)
            else:
                first = 1j * symbols(axis, self.scheme)[0]
                shape = [-1 if j == k else 1 for j in range(len(self.axes))]
                waves = first.reshape(shape) * np.fft.fftn(phi)
                pull = interpolate(np.fft.ifftn(waves).real[None], x, self.axes, self.order)
            force[:, k] = -self.q * pull[:, 0]
        return Total(force, self.energy(x, self.axes), self.virial(x))

    def virial(self, x) -> np.ndarray:
        """−∂U/∂ε for strains along the axes of particles and mesh alike; the rest is left 0."""
        out, d, e = np.zeros((len(self.axes),) * 2), len(self.axes), 1e-5
        for k in range(d):
            stretch = lambda f, k=k: (
                x * np.where(np.arange(d) == k, f, 1.0),
                [
                    dataclasses.replace(a, length=a.length * (f if j == k else 1.0))
                    for j, a in enumerate(self.axes)
                ],
            )
            up, down = self.energy(*stretch(1 + e)), self.energy(*stretch(1 - e))
            out[k, k] = -(up - down) / (2 * e)
        return out
