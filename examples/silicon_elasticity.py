"""Elastic constants of silicon as second derivatives of its energy, by two potentials.

The energy is differentiated twice by the strain of the box and by the positions of the atoms. What atoms do
as the box is strained is part of the answer: without it C44 would be twice as large. The picture shows how
stiff a rod of silicon is in each direction of a cube's face. Published for Stillinger and Weber's
potential: 151.4, 76.4, 56.4 GPa (Cowley, Phys. Rev. Lett. 60, 2379 (1988)); measured: McSkimin & Andreatch,
J. Appl. Phys. 35, 2161 (1964).
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()
jax.config.update("jax_enable_x64", True)

GPA = 160.21766208  # of one eV/Å³
LATTICE = {"Stillinger–Weber": 5.431, "Tersoff": 5.432}
CELLS = 2
VOIGT = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))

fcc = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
diamond = np.concatenate([fcc, fcc + 0.25])
corners = np.stack(np.meshgrid(*[np.arange(CELLS)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
sites = (corners + diamond).reshape(-1, 3)


# Second derivatives of the energy by the strain, by the positions, and by both.
def elastic_constants(potential, lattice):
    """C = (E_εε − E_εx E_xx⁻¹ E_xε)/V, by Voigt's six strains."""
    vectors = CELLS * lattice * jnp.eye(3)
    crystal = pk.Particles(lattice * sites, space=pk.Triclinic(vectors))
    force = pk.ManyBody(potential)
    start = pk.init(pk.Simulation(pk.VelocityVerlet(force), 0.1), crystal)

    def energy(voigt, shift):
        strain = jnp.zeros((3, 3))
        for (a, b), e in zip(VOIGT, voigt, strict=True):
            strain = strain.at[a, b].add(e / 2).at[b, a].add(e / 2)
        x = crystal.position + shift
        space = pk.Triclinic(vectors + vectors @ strain)
        return force.energy(None, crystal.replace(position=x + x @ strain, space=space), lists)

    lists = force.init(start.state)
    zero = jnp.zeros(6), jnp.zeros_like(crystal.position)
    (ee, ex), (_, xx) = jax.jit(jax.hessian(energy, (0, 1)))(*zero)
    ex, xx = ex.reshape(6, -1), xx.reshape(ex.size // 6, -1)
    # Shifts of the whole crystal cost no energy: the inverse leaves them out.
    relaxed = ee - ex @ jnp.linalg.pinv(xx, rtol=1e-9) @ ex.T
    volume = (CELLS * lattice) ** 3
    return GPA * np.asarray(ee) / volume, GPA * np.asarray(relaxed) / volume


# Two potentials beside what was measured.
potentials = {
    "Stillinger–Weber": pk.potentials.StillingerWeber(),
    "Tersoff": pk.potentials.Tersoff(),
}
found = {"measured": (165.7, 63.9, 79.6)}
for name, potential in potentials.items():
    frozen, c = elastic_constants(potential, LATTICE[name])
    found[name] = c[0, 0], c[0, 1], c[3, 3]
    print(f"{name}: C11 {c[0, 0]:.1f}, C12 {c[0, 1]:.1f}, C44 {c[3, 3]:.1f} GPa", end="; ")
    print(f"C44 of atoms that follow the box {frozen[3, 3]:.1f}")

angle = np.linspace(0, 2 * np.pi, 361)
mixed = (np.cos(angle) * np.sin(angle)) ** 2
with pk.plot.style():
    fig = plt.figure(figsize=(4.8, 5.1), layout="constrained")
    ax = fig.add_subplot(projection="polar")
colors = {"measured": "#333333", "Stillinger–Weber": "#0072B2", "Tersoff": "#D55E00"}
for name, (c11, c12, c44) in found.items():
    # Young's modulus of a cubic crystal: compliances S11, S12, S44 (Nye, Physical Properties of Crystals).
    s11 = (c11 + c12) / ((c11 - c12) * (c11 + 2 * c12))
    s12 = -c12 / ((c11 - c12) * (c11 + 2 * c12))
    young = 1 / (s11 - 2 * (s11 - s12 - 0.5 / c44) * mixed)
    ax.plot(angle, young, color=colors[name], lw=4 if name == "measured" else 2, label=name,
            alpha=0.4 if name == "measured" else 1)  # fmt: skip
ax.set_rlim(0, 190)
ax.set_rticks([50, 100, 150])
ax.set_rlabel_position(0)
ax.set_title("Young's modulus of silicon / GPa, in the plane (001)")
fig.legend(loc="outside lower center", ncols=3, frameon=False)
fig.savefig("silicon_elasticity.png", dpi=150)
