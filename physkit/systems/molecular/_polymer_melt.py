"""The polymer melt of Kremer and Grest: bead–spring chains."""

import math

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, Int

from physkit.core import ParameterError, data, static
from physkit.geometry import Box
from physkit.integrators import BAOAB
from physkit.observe import AbstractQuantity, Every, Pressure, Snapshot
from physkit.particles import Particles, maxwell_boltzmann
from physkit.particles.forces import WCA, FENEBonds, Pairwise
from physkit.simulate import Simulation

from .._arguments import explain_system


@explain_system
def kremer_grest_melt(
    beads: int = 10,
    *,
    cells: tuple[int, int, int] = (10, 10, 10),
    density: ArrayLike = 0.85,
    temperature: ArrayLike = 1.0,
    friction: ArrayLike = 0.5,
    dt: ArrayLike = 0.01,
    every: int = 100,
    dtype: DTypeLike = float,
    key: Array | None = None,
) -> tuple[Simulation, Particles]:
    """A melt of flexible chains: repulsive beads, and bonds that cannot break.

        U = Σ_pairs U_WCA(r) − ½ Σ_bonds k R² ln(1 − (r/R)²),   k = 30, R = 1.5

    Reduced units ε = σ = m = 1. Chains cannot cross. At the start they are pieces of one line that winds
    through a simple cubic lattice, so that no beads overlap; they forget it within some 2 `beads`² time units,
    whose frames should be left out. Records, every so many steps, `chains` – `bond` (mean length), `end_to_end`
    (mean square distance of the ends), `cosine` (between successive bonds) – and `pressure`.

    Published at density 0.85 and temperature 1: bonds of 0.97, a pressure of about 5, and for long chains
    ⟨R²⟩/((N − 1) b²) of 1.75 to 1.88, less for short ones.

    **Arguments:**

    - `beads`: of a chain, N. `cells`: lattice sites along each axis; their number is a multiple of `beads`.
    - `friction`: of the Langevin thermostat.

    **Errors:** `ParameterError` for sites that cannot be divided into chains.

    **Reference:** Kremer & Grest, J. Chem. Phys. 92, 5057 (1990); Auhl et al., J. Chem. Phys. 119, 12718
    (2003).
    """
    total = math.prod(cells)
    if total % beads or beads < 2:
        raise ParameterError(
            f"kremer_grest_melt: {total} sites cannot be divided into chains of {beads} beads: choose cells "
            "whose product is a multiple of beads, and beads from 2"
        )
    spacing = float(density) ** (-1 / 3)
    sites = (_winding_line(cells) + 0.5) * spacing
    chains = np.arange(total).reshape(-1, beads)
    bonds = np.stack([chains[:, :-1], chains[:, 1:]], axis=-1).reshape(-1, 2)
    melt = Particles(jnp.asarray(sites, dtype), space=Box(spacing * np.asarray(cells, float)))
    melt = maxwell_boltzmann(0 if key is None else key, melt, temperature)
    force = Pairwise(WCA(), 2 ** (1 / 6), skin=0.4) + FENEBonds(bonds)

    record = Every(every, chains=_Conformation(bonds, len(chains)), pressure=Pressure())
    thermostat = BAOAB(force, temperature=temperature, friction=friction)
    return Simulation(thermostat, dt=dt, observers=record), melt


def _winding_line(cells: tuple[int, int, int]) -> Float[np.ndarray, "n 3"]:
    """All sites of a lattice, so that each is next to the one before."""
    sites = []
    for i in range(cells[0]):
        rows = range(cells[1]) if i % 2 == 0 else reversed(range(cells[1]))
        for j in rows:
            turn = len(sites) // cells[2] % 2
            columns = reversed(range(cells[2])) if turn else range(cells[2])
            sites.extend((i, j, k) for k in columns)
    return np.array(sites, float)


class _Conformation(AbstractQuantity):
    """Means over all chains, whose bonds follow one another in `bonds`."""

    bonds: Int[Array, "b 2"] = data()
    chains: int = static()

    def __call__(self, snapshot: Snapshot) -> dict[str, Float[Array, ""]]:
        x = snapshot.state.position
        steps = snapshot.state.space.displacement(x[self.bonds[:, 1]], x[self.bonds[:, 0]])
        length = jnp.linalg.norm(steps, axis=1)
        # (chains, bonds, 3); the nearest image of each bond, whatever cell its ends are in.
        along = steps.reshape(self.chains, -1, 3)
        unit = along / length.reshape(self.chains, -1, 1)
        return {
            "bond": jnp.mean(length),
            "end_to_end": jnp.mean(jnp.sum(jnp.sum(along, axis=1) ** 2, axis=1)),
            "cosine": jnp.mean(jnp.sum(unit[:, 1:] * unit[:, :-1], axis=2)),
        }
