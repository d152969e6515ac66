"""Sodium chloride is heated until it melts: ions with Ewald's sum and the potential of Fumi and Tosi, at 1 bar.

A perfect crystal has no surface from which it could melt: it does so some 300 K above the melting point
(measured 1074 K; by this potential about 1064 K). At one temperature, 1100 K, crystal and melt are compared:
the melt is a fifth less dense (1.47 and 1.86 g/cm³; measured, the melt has 1.54). In the crystal each shell of
neighbors has charges of one sign. In the melt shells are smeared out, but charges still order: where there are
more unlike ions there are fewer like ones.
Lengths in Å, energies in eV, masses in u. Fumi & Tosi, J. Phys. Chem. Solids 25, 31 (1964); melting by it:
Anwar, Frenkel & Noro, J. Chem. Phys. 118, 728 (2003); densities of the melt: Janz et al., NSRDS-NBS 15 (1968).
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
jax.config.update("jax_disable_most_optimizations", quick)  # compiles in half the time
metal = pk.units.metal
COLD, SAME, HOT = 300.0, 1100.0, 1800.0  # K
CELLS, CUTOFF, HEAT, HOLD = (2, 4.6, 300, 200) if quick else (3, 7.2, 40_000, 12_000)
DT = 1.5 * metal.femtosecond
GRAMS = 1.66053907  # g/cm³ of one u/Å³


class FumiTosi(pk.AbstractPairPotential):
    """U(r) = A exp(−r/ρ) − C/r⁶ − D/r⁸, by pairs of species."""

    repulsion: Float[Array, "..."] = pk.param()
    dipoles: Float[Array, "..."] = pk.param()
    quadrupoles: Float[Array, "..."] = pk.param()
    length: Float[Array, "..."] = pk.param(0.317)

    def energy(self, r):
        attraction = self.dipoles / r**6 + self.quadrupoles / r**8
        return self.repulsion * jnp.exp(-r / self.length) - attraction


pairs = FumiTosi(
    [[424.097, 1256.31], [1256.31, 3488.998]],
    [[1.05, 6.99], [6.99, 72.40]],
    [[0.499, 8.676], [8.676, 145.427]],
)
force = pk.Ewald(
    CUTOFF,
    coulomb_constant=metal.coulomb_constant,
    short_range=pk.Pairwise(pairs, CUTOFF, truncation="switch", tail=True),
)

sites = np.stack(np.meshgrid(*[np.arange(2 * CELLS)] * 3, indexing="ij"), -1).reshape(-1, 3)
species = sites.sum(axis=1) % 2
salt = pk.Particles(
    jnp.asarray(sites) * 5.64 / 2,
    mass=np.where(species == 0, 22.990, 35.453),
    charge=np.where(species == 0, 1.0, -1.0),
    species=species,
    species_names=("Na", "Cl"),
    space=pk.Box([CELLS * 5.64] * 3),
)
if quick:  # the waves of this box for all others, too: one program
    force = force.for_start(salt)


def rising(t):
    """K, from the first step of the heating on."""
    return COLD + (HOT - COLD) * jnp.clip(t / (DT * HEAT), 0, 1)


def density(now):
    return GRAMS * now.state.sum(now.state.mass) / now.state.space.volume


def at_one_bar(kelvin, *recorded):
    heat_bath = pk.VelocityRescaling(
        pk.VelocityVerlet(force), lambda t: kelvin(t) * metal.kelvin, 0.1 * metal.picosecond
    )
    barostat = pk.StochasticCellRescaling(
        heat_bath, metal.bar, 0.5 * metal.picosecond, 5e-6 / metal.bar, interval=5
    )
    seen = pk.Every(20, density=density, kelvin=lambda now: kelvin(now.t))
    return pk.Simulation(barostat, DT, [seen, *recorded])


heating = at_one_bar(rising)
held = at_one_bar(
    lambda t: SAME + 0 * t,
    *(
        pk.RadialDistribution(20, r_max=CUTOFF, bins=120, species=pair, name=name)
        for name, pair in (("Na Cl", (0, 1)), ("Na Na", (0, 0)))
    ),
)
crystal = pk.maxwell_boltzmann(0, salt, 2 * COLD * metal.kelvin)  # half becomes potential energy
heated = pk.run(held if quick else heating, crystal, HEAT, key=1)  # one program in quick mode

measured = np.array([1080.0, 1290.0])
with pk.plot.style():
    fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    axes[0].plot(
        heated["kelvin"], heated["density"], lw=0.8, color="#1d3557", label="heated at 1 bar"
    )
    axes[0].axvline(1074, color="#999999", lw=0.8, ls=":", label="melting point, measured")
    axes[0].plot(measured, 2.1393 - 0.543e-3 * measured, "k--", label="melt, measured")
    for name, ions, color in (("crystal", crystal, "#1d3557"), ("melt", heated.state, "#c1121f")):
        settled = pk.run(held, ions, HOLD, key=2)
        run = pk.run(held, settled.state, HOLD, key=3)
        found = np.mean(run["density"])
        print(f"{name} at {SAME:.0f} K: {found:.3f} g/cm³")
        axes[0].plot(SAME, found, "o", color=color, label=f"{name} at {SAME:.0f} K, {found:.2f}")
        for pair, style in (("Na Cl", "-"), ("Na Na", "--")):
            g = run[pair]
            axes[1].plot(g["r"], g["value"], style, color=color, label=f"{pair}, {name}")
    axes[0].set(xlabel="temperature / K", ylabel="density / g cm⁻³")
    axes[0].set_title("A perfect crystal melts late")
    axes[1].set(
        xlabel="r / Å", ylabel="g(r)", xlim=(2, CUTOFF), title=f"Order of charges at {SAME:.0f} K"
    )
    for ax in axes:
        ax.legend(fontsize=8)
    fig.savefig("molten_salt.png", dpi=150)
