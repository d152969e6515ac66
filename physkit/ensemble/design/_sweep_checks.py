"""Checks of the arguments of a `Sweep`; each returns its argument in the form that the sweep keeps."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import (
    Count,
    Key,
    KeyLike,
    ParameterError,
    PyTree,
    SelectionError,
    State,
    as_count,
    as_key,
    as_state,
    float_dtype,
    replace_fields,
)
from physkit.integrators import ReplicaExchange
from physkit.simulate import Carry, Direct, Simulation

from ..statistics._reductions import AbstractReduction
from ._swept_leaves import SweptLeaf, set_leaves


def as_groups(model: PyTree) -> list[PyTree]:
    """The models of a sweep's groups; one model is one group."""
    if isinstance(model, list):
        if not model:
            raise ParameterError("a sweep needs a model; got an empty list")
        return model
    return [model]


def as_model(model: PyTree) -> tuple[Simulation, State]:
    """`(simulation, state)` with its numbers as JAX arrays, and without an adjoint."""
    is_pair = isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], Simulation)
    if not is_pair or isinstance(model[1], Carry):
        hint = " (a carry belongs to one run: give its state)" if is_pair else ""
        raise ParameterError(
            f"a sweep is over a model (simulation, state), or a list of them{hint}; got {model!r:.80}"
        )
    sim, state = model[0], as_state(model[1])
    float_dtype(state)  # raises for states of mixed precision

    def sim_leaf(x):
        return jnp.asarray(x) if isinstance(x, np.ndarray) else x

    # Plain numbers in components of a state become arrays, too: they evolve. In a simulation they may be static
    # choices.
    def state_leaf(x):
        return jnp.asarray(x) if eqx.is_array_like(x) and not eqx.is_array(x) else x

    # No derivative is taken through a chunk: with `Direct`, no level of its loops is rematerialized.
    sim = replace_fields(sim, {"adjoint": Direct()})
    return jax.tree.map(sim_leaf, sim), jax.tree.map(state_leaf, state)


def check_replicas(replicas: Count, num_points: int) -> int:
    """How many replicas.

    **Errors:** `ParameterError` where there would be no members.
    """
    if num_points < 1 or (isinstance(replicas, int) and replicas < 1):
        raise ParameterError(f"a sweep of no members: {num_points} points × {replicas} replicas")
    return as_count(replicas, "replicas", ParameterError)


def check_time_steps(model: tuple[Simulation, State], swept: Sequence[SweptLeaf]) -> None:
    """**Errors:** `ParameterError` for swept time steps that are not positive."""
    # Compared by identity: `dt` may be swept under any name.
    leaves = jax.tree.leaves(model)
    for s in swept:
        if s.leaf is not None and leaves[s.leaf] is model[0].dt and not np.all(s.values > 0):
            raise ParameterError(f"time steps must be positive; got {s.name} = {np.min(s.values)}")


# Columns that tables of every sweep have, in memory or in files.
_RESERVED_NAMES = (
    "attempts", "group", "group_name", "member", "ok", "order", "point", "reason", "replica", "step", "time",
)  # fmt: skip


def check_axes(model: tuple[Simulation, State], swept: Sequence[SweptLeaf]) -> None:
    """**Errors:** `ParameterError` where two axes set one number, or one has the name of a table's column;
    `SelectionError` for a number that an exchange replaces in each of its places.
    """
    if reserved := sorted({s.name for s in swept} & set(_RESERVED_NAMES)):
        raise ParameterError(
            f"a swept quantity cannot be called {reserved[0]!r}: tables of sweeps have a column of this "
            f"name; give SweepAxis(…, name=…) another one than {', '.join(_RESERVED_NAMES)}"
        )
    leaves = jax.tree.leaves(model)
    replaced = _replaced_parts(model)
    if unused := [
        s.name for s in swept if s.leaf in replaced and _is_covered(leaves, s, replaced[s.leaf])
    ]:
        raise SelectionError(
            f"{unused[0]} differs from place to place of a ReplicaExchange, which sets it from its values: "
            "sweeping it would change nothing. Point at the values of all places, as in "
            "pk.find(model, pk.integrators.ReplicaExchange).values[0], with a row [replicas] for each point"
        )
    for number, later in enumerate(swept):
        for earlier in swept[:number]:
            if earlier.leaf == later.leaf and _overlap(leaves, earlier, later):
                raise ParameterError(
                    f"{earlier.name} and {later.name} sweep the same number of the model, which can have but "
                    "one value in a member: leave one of the axes out, or zip them into one"
                )


