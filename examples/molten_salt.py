"""Sodium chloride, solid and molten: ions with Ewald's sum and the repulsion of Fumi and Tosi.

In the crystal each shell of neighbors has charges of one sign. In the melt at 1500 K, 28 % less dense,
shells are smeared out, but charges still order: where there are more unlike ions there are fewer like ones.
Lengths in Å, energies in eV, masses in u (Fumi & Tosi, J. Phys. Chem. Solids 25, 31 (1964); without their
r⁻⁸ terms).
"""

import os

import jax
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
KELVIN, FEMTOSECOND = 8.617333e-5, 1 / 10.180506  # eV; Å √(u/eV)
repulsion = pk.potentials.Buckingham(
    [[424.097, 1256.31], [1256.31, 3488.998]], 0.317, [[1.05, 6.99], [6.99, 72.40]]
)


def salt(cells, edge, temperature):
    """Ions on the sites of rock salt; half of their kinetic energy will become potential energy."""
    sites = np.stack(np.meshgrid(*[np.arange(2 * cells)] * 3, indexing="ij"), -1).reshape(-1, 3)
    species = sites.sum(axis=1) % 2
    ions = pk.Particles(
        sites * edge / 2,
        mass=np.where(species == 0, 22.990, 35.453),
        charge=np.where(species == 0, 1.0, -1.0),
        species=species,
        space=pk.Box([cells * edge] * 3),
    )
    return pk.maxwell_boltzmann(jax.random.key(0), ions, 2 * temperature * KELVIN)


cells, steps = (2, 150) if quick else (3, 1000)
cutoff = 0.48 * cells * 5.64
force = pk.Pairwise(repulsion, cutoff) + pk.Ewald(cutoff, coulomb_constant=14.399645)
pairs = {"Na Cl": (0, 1), "Na Na": (0, 0)}
record = [
    pk.RadialDistribution(10, r_max=cutoff, bins=120, species=pair, name=name)
    for name, pair in pairs.items()
]

fig, axes = plt.subplots(2, sharex=True, figsize=(7, 6), layout="constrained")
cases = (("crystal at 300 K", 5.64, 300.0), ("melt at 1500 K", 6.30, 1500.0))
for ax, (title, edge, temperature) in zip(axes, cases, strict=True):
    heat_bath = pk.BAOAB(force, temperature=temperature * KELVIN, friction=0.02)
    ions = salt(cells, edge, temperature)
    warm = pk.run(pk.Simulation(heat_bath, 1.5 * FEMTOSECOND), ions, steps, key=jax.random.key(1))
    sim = pk.Simulation(heat_bath, 1.5 * FEMTOSECOND, record)
    run = pk.run(sim, warm.state, steps, key=jax.random.key(2))
    for name, color in zip(pairs, ("#1d3557", "#c1121f"), strict=True):
        ax.plot(run[name]["r"], run[name]["value"], color=color, label=name)
    ax.set(ylabel="g(r)", title=title, xlim=(2, cutoff))
axes[0].legend(frameon=False)
axes[1].set_xlabel("r / Å")
fig.savefig("molten_salt.png", dpi=150)
