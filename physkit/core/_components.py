"""States: one component, or a plain dict of named components; and what can be added to them."""

import abc
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._complex import scale_array
from ._errors import ComponentError, ShapeError
from ._module import Module, replace_fields
from ._types import PyTree, Rate, State


class AbstractComponent(Module):
    """One named part of a state: particles, a field, rigid bodies, a thermostat."""

    @abc.abstractmethod
    def shift(self, delta: Any) -> "AbstractComponent":
        """state ⊕ delta, where delta is of the kind that this component's rates are of."""

    def difference(self, other: "AbstractComponent") -> PyTree:
        """What separates this component from `other`, one of its kind: arrays that are 0 where both agree."""
        floats = eqx.filter(self, eqx.is_inexact_array), eqx.filter(other, eqx.is_inexact_array)
        return jax.tree.map(lambda x, y: x - y, *floats)

    def unwrap(self) -> "AbstractComponent":
        """This component with positions as if never folded back into a cell: they change smoothly."""
        return self

    def increment(self) -> Any:
        """This component's own numbers, read as a rate of one of its kind."""
        return self

    def shard(self, devices: tuple[int, ...]) -> "AbstractComponent":
        """This component over a grid of devices, `devices[k]` along axis k of space.

        Every array has a leading axis over the devices, row-major. Components inside are cut their own
        way; by default all other arrays are the same on every device.
        """
        return _each_part(self, lambda part: part.shard(devices), lambda x: replicate(x, devices))

    def unshard(self, devices: tuple[int, ...]) -> "AbstractComponent":
        """The whole of what `cut` made parts of."""
        return _each_part(self, lambda part: part.unshard(devices), lambda x: x[0])

    def needs_migration(self) -> Any:
        """Whether parts of it must change devices now, on any of them; None where they never do."""

    def migrate(self) -> "AbstractComponent":
        """This component after parts of it have changed devices."""
        return self

    def grow_to_fit(self, measured: "AbstractComponent") -> tuple["AbstractComponent", list[str]]:
        """This component, in device layout, with room for what it required later, and what has grown."""
        del measured
        return self, []

    def faults(self) -> Any:
        """Fault bits of values that physics cannot mean (a negative mass), as an int32 scalar."""
        return jnp.zeros((), jnp.int32)


def shard(tree: Any, devices: tuple[int, ...]) -> Any:
    """`tree` over a grid of devices: components cut, everything else the same on every device."""
    return _by_component(
        tree, lambda component: component.shard(devices), lambda x: replicate(x, devices)
    )


def unshard(tree: Any, devices: tuple[int, ...]) -> Any:
    """The whole of what `cut` made parts of."""
    return _by_component(tree, lambda component: component.unshard(devices), lambda x: x[0])


def replicate(x: Any, devices: tuple[int, ...]) -> Any:
    """The array `x` on every device: a leading axis over them."""
    return jnp.broadcast_to(x, (math.prod(devices), *jnp.shape(x)))


def _by_component(tree: Any, of_component: Callable, of_array: Callable) -> Any:
    is_component = lambda x: isinstance(x, AbstractComponent)
    is_array = lambda x: isinstance(x, jax.Array | np.ndarray | np.generic)

    def one(x):
        if is_component(x):
            return of_component(x)
        return of_array(x) if is_array(x) else x

    return jax.tree.map(one, tree, is_leaf=is_component)


def _each_part(module: Any, of_component: Callable, of_array: Callable) -> Any:
    parts = {f.name: getattr(module, f.name) for f in dataclasses.fields(module)}
    fixed = {f.name for f in dataclasses.fields(module) if f.metadata.get("static", False)}
    moved = {
        name: _by_component(part, of_component, of_array)
        for name, part in parts.items()
        if name not in fixed
    }
    return replace_fields(module, moved)


def get_component(state: State, name: str | None) -> Any:
    """The component called `name`; the state itself for None.

    **Errors:** `ComponentError` names what there is.
    """
    if name is None:
        if isinstance(state, dict):
            raise ComponentError(
                f"the state has several components; say of=… (one of {sorted(state)})"
            )
        return state
    if not isinstance(state, dict):
        raise ComponentError(
            f"no component {name!r}: the state is a single {type(state).__name__}, not a dict"
        )
    if name not in state:
        raise ComponentError(f"no component {name!r} in state; available: {sorted(state)}")
    return state[name]


def put_component(state: State, name: str | None, component: Any) -> State:
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


def as_increment(rate: Any) -> Rate:
    """`rate` with every component in it read as a change: a field may be returned as a rate."""
    is_component = lambda x: isinstance(x, AbstractComponent)
    read = lambda x: x.increment() if is_component(x) else x
    return jax.tree.map(read, rate, is_leaf=is_component)


def combine_rates(weights: Sequence[Any], rates: Sequence[Rate]) -> Rate:
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
    return trees[0].unflatten([_weighted([w for w, _ in pairs], column) for column in columns])


def _weighted(weights: Sequence[Any], leaves: Sequence[Any]) -> Any:
    present = [scale_array(x, w) for w, x in zip(weights, leaves, strict=True) if x is not None]
    return sum(present[1:], present[0]) if present else None


def _is_none(x: Any) -> bool:
    return x is None
