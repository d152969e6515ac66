"""Components of a state (one, or a plain dict of them by name), and the rates that are added to them."""

import abc
import dataclasses
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int

from ._errors import ComponentError, ShapeError
from ._module import Module, replace_fields
from ._types import PyTree, Rate, State
from .calls._explain import describe
from .calls._numbers_by_name import numbers_by_name
from .calls._returned import require_returned
from .numerics._products import scale_arrays
from .numerics._tangents import is_none

Kind = TypeVar("Kind")  # of a component


class AbstractComponent(Module):
    """One named part of a state: particles, a field, rigid bodies, a thermostat."""

    # Whether its arrays are a device's own even where they have the shape of those of the whole domain.
    is_of_device: ClassVar[bool] = False

    def to_numpy(self) -> dict[str, Any]:
        """Its numbers as NumPy arrays, by the names of its fields; parts are dicts of theirs.

        `pk.interop.to_numpy` does the same to any tree.

        **Errors:** `DeclarationError` inside of `jit`, `grad` or `vmap`.
        """
        return numbers_by_name(self)

    @abc.abstractmethod
    def shift(self, delta: Rate) -> "AbstractComponent":
        """self ⊕ `delta`, where `delta` has the form of this component's rates."""

    def difference(self, other: "AbstractComponent") -> PyTree:
        """The difference to `other`, a component of the same form: arrays that are 0 where both agree."""
        floats = eqx.filter(self, eqx.is_inexact_array), eqx.filter(other, eqx.is_inexact_array)
        return jax.tree.map(operator.sub, *floats)

    def unwrap(self) -> "AbstractComponent":
        """This component with positions as if they were never wrapped into a box: they change smoothly."""
        return self

    def increment(self) -> Rate:
        """This component's numbers, read as a rate of a component of the same form."""
        return self

    def as_own_increment(self, delta: Rate) -> Rate:
        """What a term returned as the rate of this component, in the form of its rates; here as it is.

        **Errors:** of components that know what they take for a rate.
        """
        return delta

    def at_time(self, t: ArrayLike) -> "AbstractComponent":
        """This component as terms see it at time `t`: what depends on time by itself is evaluated."""
        del t
        return self

    def with_prescribed_values(self, t: ArrayLike) -> "AbstractComponent":
        """This component with the numbers that it prescribes to itself at time `t`: those on walls."""
        del t
        return self

    def shard(self, devices: tuple[int, ...]) -> "AbstractComponent":
        """This component in device layout, over `devices[k]` devices along axis k of space.

        Every array gets a leading axis over the devices: `[device, …]`, row-major. Components in its fields
        shard themselves; by default all other arrays are replicated.
        """

        def shard_component(component: AbstractComponent) -> AbstractComponent:
            return component.shard(devices)

        return _map_fields(self, shard_component, lambda x: replicate(x, devices))

    def unshard(self, devices: tuple[int, ...]) -> "AbstractComponent":
        """The inverse of `shard`."""

        def unshard_component(component: AbstractComponent) -> AbstractComponent:
            return component.unshard(devices)

        return _map_fields(self, unshard_component, _first_row)

    def needs_migration(self) -> Bool[Array, ""] | None:
        """Whether any part of it must change devices now; None if its parts never do."""

    def migrate(self) -> "AbstractComponent":
        """This component with each part on the device that it belongs to."""
        return self

    def grow_to_fit(self, measured: "AbstractComponent") -> tuple["AbstractComponent", list[str]]:
        """Grow the capacities of this component to what `measured` required; return also what has grown.

        Both are in device layout; `measured` is the same component at a later step.
        """
        del measured
        return self, []

    def faults(self) -> Int[Array, ""]:
        """Bits of `Fault` for values without physical meaning, such as a negative mass."""
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

    return _map_components(tree, unshard_component, _first_row)


def replicate(x: ArrayLike, devices: tuple[int, ...]) -> Array:
    """The array `x` on every device: a leading axis over them."""
    return jnp.broadcast_to(x, (math.prod(devices), *jnp.shape(x)))


def _first_row(x: Array) -> Array:
    """The row of the first device, of an array whose rows are all equal."""
    return x[0]


def _map_components(tree: PyTree, of_component: Callable, of_array: Callable) -> PyTree:
    def map_node(x: PyTree) -> PyTree:
        if _is_component(x):
            return of_component(x)
        # Other leaves (functions, None, markers) are the same on every device.
        return of_array(x) if isinstance(x, jax.Array | np.ndarray | np.generic) else x

    return jax.tree.map(map_node, tree, is_leaf=_is_component)


def _map_fields(
    module: AbstractComponent, of_component: Callable, of_array: Callable
) -> AbstractComponent:
    """`_map_components` inside of a component, which itself would be the first that it finds."""
    changes = {
        field.name: _map_components(getattr(module, field.name), of_component, of_array)
        for field in dataclasses.fields(module)
        if not field.metadata.get("static", False)
    }
    # Unchecked: in device layout arrays have an axis more than the annotations of the fields say.
    return replace_fields(module, changes)


def _is_component(x: PyTree) -> bool:
    return isinstance(x, AbstractComponent)


