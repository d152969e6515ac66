"""A plasma of electrons and ions as particles, and the frequency at which it oscillates."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.coupling import Electrostatics, ParticleMesh
from physkit.fit import fit
from physkit.geometry import Box, Grid
from physkit.integrators import VelocityVerlet
from physkit.observe import Every, KineticEnergy, PotentialEnergy, Snapshot
from physkit.particles import Particles
from physkit.simulate import Simulation

from .._arguments import explain_system

MASS_RATIO = 25.0
_LENGTH = 2 * np.pi


class Ringing(NamedTuple):
    """A sinusoid fitted to the electrons: frequency, its standard error, and what theory says.

    - `curve`: `[t]`, the sinusoid itself.
    """

    frequency: float
    error: float
    theory: float
    curve: np.ndarray


@explain_system
def two_species_plasma(
    mass_ratio: ArrayLike = MASS_RATIO,
    *,
    particles: int = 8192,
    cells: int = 128,
    amplitude: float = 0.005,
    dt: float = 0.05,
) -> tuple[Simulation, dict[str, Particles]]:
    """A cold plasma on a line, its electrons displaced by `amplitude`·sin x against resting ions.

        ω² = ω_e² + ω_i² = ω_e² (1 + m_e/m_i)

    Electrons of mass 1 and ions of mass `mass_ratio`, both as particles that deposit on one mesh and feel
    it; ω_e = 1. Recorded each step: the longest wave of either species, δn/n (`"electrons"`, `"ions"`),
    and the energies.

    **Arguments:**

    - `mass_ratio`: m_i/m_e.
    - `particles`: of each species. `cells`: of the mesh, on a line of length 2π.
    - `amplitude`: of the displacement, length; above some 0.02, ions gather and the frequency shifts.

    **Reference:** Tonks & Langmuir, Phys. Rev. 33, 195 (1929).
    """
    box = Box(jnp.full(1, _LENGTH))
    uniform = (jnp.arange(particles, dtype=float) + 0.5) * (_LENGTH / particles)
    charge = jnp.sqrt(_LENGTH / particles)  # n q²/m = 1 for electrons of mass q² n = 1
    weight = charge * charge * particles / _LENGTH
    # δn/n = −dξ/dx: displaced by ξ = A sin x, the electrons form the density wave −A cos x.
    electrons = Particles(
        (uniform + amplitude * jnp.sin(uniform))[:, None] % _LENGTH,
        mass=weight,
        charge=-charge,
        space=box,
    )
    ions = Particles(
        uniform[:, None], mass=weight * jnp.asarray(mass_ratio), charge=charge, space=box
    )
    # Ions start at rest and undisplaced: electrons pull them along, which shifts ω by half m_e/m_i.
    mesh = ParticleMesh(Grid(box, (cells,)), Electrostatics(1.0), component=("electrons", "ions"))
    observers = Every(
        1,
        electrons=_longest_wave("electrons"),
        ions=_longest_wave("ions"),
        kinetic=KineticEnergy(),
        potential=PotentialEnergy(),
    )
    sim = Simulation(VelocityVerlet(mesh), dt=dt, observers=observers)
    return sim, {"electrons": electrons, "ions": ions}


def ringing(time: ArrayLike, wave: ArrayLike, mass_ratio: float = MASS_RATIO) -> Ringing:
    """The frequency of `wave` `[t]`: the least-squares sinusoid about a constant."""
    time, wave = jnp.asarray(time), jnp.asarray(wave)
    size = jnp.max(jnp.abs(wave))  # all numbers of the fit are then of order 1

    def sinusoid(p: dict[str, Array]) -> Float[Array, " t"]:
        return (
            p["cos"] * jnp.cos(p["omega"] * time)
            + p["sin"] * jnp.sin(p["omega"] * time)
            + p["mean"]
        )

    # ω_e, 2 % below ω for the default ions; electrons start at rest, so the wave is a cosine at first.
    start = {
        "omega": jnp.ones(()),
        "cos": wave[0] / size,
        "sin": jnp.zeros(()),
        "mean": jnp.zeros(()),
    }
    fitted = fit(
        lambda p: sinusoid(p) - wave / size, start, where=lambda p: p, progress=False
    ).check()
    return Ringing(
        frequency=float(fitted.values["omega"]),
        error=float(fitted.error("omega")),
        theory=float(np.sqrt(1 + 1 / mass_ratio)),
        curve=np.asarray(size * jax.jit(sinusoid)(fitted.model)),
    )


@functools.cache  # one function for each name: a program would be compiled anew for another
def _longest_wave(name: str):
    def read(now: Snapshot) -> Float[Array, ""]:
        # Twice the cosine's mean: the amplitude δn/n of the wave as long as the box.
        species = now.state[name]
        k = 2 * jnp.pi / species.space.lengths[0]
        return 2 * jnp.mean(jnp.cos(k * species.position[:, 0]))

    return read
