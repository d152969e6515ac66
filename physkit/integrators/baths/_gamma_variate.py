"""Random numbers of gamma distributions, without a loop."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_PROPOSALS = 16  # all refused with a probability below 10⁻²⁰


def gamma_variate(key: Array, shape: Float[Array, ""]) -> Float[Array, ""]:
    """A number with the density x^(k−1) e^(−x)/Γ(k), k = `shape` > 0, which has no derivative.

    The first of several proposals that is accepted. `jax.random.gamma` proposes in a loop until one is, and on
    a GPU the host waits for each answer.

    **Reference:** Marsaglia & Tsang, ACM Trans. Math. Softw. 26, 363 (2000): at least 95 % are accepted.
    """
    shape = jax.lax.stop_gradient(shape)
    normal, uniform, power = jax.random.split(key, 3)
    # Below 1 a number of k + 1 times u^(1/k) (their section 6).
    is_below = shape < 1
    d = shape + jnp.where(is_below, 1, 0) - 1 / 3
    x = jax.random.normal(normal, (_PROPOSALS,), shape.dtype)
    y = x / (3 * jnp.sqrt(d))
    # v = (1 + y)³; ln v and v − 1 by y, for k may be so large that v is 1 to rounding.
    is_positive = y > -1
    y = jnp.where(is_positive, y, 0)
    log_density = 0.5 * x * x + d * (3 * jnp.log1p(y) - y * (3 + y * (3 + y)))
    u = 1 - jax.random.uniform(uniform, (_PROPOSALS,), shape.dtype)  # 0 < u ≤ 1
    accepted = is_positive & (jnp.log(u) < log_density)
    number = d * (1 + y[jnp.argmax(accepted)]) ** 3
    factor = (1 - jax.random.uniform(power, (), shape.dtype)) ** (1 / shape)
    return jnp.where(is_below, number * factor, number)
