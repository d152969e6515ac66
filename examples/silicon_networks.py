"""Two networks learn silicon, crystal and melt, and then move its atoms.

One is a many-body potential written here, that of Behler and Parrinello (Phys. Rev. Lett. 98, 146401 (2007)),
whose inputs are sums over neighbors and over the angles between them; the other one is a graph network,
`MessagePassing`, in which atoms tell their neighbors what they see. They learn energies and forces by
Stillinger and Weber's potential along a run that heats a crystal until it melts, and are tested on another
run that they have never seen. Three things make the training work: inputs of mean 0 and variance 1, an energy
without its mean, and a step that shrinks to nothing.
"""

import os

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import physkit as pk

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
REACH = 3.8  # Å; Stillinger and Weber's own is 3.77
femtosecond, kelvin = pk.units.metal.femtosecond, pk.units.metal.kelvin
fcc = np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
diamond = np.concatenate([fcc, fcc + 0.25])
corners = np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), -1).reshape(-1, 1, 3)
sites = 5.431 * (corners + diamond).reshape(-1, 3)
crystal = pk.Particles(sites, mass=28.0855, space=pk.Box([10.862] * 3))

# --- what is learned: a run from 300 K to 3500 K, and another one for the test -------------------------
steps, dt = (300 if quick else 6000), 2 * femtosecond
truth = pk.ManyBody(pk.potentials.StillingerWeber())
heating = pk.VelocityRescaling(
    pk.VelocityVerlet(truth),
    lambda t: (300 + 3200 * t / (steps * dt)) * kelvin,
    relaxation_time=50 * femtosecond,
)
record = pk.Every(
    steps // 100,
    x=pk.Positions(),
    energy=pk.PotentialEnergy(),
    force=pk.quantities.ParticleForces(),
)


def heat(seed):
    start = pk.maxwell_boltzmann(seed, crystal, 300 * kelvin)
    simulation = pk.Simulation(heating, dt=dt, observers=record)
    result = pk.run(simulation, start, steps, key=seed, progress=False)
    return tuple(jnp.asarray(result[name]) for name in ("x", "energy", "force"))


train, test = heat(1), heat(2)
mean_energy = jnp.mean(train[1]) / 64

# --- two potentials ------------------------------------------------------------------------------------


class BehlerParrinello(pk.AbstractManyBodyPotential):
    """A network of symmetry functions."""

    seen: pk.potentials.SymmetryFunctions
    network: pk.Network
    energy: jax.Array = pk.param(0.0)
    mean: jax.Array = pk.data(0.0)
    scale: jax.Array = pk.data(1.0)
    cutoff = REACH

    def invariants(self, near):
        return jax.lax.stop_gradient(self.seen)(near)

    def standardized(self, found, energy):
        scaled = jnp.mean(found, axis=0), jnp.std(found, axis=0), energy
        return eqx.tree_at(lambda m: (m.mean, m.scale, m.energy), self, scaled)

    def site_energies(self, near):
        mean, scale = jax.lax.stop_gradient((self.mean, self.scale))
        return self.energy + jax.vmap(self.network)((self.invariants(near) - mean) / scale)


def layers(inputs, outputs, key):
    return pk.Network(eqx.nn.MLP(inputs, outputs, 32, 2, jax.nn.silu, key=key))


keys = jax.random.split(jax.random.key(0))
seen = pk.potentials.SymmetryFunctions(
    REACH, centers=np.linspace(1.8, 3.8, 10), decays=[0.02, 0.1, 0.4], exponents=[1, 2, 4]
)
networks = {
    "Behler–Parrinello": BehlerParrinello(seen, layers(seen.num_functions, "scalar", keys[0])),
    "messages": pk.potentials.MessagePassing(REACH, key=keys[1], shortest=1.8),
}

# --- training ------------------------------------------------------------------------------------------


def force_of(potential):
    return pk.ManyBody(potential, REACH, skin=0.0, capacity=24)


def lists_of(positions):
    """The neighbor list of each frame, made once."""
    force = force_of(networks["messages"])
    return jax.lax.map(lambda x: force.init(crystal.replace(position=x)), positions)


def energy_and_force(potential, x, lists):
    energy = lambda x: force_of(potential).energy(None, crystal.replace(position=x), lists)
    value, slope = jax.value_and_grad(energy)(x)
    return value, -slope


@eqx.filter_jit
def standardized(model, positions, lists):
    def inputs(frame):
        atoms = crystal.replace(position=frame[0])
        return force_of(model).map_neighborhoods(model.invariants, atoms, frame[1])

    found = jax.lax.map(inputs, (positions, lists)).reshape(len(positions) * 64, -1)
    return model.standardized(found, mean_energy)


@eqx.filter_jit
def evaluate(model, positions, lists):
    return jax.lax.map(lambda frame: energy_and_force(model, *frame), (positions, lists))


def loss(model, batch):
    x, energy, force, lists = batch
    e, f = jax.lax.map(lambda frame: energy_and_force(model, *frame), (x, lists))
    return 100 * jnp.mean(((e - energy) / 64) ** 2) + jnp.mean((f - force) ** 2)


