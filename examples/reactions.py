"""One network of reactions three ways: molecules, rate equations, and waves in space; and spirals."""

import os

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit.integrators import Gillespie
from physkit.reactions import Populations, RateEquations, ReactionNetwork

pk.use_compilation_cache()

quick = "PHYSKIT_QUICK" in os.environ
steps = 20 if quick else 400
A, B = 2.0, 5.6
network = ReactionNetwork(
    ["0 -> X", "X -> Y", "2 X + Y -> 3 X", "X -> 0"], rates=[A, B, 1.0, 1.0]
)  # the Brusselator, beyond b = 1 + a² = 5, where it swings


def molecules(volume):
    """Concentrations of a trajectory of copy numbers."""
    watch = pk.Every(1, n=lambda now: now.state.counts)
    simulation = pk.Simulation(Gillespie(network), dt=0.1, observers=watch)
    start = Populations([int(A * volume), int(B / A * volume)], volume)
    result = pk.run(simulation, start, steps, key=3, progress=False)
    return np.asarray(result.times["n"]), np.asarray(result.frames["n"]) / volume


def smooth():
    """Concentrations of an infinite volume."""
    watch = pk.Every(1, c=lambda now: now.state)
    simulation = pk.Simulation(pk.RK4(RateEquations(network)), dt=0.1, observers=watch)
    result = pk.run(simulation, jnp.array([A, B / A + 0.1]), steps, progress=False)
    return np.asarray(result.times["c"]), np.asarray(result.frames["c"])


def waves():
    """The concentration of X in a square of side 120: around each of four points all phases of the cycle follow
    one another, and rotate."""
    cells = 32 if quick else 128
    grid = pk.Grid([120.0, 120.0], (cells, cells))
    x, y = grid.coordinates()
    k = 2 * jnp.pi / 120.0
    # Off the symmetry of the box, which would keep the points where they are for ever.
    cosine = jnp.sin(k * x) + 0.2 * jnp.cos(2 * k * y)
    sine = jnp.sin(k * y) + 0.2 * jnp.sin(k * x + 1)
    start = pk.Field(jnp.stack([A + 0.8 * cosine, B / A - 0.5 * sine]), grid)
    flow = pk.ETDRK4(pk.equations.Diffusion([1.0, 1.0]), network)
    return pk.run(pk.Simulation(flow, dt=0.05), start, 20 if quick else 4000, progress=False).state


def spiral():
    """The Oregonator between walls: a wave that ends in the middle of a dish curls up."""
    cells = 32 if quick else 144
    dish = pk.Grid(pk.Box([64.0, 64.0], periodic=(False, False)), (cells, cells))
    x, y = dish.coordinates()
    angle = jnp.arctan2(y - 32, x - 32) % (2 * jnp.pi)
    f, q = 1.4, 0.01
    rest = q * (f + 1) / (f - 1)
    # Fresh ahead of the wave, tired behind it.
    fields = [jnp.where(angle < 0.5, 0.8, rest), rest + angle / (8 * jnp.pi * f)]
    start = pk.Field(jnp.stack(fields), dish, boundary=pk.boundaries.Neumann())
    law = pk.equations.Oregonator(f, slowness=0.04, threshold=q)
    spread = pk.equations.Diffusion([1.0, 0.6], scheme=pk.schemes.Central())
    flow = pk.Simulation(pk.RK4(law, spread), dt=0.004)
    return pk.run(flow, start, 50 if quick else 6000, progress=False).state


with pk.plot.style():
    fig, ((left, middle), (right, dish)) = plt.subplots(
        2, 2, figsize=(8.4, 7.4), layout="constrained"
    )
    for volume, color in ((50, "C1"), (1000, "C0")):
        t, c = molecules(volume)
        left.plot(t, c[:, 0], color=color, lw=0.9, label=f"$\\Omega = {volume}$")
        middle.plot(c[:, 0], c[:, 1], color=color, lw=0.6, label=f"$\\Omega = {volume}$")
    t, c = smooth()
    left.plot(t, c[:, 0], "k--", lw=1, label="rate equations")
    middle.plot(c[:, 0], c[:, 1], "k--", lw=1, label="rate equations")
    left.set(xlabel="time", ylabel="concentration of X", ylim=(0, 10))
    left.legend(frameon=False, loc="upper center", ncols=3, fontsize=7.5)
    middle.set(xlabel="concentration of X", ylabel="concentration of Y")
    middle.legend(frameon=False)
    pk.plot.field(waves()[0], ax=right, label="concentration of X", cmap="magma")
    pk.plot.field(spiral()[0], ax=dish, label="u of the Oregonator", cmap="magma")
    fig.savefig("reactions.png", dpi=110)
