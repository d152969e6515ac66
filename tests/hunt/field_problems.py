"""Drawn fields, in physkit and in `grids`."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk
from physkit.integrators import ExactLinear, Heun

from . import grids
from .outcome import compare

STEPS = 4
UNITS = {
    "one": (1.0, 1.0, 1.0),
    "cells in SI": (1e-6, 1e-3, 1e-9),
    "oceans in SI": (1e6, 1e5, 3.0),
    "powers of two": (2.0**-20, 2.0**-15, 2.0**9),
}


@dataclasses.dataclass
class Problem:
    sim: pk.Simulation
    state: object
    read: object  # state → array
    expected: object  # () → array or None
    scale: float
    exact_to: float
    check: object = None  # (first array, last array, state) → text


def own_rate(t, field):
    return -field * field * field


def decay(t, field, k):
    return -k * field


def potential(t, *x):
    return sum(1 - jnp.cos(2 * jnp.pi * c) for c in x)


class Decay(eqx.Module):
    rate: jax.Array

    def __call__(self, t, field):
        return -self.rate * field


def build(s, n) -> Problem:
    rng = np.random.default_rng(n.seed)
    rounded = lambda x: np.asarray(x, s.dtype).astype(float)
    P = lambda x: jnp.asarray(x, s.dtype)
    length, time, unit = UNITS[s.units] if s.equation != "schroedinger" else (1.0, 1.0, 1.0)
    d = len(s.shape)
    lengths = rounded(np.array([1.0, 1.3])[:d] * length)
    h = lengths / np.array(s.shape)
    spectral = s.scheme == "spectral"
    scheme = pk.schemes.Spectral() if spectral else pk.schemes.Central(2)
    periodic = s.walls == "periodic"
    grid = pk.Grid(pk.Box(P(lengths), periodic=periodic), s.shape)
    speed, nu_unit = length / time, length**2 / time
    if s.equation in ("burgers", "vorticity", "navierstokes", "gas"):
        unit = {"burgers": speed, "vorticity": 1 / time, "navierstokes": speed, "gas": 1.0}[
            s.equation
        ]
    if s.equation in ("fisher", "grayscott"):
        unit = 1.0
    where = grid.face(0) if s.place == "face" else grid.cell
    axes = [np.asarray(c, float) for c in grid.coordinates(where)]
    axes = np.broadcast_arrays(*axes)
    u = np.zeros(axes[0].shape)
    for _ in range(3):
        k = rng.integers(1, 3, d)
        phase = rng.uniform(0, 6)
        u = u + rng.normal() * np.cos(
            sum(2 * np.pi * a * x / l for a, x, l in zip(k, axes, lengths)) + phase
        )
    u = u * n.amplitude * 0.3
    if s.equation in ("fisher", "grayscott"):
        u = np.clip(0.5 + u / 4, 0, 1)
    if n.trouble == "zero":
        u = 0 * u
    if n.trouble == "constant":
        u = 0 * u + 0.5
    u = rounded(u * unit)
    if n.trouble == "nan":
        u[tuple(np.array(u.shape) // 2)] = np.nan  # not on a wall, which holds a number of its own
    low, high = rounded(n.wall * unit), rounded(0.5 * unit)
    if s.walls == "neumann":
        low, high = rounded(low / length), rounded(high / length)
    walls = (s.walls, float(low), float(high))
    boundary = None
    if not periodic:
        kind = pk.boundaries.Dirichlet if s.walls == "dirichlet" else pk.boundaries.Neumann
        boundary = {axis: (kind(P(low)), kind(P(high))) for axis in "xy"[:d]}
    component = "u" if s.mistake == "component" else None
    h_min = h.min()
    nu = float(rounded((0.02 + 0.02 * rng.random()) * nu_unit))
    dt = 0.1 * h_min**2 / (nu * d)
    if s.mistake == "negative":
        nu = -nu
    laplace = lambda u: sum(grids.second(u, a, h[a], walls, spectral) for a in range(d))
    slope = lambda u, a: grids.first(u, a, h[a], walls, spectral)
    exact_to, check, initial = 0.0, None, None
    field = pk.Field(P(u), grid, where, boundary)
    read = lambda state: state.data
    if s.equation == "diffusion":
        terms = [pk.equations.Diffusion(P(nu), component=component, scheme=scheme)]
        rate = lambda u, t: nu * laplace(u)
    elif s.equation == "advection":
        c = rounded(rng.normal(size=d) * speed)
        dt = 0.2 * h_min / max(np.abs(c).max(), 1e-9 * speed)
        terms = [pk.equations.Advection(P(c), component=component, scheme=scheme)]
        rate = lambda u, t: -sum(c[a] * slope(u, a) for a in range(d))
    elif s.equation == "burgers":
        terms = [pk.equations.Burgers(P(nu), component=component, scheme=scheme)]
        dt = min(dt, 0.1 * h_min / speed)
        if spectral:
            rate = lambda u, t: (
                nu * laplace(u) - slope(grids.filtered(grids.filtered(u) ** 2), 0) / 2
            )
            exact_to = 3e-3 * speed * dt / h_min  # of how products are dealiased
        else:
            rate = lambda u, t: nu * laplace(u) - u * slope(u, 0)
    elif s.equation == "kdv":
        alpha, beta = (
            float(rounded(1 / time / unit * length)),
            float(rounded(1e-4 * length**3 / time)),
        )
        terms = [pk.equations.KortewegDeVries(P(alpha), P(beta), component=component)]
        dt = 0.02 * h_min**3 / beta
        dt = min(dt, 0.05 * h_min / speed)
        rate = lambda u, t: (
            -alpha * grids.fourier(grids.filtered(grids.filtered(u) ** 2), 0, h[0], 1) / 2
            - beta * grids.fourier(u, 0, h[0], 3)
        )
        exact_to = 3e-3 * speed * dt / h_min
    elif s.equation == "fisher":
        r = float(rounded(1 / time))
        terms = [
            pk.equations.FisherKPP(P(r), component=component),
            pk.equations.Diffusion(P(nu), scheme=scheme),
        ]
        rate = lambda u, t: r * u * (1 - u) + nu * laplace(u)
    elif s.equation == "own":
        k = float(rounded(1 / time))
        terms = [
            pk.Function(Decay(P(k))),
            pk.equations.Diffusion(P(nu), component=component, scheme=scheme),
        ]
        rate = lambda u, t: -k * u + nu * laplace(u)
    elif s.equation == "grayscott":
        f, k = float(rounded(0.04 / time)), float(rounded(0.06 / time))
        other = rounded(np.clip(1 - u, 0, 1))
        u = np.stack([u, other])
        field = pk.Field(P(u), grid)
        # Rates in units of u v² per unit of time.
        terms = [
            pk.equations.GrayScott(P(f), P(k), component=component),
            pk.equations.Diffusion(P([nu, nu / 2]), scheme=scheme),
        ]
        both = lambda w: np.stack([nu * laplace(w[0]), nu / 2 * laplace(w[1])])

        def rate(w, t):
            a, b = w
            return np.stack([-a * b**2 + f * (1 - a), a * b**2 - (f + k) * b]) + both(w)

        dt = min(dt, 0.1)
    elif s.equation == "wave":
        c = float(rounded(speed))
        dt = 0.2 * h_min / c
        terms = [pk.equations.Wave(P(c), scheme=scheme)]
        w = rounded(0.3 * u / time)
        initial = np.stack([u, w])
        boundary_w = None if periodic else boundary
        field = {
            "displacement": field,
            "velocity": pk.Field(P(w), grid, where, boundary_w),
        }
        if s.mistake == "component":
            terms = [pk.equations.Wave(P(c), displacement="height", scheme=scheme)]
        read = lambda state: jnp.stack([state["displacement"].data, state["velocity"].data])
        rate = lambda y, t: np.stack([y[1], c**2 * laplace(y[0])])
    elif s.equation in ("vorticity", "navierstokes"):
        # Eddies whose advection is a gradient: they only decay.
        kx, ky = 2 * np.pi / lengths
        x, y = axes
        stream = n.amplitude * np.cos(kx * x) * np.cos(ky * y)
        if s.equation == "vorticity":
            u = rounded(stream * unit)
            terms = [pk.equations.VorticityTransport(P(nu), component=component)]
            field = pk.Field(P(u), grid)
        else:
            u = rounded(
                np.stack([np.cos(kx * x) * np.sin(ky * y) * ky, -np.sin(kx * x) * np.cos(ky * y) * kx])
                * n.amplitude * unit * length / 10
            )  # fmt: skip
            terms = [pk.equations.NavierStokes(P(nu), component=component)]
            field = pk.Field(P(u), grid, vector=True)
        dt = min(dt, 0.1 * h_min / speed)
        if n.trouble == "nan":
            u[..., 0, 0] = np.nan
            field = pk.Field(P(u), grid, vector=u.ndim == 3)
        # All waves, so that rounding errors grow here where they grow there.
        rate = lambda w, t: nu * sum(grids.fourier(w, a - 2, h[a], 2) for a in range(2))
        exact_to = 1e-5
    elif s.equation == "gas":
        return _gas(s, n, rng, grid, lengths, h, P, speed)
    elif s.equation == "schroedinger":
        return _schroedinger(s, n, u, grid, h, axes, P)
    dt = float(rounded(dt * n.dt_factor))
    if s.mistake == "vector" and isinstance(field, pk.Field) and not field.vector:
        field = pk.Field(jnp.broadcast_to(field.data, (3, *s.shape)), grid)
    method = {
        "euler": pk.Euler, "heun": Heun, "ssprk3": pk.SSPRK3, "rk4": pk.RK4,
        "etdrk2": pk.ETDRK2, "etdrk4": pk.ETDRK4, "exact": ExactLinear,
    }[s.integrator]  # fmt: skip
    step = {
        "euler": grids.euler, "heun": grids.heun, "ssprk3": grids.ssprk3, "rk4": grids.rk4,
    }.get(s.integrator, grids.in_small_steps)  # fmt: skip
    if s.integrator in ("etdrk2", "etdrk4") and s.equation in ("burgers", "kdv", "fisher"):
        exact_to += 0.02 * min(
            1.0, (speed * dt / h_min if s.equation != "fisher" else dt / time) ** 2
        )
    if s.integrator == "exact":
        step = _exact_diffusion(nu, h)
    start = u if initial is None else initial

    def expected(noise=0.0):
        now = start + noise * np.random.default_rng(5).uniform(-1, 1, start.shape)
        for k in range(STEPS):
            if s.place == "face":
                now[0], now[-1] = walls[1], walls[2]
                now = _face_step(s, now, nu, h, walls, dt, d)
            else:
                now = step(rate, now, k * dt, dt)
        return now

    sim = pk.Simulation(method(*terms), P(dt), guards=())
    scale = unit * 3
    return Problem(sim, field, read, expected, scale, exact_to, check)


def _exact_diffusion(nu, h):
    def step(rate, u, t, dt):
        k2 = sum(
            (grids.waves(n, h[a]) ** 2).reshape([-1 if b == a else 1 for b in range(u.ndim)])
            for a, n in enumerate(u.shape)
        )
        return np.fft.ifftn(np.exp(-nu * k2 * dt) * np.fft.fftn(u)).real

    return step


def _face_step(s, u, nu, h, walls, dt, d):
    """Points on the walls of the first axis hold their number; between them three-point differences."""

    def rate(u):
        out = np.zeros_like(u)
        out[1:-1] = (u[2:] - 2 * u[1:-1] + u[:-2]) / h[0] ** 2
        for a in range(1, d):
            out += grids.second(u, a, h[a], walls, False)
        out[0] = out[-1] = 0
        return nu * out

    if s.integrator == "euler":
        return u + dt * rate(u)
    k = rate(u)
    return u + dt / 2 * (k + rate(u + dt * k))


def _gas(s, n, rng, grid, lengths, h, P, speed):
    """Mass, momentum and energy stay, and a uniform stream stays as it is."""
    d = len(s.shape)
    bump = lambda *x: sum(jnp.sin(2 * jnp.pi * c / l) for c, l in zip(x, lengths)) / d
    density = 1.0 if n.trouble == "constant" else (lambda *x: 1 + 0.3 * n.amplitude * bump(*x))
    velocity = tuple(P(rng.normal() * speed) for _ in range(d))
    state = pk.components.Gas.from_primitive(
        grid, density, velocity, P(speed**2), gamma=1.4, dtype=s.dtype
    )
    if n.trouble == "nan":
        density = state.density
        broken = density.replace(data=density.data.at[(0,) * d].set(jnp.nan))
        state = pk.components.Gas(broken, state.momentum, state.energy)
    component = "gas" if s.mistake == "component" else None
    equation = pk.equations.CompressibleEuler(1.4, component=component)
    dt = float(np.asarray(0.1 * h.min() / (4 * speed) * n.dt_factor, s.dtype))
    read = lambda g: jnp.concatenate([g.density.data[None], g.momentum.data, g.energy.data[None]])
    method = {"euler": pk.Euler, "heun": pk.SSPRK2, "rk4": pk.RK4}.get(s.integrator, pk.SSPRK3)
    sim = pk.Simulation(method(equation), P(dt))
    # In units of one density, speed and energy.
    sizes = np.array([1.0, *[speed] * d, speed**2]).reshape(-1, *[1] * d) * 10

    def check(first, last):
        epsilon = np.finfo(s.dtype).eps
        axes = tuple(range(1, d + 1))
        before, after = np.mean(first / sizes, axes), np.mean(last / sizes, axes)
        text = compare("means of mass, momentum, energy", after, before, 64 * epsilon)
        if n.trouble == "constant" or n.amplitude == 0:
            text += compare("uniform stream", last / sizes, first / sizes, 64 * epsilon)
        return text

    return Problem(sim, state, read, None, 1.0, 0.0, check)


def _schroedinger(s, n, u, grid, h, axes, P):
    psi = (u + 1j * np.roll(u, 1, 0)).astype(np.complex64 if s.dtype == "float32" else complex)
    component = "psi" if s.mistake == "component" else None
    equation = pk.equations.Schroedinger(potential, P(1.0), P(1.0), P(0.5), component=component)
    dt = float(np.asarray(0.2 * h.min() ** 2 * n.dt_factor, s.dtype))
    v = sum(1 - np.cos(2 * np.pi * c) for c in axes)
    k2 = sum(
        (grids.waves(m, h[a]) ** 2).reshape([-1 if b == a else 1 for b in range(psi.ndim)])
        for a, m in enumerate(psi.shape)
    )

    def expected(noise=0.0):
        now = psi + noise * np.random.default_rng(5).uniform(-1, 1, psi.shape)
        for _ in range(STEPS):
            now = now * np.exp(-0.5j * dt * (v + 0.5 * np.abs(now) ** 2))
            now = np.fft.ifftn(np.exp(-0.5j * dt * k2) * np.fft.fftn(now))
            now = now * np.exp(-0.5j * dt * (v + 0.5 * np.abs(now) ** 2))
        return np.stack([now.real, now.imag])

    field = pk.Field(jnp.asarray(psi), grid)
    sim = pk.Simulation(pk.SplitStep(equation), P(dt), guards=())
    read = lambda state: jnp.stack([jnp.real(state.data), jnp.imag(state.data)])
    return Problem(sim, field, read, expected, 1.0, 0.0)
