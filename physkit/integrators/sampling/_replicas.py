"""Replicas: several states of one system, side by side."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from physkit.core import AbstractComponent, DeclarationError, PyTree, Rate, State, shift


class Replicas(AbstractComponent):
    """Several states of one form: the replicas of `ReplicaExchange`, the members of an ensemble filter.

    - `states`: a state whose arrays are `[replicas, …]`. `replica(k)` is one of them.
    """

    states: PyTree

    @property
    def num_replicas(self) -> int:
        """How many there are."""
        return jax.tree.leaves(eqx.filter(self.states, eqx.is_array))[0].shape[0]

    def replica(self, number: int) -> State:
        """The state of one replica."""
        return jax.tree.map(lambda x: x[number] if eqx.is_array(x) else x, self.states)

    def shift(self, delta: Rate) -> "Replicas":
        return Replicas(eqx.filter_vmap(shift)(self.states, delta))

    def shard(self, devices: tuple[int, ...]) -> "Replicas":
        """**Errors:** `DeclarationError`: replicas are no domain."""
        raise DeclarationError(
            "replicas are advanced together on one device: leave out devices=, or compute several "
            "exchanges at a time with sweep(…, replicas=…)"
        )

    def faults(self) -> Int[Array, ""]:
        def is_component(x: PyTree) -> bool:
            return isinstance(x, AbstractComponent)

        def bits(state: State) -> Int[Array, ""]:
            total = jnp.zeros((), jnp.int32)
            for part in jax.tree.leaves(state, is_leaf=is_component):
                total = total | part.faults() if is_component(part) else total
            return total

        return jnp.bitwise_or.reduce(eqx.filter_vmap(bits)(self.states))
