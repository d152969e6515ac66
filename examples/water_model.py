"""Charges and σ of a water model from its density and g(r), by reweighting.

The energy of a frame is q² C + 4 ε (σ¹² A − σ⁶ B), with sums C, A and B over its pairs: a trajectory that
records three numbers, the volume and g(r) is all that a fit needs. The density and structure to be found are
those of SPC/E from a run of its own, 64 molecules at 298 K and 1 bar; the start are charges too large by 1.5 %
and a σ too small by 0.5 %. The frames of each round are drawn with the model of the one before, because weights
bear a few k_B T of the whole box and no more. Takes two minutes on one core.
Thaler & Zavadlav, Nat. Commun. 12, 6884 (2021).
"""

import os

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
jax.config.update("jax_disable_most_optimizations", QUICK)  # compiles in half the time
CELLS, CUTOFF, MELT, STEPS, INTERVAL, BINS, ROUNDS = (
    (3, 0.4, 0, 160, 5, 6, 1) if QUICK else (4, 0.55, 3_000, 16_000, 50, 32, 2)
)
molecular = pk.units.molecular
TRUTH = {"charge": 0.4238, "sigma": 0.316557}
EPSILON, N = pk.systems.WATER_MODELS["SPC/E"].epsilon, CELLS**3
first, second = np.triu_indices(N, 1)
edges = np.linspace(0.24, CUTOFF, BINS + 1)
shells = np.diff(4 / 3 * np.pi * edges**3)


def dispersion(model, sixth, twelfth, volume):
    """Lennard-Jones energy of a frame, with what lies beyond the cutoff."""
    six = jnp.asarray(model["sigma"]) ** 6
    beyond = 8 / 9 * np.pi * N**2 / volume * (six**2 / CUTOFF**9 - 3 * six / CUTOFF**3)
    return EPSILON * (4 * (six**2 * twelfth - six * sixth) + beyond)


def energy(model, frame):
    charges = (model["charge"] / TRUTH["charge"]) ** 2 * frame["coulomb"]
    return charges + dispersion(model, frame["sixth"], frame["twelfth"], frame["volume"])


def record(now):
    oxygens, space = now.state.position[::3], now.state.space
    r = jnp.linalg.norm(space.displacement(oxygens[first], oxygens[second]), axis=1)
    inverse = jnp.where(r < CUTOFF, r, jnp.inf) ** -6.0
    is_in = (r[:, None] >= edges[None, :-1]) & (r[:, None] < edges[None, 1:])
    return {
        "energy": pk.PotentialEnergy()(now),
        "sixth": jnp.sum(inverse),
        "twelfth": jnp.sum(inverse**2),
        "volume": space.volume,
        "g": jnp.sum(is_in, axis=0) * space.volume / (len(first) * shells.astype(r.dtype)),
    }


def draw_frames(model, key):
    """Frames of the liquid at 298 K and 1 bar, the first quarter left out."""
    sim, state = pk.systems.water_box(
        CELLS, cutoff=CUTOFF, density=0.998, pressure=molecular.bar, dtype="float32"
    )
    sigma = jnp.asarray([[model["sigma"], 1], [1, 1]], "float32")
    sim = eqx.tree_at(lambda s: pk.find(s, pk.LennardJones).sigma, sim, sigma)
    state = state.replace(charge=state.charge * np.float32(model["charge"] / TRUTH["charge"]))
    if MELT:
        state = pk.systems.melt_water(sim, state, MELT, key=key)
    sim = eqx.tree_at(lambda s: s.observers, sim, (pk.Every(INTERVAL, frame=record),))
    frames = pk.run(sim, state, STEPS, key=key + 100)["frame"]
    frames = {name: jnp.asarray(x)[len(x) // 4 :] for name, x in frames.items()}
    rest = dispersion(model, frames["sixth"], frames["twelfth"], frames["volume"])
    frames["coulomb"] = (frames.pop("energy") - rest) * (TRUTH["charge"] / model["charge"]) ** 2
    return pk.fitting.EquilibriumSamples(energy, model, frames, 298 * molecular.kelvin)


def properties(model, frame):
    density = 18.01532 / 602.214 * N / frame["volume"]
    return {"density": density, "g": frame["g"]}


def averages(model, samples):
    return pk.fitting.reweight(properties, model, samples, min_fraction=0.02)


def residuals_of(samples, target, error):
    def residuals(model):
        found = averages(model, samples)
        return [(found.value[name] - target.value[name]) / error[name] for name in error]

    return residuals


model = {"charge": 0.43, "sigma": 0.315}
target = averages(TRUTH, draw_frames(TRUTH, 7))
path, spreads, initial = [model], [], None
for k in range(ROUNDS):
    samples = draw_frames(model, k)
    before = averages(model, samples)
    initial = initial or before
    # The frames of the model scatter as those of the target do.
    error = {
        name: jnp.maximum(jnp.hypot(target.error[name], before.error[name]), least)
        for name, least in (("density", 1e-3), ("g", 1e-2))
    }

    start = {name: jnp.asarray(x) for name, x in model.items()}
    found = pk.fit(residuals_of(samples, target, error), start, where=lambda m: m, progress=False)
    model = {name: float(x) for name, x in found.values.items()}
    path.append(model)
    spreads.append({name: float(x) for name, x in found.standard_errors.items()})
    after = averages(model, samples)
    print(f"{model}: {float(after.effective):.0f} of {samples.count} frames count")
print(found)

middles = (edges[1:] + edges[:-1]) / 2
colors = ("#e9a820", "#c1121f", "#333333")
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
left.errorbar(
    middles, target.value["g"], target.error["g"], fmt="o", ms=3, color=colors[2], label="to be found"
)  # fmt: skip
left.plot(middles, initial.value["g"], color=colors[0], label="first model")
left.plot(middles, after.value["g"], color=colors[1], label="fitted")
left.set(xlabel="r / nm", ylabel="g(r) of oxygens", title="Structure", ylim=(0, None))
left.legend(frameon=False)
for at, (average, color) in enumerate(zip((initial, after, target), colors)):
    value, spread = (float(x["density"]) for x in (average.value, average.error))
    middle.errorbar(at, value, spread, fmt="o", capsize=4, color=color)
middle.set(
    xticks=[0, 1, 2], xticklabels=["first model", "fitted", "to be found"],
    ylabel="density / g/cm³", title="Density at 1 bar", xlim=(-0.5, 2.5),
)  # fmt: skip
charges, sigmas = ([p[name] for p in path] for name in ("charge", "sigma"))
right.plot(charges, sigmas, "-", color="#999999", lw=1)
right.plot(charges[0], sigmas[0], "o", color=colors[0], label="first model")
for k, spread in enumerate(spreads, 1):
    right.errorbar(
        charges[k], sigmas[k], spread["sigma"], spread["charge"], fmt="o", capsize=3,
        color=colors[1], alpha=k / ROUNDS, label=f"round {k} ± σ",
    )  # fmt: skip
right.plot(TRUTH["charge"], TRUTH["sigma"], "*", ms=13, color=colors[2], label="SPC/E")
right.set(xlabel="charge of hydrogen / e", ylabel="σ / nm", title="The model")
right.legend(frameon=False)
fig.savefig("water_model.png", dpi=150)
