"""The virial of whatever has an energy: its derivative by a homogeneous strain."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import State, matmul
from physkit.geometry import StrainedSpace

from .._particles import Particles


def virial_by_strain(
    energy: Callable[[State], Float[Array, ""]], state: State, like: Float[Array, "n d"]
) -> Float[Array, "d d"]:
    """W_ab = −∂E/∂ε_ba at ε = 0, where x → (1 + ε) x for all particles of `state` and the spaces they are in.

    - `like`: positions, for their dimension and precision.
    """

    def strained_energy(strain: Float[Array, "d d"]) -> Float[Array, ""]:
        def stretch(node):
            if not isinstance(node, Particles):
                return node
            step = matmul(node.position, strain.T)
            space = StrainedSpace(node.space, strain)
            return node.replace(position=node.position + step, space=space)

        return energy(jax.tree.map(stretch, state, is_leaf=_is_particles))

    d = like.shape[-1]
    return -jax.grad(strained_energy)(jnp.zeros((d, d), like.dtype)).T


def _is_particles(node: object) -> bool:
    return isinstance(node, Particles)
