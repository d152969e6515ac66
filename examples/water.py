"""Liquid water, SPC/E: density, structure, diffusion and dielectric constant of 216 rigid molecules.

A lattice melts; then the liquid is held at 298 K and 1 bar for its density, and at the published volume for all
else. D is corrected for the periodic cube (Yeh & Hummer, J. Phys. Chem. B 108, 15873 (2004)). Each of the two
runs of 200 ps takes about half an hour on one core; both are kept in the folder `water`, and what is stopped
goes on from there when the script is started again. The picture is that of the first fifth. The dielectric
constant wants ten times as long as all, as its error bar says.
Berendsen, Grigera & Straatsma, J. Phys. Chem. 91, 6269 (1987); Vega & Abascal, PCCP 13, 19663 (2011).
"""

import os

import equinox as eqx
import jax
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
jax.config.update("jax_disable_most_optimizations", QUICK)  # compiles in half the time
molecular = pk.units.molecular
TEMPERATURE, VISCOSITY = 298 * molecular.kelvin, 0.73 * 602.214  # that of SPC/E, 0.73 mPa s
CELLS, CUTOFF, STEPS = (3, 0.4, 500) if QUICK else (6, 0.9, 100_000)

settings = {"density": 0.998, "cutoff": CUTOFF, "dtype": "float32"}
at_volume, lattice = pk.systems.water_box(CELLS, **settings)
if QUICK:
    # One program: at this volume only. A fast thermostat takes up the heat of the lattice.
    relaxation = lambda sim: pk.find(sim, pk.VelocityRescaling).relaxation_time
    cooled = eqx.tree_at(relaxation, at_volume, np.float32(0.05))
    held = pressed = pk.run(cooled, lattice, STEPS, key=2)
else:
    at_pressure, _ = pk.systems.water_box(CELLS, pressure=molecular.bar, **settings)
    liquid = pk.systems.melt_water(at_volume, lattice, 3_000, key=0)
    pressed = pk.run(at_pressure, liquid, STEPS, key=1, to="water/pressure", resume=True)
    held = pk.run(at_volume, liquid, STEPS, key=2, to="water/volume", resume=True)

SETTLED = 0 if QUICK else 100  # frames of 0.1 ps
density = np.asarray(pressed["density"])[SETTLED:]
parts = np.array([part.mean() for part in np.array_split(density, 8)])
mean, error = density.mean(), parts.std(ddof=1) / np.sqrt(len(parts))
volume = float(lattice.space.volume)
msd, g = held["mean_square_displacement"], held["oxygen_oxygen"]
window = (0.2, 0.7) if QUICK else (2.0, 8.0)
small = pk.statistics.diffusion_coefficient(msd, 3, *window)
added = pk.systems.finite_size_correction(volume ** (1 / 3), TEMPERATURE, VISCOSITY)
# `pk.statistics.dielectric_constant` wants a nanosecond. Here: the mean of M is 0, and it takes 10 ps to turn.
moments = np.asarray(held["dipole"])
strength = 4 * np.pi * molecular.coulomb_constant / (3 * volume * TEMPERATURE)
dielectric = 1 + strength * np.mean(np.sum(moments**2, axis=1))
dielectric_error = (dielectric - 1) * np.sqrt(4 * 10 / (3 * 0.1 * len(moments)))
print(f"density {mean:.4f} ± {error:.4f} g/cm³ (published 0.998)")
# From nm²/ps to 10⁻⁵ cm²/s: a thousand. 2.5 is that of 216 molecules, too; 2.97 that of a large box.
print(
    f"D {1e3 * float(small.value):.2f} ± {1e3 * float(small.error):.2f} · 10⁻⁵ cm²/s in this box (2.5), ",
    end="",
)
print(f"{1e3 * float(small.value + added):.2f} in a large one (2.97)")
print(f"dielectric constant {dielectric:.0f} ± {dielectric_error:.0f} (68 to 71)")
print(
    f"first peak of g(r) {g['value'].max():.2f} at {g['r'][np.argmax(g['value'])]:.3f} nm (0.275)"
)

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.7), layout="constrained")
left.plot(g["r"], g["value"], color="#1d3557")
left.axhline(1, color="#999999", lw=0.8)
left.set(
    xlabel="r / nm", ylabel="g(r) of oxygens", title="Structure", xlim=(0.2, CUTOFF), ylim=(0, None)
)
time = 0.1 * (SETTLED + np.arange(len(density)))
middle.plot(time, density, color="#a8dadc", lw=0.8)
middle.plot(
    time, np.cumsum(density) / (1 + np.arange(len(density))), color="#1d3557", label="mean so far"
)
middle.axhline(0.998, color="#c1121f", lw=1, ls="--", label="published")
middle.set(
    xlabel="time / ps",
    ylabel="density / g/cm³",
    # One program of the quick run: the density is what it was told.
    title="298 K at this volume" if QUICK else f"298 K, 1 bar: {mean:.3f} ± {error:.3f}",
)
if QUICK:
    middle.set_ylim(0.94, 1.06)
middle.legend(frameon=False)
lag, value = np.asarray(msd["lag"]), np.asarray(msd["value"])
right.plot(lag, value, color="#1d3557", label=f"D = {1e3 * float(small.value):.2f} in this box")
right.plot(
    lag, value + 6 * float(added) * lag, color="#c1121f", ls="--",
    label=f"D = {1e3 * float(small.value + added):.2f} ± {1e3 * float(small.error):.2f} in a large one",
)  # fmt: skip
right.set(
    xlabel="lag / ps",
    ylabel="⟨|Δr|²⟩ / nm²",
    title="Diffusion, 10⁻⁵ cm²/s",
    xlim=(0, None),
    ylim=(0, None),
)
right.legend(frameon=False, loc="lower right")
for panel in (left, middle, right):
    panel.locator_params(nbins=6)
fig.savefig("water.png", dpi=150)
