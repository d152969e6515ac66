"""Exact solutions of smooth gases, magnetized and not, and the orders with which they are met."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.fields import Gas, MagnetizedGas
from physkit.fields.equations import CompressibleEuler, IdealMHD
from physkit.fields.finite_volume import (
    AWENO5,
    HLL,
    MUSCL,
    AbstractReconstruction,
    MonotonizedCentral,
)
from physkit.geometry import Grid
from physkit.integrators import SSPRK2, SSPRK3, AbstractIntegrator
from physkit.simulate import Simulation, run
from physkit.systems import brio_wu, jeans_wave, orszag_tang, viscous_shear

from .._case import Case, Published


def alfven_wave(
    cells: int = 32,
    *,
    dimension: int = 2,
    standing: bool = False,
    law: IdealMHD | None = None,
) -> tuple[Simulation, MagnetizedGas]:
    """A circularly polarized Alfvén wave of unit speed and length, an exact solution of any amplitude.

        u_⊥ = B_⊥ = 0.1 (sin 2πξ, cos 2πξ),   B_∥ = 1,   ρ = 1,   p = 0.1

    After 5·`cells` steps (t = 1) it is back where it was.

    **Arguments:**

    - `cells`: along x; half as many along y and z.
    - `dimension`: 1 along the axis; 2 and 3 oblique, tan α = 2, on a box in which the wave fits once.
    - `standing`: whether the gas streams against the wave, at its speed.

    **Reference:** Tóth, J. Comput. Phys. 161, 605 (2000), §6.3.1; Gardiner & Stone, J. Comput. Phys. 227, 4123
    (2008), §5.
    """
    gamma = 5 / 3
    along, first, second, lengths = _wave_axes(dimension)
    shape = tuple(cells if k == 0 else cells // 2 for k in range(dimension))
    grid = Grid(lengths, shape)

    def phase(*x: Any) -> Any:
        return 2 * jnp.pi * sum(a * c for a, c in zip(along, x, strict=False))

    def polarized(*x: Any) -> list[Any]:
        s, c = 0.1 * jnp.sin(phase(*x)), 0.1 * jnp.cos(phase(*x))
        return [first[k] * s + second[k] * c for k in range(3)]

    def potential(*x: Any) -> list[Any]:
        # ∇×A = B_⊥: A = B_⊥ / 2π, since the wave is a field of Beltrami's.
        return [b / (2 * jnp.pi) for b in polarized(*x)]

    def component(function: Any, k: int) -> Any:
        return lambda *x: function(*x)[k]

    drift = -1.0 if standing else 0.0
    x = grid.coordinates()
    # It runs along +B where velocity and field oppose each other.
    velocity = tuple(drift * along[k] - v for k, v in enumerate(polarized(*x)))
    gas = MagnetizedGas.from_primitive(
        grid, 1.0, velocity, 0.1, tuple(along), gamma=gamma,
        vector_potential={a: component(potential, k) for k, a in enumerate("xyz")},
    )  # fmt: skip
    return Simulation(SSPRK3(IdealMHD(gamma) if law is None else law), dt=1 / (5 * cells)), gas


def isentropic_vortex(
    cells: int, reconstruction: AbstractReconstruction, dt: float
) -> tuple[Simulation, Gas]:
    """A vortex that a wind carries through a periodic square of side 14 without changing it: once in t = 14.

        δu = 5/(2π) e^{(1−r²)/2} (−y, x),   T = 1 − 25(γ−1)/(8γπ²) e^{1−r²},   ρ = T^{1/(γ−1)},   p = ρT

    Values at the middles of cells.

    **Reference:** Shu, ICASE 97-65 (1997), §4.1.
    """
    grid = Grid([14.0, 14.0], (cells, cells))
    density, velocity, pressure = vortex_solution(grid, 0.0)
    gas = Gas.from_primitive(grid, density, velocity, pressure, 1.4)
    return Simulation(SSPRK3(CompressibleEuler(1.4, reconstruction=reconstruction)), dt=dt), gas


def vortex_solution(grid: Grid, t: float) -> tuple[Array, tuple[Array, Array], Array]:
    """Density, velocity and pressure of `isentropic_vortex` at the middles of cells."""
    # From the center, to the nearest image.
    x, y = ((c - t) % 14.0 - 7.0 for c in grid.coordinates())
    square = x * x + y * y
    swirl = 5.0 / (2 * jnp.pi) * jnp.exp(0.5 * (1 - square))
    gamma = 1.4
    temperature = 1 - (gamma - 1) / (2 * gamma) * swirl**2
    density = temperature ** (1 / (gamma - 1))
    return density, (1 - swirl * y, 1 + swirl * x), density * temperature


def _wave_axes(dimension: int) -> tuple[Any, Any, Any, list[float]]:
    """Unit vectors along the wave and across, and the box in which it repeats."""
    if dimension == 1:
        return (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), [1.0]
    if dimension == 2:
        s, c = 2 / 5**0.5, 1 / 5**0.5
        return (c, s, 0.0), (-s, c, 0.0), (0.0, 0.0, 1.0), [1 / c, 1 / s]
    # Gardiner & Stone (2008): a box of 3 × 1.5 × 1.5 along whose axes the wave fits once each.
    s, c = 2 / 3, 5**0.5 / 3  # sin α, cos α
    t, d = 2 / 5**0.5, 1 / 5**0.5  # sin β, cos β
    return (c * d, c * t, s), (-t, d, 0.0), (-s * d, -s * t, c), [3.0, 1.5, 1.5]


def alfven_orders() -> dict[str, Any]:
    """An oblique Alfvén wave in the plane after one period, MUSCL and HLLD on 16 and 32 cells; in space on 16,
    with HLL and two stages, which compile sooner."""
    scheme = MUSCL(MonotonizedCentral())
    law = IdealMHD(5 / 3, reconstruction=scheme)
    errors = [_alfven_error(SSPRK3(law), n, 2)["error"] for n in (16, 32)]
    space = _alfven_error(SSPRK2(IdealMHD(5 / 3, HLL(), scheme)), 16, 3)
    return {
        "order": np.log2(errors[0] / errors[1]),
        "error in space": space["error"],
        "divergence": space["divergence"],
    }


def _alfven_error(steps: AbstractIntegrator, cells: int, dimension: int) -> dict[str, float]:
    sim, start = alfven_wave(cells, dimension=dimension)
    sim = Simulation(steps, dt=sim.dt)
    end = run(sim, start, 5 * cells, progress=False).state
    pairs = zip(end.parts().values(), start.parts().values(), strict=True)
    squares = [float(jnp.mean(jnp.abs(a.data - b.data))) ** 2 for a, b in pairs]
    return {"error": sum(squares) ** 0.5, "divergence": float(end.relative_divergence())}


def vortex_orders() -> dict[str, Any]:
    """A vortex in a wind at t = 1 on 64² and 128² cells: orders of the mean error of the density."""
    muscl = [_vortex_error(n, MUSCL(MonotonizedCentral())) for n in (64, 128)]
    weno = [_vortex_error(n, AWENO5()) for n in (64, 128)]
    return {
        "MUSCL": np.log2(muscl[0] / muscl[1]),
        "AWENO5": np.log2(weno[0] / weno[1]),
        "gain": muscl[1] / weno[1],
    }


def _vortex_error(cells: int, reconstruction: AbstractReconstruction) -> float:
    # The third order of the steps in time must not show: h^(5/3).
    steps = round(20 * (cells / 32) ** (5 / 3))
    sim, gas = isentropic_vortex(cells, reconstruction, 1.0 / steps)
    end = run(sim, gas, steps, progress=False).state
    exact = vortex_solution(gas.grid, 1.0)[0]
    return float(jnp.mean(jnp.abs(end.density.data - exact)))


def orszag_tang_sums() -> dict[str, Any]:
    """Orszag and Tang's vortex on 32² cells until t = 0.5: what is kept, relative to the sums of sizes."""
    sim, start = orszag_tang(32)
    end = run(sim, start, 256, progress=False).state
    drifts = {}
    for name in ("density", "momentum_x", "momentum_y", "energy"):
        a, b = (getattr(gas, name).data for gas in (start, end))
        drifts[name] = jnp.abs(jnp.sum(b - a)) / jnp.sum(jnp.abs(b))
    momentum = jnp.maximum(drifts["momentum_x"], drifts["momentum_y"])
    return {
        "mass": drifts["density"],
        "momentum": momentum,
        "energy": drifts["energy"],
        "divergence": end.relative_divergence(),
        "least pressure": jnp.min(end.pressure().data),
    }


