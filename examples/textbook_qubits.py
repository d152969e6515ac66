"""Four formulas of every textbook on qubits: Rabi, T1 and T2, Landau and Zener, Jaynes and Cummings.

Each is a simulation; a dashed line is the formula, and the largest difference from it is printed.
"""

import os

import jax
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import quantum as q

jax.config.update("jax_enable_x64", True)
pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
BLUE, ORANGE, GREEN, GRAY = "#0072B2", "#D55E00", "#009E73", "#333333"
qubit = q.StateVector.basis((2,))
populations = pk.quantities.Probabilities((0,))


def record(integrator, state, dt, steps):
    """Populations of the qubit at every step, `[t, 2]`."""
    observe = pk.Every(1, p=populations)
    simulation = pk.Simulation(integrator, dt=dt, observers=observe, guards=())
    return pk.simulate(simulation, state, steps).frames["p"]


# --- Rabi: a drive of strength Ω = 1, off resonance by Δ ---------------------------------------------------
@jax.jit
@jax.vmap
def rabi(detuning):
    drive = q.PauliSum({"X": 0.5, "Z": -0.5 * detuning})
    return record(pk.integrators.Magnus(q.UnitaryEvolution(drive)), qubit, 0.1, 150)[:, 1]


detunings = np.linspace(-4, 4, 41 if QUICK else 161)
chevron = np.asarray(rabi(detunings))
t_rabi = 0.1 * np.arange(151)
full = np.sqrt(1 + detunings[:, None] ** 2)
error = np.abs(chevron - (np.sin(0.5 * full * t_rabi) / full) ** 2).max()
print(f"Rabi: {error:.0e}")

# --- decay: T1 = 4, T2 = 3, in units of their own ----------------------------------------------------------
T1, T2 = 4.0, 3.0
lower, z = q.LocalOperator([[0, 1], [0, 0]], 0), q.PauliSum({"Z": 1.0})
open_qubit = q.Lindblad(z * 0.0, q.Jump(lower, 1 / T1), q.Jump(z, 0.5 * (1 / T2 - 0.5 / T1)))
turn = q.Circuit(q.RY(-np.pi / 2, 0))  # back, so that what was coherent is seen
coherence = pk.Every(
    1, p1=lambda now: now.state.probabilities()[1], x=lambda now: turn(now.state).probabilities()[0]
)
decay = pk.Simulation(pk.integrators.Magnus(open_qubit), dt=0.1, observers=coherence, guards=())
t_decay = 0.1 * np.arange(121)
excited = pk.simulate(decay, q.DensityMatrix.basis((2,), 1), 120).frames["p1"]
plus = q.Circuit(q.RY(np.pi / 2, 0))(q.DensityMatrix.basis((2,)))
turned = pk.simulate(decay, plus, 120).frames["x"]
errors = np.abs(excited - np.exp(-t_decay / T1)), np.abs(2 * turned - 1 - np.exp(-t_decay / T2))
print(f"T1: {errors[0].max():.0e}, T2: {errors[1].max():.0e}")

# --- Landau and Zener: a crossing of gap Δ = 1 at the rate v -------------------------------------------------
CROSSING, STEPS = 60.0, 3000  # the splitting at both ends, in gaps
# States of the matrix at both ends: the lower one before, the upper one after.
lowest, highest = (
    np.linalg.eigh([[0.5 * e, 0.5], [0.5, -0.5 * e]])[1][:, k]
    for e, k in ((-CROSSING, 0), (CROSSING, 1))
)


@jax.jit
@jax.vmap
def crossing(rate):
    """Population of |0⟩ at every step, and that of the upper state at the end."""
    end = CROSSING / rate
    sweep = q.PauliSum({"Z": 0.5}).driven(q.LinearRamp(0.0, rate)) + q.PauliSum({"X": 0.5})
    simulation = pk.Simulation(
        pk.integrators.Magnus(q.UnitaryEvolution(sweep), 4),
        dt=2 * end / STEPS,
        t0=-end,
        observers=pk.Every(1, p=populations),
        guards=(),
    )
    result = pk.simulate(simulation, q.StateVector(lowest.astype(complex)), STEPS)
    return result.frames["p"][:, 0], q.fidelity(
        result.state, q.StateVector(highest.astype(complex))
    )


