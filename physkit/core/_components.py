"""States: one component, or a plain dict of named components; and the rates that are added to them."""

import abc
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int

from ._errors import ComponentError, ShapeError
from ._module import Module, replace_fields
from ._types import PyTree, Rate, State
from .numerics._complex import scale_array


class AbstractComponent(Module):
    """One named part of a state: particles, a field, rigid bodies, a thermostat."""

    @abc.abstractmethod
    def shift(self, delta: Rate) -> "AbstractComponent":
        """state ⊕ delta, where delta is of the kind that this component's rates are of."""

    def difference(self, other: "AbstractComponent") -> PyTree:
        """What separates this component from `other`, one of its kind: arrays that are 0 where both agree."""
        floats = eqx.filter(self, eqx.is_inexact_array), eqx.filter(other, eqx.is_inexact_array)
        return jax.tree.map(lambda x, y: x - y, *floats)

    def unwrap(self) -> "AbstractComponent":
        """This component with positions as if never folded back into a cell: they change smoothly."""
        return self

    def increment(self) -> Rate:
        """This component's own numbers, read as a rate of a component of its kind."""
        return self

    def shard(self, devices: tuple[int, ...]) -> "AbstractComponent":
        """This component in device layout, over `devices[k]` devices along axis k of space.

        Every array gets a leading axis over the devices, row-major. Components in its fields shard
        themselves; by default all other arrays are replicated.
        """

        def shard_component(component: AbstractComponent) -> AbstractComponent:
            return component.shard(devices)

        return _map_fields(self, shard_component, lambda x: replicate(x, devices))

    def unshard(self, devices: tuple[int, ...]) -> "AbstractComponent":
        """The inverse of `shard`."""

        def unshard_component(component: AbstractComponent) -> AbstractComponent:
            return component.unshard(devices)

        return _map_fields(self, unshard_component, lambda x: x[0])

    def needs_migration(self) -> Bool[Array, ""] | None:
        """Whether any part of it must change devices now; None if none ever does."""

    def migrate(self) -> "AbstractComponent":
        """This component, each part of it on the device that it belongs to."""
        return self

    def grow_to_fit(self, measured: "AbstractComponent") -> tuple["AbstractComponent", list[str]]:
        """Grow capacities of this component, in device layout, to what `measured`, the same component later,
        required; and say what has grown."""
        del measured
        return self, []

    def faults(self) -> Int[Array, ""]:
        """Fault bits of values without physical meaning (a negative mass)."""
        return jnp.zeros((), jnp.int32)


def shard(tree: PyTree, devices: tuple[int, ...]) -> PyTree:
    """`tree` in device layout: components shard themselves, all other arrays are replicated."""

    def shard_component(component: AbstractComponent) -> AbstractComponent:
        return component.shard(devices)

    return _map_components(tree, shard_component, lambda x: replicate(x, devices))


def unshard(tree: PyTree, devices: tuple[int, ...]) -> PyTree:
    """The inverse of `shard`."""

    def unshard_component(component: AbstractComponent) -> AbstractComponent:
        return component.unshard(devices)

    return _map_components(tree, unshard_component, lambda x: x[0])


def replicate(x: ArrayLike, devices: tuple[int, ...]) -> Array:
    """The array `x` on every device: a leading axis over them."""
    return jnp.broadcast_to(x, (math.prod(devices), *jnp.shape(x)))


def _map_components(tree: PyTree, of_component: Callable, of_array: Callable) -> PyTree:
    def map_node(x: Any) -> Any:
        if _is_component(x):
            return of_component(x)
        return of_array(x) if isinstance(x, jax.Array | np.ndarray | np.generic) else x

    return jax.tree.map(map_node, tree, is_leaf=_is_component)


def _map_fields(module: Module, of_component: Callable, of_array: Callable) -> Any:
    """`_map_components` in the fields of a component, which would otherwise count as one itself."""
    changes = {
        field.name: _map_components(getattr(module, field.name), of_component, of_array)
        for field in dataclasses.fields(module)
        if not field.metadata.get("static", False)
    }
    return replace_fields(module, changes)


def _is_component(x: Any) -> bool:
    return isinstance(x, AbstractComponent)


def get_component(state: State, name: str | None) -> State:
    """The component called `name`; the state itself for None.

    **Errors:** `ComponentError` names what there is.
    """
    if name is None:
        if isinstance(state, dict):
            raise ComponentError(
                f"the state has several components; say component=… (one of {sorted(state)})"
            )
        return state
    if not isinstance(state, dict):
        raise ComponentError(
            f"no component {name!r}: the state is a single {type(state).__name__}, not a dict"
        )
    if name not in state:
        raise ComponentError(f"no component {name!r} in state; available: {sorted(state)}")
    return state[name]


def put_component(state: State, name: str | None, component: State) -> State:
    """`state` with the component called `name` replaced."""
    get_component(state, name)
    return component if name is None else {**state, name: component}


def shift(state: State, delta: Rate) -> State:
    """state ⊕ delta: each component by its own `shift`, bare arrays by addition, None stays."""
    if delta is None:
        return state
    if isinstance(state, dict) and isinstance(delta, dict):
        unknown = sorted(set(delta) - set(state))
        if unknown:
            raise ComponentError(f"rate names {unknown}; available: {sorted(state)}")
        return {k: shift(v, delta[k]) if k in delta else v for k, v in state.items()}
    if isinstance(state, AbstractComponent):
        return state.shift(delta)
    return jax.tree.map(jnp.add, state, delta)


def as_increment(rate: PyTree) -> Rate:
    """`rate` with every component in it read as an increment: a field may be returned as a rate."""

    def read(x: Any) -> Any:
        return x.increment() if _is_component(x) else x

    return jax.tree.map(read, rate, is_leaf=_is_component)


def combine_rates(weights: Sequence[ArrayLike], rates: Sequence[Rate]) -> Rate:
    """Σ wᵢ·rateᵢ over partial rates: a name or leaf that a rate leaves out counts as zero."""
    pairs = [(w, r) for w, r in zip(weights, rates, strict=True) if r is not None]
    if not pairs:
        return None
    first = pairs[0][1]
    if isinstance(first, dict):
        names = dict.fromkeys(name for _, rate in pairs for name in rate)
        return {
            name: combine_rates([w for w, _ in pairs], [rate.get(name) for _, rate in pairs])
            for name in names
        }
    leaves, trees = zip(*(jax.tree.flatten(r, is_leaf=_is_none) for _, r in pairs), strict=True)
    for tree in trees[1:]:
        if tree != trees[0]:
            raise ShapeError(
                f"rates of different kinds cannot be added: {trees[0]} and {tree} (a field's rate has "
                "its location)"
            )
    columns = zip(*leaves, strict=True)
    return trees[0].unflatten([_weighted_sum([w for w, _ in pairs], column) for column in columns])


def _weighted_sum(weights: Sequence[ArrayLike], leaves: Sequence[Array | None]) -> Array | None:
    present = [scale_array(x, w) for w, x in zip(weights, leaves, strict=True) if x is not None]
    return sum(present[1:], present[0]) if present else None


def _is_none(x: Any) -> bool:
    return x is None
