"""Boxes of Lennard-Jones fluid at one temperature, and the fluid's published equation of state."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from physkit.integrators import BAOAB
from physkit.observe import Every, PotentialEnergy, Pressure, Snapshot
from physkit.particles import Particles, lattice, maxwell_boltzmann
from physkit.particles.forces import LennardJones, Pairwise
from physkit.simulate import Simulation

from .._arguments import explain_system

# Johnson, Zollweg & Gubbins 1993, table 10.
_X = (
    0.8623085097507421, 2.976218765822098, -8.402230115796038, 0.1054136629203555,
    -0.8564583828174598, 1.582759470107601, 0.7639421948305453, 1.753173414312048,
    2.798291772190376e3, -4.8394220260857657e-2, 0.9963265197721935, -3.698000291272493e1,
    2.084012299434647e1, 8.305402124717285e1, -9.574799715203068e2, -1.477746229234994e2,
    6.398607852471505e1, 1.603993673294834e1, 6.805916615864377e1, -2.791293578795945e3,
    -6.245128304568454, -8.116836104958410e3, 1.488735559561229e1, -1.059346754655084e4,
    -1.131607632802822e2, -8.867771540418822e3, -3.986982844450543e1, -4.689270299917261e3,
    2.593535277438717e2, -2.694523589434903e3, -7.218487631550215e2, 1.721802063863269e2,
)  # fmt: skip
_GAMMA = 3.0  # of the paper: the nonlinear parameter, chosen and not fitted


class FluidState(NamedTuple):
    """Pressure and potential energy per atom of the Lennard-Jones fluid, reduced units."""

    pressure: Any
    energy: Any


def lennard_jones_equation_of_state(density: ArrayLike, temperature: ArrayLike) -> FluidState:
    """The equation of state of Johnson, Zollweg and Gubbins for the whole Lennard-Jones fluid.

        A/N = Σ₁⁸ aᵢ(T) ρⁱ/i + Σ₁⁶ bᵢ(T) Gᵢ(ρ),   p = ρT + ρ² ∂(A/N)/∂ρ,   U/N = A/N − T ∂(A/N)/∂T

    A modified Benedict–Webb–Rubin form with 32 numbers fitted to simulations; p and U are derivatives of
    one free energy. Arguments of one shape, reduced units.

    **Good values:** 0.7 ≤ T ≤ 6, ρ ≤ 1.2, outside of the region where liquid and vapor coexist: above
    the critical temperature of 1.313, all.

    **Notes:** good to about 0.02 in p and 0.5 % in U in a liquid; of the full potential, without cutoff.

    **Reference:** Johnson, Zollweg & Gubbins, Mol. Phys. 78, 591 (1993), tables 5–10.
    """
    density, temperature = (jnp.asarray(x, float) for x in (density, temperature))
    shape = jnp.broadcast_shapes(density.shape, temperature.shape)
    flat = (jnp.broadcast_to(x, shape).ravel() for x in (density, temperature))
    return FluidState(*(x.reshape(shape) for x in _states(*flat)))


# State by state: the free energy that is differentiated is one number.
@jax.jit
@jax.vmap
def _states(rho: Array, t: Array) -> tuple[Array, Array]:
    free, (by_density, by_temperature) = jax.value_and_grad(_free_energy, (0, 1))(rho, t)
    return rho * t + rho**2 * by_density, free - t * by_temperature


def _free_energy(rho: Array, t: Array) -> Array:
    """Excess of the Helmholtz energy over the ideal gas, per atom."""
    x = (0.0, *_X)  # numbered from 1, as in the paper
    a = (
        x[1] * t + x[2] * jnp.sqrt(t) + x[3] + x[4] / t + x[5] / t**2,
        x[6] * t + x[7] + x[8] / t + x[9] / t**2,
        x[10] * t + x[11] + x[12] / t,
        x[13],
        x[14] / t + x[15] / t**2,
        x[16] / t,
        x[17] / t + x[18] / t**2,
        x[19] / t**2,
    )
    b = (
        x[20] / t**2 + x[21] / t**3,
        x[22] / t**2 + x[23] / t**4,
        x[24] / t**2 + x[25] / t**3,
        x[26] / t**2 + x[27] / t**4,
        x[28] / t**2 + x[29] / t**3,
        x[30] / t**2 + x[31] / t**3 + x[32] / t**4,
    )
    # G₁ … G₆ of table 9, by their recursion.
    gaussian = jnp.exp(-_GAMMA * rho**2)
    g = [(1 - gaussian) / (2 * _GAMMA)]
    for k in range(1, 6):
        g.append(-(gaussian * rho ** (2 * k) - 2 * k * g[-1]) / (2 * _GAMMA))
    polynomial = sum(a_i * rho ** (i + 1) / (i + 1) for i, a_i in enumerate(a))
    return polynomial + sum(b_i * g_i for b_i, g_i in zip(b, g, strict=True))


@explain_system
def lennard_jones_box(
    density: ArrayLike = 0.7,
    temperature: ArrayLike = 1.5,
    *,
    cells: int = 3,
    cutoff: float = 2.2,
    capacity: int | None = None,
    dt: ArrayLike = 0.005,
    every: int = 20,
    dtype: DTypeLike = float,
    key: Array | None = None,
) -> tuple[Simulation, Particles]:
    """A box of Lennard-Jones fluid with a Langevin thermostat: one point of its equation of state.

    4·cells³ atoms, at first on a crystal's sites, with a plain cutoff and tail corrections. Records
    `pressure` and `energy`, the potential energy per atom, every so many steps; leave out the frames
    before it has melted, some 10 time units.

    **Arguments:**

    - `density`, `temperature`: reduced; of the state and of the thermostat.
    - `cells`: crystal cells along each edge. 3 are enough for a cutoff of 2.2 up to density 0.85.
    - `capacity`: of the neighbor list, per atom, with 4 cells or more; for sweeps over density:
      72 up to 0.85. Smaller boxes keep no neighbor list.
    - `every`: steps between frames.

    **Reference:** `lennard_jones_equation_of_state`.
    """
    sites, box = lattice.face_centered_cubic(cells, density=density)
    atoms = Particles(jnp.asarray(sites, dtype), space=box)
    atoms = maxwell_boltzmann(0 if key is None else key, atoms, temperature)
    # Up to 3 cells a list of cutoff and skin holds most pairs anyway; all pairs need no rebuilds.
    pairs = {"skin": 0.3, "capacity": capacity} if cells > 3 else {"use_neighbor_list": False}
    force = Pairwise(LennardJones(), cutoff, truncation="plain", tail=True, **pairs)
    record = Every(every, pressure=Pressure(), energy=_energy_per_atom)
    thermostat = BAOAB(force, temperature=temperature, friction=1.0)
    return Simulation(thermostat, dt=dt, observers=record), atoms


def _energy_per_atom(now: Snapshot) -> Float[Array, ""]:
    return PotentialEnergy()(now) / now.state.num_particles
