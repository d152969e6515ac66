"""Ramsey fringes of a qubit: detuning and T2 from counts, with standard errors.

Two π/2 pulses with a wait between; each point is 200 repetitions. The model is Lindblad's equation, fitted as
it is.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import quantum as q

pk.use_compilation_cache()

SHOTS, WAITS = 200, 60
SPACING, BETWEEN = 0.2, 5  # of the waits, in µs, and steps from one to the next
TRUE = {"detuning": 2 * np.pi * 0.35, "T2": 6.0}
half = q.Circuit(q.RX(np.pi / 2, 0))


class Ramsey(pk.Module):
    """What is not known of the qubit."""

    detuning: jnp.ndarray = pk.param()
    dephasing: jnp.ndarray = pk.param()  # 1 / T2


@jax.jit
def excited(model):
    """P(1) after the second pulse, by the wait between the two, at every step."""
    system = q.Lindblad(
        q.PauliSum({"Z": 0.5 * model.detuning}),
        q.Jump(q.PauliSum({"Z": 1.0}), 0.5 * model.dephasing),
    )

    def measured(now):
        return half(now.state).probabilities()[1]

    simulation = pk.Simulation(
        pk.integrators.Magnus(system),
        dt=SPACING / BETWEEN,
        observers=pk.Every(1, p=measured),
        guards=(),
    )
    start = half(q.DensityMatrix.basis((2,)))
    return pk.simulate(simulation, start, BETWEEN * WAITS).frames["p"]


truth = Ramsey(TRUE["detuning"], 1 / TRUE["T2"])
exact = np.asarray(excited(truth))[::BETWEEN]
counts = np.random.default_rng(1).binomial(SHOTS, np.clip(exact, 0, 1)) / SHOTS
sigma = np.sqrt(np.clip(counts * (1 - counts), 0.25 / SHOTS, None) / SHOTS)

fit = pk.fit(
    lambda m: (excited(m)[::BETWEEN] - counts) / sigma,
    Ramsey(2.0, 0.3),
    where=lambda m: {"detuning": m.detuning, "dephasing": m.dephasing},
    method=pk.fitting.LevenbergMarquardt(),
)
print(fit)
print(f"detuning {float(fit.model.detuning):.4f} (true {TRUE['detuning']:.4f})")
print(f"T2 {1 / float(fit.model.dephasing):.3f} (true {TRUE['T2']:.3f})")

t = SPACING * np.arange(WAITS + 1)
fine = SPACING / BETWEEN * np.arange(BETWEEN * WAITS + 1)
with pk.plot.style():
    fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
    ax.errorbar(
        t, counts, sigma, fmt="o", color="#0072B2", ms=3, lw=1, label="200 repetitions each"
    )
    ax.plot(fine, excited(fit.model), color="#D55E00", lw=2, label="fitted")
    ax.set(
        xlabel="wait between the pulses / µs",
        ylabel="probability of |1⟩",
        xlim=(0, 12),
        ylim=(0, 1),
    )
    ax.legend()
    fig.savefig("ramsey.png", dpi=130)
