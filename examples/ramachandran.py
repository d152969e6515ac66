"""The free energy of alanine dipeptide by its two torsions φ and ψ: the Ramachandran plot, from forces alone.

Amber 14 in vacuum at 300 K. Well-tempered metadynamics fills the basins with hills until the peptide crosses
the barriers between them, which are up to 15 k_B T high; F is what the hills have filled, times γ/(γ − 1).
In vacuum the basins C7eq, where a hydrogen bond closes a ring of seven atoms, and C5 hold nearly everything,
C7ax lies higher, and the helix (−60°, −45°) is none without water. Takes two minutes on one core.
Barducci, Bussi & Parrinello, Phys. Rev. Lett. 100, 020603 (2008).
"""

import os

import jax
import matplotlib.pyplot as plt
import numpy as np
from openmm import app

import physkit as pk
from physkit import sampling

pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
jax.config.update("jax_disable_most_optimizations", QUICK)  # compiles in half the time
TEMPERATURE = 300 * pk.units.molecular.kelvin
STEPS, HILL = 1_800 if QUICK else 600_000, 150

pdb = app.PDBFile(str(pk.systems.alanine_dipeptide_pdb()))
names = [f"{atom.residue.name} {atom.name}" for atom in pdb.topology.atoms()]
C0, N, CA, C, N2 = (names.index(x) for x in ("ACE C", "ALA N", "ALA CA", "ALA C", "NME N"))
system = app.ForceField("amber14-all.xml").createSystem(pdb.topology, constraints=app.HBonds)
peptide, force = pk.interop.from_openmm(system, pdb.topology, pdb.positions)
if not QUICK:  # one program less; the peptide of the file is nearly at rest
    peptide = pk.minimize(force, peptide).state
peptide = pk.particles.constrain(peptide)
peptide = pk.maxwell_boltzmann(0, peptide, TEMPERATURE)

turns = sampling.Torsion(C0, N, CA, C), sampling.Torsion(N, CA, C, N2)
bias = sampling.GridBias(turns, (-np.pi, -np.pi), nodes=(72, 72))
motion = pk.Metadynamics(
    pk.BAOAB(force + bias, temperature=TEMPERATURE, friction=2.0),
    height=1.5,
    width=0.3,
    bias_factor=10.0,
    interval=HILL,
)
record = [
    pk.Every(HILL, angles=sampling.CollectiveVariables()),
    pk.Every(4 * HILL, F=sampling.MetadynamicsFreeEnergy()),
]
run = pk.run(pk.Simulation(motion, dt=0.002, observers=record), peptide, STEPS, key=1)

# The mean over the second half of the run; how far its maps scatter says how good it is.
maps = np.asarray(run["F"])
maps = maps[len(maps) // 2 :: 20 if not QUICK else 1]
maps = maps - maps.min(axis=(1, 2), keepdims=True)
free_energy = maps.mean(axis=0)
free_energy -= free_energy.min()
angles = np.degrees(np.asarray(run["angles"]))
nodes = np.degrees(-np.pi + 2 * np.pi / 72 * np.arange(73))
wrapped = np.pad(free_energy, (0, 1), mode="wrap")

low = free_energy < 20
print(f"scatter of F below 20 kJ/mol: {maps.std(axis=0)[low].mean():.1f} kJ/mol")

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
levels = np.arange(0, 61, 4)
shown = left.contourf(nodes, nodes, wrapped.T, levels, cmap="viridis", extend="max")
left.contour(nodes, nodes, wrapped.T, levels, colors="white", linewidths=0.4)
fig.colorbar(shown, ax=left, label="F / (kJ/mol)", shrink=0.85)
for name, at in (("C7eq", (-76, 60)), ("C7ax", (62, -45)), ("C5", (-153, 162))):
    left.annotate(name, at, color="white", ha="center", va="center", weight="bold")
left.set(title="F of alanine dipeptide in vacuum, Amber 14")
time = 0.002 * HILL * np.arange(len(angles))
dots = right.scatter(*angles.T, c=time, s=2, cmap="cividis", rasterized=True)
fig.colorbar(dots, ax=right, label="time / ps", shrink=0.85)
right.set(title="Where the peptide has been")
for ax in (left, right):
    ax.set(xlabel="φ / °", ylabel="ψ / °", xlim=(-180, 180), ylim=(-180, 180), aspect="equal")
    ax.set(xticks=range(-180, 181, 60), yticks=range(-180, 181, 60))
fig.savefig("ramachandran.png", dpi=150)
