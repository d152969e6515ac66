"""QAOA on a graph: the largest cut of twelve vertices, against all of the 4096 partitions.

Layers of exp(-i gamma H) and of rotations about x, whose angles are fitted by their gradient: the circuit runs
backwards for it. Angles of p layers, interpolated, start those of p + 1 (Zhou et al., Phys. Rev. X 10, 021067).
"""

import itertools
import os
import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk
from physkit import quantum as q

pk.use_compilation_cache()

VERTICES, LAYERS = (4, 1) if "PHYSKIT_QUICK" in os.environ else (12, 6)
rng = np.random.default_rng(4)


def three_regular(vertices):
    """The edges of a random graph in which every vertex has three neighbors."""
    while True:
        stubs = rng.permutation(np.repeat(np.arange(vertices), 3)).reshape(-1, 2)
        edges = {tuple(sorted(pair)) for pair in stubs.tolist()}
        if len(edges) == len(stubs) and all(a != b for a, b in edges):
            return sorted(edges)


edges = three_regular(VERTICES)
bits = np.array(list(itertools.product((0, 1), repeat=VERTICES)))
cuts = sum(bits[:, a] != bits[:, b] for a, b in edges)
best = cuts.max()
# The mean cut is half of the edges less half of this.
correlations = q.PauliSum({f"Z{a} Z{b}": 1.0 for a, b in edges}, VERTICES)


def circuit(angles):
    gammas, betas = angles
    layers = [
        [
            *(q.RZZ(gamma, a, b) for a, b in edges),
            *(q.RX(2 * beta, k) for k in range(VERTICES)),
        ]
        for gamma, beta in zip(gammas, betas, strict=True)
    ]
    return q.Circuit([q.H(k) for k in range(VERTICES)], layers)


def prepared(angles):
    return circuit(angles)(q.StateVector.basis((2,) * VERTICES))


def cost(angles, is_used):
    """Unused layers turn nothing, so that one compiled program serves any number of them."""
    return prepared(jnp.where(is_used, angles, 0)).expectation(correlations) / len(edges)


def one_more(angles):
    """Angles of one more layer, by interpolation."""
    p = angles.shape[1]
    old, new = np.linspace(0, 1, max(p, 2)), np.linspace(0, 1, p + 1)
    return np.stack([np.interp(new, old, np.resize(row, max(p, 2))) for row in np.asarray(angles)])


ratios, angles = [], np.array([[-0.6], [0.4]])
where = lambda a: a
for p in range(1, LAYERS + 1):
    padded = jnp.asarray(np.pad(angles, ((0, 0), (0, LAYERS - p))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # unused layers have no derivative
        fitted = pk.fit(
            cost, padded, where=where, data=jnp.arange(LAYERS) < p,
            bounds=pk.bounds.Unbounded(1.0), method=pk.fitting.BFGS(max_steps=60), progress=False,
        )  # fmt: skip
    mean_cut = 0.5 * len(edges) * (1 - fitted.loss)
    ratios.append(mean_cut / best)
    print(f"{p} layers: mean cut {mean_cut:.3f} of {best}, ratio {ratios[-1]:.4f}")
    last, angles = fitted.model, one_more(fitted.model[:, :p])

state = jax.jit(prepared)(last)
shots = np.asarray(state.sample(0, shots=1000))
drawn = sum(shots[:, a] != shots[:, b] for a, b in edges)
print(f"1000 shots: largest cut {drawn.max()}, {np.mean(drawn == best):.0%} of them have it")

with pk.plot.style():
    fig, (graph, left, right) = plt.subplots(1, 3, figsize=(10.5, 3.6), layout="constrained")
    turn = 2 * np.pi * np.arange(VERTICES) / VERTICES
    x, y, side = np.cos(turn), np.sin(turn), shots[np.argmax(drawn)]
    for a, b in edges:
        is_cut = side[a] != side[b]
        color, style = ("#333333", "-") if is_cut else ("#AAAAAA", ":")
        graph.plot(x[[a, b]], y[[a, b]], color=color, ls=style, lw=1.2, zorder=1)
    graph.scatter(x, y, c=np.where(side == 1, "#0072B2", "#D55E00"), s=90, zorder=2)
    graph.set(title=f"largest cut drawn: {drawn.max()} of {len(edges)} edges", aspect="equal")
    graph.axis("off")
    left.plot(range(1, LAYERS + 1), ratios, "o-", color="#0072B2")
    left.axhline(1, color="#333333", lw=1, ls="--")
    left.set(xlabel="layers $p$", ylabel="mean cut / largest cut", ylim=(0.7, 1.02))
    values = np.arange(best + 1)
    weights = np.bincount(cuts, np.asarray(state.probabilities()).reshape(-1))
    right.bar(values, np.bincount(cuts) / len(cuts), color="#AAAAAA", label="all partitions")
    right.bar(values, weights, color="#0072B2", alpha=0.7, label=f"QAOA, $p$ = {LAYERS}")
    right.set(xlabel="edges cut", ylabel="probability", xticks=range(0, best + 1, 3))
    right.legend()
    fig.savefig("qaoa.png", dpi=130)