def get_component(state: State, name: str | None) -> State:
    """The component called `name`; for None the state itself, if it is a single component.

    **Errors:** `ComponentError`, which lists the components that there are.
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


def require_component(state: State, name: str | None, kind: type[Kind]) -> Kind:
    """The component called `name`, which is of this kind.

    **Errors:** those of `get_component`; `ComponentError` where it is something else.
    """
    found = get_component(state, name)
    if not isinstance(found, kind):
        raise ComponentError(
            f"this is about {kind.__name__}; {'the state' if name is None else repr(name)} is {describe(found)}"
        )
    return found


def put_component(state: State, name: str | None, component: State) -> State:
    """`state` with the component called `name` replaced.

    **Errors:** those of `get_component`.
    """
    get_component(state, name)  # for its errors
    return component if name is None else {**state, name: component}


def shift(state: State, delta: Rate) -> State:
    """`state` ⊕ `delta`: components by their own `shift`, bare arrays by addition; None changes nothing.

    **Errors:** `ComponentError` for a rate of a component that the state does not have; `ShapeError` for a rate
    of another form or shape than a bare state, which would broadcast.
    """
    return _shift(state, delta, "")


def _shift(state: State, delta: Rate, path: str) -> State:
    """`shift` of the part of a state at `path`."""
    if delta is None:
        return state
    if isinstance(state, dict) and isinstance(delta, dict):
        unknown = sorted(set(delta) - set(state))
        if unknown:
            raise ComponentError(f"rate names {unknown}; available: {sorted(state)}")
        return {
            k: _shift(v, delta[k], f"{path}[{k!r}]") if k in delta else v for k, v in state.items()
        }
    if isinstance(state, AbstractComponent):
        return state.shift(delta)
    form = jax.tree.structure(state), jax.tree.structure(delta)
    if form[0] != form[1]:
        place = path or "the state"
        raise ShapeError(f"the rate does not fit {place}: its form is {form[1]}, not {form[0]}")

    def add(inner: tuple, x: ArrayLike, rate: ArrayLike) -> Array:
        if jnp.shape(x) != jnp.shape(rate):
            place = path + jax.tree_util.keystr(inner) or "the state"
            raise ShapeError(
                f"the rate does not fit {place}: its shape {list(jnp.shape(rate))} would be broadcast to "
                f"{list(jnp.shape(x))}; a rate has the shape and precision of what it changes, e.g. "
                "jnp.full_like(y, 1.0)"
            )
        return jnp.add(x, rate)

    return jax.tree_util.tree_map_with_path(add, state, delta)


def at_time(state: State, t: ArrayLike) -> State:
    """`state` as terms see it at time `t`: each component by its own `at_time`."""
    return _map_components(state, lambda component: component.at_time(t), _identity)


def with_prescribed_values(state: State, t: ArrayLike) -> State:
    """`state` with the numbers that its components prescribe to themselves at time `t`."""
    return _map_components(state, lambda component: component.with_prescribed_values(t), _identity)


def as_increment(rate: PyTree) -> Rate:
    """`rate` with every component in it as an increment: a term may return a field as the rate of one."""

    def convert(x: PyTree) -> PyTree:
        return x.increment() if _is_component(x) else x

    return jax.tree.map(convert, rate, is_leaf=_is_component)


def as_rate_of(state: State, rate: PyTree, term: str) -> Rate:
    """What a term returned for `state`, as increments: arrays and fields, too, are rates of fields.

    - `term`: its name, for errors.

    **Errors:** `DeclarationError` for None; `ComponentError` for a rate without names where the state has
    components; `ShapeError` for what is no rate of a component.
    """
    rate = as_increment(rate)
    require_returned(rate, term)
    if not isinstance(state, dict):
        return state.as_own_increment(rate) if _is_component(state) else rate
    if not isinstance(rate, dict):
        raise ComponentError(
            f"{term} returned {describe(rate)}; a state with components takes rates by their names, of one or "
            f"more of {sorted(state)}: return {{{min(state)!r}: …}}"
        )

    def convert(name: str, part: Rate) -> Rate:
        component = state.get(name)
        is_plain = part is None or not _is_component(component)
        return part if is_plain else component.as_own_increment(part)

    return {name: convert(name, part) for name, part in rate.items()}


def combine_rates(weights: Sequence[ArrayLike], rates: Sequence[Rate]) -> Rate:
    """Σ wᵢ·rateᵢ over partial rates: a component or leaf that a rate leaves out counts as zero.

    **Errors:** `ShapeError` for rates of different forms.
    """
    scaled = []
    for weight, rate in zip(weights, rates, strict=True):
        leaves, tree = jax.tree.flatten(rate)
        scaled.append(tree.unflatten(scale_arrays(leaves, weight)))
    return _sum_rates(scaled)


def _sum_rates(rates: Sequence[Rate]) -> Rate:
    rates = [rate for rate in rates if rate is not None]
    if not rates:
        return None
    if isinstance(rates[0], dict):
        # Not a set: its order differs from process to process, and with it the order of the program.
        names = dict.fromkeys(name for rate in rates for name in rate)
        return {name: _sum_rates([rate.get(name) for rate in rates]) for name in names}
    # None counts as a leaf, so that partial rates have the same structure as full ones.
    leaves, trees = zip(*(jax.tree.flatten(rate, is_leaf=is_none) for rate in rates), strict=True)
    for tree in trees[1:]:
        if tree != trees[0]:
            raise ShapeError(
                f"rates of different kinds cannot be added: {trees[0]} and {tree} (a field's rate has "
                "its location)"
            )
    return trees[0].unflatten([_sum_leaves(column) for column in zip(*leaves, strict=True)])


def _sum_leaves(terms: Sequence[Array | None]) -> Array | None:
    # In the order of the rates: another order of the sum would change last bits.
    present = [x for x in terms if x is not None]
    return sum(present[1:], present[0]) if present else None


def _identity(x: Array) -> Array:
    return x
