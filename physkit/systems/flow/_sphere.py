"""Flows on the rotating Earth: a jet that breaks, a wind over a mountain, a wave that travels unchanged."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from physkit.core import ParameterError, safe_maximum, safe_minimum
from physkit.fields import Field
from physkit.fields.equations import BarotropicVorticity, SphericalShallowWater
from physkit.geometry import SphericalGrid
from physkit.integrators import ETDRK4
from physkit.observe import Every, FieldValues, Integral
from physkit.simulate import Simulation

from .._arguments import explain_system

# Williamson et al. (1992), table 1: m, m/s², 1/s.
EARTH_RADIUS, EARTH_GRAVITY, EARTH_ROTATION = 6.37122e6, 9.80616, 7.292e-5


@explain_system
def barotropic_jet(
    truncation: int = 85,
    *,
    perturbation: ArrayLike = 120.0,
    viscosity: ArrayLike | None = None,
    dt: ArrayLike | None = None,
    every: int = 48,
) -> tuple[Simulation, Field]:
    """A jet of 80 m/s around the Earth, in shallow water, which a bump of 120 m breaks into eddies.

        u = u₀/e_n exp[1/((φ − φ₀)(φ − φ₁))],   φ₀ = π/7, φ₁ = π/2 − π/7,   mean depth 10 km

    Four days of gravity waves, then, by day six, a row of eddies. Units are m and s; the state is vorticity,
    divergence and depth. Frames: `flow`, of the state, and `mass`, the integrals of its three parts.

    **Arguments:**

    - `truncation`: largest degree L of the harmonics.
    - `perturbation`: height of the bump, m; 0 for a jet that stays.
    - `viscosity`: ν of ∇⁴, m⁴/s; damps degree L in an hour if left out.
    - `dt`: s; 450 at L = 85, and inversely with L, if left out.
    - `every`: steps between frames.

    **Reference:** Galewsky, Scott & Polvani, Tellus A 56, 429 (2004), eq. 2–4.
    """
    grid = SphericalGrid(EARTH_RADIUS, truncation)
    law = SphericalShallowWater(
        EARTH_GRAVITY,
        EARTH_ROTATION,
        _hour_at_last_degree(truncation) if viscosity is None else viscosity,
    )
    south, north = np.pi / 7, np.pi / 2 - np.pi / 7
    peak = np.exp(-4 / (north - south) ** 2)

    def jet(longitude: Array, latitude: Array) -> tuple[Array, ArrayLike]:
        inside = (latitude > south) & (latitude < north)
        # 1/0 at the edges would reach derivatives through the branch that is not taken.
        product = jnp.where(inside, (latitude - south) * (latitude - north), -1.0)
        return jnp.where(inside, 80 / peak * jnp.exp(1 / product), 0.0), 0.0

    def bump(longitude: Array, latitude: Array) -> Array:
        around = jnp.mod(longitude + np.pi, 2 * np.pi) - np.pi
        shape = jnp.exp(-((3 * around) ** 2) - (15 * (np.pi / 4 - latitude)) ** 2)
        return jnp.cos(latitude) * shape

    @jax.jit  # one program: its many small operations would each be compiled by itself
    def start(law: SphericalShallowWater, perturbation: Array) -> Field:
        flow = law.balance(law.state(grid, jet, lambda longitude, latitude: 1e4))
        height = perturbation * Field.from_function(grid, bump).data
        return flow.replace(data=flow.data.at[2].add(height))

    simulation = _simulation(law, 450 * 85 / truncation if dt is None else dt, every)
    return simulation, start(law, jnp.asarray(perturbation, float))


@explain_system
def mountain_flow(
    truncation: int = 42,
    *,
    height: ArrayLike = 2000.0,
    viscosity: ArrayLike | None = None,
    dt: ArrayLike | None = None,
    every: int = 24,
) -> tuple[Simulation, Field]:
    """A westerly wind of 20 m/s that meets a cone of a mountain: waves spread over the Earth for weeks.

    Units are m and s; the state is vorticity, divergence and depth. Frames: `flow`, of the
    state, and `mass`, the integrals of its three parts.

    **Arguments:**

    - `truncation`: largest degree L of the harmonics.
    - `height`: of the mountain at 30° N, m.
    - `viscosity`: ν of ∇⁴, m⁴/s; damps degree L in an hour if left out.
    - `dt`: s; 900 at L = 42, and inversely with L, if left out.
    - `every`: steps between frames.

    **Reference:** Williamson et al., J. Comput. Phys. 102, 211 (1992), test case 5.
    """
    grid = SphericalGrid(EARTH_RADIUS, truncation)

    def mountain(longitude: Array, latitude: Array) -> Array:
        away = (longitude - 1.5 * np.pi) ** 2 + (latitude - np.pi / 6) ** 2
        return height * (1 - safe_minimum(jnp.sqrt(safe_maximum(away, 1e-30)) / (np.pi / 9), 1))

    law = SphericalShallowWater(
        EARTH_GRAVITY,
        EARTH_ROTATION,
        _hour_at_last_degree(truncation) if viscosity is None else viscosity,
        topography=Field.from_function(grid, mountain),
    )
    speed = 20.0

    def wind(longitude: Array, latitude: Array) -> tuple[Array, ArrayLike]:
        return speed * jnp.cos(latitude), 0.0

    def depth(longitude: Array, latitude: Array) -> Array:
        surface = (
            5960
            - (EARTH_RADIUS * EARTH_ROTATION * speed + speed**2 / 2)
            / EARTH_GRAVITY
            * jnp.sin(latitude) ** 2
        )
        return surface - mountain(longitude, latitude)

    return _simulation(law, 900 * 42 / truncation if dt is None else dt, every), law.state(
        grid, wind, depth
    )


@explain_system
def rossby_haurwitz_wave(
    truncation: int = 42, *, wavenumber: int = 4, dt: ArrayLike = 1800.0, every: int = 24
) -> tuple[Simulation, Field]:
    """Four waves around the Earth in flow without divergence, which travel eastward unchanged.

        ψ = −a²ω sin φ + a²K cosᴿφ sin φ cos Rλ,   ω = K = 7.848 · 10⁻⁶ 1/s
        angular speed [R (3 + R) ω − 2Ω] / [(1 + R)(2 + R)]

    Units are m and s; the state is the vorticity. Frames: `vorticity`.

    **Arguments:**

    - `truncation`: largest degree L of the harmonics, R + 1 or more.
    - `wavenumber`: R.
    - `dt`: s.
    - `every`: steps between frames.

    **Reference:** Haurwitz, J. Mar. Res. 3, 254 (1940); Williamson et al. (1992), test case 6.
    """
    if truncation <= wavenumber:
        raise ParameterError(
            f"a wave of wavenumber {wavenumber} has degree {wavenumber + 1}, which truncation={truncation} "
            "leaves out"
        )
    grid, law = SphericalGrid(EARTH_RADIUS, truncation), BarotropicVorticity(EARTH_ROTATION)
    rate, number = 7.848e-6, wavenumber

    def vorticity(longitude: Array, latitude: Array) -> Array:
        wave = jnp.cos(latitude) ** number * jnp.cos(number * longitude)
        return rate * jnp.sin(latitude) * (2 - (number**2 + 3 * number + 2) * wave)

    start = Field.from_function(grid, vorticity)
    frames = Every(every, vorticity=FieldValues())
    return Simulation(ETDRK4(law), dt=jnp.asarray(dt), observers=frames), start


def _hour_at_last_degree(truncation: int) -> float:
    """ν of ∇⁴ that damps the last degree by e in an hour."""
    return EARTH_RADIUS**4 / (truncation * (truncation + 1)) ** 2 / 3600


def _simulation(law: SphericalShallowWater, dt: ArrayLike, every: int) -> Simulation:
    frames = Every(every, flow=FieldValues(), mass=Integral())
    return Simulation(ETDRK4(law), dt=jnp.asarray(dt), observers=frames)
