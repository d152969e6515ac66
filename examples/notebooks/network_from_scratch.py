# %% [markdown]
# # A network from scratch
#
# Nothing but arrays and four transformations of JAX: `vmap` makes a function of one point one of many, `grad`
# its derivative, `jit` a compiled program, `scan` a loop. physkit is built of the same parts.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt


def init(key, sizes=(1, 32, 32, 1)):
    keys = jax.random.split(key, len(sizes) - 1)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [(jax.random.normal(k, (m, n)) / jnp.sqrt(n), jnp.zeros(m)) for k, n, m in shapes]


def predict(layers, x):
    """One point: `x` is `[1]`."""
    for weights, bias in layers[:-1]:
        x = jnp.tanh(weights @ x + bias)
    weights, bias = layers[-1]
    return weights @ x + bias


x = jnp.linspace(-3, 3, 128)[:, None]
y = jnp.sin(2 * x) + 0.05 * jax.random.normal(jax.random.key(1), x.shape)


def loss(layers):
    return jnp.mean((jax.vmap(predict, (None, 0))(layers, x) - y) ** 2)


# %% [markdown]
# Adam: means of the gradient g and of g² over the last steps, and a step along one over the root of the other.


# %%
@jax.jit
def train(layers):
    zeros = jax.tree.map(jnp.zeros_like, layers)

    def step(carry, n):
        layers, mean, square = carry
        value, g = jax.value_and_grad(loss)(layers)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, g)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, square, g)
        rate = 0.01 * jnp.sqrt(1 - 0.999**n) / (1 - 0.9**n)
        layers = jax.tree.map(
            lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), layers, mean, square
        )
        return (layers, mean, square), value

    carry, losses = jax.lax.scan(step, (layers, zeros, zeros), jnp.arange(1.0, 1501.0))
    return carry[0], losses


layers, losses = train(init(jax.random.key(0)))
print(f"loss {losses[0]:.3f} → {losses[-1]:.5f}")
assert losses[-1] < 0.01

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot(x[:, 0], y[:, 0], ".", label="data")
left.plot(x[:, 0], jax.vmap(predict, (None, 0))(layers, x)[:, 0], label="network")
left.legend()
right.semilogy(losses)
text = right.set_xlabel("step")