def brio_wu_error() -> dict[str, Any]:
    """Brio and Wu's tube on 128 cells against 1024, averaged: density and field, in the mean."""
    coarse, fine = (_brio_wu_end(n) for n in (128, 1024))
    errors = {}
    for name in ("density", "magnetic_y"):
        averages = jnp.mean(
            getattr(fine, name).data.reshape(128, 8), axis=1
        )  # (cells, points in each)
        errors[f"L1({name})"] = jnp.mean(jnp.abs(getattr(coarse, name).data - averages))
    return errors


def _brio_wu_end(cells: int) -> MagnetizedGas:
    sim, gas = brio_wu(cells)
    return run(sim, gas, 5 * cells // 4, progress=False).state


def jeans_frequency() -> dict[str, Any]:
    """A sound wave in a gas that attracts itself, k = 2 k_J, on 64 cells: when it first vanishes."""
    sim, start = jeans_wave(64)
    wave, dt = start.density.data - 1, float(sim.dt)
    # A quarter of a period is at ωt = π/2; on both sides of it, in whole steps.
    quarter = 0.5 * np.pi / (np.pi * 12**0.5)
    before = int(quarter / dt) - 3
    carry = run(sim, start, before, progress=False)
    sizes = [float(jnp.sum((carry.state.density.data - 1) * wave))]
    carry = run(sim, carry.carry, 6, progress=False)
    sizes.append(float(jnp.sum((carry.state.density.data - 1) * wave)))
    crossing = (before + 6 * sizes[0] / (sizes[0] - sizes[1])) * dt
    return {"omega²": (0.5 * np.pi / crossing) ** 2}


def viscous_decay() -> dict[str, Any]:
    """Shear and warmth of a viscous gas on 32 cells at t = 0.5: their rates, over 4π²."""
    sim, start = viscous_shear(32, viscosity=0.02, prandtl=0.71)
    end = run(sim, start, 50, progress=False).state
    wave = jnp.sin(2 * jnp.pi * start.grid.coordinates()[0])

    def rate(before: Array, after: Array) -> Any:
        sizes = [jnp.sum(x * wave) for x in (before, after)]
        return jnp.log(sizes[0] / sizes[1]) / (0.5 * 4 * jnp.pi**2)

    warmth = [gas.pressure().data / gas.density.data for gas in (start, end)]
    return {
        "viscosity": rate(start.velocity.data[1], end.velocity.data[1]),
        "diffusivity of heat": rate(*warmth),
    }


CASES = (
    Case(
        "alfven-wave",
        alfven_orders,
        (
            Published("order", 2.0, 0.2, "at least"),
            # Published by nobody: what 16 × 8 × 8 cells give, 0.061.
            Published("error in space", 0.0, 0.065, "at most"),
            Published("divergence", 0.0, 1e-12, "at most"),
        ),
        "Tóth 2000; Gardiner & Stone 2008",
        slow=True,
    ),
    Case(
        "isentropic-vortex",
        vortex_orders,
        (
            # From above: 2.24 between 32² and 64² cells, 2.23 here, 2.18 between 128² and 256².
            Published("MUSCL", 2.0, 0.2, "at least"),
            Published("AWENO5", 5.0, 0.5, "at least"),
            Published("gain", 20.0, 0.0, "at least"),
        ),
        "Shu 1997; Jiang, Shu & Zhang 2013",
        slow=True,
    ),
    Case(
        "orszag-tang",
        orszag_tang_sums,
        (
            Published("mass", 0.0, 1e-13, "at most"),
            Published("momentum", 0.0, 1e-13, "at most"),
            Published("energy", 0.0, 1e-13, "at most"),
            Published("divergence", 0.0, 1e-12, "at most"),
            Published("least pressure", 0.0, 0.0, "at least"),
        ),
        "Orszag & Tang 1979",
        slow=True,
    ),
    Case(
        "brio-wu",
        brio_wu_error,
        (
            Published("L1(density)", 0.0, 0.012, "at most"),
            Published("L1(magnetic_y)", 0.0, 0.02, "at most"),
        ),
        "Brio & Wu 1988; against 1024 cells",
        slow=True,
    ),
    Case(
        "jeans",
        jeans_frequency,
        (Published("omega²", 12 * np.pi**2, 0.01, "relative"),),
        "Jeans 1902; Binney & Tremaine 2008",
    ),
    Case(
        "viscous-gas",
        viscous_decay,
        (
            Published("viscosity", 0.02, 0.005, "relative"),
            Published("diffusivity of heat", 0.02 / 0.71, 0.01, "relative"),
        ),
        "linear theory",
    ),
)
