"""Newton's equations in plain NumPy: direct sums over pairs, textbook integrators. Knows nothing of physkit."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass
class Cell:
    """Rows of vectors; open axes repeat nowhere. No vectors: open everywhere."""

    vectors: np.ndarray | None
    periodic: tuple[bool, ...]

    def nearest(self, dx: np.ndarray) -> np.ndarray:
        """The shortest image of each difference, by trying all neighbors."""
        if self.vectors is None or not any(self.periodic):
            return dx
        fraction = dx @ np.linalg.inv(self.vectors)
        fraction = fraction - np.where(self.periodic, np.round(fraction), 0)
        ranges = [(-1, 0, 1) if p else (0,) for p in self.periodic]
        images = np.array(list(itertools.product(*ranges)), float)
        candidates = (fraction[..., None, :] + images) @ self.vectors
        best = np.argmin(np.sum(candidates**2, -1), -1)
        return np.take_along_axis(candidates, best[..., None, None], -2)[..., 0, :]

    def same(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a − b up to lattice vectors."""
        return self.nearest(a - b)

    @property
    def volume(self) -> float:
        return abs(np.linalg.det(self.vectors))


def lennard_jones(e, s):
    return (
        lambda r: 4 * e * ((s / r) ** 12 - (s / r) ** 6),
        lambda r: 4 * e * (-12 * (s / r) ** 12 + 6 * (s / r) ** 6) / r,
    )


def wca(e, s):
    u, du = lennard_jones(e, s)
    edge = 2 ** (1 / 6) * s
    return lambda r: np.where(r < edge, u(r) + e, 0.0), lambda r: np.where(r < edge, du(r), 0.0)


def morse(depth, a, r0):
    return (
        lambda r: depth * (np.exp(-2 * a * (r - r0)) - 2 * np.exp(-a * (r - r0))),
        lambda r: -2 * a * depth * (np.exp(-2 * a * (r - r0)) - np.exp(-a * (r - r0))),
    )


def yukawa(amplitude, length):
    return (
        lambda r: amplitude * np.exp(-r / length) / r,
        lambda r: -amplitude * np.exp(-r / length) / r * (1 / r + 1 / length),
    )


def soft_sphere(e, s, m):
    return lambda r: e * (s / r) ** m, lambda r: -m * e * (s / r) ** m / r


def buckingham(amplitude, length, dispersion):
    return (
        lambda r: amplitude * np.exp(-r / length) - dispersion / r**6,
        lambda r: -amplitude / length * np.exp(-r / length) + 6 * dispersion / r**7,
    )


def cut(u, du, rc: float | None, kind: str):
    """U and U′ with a cutoff."""
    if rc is None:
        return u, du
    if kind == "plain":
        return u, du
    if kind == "shifted":
        return lambda r: u(r) - u(rc), du
    if kind == "shifted-force":
        return (lambda r: u(r) - u(rc) - (r - rc) * du(rc)), (lambda r: du(r) - du(rc))
    start = 0.9 * rc

    def fade(r):
        x = np.clip((r - start) / (rc - start), 0, 1)
        s = 1 - 10 * x**3 + 15 * x**4 - 6 * x**5
        return s, (-30 * x**2 + 60 * x**3 - 30 * x**4) / (rc - start)

    return (
        lambda r: u(r) * fade(r)[0],
        lambda r: du(r) * fade(r)[0] + u(r) * fade(r)[1],
    )


@dataclasses.dataclass
class Total:
    """What a force says of one configuration."""

    force: np.ndarray
    energy: float
    virial: np.ndarray

    def __add__(self, other: "Total") -> "Total":
        return Total(
            self.force + other.force, self.energy + other.energy, self.virial + other.virial
        )


Force = Callable[..., Total]  # (x, v, t) → Total; x unwrapped


def pairs(u, du, rc, kind, cell: Cell, charge=None) -> Force:
    u, du = cut(u, du, rc, kind)

    def force(x, v, t):
        n, d = x.shape
        f, energy, virial = np.zeros((n, d)), 0.0, np.zeros((d, d))
        for i in range(n):
            for j in range(i):
                r = cell.nearest((x[i] - x[j])[None])[0]
                distance = np.sqrt(np.sum(r**2))
                if rc is not None and distance >= rc:
                    continue
                q = 1.0 if charge is None else charge[i] * charge[j]
                energy += q * u(distance)
                pull = -q * du(distance) * r / distance
                f[i] += pull
                f[j] -= pull
                virial += np.outer(r, pull)
        return Total(f, float(energy), virial)

    return force


