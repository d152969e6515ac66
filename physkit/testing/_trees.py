"""Trees of parameters: their declared leaves, small random changes, and batches of trees."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from physkit.core import AbstractTerm, Module, PyTree, as_parameter, is_random_key

from ._compare import check_equal, leaves_by_name, typical_magnitude


def flatten_floats(tree: PyTree) -> tuple[list[str], list[Any], Callable[[list[Any]], Any]]:
    """Paths and values of the floating leaves of `tree`, and how to put others in their place."""
    # Integers, keys and static fields stay in `rest`: they have no derivative.
    floating, rest = eqx.partition(tree, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(floating)

    def join(values: list[Any]) -> Any:
        return eqx.combine(jax.tree.unflatten(structure, values), rest)

    return list(leaves_by_name(floating)), leaves, join


def parameter_paths(tree: PyTree, prefix: str = "") -> set[str]:
    """Paths of the floating leaves that Modules in `tree` declare with `param()`."""
    found: set[str] = set()

    def is_other(node):
        return isinstance(node, Module) and node is not tree

    if not isinstance(tree, Module):
        for path, node in _nodes(tree, is_other):
            found |= parameter_paths(node, prefix + path)
        return found
    for field in dataclasses.fields(tree):
        value, path = getattr(tree, field.name, None), f"{prefix}.{field.name}"
        if field.metadata.get("static", False):
            continue  # no leaf of the tree
        # `param()` is what sets this converter; `data()` has another, and counts as no parameter.
        if field.metadata.get("converter") is as_parameter:
            found |= {path + p for p, x in leaves_by_name(value).items() if eqx.is_inexact_array(x)}
        elif isinstance(value, Module):
            found |= parameter_paths(value, path)
        else:
            for path_below, node in _nodes(value, is_other):
                found |= parameter_paths(node, path + path_below)
    return found


def _nodes(tree: PyTree, is_other: Callable[[Any], bool]) -> Iterable[tuple[str, Any]]:
    pairs = jax.tree_util.tree_leaves_with_path(tree, is_leaf=is_other)
    return [(jax.tree_util.keystr(p), x) for p, x in pairs if isinstance(x, Module)]


def check_no_numbers_in_static(tree: PyTree, what: str, ignore: Sequence[str] = ()) -> None:
    """No static field of a term holds a float: physics there would have no derivative.

    Cutoff, skin, tolerance and the height of a slab's vacuum may be static: they decide which pairs and waves
    a program is made for.
    """
    for module in modules(tree):
        if not isinstance(module, AbstractTerm) and not hasattr(module, "force_over_distance"):
            continue
        for field in dataclasses.fields(module):
            value = getattr(module, field.name, None)
            if field.name in ("cutoff", "skin", "tolerance", "slab", *ignore):
                continue
            if field.metadata.get("static", False) and isinstance(value, float):
                raise AssertionError(
                    f"{what}: the static field {type(module).__name__}.{field.name} = {value} is a "
                    "number with no derivative, and every new value of it recompiles; declare it "
                    "with param(), or name it in ignore=… if it is no physics"
                )


def modules(tree: PyTree) -> list[Module]:
    """Every Module in `tree`, outermost first."""
    found: list[Module] = []

    def collect(node: PyTree, top: PyTree) -> None:
        inner = jax.tree.leaves(node, is_leaf=lambda x: isinstance(x, Module) and x is not top)
        for child in inner:
            if isinstance(child, Module) and child is not top:
                found.append(child)
                collect(child, child)

    if isinstance(tree, Module):
        found.append(tree)
    collect(tree, tree)
    return found


def symmetrize_tables(tree: PyTree) -> Any:
    """`tree` with the per-species tables of its pair potentials made symmetric.

    The pair ij is the pair ji: derivatives in a direction that tells them apart mean nothing.
    """

    def is_potential(node):
        return hasattr(node, "force_over_distance") and isinstance(node, Module)

    def is_table(leaf):
        return eqx.is_inexact_array(leaf) and leaf.ndim == 2 and leaf.shape[0] == leaf.shape[1]

    def symmetrize(node):
        if not is_potential(node):
            return node
        return jax.tree.map(lambda x: 0.5 * (x + x.T) if is_table(x) else x, node)

    return jax.tree.map(symmetrize, tree, is_leaf=is_potential)


def perturb(tree: PyTree, seed: int, size: float) -> Any:
    """Every floating leaf of `tree` changed by random numbers of `size` times its own size."""
    _, leaves, join = flatten_floats(tree)
    return join(
        [
            as_array_like(x, np.asarray(x) + size * random_direction(x, (seed, i)))
            for i, x in enumerate(leaves)
        ]
    )


def random_direction(leaf: PyTree, seed: Any) -> Any:
    """Normal noise as large as the leaf's own numbers; 0 where they are infinite (a limit)."""
    return np.where(
        np.isfinite(np.asarray(leaf)), typical_magnitude(leaf) * random_like(leaf, seed), 0
    )


