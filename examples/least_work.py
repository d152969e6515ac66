"""The least work to drag a Brownian bead: the derivative of an ensemble's mean finds the protocol.

A trap carries a bead from 0 to 5 within one relaxation time. The optimal protocol is not a steady motion
but a jump, a steady motion, and a jump (Schmiedl & Seifert, Phys. Rev. Lett. 98, 108301, 2007):
λ = 5 (t + 1)/(t_f + 2), and the mean work is 25/(t_f + 2).
"""

import os

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import physkit as pk

pk.use_compilation_cache()

QUICK = "PHYSKIT_QUICK" in os.environ
FAR, PIECES, STEPS = 5.0, 20, 5  # pieces of the protocol, steps in each
LENGTH = 1.0 / PIECES


def drag(protocol, key):
    """One bead: the work that its trap does, and its path."""
    bead = pk.Particles(jax.random.normal(key, (1, 1)))  # at rest in the trap at 0, k_B T = 1

    def piece(bead, inputs):
        number, center = inputs
        dynamics = pk.Brownian(pk.HarmonicTrap(1.0, center[None]), temperature=1.0, friction=1.0)
        simulation = pk.Simulation(dynamics, dt=LENGTH / STEPS)
        bead = pk.simulate(simulation, bead, STEPS, key=jax.random.fold_in(key, number)).state
        return bead, bead.position[0, 0]

    _, path = jax.lax.scan(piece, bead, (jnp.arange(PIECES), protocol))
    path = jnp.concatenate([bead.position[0], path])
    trap = jnp.concatenate([jnp.zeros(1), protocol, jnp.full(1, FAR)])
    energy = lambda center: 0.5 * (path - center) ** 2
    return jnp.sum(energy(trap[1:]) - energy(trap[:-1])), path


@jax.jit
def step(number, protocol, optimizer_state):
    keys = jax.random.split(jax.random.fold_in(jax.random.key(1), number), 500)
    mean_work = lambda p: pk.ensemble_mean(lambda key: drag(p, key)[0], keys, chunk_size=100)
    work, slope = jax.value_and_grad(mean_work)(protocol)
    change, optimizer_state = optimizer.update(slope, optimizer_state)
    return work, optax.apply_updates(protocol, change), optimizer_state


steady = jnp.linspace(0, FAR, PIECES + 1)[1:]  # to begin with
protocol, optimizer = steady, optax.adam(0.05)
optimizer_state, works = optimizer.init(protocol), []
for number in range(40 if QUICK else 200):
    work, protocol, optimizer_state = step(number, protocol, optimizer_state)
    works.append(float(work))

keys = jax.random.split(jax.random.key(2), 2_000)
final, paths = jax.jit(jax.vmap(lambda key: drag(protocol, key)))(keys)
error = pk.statistics.bootstrap(jnp.mean, final, key=jax.random.key(3)).error
print(f"mean work {np.mean(final):.3f} ± {error:.3f}; the least possible is {FAR**2 / 3:.3f}")

with pk.plot.style():
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for ax in (left, middle, right):
    pk.plot.apply_style(ax)
t = np.linspace(0, 1, PIECES + 1)
best = FAR * (t + 1) / 3
left.stairs(steady, t, baseline=None, color="#999999", label="to begin with")
left.stairs(protocol, t, baseline=None, color=pk.plot.PALETTE[1], lw=2, label="found")
left.plot([0, *t, 1], [0, *best, FAR], color=pk.plot.PALETTE[0], lw=1.2, label="Schmiedl & Seifert")
left.set(xlabel="time", ylabel="position of the trap")
left.legend(frameon=False)
middle.plot(works, color=pk.plot.PALETTE[1], lw=1, label="500 beads a step")
middle.axhline(FAR**2 / 3, color=pk.plot.PALETTE[0], label="least possible")
middle.set(xlabel="step of the optimizer", ylabel="mean work / $k_B T$")
middle.legend(frameon=False)
pk.plot.fan(t, pk.ensemble_statistics(paths, key=jax.random.key(4)), ax=right, label="beads")
fig.savefig("least_work.png", dpi=130)