def gravity(constant, softening, mass) -> Force:
    def force(x, v, t):
        n, d = x.shape
        f, energy, virial = np.zeros((n, d)), 0.0, np.zeros((d, d))
        for i in range(n):
            for j in range(i):
                r = x[i] - x[j]
                s = np.sqrt(r @ r + softening**2)
                energy -= constant * mass[i] * mass[j] / s
                pull = -constant * mass[i] * mass[j] * r / s**3
                f[i] += pull
                f[j] -= pull
                virial += np.outer(r, pull)
        return Total(f, energy, virial)

    return force


def trap(stiffness, center, cell: Cell) -> Force:
    """An outside field: it pushes on no wall, and has no virial."""

    def force(x, v, t):
        stretch = cell.nearest(x - center)
        d = x.shape[1]
        return Total(
            -stiffness * stretch, float(np.sum(0.5 * stiffness * stretch**2)), np.zeros((d, d))
        )

    return force


def uniform(acceleration, mass) -> Force:
    def force(x, v, t):
        f = mass[:, None] * acceleration
        return Total(f, float(-np.sum(f * x)), np.zeros((x.shape[1],) * 2))

    return force


def wave(strength, rate) -> Force:
    """F = A cos(rate t) sin(x), U = A cos(rate t) Σ cos x."""

    def force(x, v, t):
        a = strength * np.cos(rate * t)
        return Total(a * np.sin(x), float(a * np.sum(np.cos(x))), np.zeros((x.shape[1],) * 2))

    return force


def bonds(index, stiffness, length, cell: Cell) -> Force:
    def force(x, v, t):
        n, d = x.shape
        f, energy, virial = np.zeros((n, d)), 0.0, np.zeros((d, d))
        for i, j in index:
            r = cell.nearest((x[i] - x[j])[None])[0]
            distance = np.sqrt(r @ r)
            energy += 0.5 * stiffness * (distance - length) ** 2
            pull = -stiffness * (distance - length) * r / distance
            f[i] += pull
            f[j] -= pull
            virial += np.outer(r, pull)
        return Total(f, energy, virial)

    return force


def add(forces: list[Force]) -> Force:
    def force(x, v, t):
        total = forces[0](x, v, t)
        for other in forces[1:]:
            total = total + other(x, v, t)
        return total

    return force


# Integrators: (force, x, v, m, t, dt) → (x, v), one step.


def verlet(force, x, v, m, t, dt):
    v = v + 0.5 * dt * force(x, v, t).force / m
    x = x + dt * v
    return x, v + 0.5 * dt * force(x, v, t + dt).force / m


def leapfrog(force, x, v, m, t, dt):
    x = x + 0.5 * dt * v
    v = v + dt * force(x, v, t + 0.5 * dt).force / m
    return x + 0.5 * dt * v, v


def yoshida(force, x, v, m, t, dt):
    w = 1 / (2 - 2 ** (1 / 3))
    for part in (w, 1 - 2 * w, w):
        x, v = verlet(force, x, v, m, t, part * dt)
        t += part * dt
    return x, v


def twice(force, x, v, m, t, dt):
    x, v = verlet(force, x, v, m, t, dt / 2)
    return verlet(force, x, v, m, t + dt / 2, dt / 2)


def rk4(force, x, v, m, t, dt):
    rate = lambda x, v, t: (v, force(x, v, t).force / m)
    k1 = rate(x, v, t)
    k2 = rate(x + dt / 2 * k1[0], v + dt / 2 * k1[1], t + dt / 2)
    k3 = rate(x + dt / 2 * k2[0], v + dt / 2 * k2[1], t + dt / 2)
    k4 = rate(x + dt * k3[0], v + dt * k3[1], t + dt)
    return tuple(
        s + dt / 6 * (a + 2 * b + 2 * c + e)
        for s, a, b, c, e in zip((x, v), k1, k2, k3, k4, strict=True)
    )


def quantities(force, x, v, m, t, cell: Cell, momentum_conserved: bool, space_dim: int):
    """What observers report, by their definitions."""
    total = force(x, v, t)
    n, d = x.shape
    kinetic = float(0.5 * np.sum(m * v**2))
    freedom = d * (n - 1) if momentum_conserved else d * n
    out = {
        "potential": total.energy,
        "kinetic": kinetic,
        "total": total.energy + kinetic,
        "momentum": np.sum(m * v, axis=0),
        "temperature": 2 * kinetic / freedom if freedom > 0 else np.nan,
    }
    if cell.vectors is not None and all(cell.periodic):
        flux = (m * v).T @ v
        out["stress"] = -(flux + total.virial) / cell.volume
        out["pressure"] = np.trace(flux + total.virial) / (d * cell.volume)
    return out
