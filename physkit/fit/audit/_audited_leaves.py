"""Which leaves an audit differentiates by, what they are called, and which of them ought to matter."""

import dataclasses
from collections.abc import Callable, Mapping

import equinox as eqx
import jax
from jaxtyping import Array

from physkit.core import Module, PyTree, SelectionError, State, as_parameter
from physkit.simulate import Simulation

from .._select import Path, Selection, Where, select


@dataclasses.dataclass(frozen=True)
class AuditedLeaf:
    """A floating leaf of `(sim, state)`: `integrator.force…`, or `state.position`."""

    name: str
    value: Array
    of_state: bool


def select_leaves(
    model: tuple[Simulation, State], where: Where | None
) -> tuple[list[AuditedLeaf], Callable[[list[Array]], tuple[Simulation, State]]]:
    """The audited leaves, and a function that puts other numbers in their places."""
    leaves_of_sim = len(jax.tree.leaves(model[0]))
    with_paths, _ = jax.tree_util.tree_flatten_with_path(model)
    if where is None:
        # Every floating leaf that is not empty, named by its whole path.
        numbers = [k for k, (_, x) in enumerate(with_paths) if eqx.is_inexact_array(x) and x.size]
        if not numbers:
            raise SelectionError("there is no floating leaf to differentiate by")
        names = tuple(_path_in_model(with_paths[k][0]) for k in numbers)
        selection = Selection(names, tuple(numbers), ((),) * len(numbers))
    else:
        selection = select(where, model)
    values = selection.get(model)
    leaves = [
        AuditedLeaf(
            name=_label(name, with_paths[number][0], where),
            value=values[name],
            of_state=number >= leaves_of_sim,
        )
        for name, number in zip(selection.names, selection.leaf_numbers, strict=True)
    ]

    def put_values(values: list[Array]) -> tuple[Simulation, State]:
        return selection.put(model, dict(zip(selection.names, values, strict=True)))

    return leaves, put_values


def declared_parameters(sim: Simulation) -> set[str]:
    """Names of the parameters inside the integrator: those that ought to have an effect."""
    found: set[str] = set()

    def is_module(node: PyTree) -> bool:
        return isinstance(node, Module)

    def collect(node: PyTree, path: Path) -> None:
        if isinstance(node, Module):
            for field in dataclasses.fields(node):
                if field.metadata.get("static", False):
                    continue
                value = getattr(node, field.name, None)
                field_path = (*path, jax.tree_util.GetAttrKey(field.name))
                # `param()` is known by its converter: a default may have been replaced by anything.
                is_parameter = field.metadata.get("converter") is as_parameter
                if is_parameter and eqx.is_inexact_array(value):
                    found.add(_path_in_model((jax.tree_util.SequenceKey(0), *field_path)))
                elif not is_parameter:
                    collect(value, field_path)
        else:
            parts, _ = jax.tree_util.tree_flatten_with_path(node, is_leaf=is_module)
            for path_inside, part in parts:
                if is_module(part):
                    collect(part, (*path, *path_inside))

    collect(sim.integrator, (jax.tree_util.GetAttrKey("integrator"),))
    return found


def _label(name: str, path: Path, where: Where | None) -> str:
    """What the user called it; else its path in the model, and which part of the leaf is meant."""
    if isinstance(where, Mapping):
        return name
    # `name` is the path inside of sim or state, and perhaps an index: keep the index.
    path_in_leaf = jax.tree_util.keystr(path[1:]).removeprefix(".")
    index = name[len(path_in_leaf) :] if path_in_leaf and name.startswith(path_in_leaf) else ""
    return _path_in_model(path) + index


def _path_in_model(path: Path) -> str:
    """A path of `(sim, state)` as text: `integrator.force…`, or `state.position`."""
    # The first key says which of the two: 0 for the simulation, 1 for the state.
    owner, rest = path[0].idx, jax.tree_util.keystr(path[1:])
    return f"state{rest}" if owner else rest.removeprefix(".")
