"""Waves in plasmas of particles on a mesh, started without noise."""

import math

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from physkit.coupling import TSC, ParticleMesh
from physkit.geometry import Box, Grid
from physkit.integrators import VelocityVerlet
from physkit.observe import Every, FieldEnergy, ModeAmplitude, TotalEnergy
from physkit.particles import Particles
from physkit.simulate import Simulation

from .._arguments import explain_system

# The least damped root of 1 + [1 + ζ Z(ζ)]/(kλ_D)² = 0 at kλ_D = 0.5, in units of the plasma frequency.
LANDAU_FREQUENCY = 1.41566189
LANDAU_DAMPING = -0.15335947
_FEWEST_BEAMS = 8  # over ±5 v_T: their mean square speed is v_T² to 3·10⁻³


@explain_system
def plasma_wave(
    wavenumber: float = 0.5,
    *,
    amplitude: float = 0.01,
    count: int = 40_000,
    cells: int = 32,
    dt: ArrayLike = 0.1,
    thermal_speed: float = 1.0,
    dtype: DTypeLike = float,
) -> tuple[Simulation, Particles]:
    """Electrons before resting ions, one wave long, pushed together by a small cosine.

        f(x, v) = (1 + α cos kx) exp(−v²/2v_T²) / √(2π) v_T

    In units of the plasma frequency and, for v_T = 1, the Debye length. A quiet start: places and
    velocities form a lattice, weighted with f, so that nothing but the wave is there.
    Records the wave's amplitude (`wave`, complex) and the energies every step.

    **Arguments:**

    - `wavenumber`: k; the box is 2π/k long.
    - `amplitude`: α.
    - `count`, `cells`: of particles and mesh; 16 particles a cell or more for a warm plasma.
    - `thermal_speed`: v_T; 0 for a cold plasma, which oscillates at the plasma frequency.
    - `dtype`: precision of the state.
    """
    length = 2 * math.pi / wavenumber
    # Fewer beams than eight are no Maxwellian: of few particles more share a place.
    beams = min(max(_FEWEST_BEAMS, count // (2 * cells)), count) if thermal_speed else 1
    per_beam = count // beams
    # Positions x with ∫₀ˣ (1 + α cos kx′) dx′ = `uniform`, the same in every beam: Newton's method, which
    # for α ≪ 1 converges in a few rounds.
    uniform = length * (np.arange(per_beam) + 0.5) / per_beam
    x = uniform
    for _ in range(20):
        residual = x + amplitude / wavenumber * np.sin(wavenumber * x) - uniform
        x = x - residual / (1 + amplitude * np.cos(wavenumber * x))
    # Beams of equal distance up to 5 v_T, beyond which a Maxwellian has 10⁻⁶ of its particles; their
    # weights, not their number, follow f.
    speed = np.linspace(-5, 5, beams) if beams > 1 else np.zeros(1)
    maxwellian = np.exp(-(speed**2) / 2)
    weight = np.repeat(maxwellian / np.sum(maxwellian) * length / per_beam, per_beam)
    box = Box(jnp.asarray([length], dtype))
    electrons = Particles(
        jnp.asarray(np.tile(x % length, beams)[:, None], dtype),
        np.repeat(thermal_speed * speed, per_beam)[:, None],
        weight,
        box,
        charge=-weight,
    )
    mesh = ParticleMesh(Grid(box, (cells,)), kernel=TSC(), deconvolved=True)
    record = Every(1, wave=ModeAmplitude(1), field=FieldEnergy(), energy=TotalEnergy())
    return Simulation(VelocityVerlet(mesh), dt=dt, observers=record), electrons


@explain_system
def landau_damping(count: int = 20_000) -> tuple[Simulation, Particles]:
    """A Langmuir wave of kλ_D = 0.5 that damps without collisions.

    It oscillates with ω = 1.41566189 and falls as exp(−0.15335947 t), until the ordered velocities of
    the start are in phase again, at t = 2π/(k Δv).

    **Reference:** Landau, J. Phys. USSR 10, 25 (1946); roots of the plasma dispersion function in
    Birdsall & Langdon (1991), section 5-15.
    """
    return plasma_wave(0.5, amplitude=0.02, count=count)


@explain_system
def plasma_oscillation(thermal_speed: float = 0.0) -> tuple[Simulation, Particles]:
    """A long wave, k = 0.1: ω² = 1 + 3k²v_T² (Bohm and Gross), ω = 1 for the cold plasma.

    **Reference:** Bohm & Gross, Phys. Rev. 75, 1851 (1949).
    """
    return plasma_wave(0.1, amplitude=0.01, count=20_000, dt=0.05, thermal_speed=thermal_speed)


@explain_system
def two_stream(
    count: int = 40_000, *, cells: int = 64, speed: float = 1.0, dtype: DTypeLike = float
) -> tuple[Simulation, dict[str, Particles]]:
    """Two cold beams of electrons through each other, and the vortices that they roll up into.

        1 = ½/(ω − ku)² + ½/(ω + ku)²

    Each beam is a component; both act on the one mesh. The box holds the fastest growing wave,
    ku = √(3/8), which grows as exp(t/√8).

    **Reference:** Birdsall & Langdon (1991), section 5-6 and 5-9.
    """
    # The maximum of the growth rate over k, in units of the plasma frequency of both beams together.
    k = math.sqrt(3 / 8) / speed
    length = 2 * math.pi / k
    box = Box(jnp.asarray([length], dtype))
    uniform = (np.arange(count // 2) + 0.5) / (count // 2) * length

    def beam(direction):
        x = uniform + 1e-3 * direction * np.sin(k * uniform)
        # Density ½ a beam: together they have plasma frequency 1.
        position, weight = jnp.asarray(x[:, None] % length, dtype), length / count
        return Particles(position, direction * speed, weight, box, charge=-weight)

    mesh = ParticleMesh(Grid(box, (cells,)), kernel=TSC(), component=("right", "left"))
    record = Every(1, wave=ModeAmplitude(1), field=FieldEnergy(), energy=TotalEnergy())
    simulation = Simulation(VelocityVerlet(mesh), dt=0.1, observers=record)
    return simulation, {"right": beam(1.0), "left": beam(-1.0)}