def _replaced_parts(model: tuple[Simulation, State]) -> dict[int, list[tuple]]:
    """The parts, as of `SweptLeaf`, that an exchange replaces, by the number of their leaf in the model."""

    def is_exchange(node: PyTree) -> bool:
        return isinstance(node, ReplicaExchange)

    found: dict[int, list[tuple]] = {}
    first = 0
    for part in jax.tree.leaves(model, is_leaf=is_exchange):
        # The integrator inside, whose leaves are counted, comes first of an exchange.
        for leaf, index in part.positions if is_exchange(part) else ():
            found.setdefault(first + leaf, []).append(index)
        first += len(jax.tree.leaves(part))
    return found


def _is_covered(leaves: list[Any], swept: SweptLeaf, parts: list[tuple]) -> bool:
    """Whether every element of the swept part of a leaf is in one of these."""
    is_free = np.ones(jnp.shape(leaves[swept.leaf]), bool)
    for index in parts:
        is_free[index[0] if index else ...] = False
    return not np.any(is_free[swept.index[0] if swept.index else ...])


def _overlap(leaves: list[Any], one: SweptLeaf, other: SweptLeaf) -> bool:
    """Whether two swept parts of one leaf have elements in common."""
    if one.leaf is None or not one.index or not other.index:
        return True
    shape = jnp.shape(leaves[one.leaf])
    elements = np.arange(int(np.prod(shape))).reshape(shape)
    parts = (np.asarray(elements[s.index[0]]) for s in (one, other))
    return bool(np.intersect1d(*parts).size)


def check_key(key: KeyLike | None, replicas: int, swept: Sequence[SweptLeaf]) -> Key | None:
    """The random key.

    **Errors:** `ParameterError` unless every member gets noise of its own; and for ambiguous names.
    """
    key = as_key(key)
    sweeps_keys = any(s.leaf is None for s in swept)
    if replicas > 1 and key is None and not sweeps_keys:
        raise ParameterError(
            f"{replicas} replicas differ by their noise alone: give key=jax.random.key(…)"
        )
    if sweeps_keys and key is not None:
        raise ParameterError("keys are swept, so key= would not be used: give one of them")
    if repeated := _find_repeated([s.name for s in swept]):
        raise ParameterError(f"two swept quantities are called {repeated}; give name=…")
    return key


def check_reductions(reduce: Any) -> tuple[AbstractReduction, ...]:
    """Reductions as a tuple."""
    reduce = tuple(reduce) if isinstance(reduce, tuple | list) else (reduce,)
    if wrong := [r for r in reduce if not isinstance(r, AbstractReduction)]:
        raise ParameterError(f"reduce= takes statistics such as Mean('energy'); got {wrong}")
    # Partial results are stored by title.
    if repeated := _find_repeated([r.title for r in reduce]):
        raise ParameterError(
            f"two statistics are called {repeated}: take one with all quantiles or bins, or "
            "Reduction(…) with a title of its own"
        )
    return reduce


def check_keep(keep: Any) -> bool | tuple[str, ...]:
    """Whether frames are kept, or the names of those that are."""
    if isinstance(keep, bool):
        return keep
    if not isinstance(keep, tuple | list):
        raise ParameterError(f"keep is True, False, or names of frames, keep=['x']; got {keep!r}")
    return tuple(keep)


def check_groups(names: Sequence[str] | None, num_groups: int) -> tuple[str, ...] | None:
    """Names of the groups."""
    if names is None:
        return None
    wrong = isinstance(names, str) or not all(isinstance(n, str) for n in names)
    if wrong or len(names) != num_groups:
        raise ParameterError(f"groups are {num_groups} names, one for each model; got {names!r}")
    return tuple(names)


def check_domain(domain: Any) -> tuple[int, ...] | None:
    """Devices per axis of space for one member."""
    if domain is None:
        return None
    shape = tuple(domain) if isinstance(domain, tuple | list) else (domain,)
    positive = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape)
    if not positive or not 1 <= len(shape) <= 3:
        raise ParameterError(f"domain= is devices per axis of space, as in (2, 2); got {domain!r}")
    return shape


def states_of_points(
    model: tuple[Simulation, State], swept: Sequence[SweptLeaf], rows: np.ndarray
) -> list[State]:
    """One state for every box among the points of a design; the model's own if no box is swept."""
    paths, _ = jax.tree_util.tree_flatten_with_path(model)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    box_leaves = [s for s in swept if s.leaf is not None and ".space" in names[s.leaf]]
    if not box_leaves or not len(rows):
        return [model[1]]
    positions = tuple((s.leaf, s.index) for s in box_leaves)
    # Points that differ in other quantities have the same boxes: one of each is enough.
    columns = sorted({s.axis for s in box_leaves})
    points = np.unique(rows[:, columns], axis=0, return_index=True)[1]
    values = [[s.values[rows[point, s.axis]] for s in box_leaves] for point in points]
    return [set_leaves(model, positions, row)[1] for row in values]


def _find_repeated(names: list[str]) -> list[str]:
    return sorted({n for n in names if names.count(n) > 1})
