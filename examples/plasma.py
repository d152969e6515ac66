"""Plasmas as particles on a mesh: Landau's damping, and two streams that roll up.

Left: a wave in a warm plasma, started without noise, falls as theory says although nothing collides.
Right: two beams through each other are unstable; trapped electrons circle in phase space.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")

simulation, electrons = pk.systems.landau_damping(10_000 if quick else 20_000)
wave = np.abs(pk.simulate(simulation, electrons, 160).frames["wave"].real)
t = 0.1 * np.arange(len(wave))
left.semilogy(t, wave, color="#1d4ed8", label="particles")
theory = 0.02 * np.exp(pk.systems.LANDAU_DAMPING * t)
left.semilogy(t, theory, "--", color="#c1121f", label=r"exp(−0.1534 $\omega_p t$)")
left.set(
    xlabel=r"time ($1/\omega_p$)",
    ylabel="amplitude of the wave",
    ylim=(1e-4, 4e-2),
    title="Landau damping",
)
left.legend(frameon=False)

simulation, beams = pk.systems.two_stream(10_000 if quick else 40_000)
result = pk.simulate(simulation, beams, 350)
wave = np.abs(result.frames["wave"])
t = 0.1 * np.arange(len(wave))
middle.semilogy(t, wave, color="#1d4ed8", label="particles")
chosen = t[(t > 6) & (t < 17)]
middle.semilogy(
    chosen,
    1.6 * wave[100] * np.exp((chosen - 10) / 8**0.5),
    "--",
    color="#c1121f",
    label=r"exp($\omega_p t/\sqrt{8}$)",
)
middle.set(
    xlabel=r"time ($1/\omega_p$)",
    ylabel="amplitude of the wave",
    ylim=(1e-4, 1),
    title="two streams",
)
middle.legend(frameon=False)
for name, color in (("right", "#c1121f"), ("left", "#1d4ed8")):
    beam = result.state[name]
    right.plot(beam.position[:, 0], beam.velocity[:, 0], ",", color=color)
right.set(xlabel="x", ylabel="velocity", title=f"phase space at t = {t[-1]:g}")
fig.savefig("plasma.png", dpi=150)