@eqx.filter_jit
def fit(model, data, rounds):
    optimizer = optax.chain(
        optax.clip_by_global_norm(5.0),
        optax.adam(optax.cosine_decay_schedule(0.01, rounds, alpha=0.005)),
    )
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)

    def step(carry, key):
        arrays, state = carry
        pick = jax.random.choice(key, len(data[0]), (4,), replace=False)
        batch = jax.tree.map(lambda x: x[pick], data)
        value, slopes = eqx.filter_value_and_grad(loss)(eqx.combine(arrays, rest), batch)
        change, state = optimizer.update(slopes, state)
        return (eqx.apply_updates(arrays, change), state), value

    start = arrays, optimizer.init(arrays)
    keys = jax.random.split(jax.random.key(1), rounds)
    (arrays, _), values = jax.lax.scan(step, start, keys)
    return eqx.combine(arrays, rest), values


lists = jax.jit(lists_of)
train, test = (*train, lists(train[0])), (*test, lists(test[0]))
rounds = {"Behler–Parrinello": 2000, "messages": 600}
learned, errors, losses = {}, {}, {}
for name, model in networks.items():
    model = standardized(model, train[0], train[3])
    learned[name], losses[name] = fit(model, train, 3 if quick else rounds[name])
    e, f = evaluate(learned[name], test[0], test[3])
    errors[name] = f, float(jnp.sqrt(jnp.mean((f - test[2]) ** 2)))
    of_energy = 1000 * float(jnp.sqrt(jnp.mean(((e - test[1]) / 64) ** 2)))
    print(f"{name}: forces right to {errors[name][1]:.3f} eV/Å", end=" ")
    print(
        f"(they are {jnp.sqrt(jnp.mean(test[2] ** 2)):.2f}), energies to {of_energy:.1f} meV an atom"
    )

# --- the learned force moves atoms: the melt -----------------------------------------------------------
hot = crystal.replace(position=test[0][-1])
hot = pk.maxwell_boltzmann(3, hot, 2500 * kelvin)
radial = {}
for name, potential in {"Stillinger–Weber": truth.potential, **learned}.items():
    force = pk.ManyBody(potential, REACH, skin=0.4, capacity=32)
    motion = pk.VelocityRescaling(pk.VelocityVerlet(force), 2500 * kelvin, 100 * femtosecond)
    melt = pk.run(pk.Simulation(motion, dt), hot, steps // 6, key=4, progress=False).state
    observers = pk.RadialDistribution(10, r_max=5.4, bins=72)
    simulation = pk.Simulation(motion, dt, observers)
    windows, state = [], melt
    for k in range(5):
        run = pk.run(simulation, state, steps // 10, key=5 + k, progress=False)
        windows.append(run["radial_distribution"]["value"])
        r, state = run["radial_distribution"]["r"], run.state
    # Five windows tell the error of their mean.
    radial[name] = np.mean(windows, axis=0), np.std(windows, axis=0, ddof=1) / 5**0.5
    drift = pk.Simulation(pk.VelocityVerlet(force), dt, pk.Every(10, e=pk.TotalEnergy()))
    energy = pk.run(drift, melt, steps // 6, progress=False)["e"]
    print(f"{name}: the melt's energy stays to {1000 * np.std(energy) / 64:.2f} meV an atom")

true, true_error = radial["Stillinger–Weber"]
for name in learned:
    found, error = radial[name]
    off, expected = (
        float(np.sqrt(np.mean(x**2))) for x in (found - true, np.hypot(error, true_error))
    )
    print(f"{name}: g(r) differs by {off:.3f}, {expected:.3f} of it from the windows' scatter")

# --- pictures ------------------------------------------------------------------------------------------
colors = {"Stillinger–Weber": "#333333", "Behler–Parrinello": "#0072B2", "messages": "#D55E00"}
with pk.plot.style():
    fig, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, (name, (f, error)) in zip(panels, errors.items(), strict=False):
    ax.plot(test[2].ravel(), f.ravel(), ".", ms=2, color=colors[name], alpha=0.25, rasterized=True)
    ax.axline((0, 0), slope=1, color="#333333", lw=0.8)
    ax.set(title=f"{name}: {error:.3f} eV/Å rms", xlabel="force by Stillinger–Weber / (eV/Å)")
    ax.set(xlim=(-8, 8), ylim=(-8, 8), xticks=range(-8, 9, 4), aspect="equal")
panels[0].set_ylabel("force by the network / (eV/Å)")
for name, (found, error) in radial.items():
    if name == "Stillinger–Weber":
        band = found - 2 * error, found + 2 * error
        panels[2].fill_between(r, *band, color="#333333", alpha=0.3, lw=0, label=f"{name} ± 2σ")
    else:
        panels[2].plot(r, found, color=colors[name], label=name, lw=1.3)
panels[2].set(
    xlabel="r / Å", ylabel="g(r)", title="silicon at 2500 K, moved by each", xlim=(1.8, 5.4)
)
panels[2].legend()
fig.savefig("silicon_networks.png", dpi=150)
