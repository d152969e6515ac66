"""Which leaves an audit looks at, and what they are called."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from physkit.core import Module, SelectionError, as_parameter

from .._select import Selection, Where, select


@dataclasses.dataclass(frozen=True)
class AuditedLeaf:
    """A floating leaf of `(sim, state)`: `integrator.force…`, or `state.position`."""

    name: str
    value: Array
    of_state: bool


def select_leaves(
    model: tuple[Any, Any], where: Where | None
) -> tuple[list[AuditedLeaf], Callable[[list[Any]], Any]]:
    """The leaves looked at, and the model with other numbers in their places."""
    sim_leaves = len(jax.tree.leaves(model[0]))
    paths, _ = jax.tree_util.tree_flatten_with_path(model)
    if where is None:
        places = [k for k, (_, x) in enumerate(paths) if eqx.is_inexact_array(x) and x.size]
        if not places:
            raise SelectionError("there is no floating leaf to differentiate by")
        chosen = Selection(
            tuple(_name(paths[k][0]) for k in places), tuple(places), ((),) * len(places)
        )
    else:
        chosen = select(where, model)
    values = chosen.get(model)
    leaves = []
    for name, place in zip(chosen.names, chosen.places, strict=True):
        own = place >= sim_leaves
        leaves.append(AuditedLeaf(_label(name, paths[place][0], where), values[name], own))

    def join(numbers: list[Any]) -> Any:
        return chosen.put(model, dict(zip(chosen.names, numbers, strict=True)))

    return leaves, join


def declared_parameters(sim: Any) -> set[str]:
    """Names of the parameters inside the integrator: those that ought to have an effect."""
    found: set[str] = set()

    def walk(node: Any, path: tuple) -> None:
        if isinstance(node, Module):
            for field in dataclasses.fields(node):
                if field.metadata.get("static", False):
                    continue
                value = getattr(node, field.name, None)
                below = (*path, jax.tree_util.GetAttrKey(field.name))
                is_parameter = field.metadata.get("converter") is as_parameter
                if is_parameter and eqx.is_inexact_array(value):
                    found.add(_name((jax.tree_util.SequenceKey(0), *below)))
                elif not is_parameter:
                    walk(value, below)
        else:
            inner, _ = jax.tree_util.tree_flatten_with_path(
                node, is_leaf=lambda x: isinstance(x, Module)
            )
            for below, part in inner:
                if isinstance(part, Module):
                    walk(part, (*path, *below))

    walk(sim.integrator, (jax.tree_util.GetAttrKey("integrator"),))
    return found


def _label(name: str, path: tuple, where: Where | None) -> str:
    """What the user called it; else its place in the model, and which part of it is meant."""
    if isinstance(where, Mapping):
        return name
    bare = jax.tree_util.keystr(path[1:]).removeprefix(".")
    part = name[len(bare) :] if name.startswith(bare) and bare else ""
    return _name(path) + part


def _name(path: tuple) -> str:
    owner, rest = path[0].idx, jax.tree_util.keystr(path[1:])
    return f"state{rest}" if owner else rest.removeprefix(".")