rates = np.array([0.5, 1.0, 2.0, 5.0])
crossings, ends = crossing(rates)
stays = np.exp(-np.pi / (2 * rates))
print(f"Landau–Zener: {np.abs(ends - stays).max():.0e}, from a splitting of {CROSSING:.0f} gaps")

# --- Jaynes and Cummings: an excited atom in a coherent field -----------------------------------------------
LEVELS, PHOTONS = (32, 9.0) if QUICK else (60, 20.0)
n = np.arange(LEVELS)
weights = np.exp(-PHOTONS + n * np.log(PHOTONS) - np.cumsum(np.log(np.maximum(n, 1))))
field = np.sqrt(weights / weights.sum())
hop = np.kron([[0, 0], [1, 0]], q.destroy(LEVELS))  # |1⟩⟨0| a: the atom takes a photon
exchange = q.UnitaryEvolution(q.LocalOperator(hop + hop.T, 0, 1))
start = q.StateVector(np.outer([0, 1], field).astype(complex))
p = record(pk.integrators.Krylov(exchange, 14), start, 0.05, 1000)
inversion = np.asarray(p[:, 1] - p[:, 0])
t_jc = 0.05 * np.arange(1001)
formula = np.cos(2 * np.sqrt(n + 1) * t_jc[:, None]) @ field**2
print(f"Jaynes–Cummings: {np.abs(inversion - formula).max():.0e}")

with pk.plot.style():
    fig, axes = plt.subplots(2, 2, figsize=(9.6, 7.0), layout="constrained")
    (a, b), (c, d) = axes
    image = a.pcolormesh(t_rabi, detunings, chevron, cmap="magma", vmin=0, vmax=1, rasterized=True)
    a.set(xlabel="Ω$t$", ylabel="detuning Δ / Ω", title="Rabi oscillations")
    fig.colorbar(image, ax=a, label="probability of |1⟩")

    for values, time, color, label in (
        (excited, T1, BLUE, "population, $T_1$ = 4"),
        (2 * turned - 1, T2, ORANGE, "coherence, $T_2$ = 3"),
    ):
        b.plot(t_decay[::5], values[::5], "o", color=color, ms=4, label=label)
        b.plot(t_decay, np.exp(-t_decay / time), color=GRAY, lw=1, ls="--", zorder=0)
    b.set(xlabel="time", ylabel="of its first value", title="Decay", xlim=(0, 12), ylim=(0, 1.02))
    b.legend()

    splitting = np.linspace(-CROSSING, CROSSING, STEPS + 1)
    for k, color in enumerate(("#56B4E9", BLUE, GREEN, ORANGE)):
        c.plot(splitting, crossings[k], color=color, lw=1.2, label=f"$v$ = {rates[k]:g} Δ²")
        c.axhline(stays[k], color=GRAY, lw=1, ls="--", zorder=0)
    c.set(
        xlabel="splitting $vt$ / Δ",
        ylabel="probability to stay in |0⟩",
        title="Landau–Zener crossings",
        xlim=(-15, 40),
        ylim=(0, 1.02),
    )
    c.legend(loc="upper right", ncols=2)

    d.plot(t_jc, inversion, color=BLUE, lw=0.8)
    revival = 2 * np.pi * np.sqrt(PHOTONS + 1)
    d.axvline(revival, color=GRAY, lw=1, ls="--", zorder=0)
    d.annotate(r"$2\pi\sqrt{\bar n + 1}/g$", (revival + 0.5, 0.85))
    d.set(
        xlabel="$gt$",
        ylabel="inversion of the atom",
        title=f"Collapse and revival, {PHOTONS:.0f} photons",
        xlim=(0, 50),
        ylim=(-1, 1),
    )
    fig.savefig("textbook_qubits.png", dpi=130)
