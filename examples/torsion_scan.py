"""Torsions fitted to a scan of energies: six numbers with their standard errors.

A force field is mended most often at its torsions: a bond is turned, a better method gives the energies along
the turn, and cosines take up the difference. Here a peptide turns by ψ at three values of φ. The better method
is Amber 19, whose torsion map was fitted to quantum chemistry; what is mended is Amber 14, by
k [1 + cos(n ψ − φ₀)] for n = 1, 2, 3. What three cosines of one angle cannot say of a map of two is the
residual, from which the standard errors come.
Tian et al., J. Chem. Theory Comput. 16, 528 (2020).
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from openmm import app

import physkit as pk
from physkit.core import Clock, StepCount
from physkit.particles.forces import Forces

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ  # a coarser scan of a peptide that was not relaxed
jax.config.update("jax_disable_most_optimizations", QUICK)  # compiles in half the time
pdb = app.PDBFile(str(pk.systems.alanine_dipeptide_pdb()))
names = [f"{atom.residue.name} {atom.name}" for atom in pdb.topology.atoms()]
C0, N, CA, C, N2 = (names.index(x) for x in ("ACE C", "ALA N", "ALA CA", "ALA C", "NME N"))


def force_field(name):
    system = app.ForceField(name).createSystem(pdb.topology)
    return pk.interop.from_openmm(system, pdb.topology, pdb.positions)


peptide, amber14 = force_field("amber14-all.xml")
_, amber19 = force_field("amber19-all.xml")


def turn(x, start, end, members, angle):
    """Positions whose `members` are turned about the axis from one atom to another."""
    axis = (x[end] - x[start]) / np.linalg.norm(x[end] - x[start])
    arm, turned = x[members] - x[end], x.copy()
    along = np.outer(arm @ axis, axis)
    turned[members] = (
        x[end] + along + (arm - along) * np.cos(angle) + np.cross(axis, arm) * np.sin(angle)
    )
    return turned


@jax.jit
def energies(force, conformations):
    clock = Clock.at(StepCount.of(0), 0.0, 1.0)

    def energy(x):
        return sum(term.energy(clock, peptide.replace(position=x)) for term in force.terms)

    return jax.vmap(energy)(conformations)


@jax.jit
def torsions(conformations):
    angle = pk.sampling.Torsion(N, CA, C, N2)
    return jax.vmap(lambda x: angle(peptide.replace(position=x)))(conformations)


beyond_psi = [k for k, name in enumerate(names) if name == "ALA O" or name.startswith("NME")]
beyond_phi = [k for k, name in enumerate(names) if k > CA]
steps, shifts = np.radians(np.arange(0, 360, 45 if QUICK else 15)), np.radians([-25.0, 0.0, 25.0])
start = peptide if QUICK else pk.minimize(amber14, peptide).state
relaxed = np.asarray(start.position)
scan = jnp.asarray([
    turn(turn(relaxed, N, CA, beyond_phi, a), CA, C, beyond_psi, b) for a in shifts for b in steps
])  # fmt: skip
psi, target, before = torsions(scan), energies(amber19, scan), energies(amber14, scan)

mend = pk.PeriodicTorsions([[N, CA, C, N2]] * 3, [0.1] * 3, [1, 2, 3], [0.0] * 3)
model = {"torsions": mend, "offset": jnp.mean(target - before)}


def residuals(model):
    return before + energies(Forces((model["torsions"],)), scan) + model["offset"] - target


def free(model):
    torsions = model["torsions"]
    return {"k": torsions.stiffness, "phase": torsions.phase, "offset": model["offset"]}


found = pk.fit(residuals, model, where=free, progress=False)
print(found)
after = residuals(found.model) + target
degrees = (np.degrees(psi) % 360).reshape(3, -1)
wanted, fitted = (np.asarray(x - before - jnp.mean(target - before)) for x in (target, after))
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained")
for row, (shift, color) in enumerate(zip(np.degrees(shifts), ("#2a9d8f", "#457b9d", "#e76f51"))):
    label = f"φ turned by {shift:+.0f}°".replace("-", "−") if shift else "φ as it is"
    left.plot(degrees[row], wanted.reshape(3, -1)[row], "o", ms=4, color=color, label=label)
# Cosines of ψ alone are the same for every φ.
order = np.argsort(degrees[1])
left.plot(
    degrees[1, order], fitted.reshape(3, -1)[1, order], color="#333333", label="three cosines"
)
left.set(
    xlabel="ψ / °", ylabel="difference of energies / (kJ/mol)", xticks=np.arange(0, 361, 60),
    ylim=(-11, 15), title="Amber 19 less Amber 14",
)  # fmt: skip
left.legend(frameon=False, fontsize=8, loc="upper center", ncols=2)
k, error = np.asarray(found.values["k"]), np.asarray(found.standard_errors["k"])
right.bar([1, 2, 3], k, color="#a8dadc", width=0.6)
right.errorbar([1, 2, 3], k, 2 * error, fmt="none", color="#1d3557", capsize=5, lw=1.5)
right.axhline(0, color="#333333", lw=0.8)
off = float(jnp.sqrt(jnp.mean((after - target) ** 2)))
was = float(jnp.std(target - before))
right.set(
    xlabel="n", ylabel="k / (kJ/mol)", xticks=[1, 2, 3],
    title=f"k ± 2 σ; residual {was:.2f} before, {off:.2f} kJ/mol after",
)  # fmt: skip
fig.savefig("torsion_scan.png", dpi=150)
