"""A neural network as a pair potential."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import Network, ShapeError

from ._potential import AbstractPairPotential


class NeuralPair(AbstractPairPotential):
    """Any Equinox network from a distance to an energy, as a pair potential.

        U(r) = network(r)

    Forces are the network's exact derivative; all its weights are parameters that `fit` can train
    through a simulation.

    **Arguments:**

    - `network`: maps a scalar to a scalar, e.g. `equinox.nn.MLP("scalar", "scalar", 32, 2,
      activation=jax.nn.softplus, key=key)`.

    **Errors:** `ShapeError` for a network that does not map a scalar to a scalar.

    **Good values:** a smooth activation (`tanh`, `softplus`, `silu`): with `relu` the force is
    piecewise constant and energy drifts. Distances of order one: put a layer in front that scales
    them, or that turns them into smooth features such as e^(−r/ℓ) or Gaussians
    (`equinox.nn.Sequential` with `equinox.nn.Lambda`). Two layers of width 32 are plenty.

    **Notes:** a network knows nothing of distances it was not trained on, above all of the
    repulsion at small r: add a `WCA` or `SoftSphere` force beside it.

    **Reference:** Behler & Parrinello, Phys. Rev. Lett. 98, 146401 (2007), for smooth features.
    """

    network: Network

    def __init__(self, network: Callable):
        self.network = network if isinstance(network, Network) else Network(network)
        try:
            shape = eqx.filter_eval_shape(self.network, jnp.ones(())).shape
        except Exception as error:
            raise ShapeError(
                "NeuralPair needs a network from a scalar to a scalar, e.g. "
                f'equinox.nn.MLP("scalar", "scalar", 32, 2, key=key); this one fails: {error}'
            ) from error
        if shape != ():
            raise ShapeError(
                "NeuralPair needs a network from a scalar to a scalar, e.g. "
                f'equinox.nn.MLP("scalar", "scalar", 32, 2, key=key); this one returns {shape}'
            )

    def energy(self, r: Float[Array, "..."]) -> Float[Array, "..."]:
        # The network maps one scalar: batch it over all distances, whatever their shape.
        return jax.vmap(self.network)(r.reshape(-1)).reshape(r.shape)
