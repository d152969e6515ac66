"""A neural network from scratch: `vmap` makes the batch, `grad` the training step, `jit` makes it fast.

1797 handwritten digits of 8 × 8 pixels ship with scikit-learn. No network library: a network is a list of
matrices, and a function of one picture.
"""

import os
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import physkit as pk

pk.use_compilation_cache()

try:
    from sklearn.datasets import load_digits
except ImportError:
    raise SystemExit("the digits ship with scikit-learn: pip install 'physkit[learn]'") from None

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
pictures = jnp.asarray(digits.data[order] / 16, jnp.float32)
labels = jnp.asarray(digits.target[order], jnp.int32)
train, test = slice(0, 1440), slice(1440, None)


def start(key, sizes=(64, 64, 32, 10)):
    keys = jax.random.split(key, len(sizes) - 1)
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(k, (n, m)) * (2 / m) ** 0.5, jnp.zeros(n)) for k, m, n in pairs]


def network(layers, picture):  # of one picture
    for matrix, bias in layers[:-1]:
        picture = jax.nn.relu(matrix @ picture + bias)
    matrix, bias = layers[-1]
    return matrix @ picture + bias


def loss(layers, pictures, labels):
    scores = jax.vmap(network, (None, 0))(layers, pictures)
    right = jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], axis=1)
    return -jnp.mean(right)


def step(layers, pictures, labels, rate=0.2):
    slopes = jax.grad(loss)(layers, pictures, labels)
    return jax.tree.map(lambda w, s: w - rate * s, layers, slopes)


def epoch(step, layers, batch=32):
    for i in range(0, train.stop, batch):
        layers = step(layers, pictures[train][i : i + batch], labels[train][i : i + batch])
    return jax.block_until_ready(layers)


def accuracy(layers, part):
    guess = jnp.argmax(jax.vmap(network, (None, 0))(layers, pictures[part]), axis=1)
    return float(jnp.mean(guess == labels[part]))


def seconds(step, layers):
    epoch(step, layers)  # compiles
    began = time.perf_counter()
    epoch(step, layers)
    return time.perf_counter() - began


epochs = 2 if "PHYSKIT_QUICK" in os.environ else 40
layers, fast = start(jax.random.key(0)), jax.jit(step)
eager, compiled = seconds(step, layers), min(seconds(fast, layers) for _ in range(3))
print(f"an epoch: eager {eager:.2f} s, jit {compiled:.3f} s, ratio {eager / compiled:.0f}")

curve = [(accuracy(layers, train), accuracy(layers, test))]
for _ in range(epochs):
    layers = epoch(fast, layers)
    curve.append((accuracy(layers, train), accuracy(layers, test)))
print(f"right on {curve[-1][0]:.1%} of the training set, {curve[-1][1]:.1%} of the test set")

with pk.plot.style():
    fig = plt.figure(figsize=(9, 3.2), layout="constrained")
    left, right = fig.subfigures(1, 2)
ax = left.subplots()
ax.plot(100 * np.array(curve), label=["training", "test"])
ax.set(xlabel="epoch", ylabel="right answers / %", ylim=(80, 100.5))
ax.legend()
ax.set_title(f"{100 * curve[-1][1]:.1f} % right on pictures never seen")
guesses = jnp.argmax(jax.vmap(network, (None, 0))(layers, pictures[test]), axis=1)
wrong = np.flatnonzero(guesses != labels[test])
shown = np.concatenate([wrong[:4], np.setdiff1d(np.arange(99), wrong)])[:18]
for ax, i in zip(right.subplots(3, 6).flat, shown, strict=True):
    ax.imshow(pictures[test][i].reshape(8, 8), cmap="gray_r")
    is_right = bool(guesses[i] == labels[test][i])
    ax.set_title(f"{guesses[i]}", color="#009E73" if is_right else "#D55E00", fontsize=11, pad=2)
    ax.axis("off")
right.suptitle("answers to pictures never seen; orange: wrong", fontsize=10)
fig.savefig("digits.png", dpi=150)