def random_like(leaf: PyTree, seed: Any) -> Any:
    """Normal noise of the leaf's shape and precision, made on the host."""
    # numpy, not jax.random: no compilation per shape, and the same numbers in every precision.
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=jnp.shape(leaf))
    if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
        noise = noise + 1j * generator.normal(size=jnp.shape(leaf))
    return np.asarray(noise, leaf.dtype)


def as_array_like(leaf: PyTree, value: ArrayLike) -> Any:
    """`value` as a JAX array of the leaf's precision."""
    return jax.device_put(np.asarray(value, leaf.dtype))  # `asarray` compiles a program per shape


def stack_members(members: list[Any]) -> tuple[Any, Any]:
    """The arrays of several trees stacked along a new first axis, and everything else."""
    # What is no array must be equal in all members; that of the first stands for it.
    arrays, rest = zip(*(eqx.partition(m, eqx.is_array) for m in members), strict=True)
    return jax.tree.map(stack_leaves, *arrays), rest[0]


def stack_leaves(*leaves: Any) -> Any:
    """Arrays along a new first axis, on the host (random keys where they are)."""
    if is_random_key(leaves[0]):
        return jnp.stack(leaves)
    return jax.device_put(np.stack([np.asarray(x) for x in leaves]))


def check_batch(
    function: Callable[[Any], Any], members: list[Any], what: str, kind: str | dict[str, str]
) -> None:
    """`vmap` of `function` over the members equals a Python loop over them.

    - `kind`: row of the tolerance table, or one for each entry of what `function` returns.
    """
    arrays, rest = stack_members(members)
    # Compiled, too: only the batching may differ, and not the fusion of operations.
    function = compiled(function)

    def call(arrays):
        return eqx.filter(function(eqx.combine(arrays, rest)), eqx.is_array)

    try:
        batched = jax.jit(jax.vmap(call))(arrays)
    except Exception as error:
        raise AssertionError(f"{what}: fails under vmap: {first_line(error)}") from error
    results = [eqx.filter(function(m), eqx.is_array) for m in members]
    expected = jax.tree.map(stack_leaves, *results)
    if isinstance(kind, str):
        check_equal(batched, expected, f"{what}, vmap", kind)
        return
    for name in expected:
        check_equal(batched[name], expected[name], f"{what}, vmap: {name}", kind[name])


def compiled(function: Callable) -> Callable:
    """`function` under `eqx.filter_jit`; one that is compiled already stays as it is."""
    return function if hasattr(function, "lower") else eqx.filter_jit(function)


def require_traceable(function: Callable, what: str) -> Callable:
    """`function`, compiled; a failure to trace it says what that means."""
    return explain_untraceable(compiled(function), what)


def explain_untraceable(function: Callable, what: str) -> Callable:
    """`function`, whose failures to be traced say what that means."""

    def call(*args: Any):
        # Only these two say that Python wanted a number; other errors are the user's own.
        try:
            return function(*args)
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
            raise AssertionError(
                f"{what}: cannot be compiled, because it reads the numbers of an array in Python "
                f"(an if, a loop, float()); use jnp.where or lax.cond: {first_line(error)}"
            ) from error

    return call


def first_line(error: BaseException) -> str:
    """What an error says first, for one line of a report."""
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
