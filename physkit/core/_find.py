"""`find`: a part of a model by its class, or by the name of a term."""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from jax import tree_util

from ._errors import SelectionError
from ._module import Module
from ._types import PyTree

_MAX_LISTED = 12

T = TypeVar("T")  # the class that is asked for


def find(tree: PyTree, what: type[T] | str) -> T:
    """The one part of `tree` that is a `what`, or the term that has this name.

        pk.find(sim, pk.HarmonicTrap).stiffness
        pk.find(sim, "trap").stiffness              # of pk.HarmonicTrap(4.0).named("trap")
        pk.fit(loss, (sim, state), where=lambda m: pk.find(m, pk.LennardJones).epsilon)

    Functions that select numbers of a model – in `fit`, `gradient_audit`, `SweepAxis` – may use it, so that
    they do not depend on how the model is put together.

    **Arguments:**

    - `tree`: a simulation, an integrator, `(simulation, state)`: any pytree.
    - `what`: a class, an abstract one too; or the name that a term was given by `named`.

    **Errors:** `SelectionError` where nothing or more than one thing is found; it lists the candidates
    with their paths.
    """
    if not isinstance(what, type | str):
        raise SelectionError(f"find takes a class or the name of a term; got {what!r}")
    parts = list(_parts(tree))
    if isinstance(what, str):
        matches = [part for part in parts if part.name == what]
    else:
        matches = [part for part in parts if isinstance(part.value, what)]
    if len(matches) != 1:
        raise SelectionError(_selection_message(what, matches, parts))
    return matches[0].value


def path_name(path: tuple[Any, ...]) -> str:
    """A path of a tree as Python would write it: `force.terms[0].epsilon`."""
    text = ""
    for key in path:
        if isinstance(key, tree_util.GetAttrKey):
            text += f".{key.name}"
        elif isinstance(key, tree_util.DictKey):
            text += f".{key.key}" if str(key.key).isidentifier() else f"[{key.key!r}]"
        elif isinstance(key, tree_util.SequenceKey):
            text += f"[{key.idx}]"
        else:
            text += str(key)
    return text.removeprefix(".")


class _Part(NamedTuple):
    """A node of a tree: the node, its path, and the name that a sum gives it as one of its terms."""

    value: Any
    path: tuple[Any, ...]
    name: str | None


def _parts(
    tree: PyTree,
    path: tuple[Any, ...] = (),
    name: str | None = None,
    names_inside: tuple[str | None, ...] = (),
) -> Iterator[_Part]:
    """Every node of a tree, each before the nodes inside it."""
    yield _Part(tree, path, name)
    # A sum has its names in `term_names`, but its terms one level further down, in a tuple: hand the names on
    # from the sum to the tuple.
    if isinstance(tree, Module):
        names_inside = getattr(tree, "term_names", ())
        names = ()
    else:
        names, names_inside = names_inside, ()
    # One level at a time: `tree_flatten` alone would skip the nodes between the root and the leaves.
    children, _ = tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: node is not tree)
    for k, (step, child) in enumerate(children):
        # A leaf is its own only child.
        if child is not tree:
            yield from _parts(
                child, (*path, *step), names[k] if k < len(names) else None, names_inside
            )


def _selection_message(what: type | str, matches: list[_Part], parts: list[_Part]) -> str:
    """The error message where not exactly one part was found."""
    kind = f"named {what!r}" if isinstance(what, str) else what.__name__
    if matches:
        return (
            f"{len(matches)} parts of the model are {kind}: {_list_parts(matches)}. Name the one that is "
            'meant, term.named("trap"), and find it by its name, or search a part of the model only'
        )
    if isinstance(what, type):
        modules = [part for part in parts if isinstance(part.value, Module)]
        return f"no part of the model is a {kind}. Available: {_list_parts(modules) or 'nothing'}"
    named = [part for part in parts if part.name is not None]
    if not named:
        return (
            f"no term of the model is {kind}: no term has a name. Give it one when you build the sum, "
            f"term.named({what!r})"
        )
    return f"no term of the model is {kind}. Named terms: {_list_parts(named)}"


def _list_parts(candidates: list[_Part]) -> str:
    """Classes, names and paths of candidates."""
    shown = []
    for value, path, name in candidates[:_MAX_LISTED]:
        label = "" if name is None else f" {name!r}"
        shown.append(f"{type(value).__name__}{label} at {path_name(path) or 'the top'}")
    num_omitted = len(candidates) - len(shown)
    return ", ".join(shown) + (f" and {num_omitted} more" if num_omitted else "")
