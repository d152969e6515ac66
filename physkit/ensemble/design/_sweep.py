"""`Sweep`: what is to be computed, as data, and its members."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from physkit.core import (
    Count,
    Key,
    KeyLike,
    ParameterError,
    PyTree,
    ShapeError,
    State,
    as_count,
)
from physkit.html import describe_values, fragment, span, table, tree
from physkit.simulate import Simulation, count_blocks
from physkit.storage import Identity, digest, fingerprint

from ..statistics._convergence import Converged
from ..statistics._reductions import AbstractReduction
from ._common_skin import set_common_skin
from ._retry import Retry
from ._sweep_axes import Design, SweepAxis, as_design
from ._sweep_checks import (
    as_groups,
    as_model,
    check_axes,
    check_domain,
    check_groups,
    check_keep,
    check_key,
    check_reductions,
    check_replicas,
    check_time_steps,
    states_of_points,
)
from ._sweep_identity import sweep_identity
from ._swept_leaves import LeafPosition, SweptLeaf, resolve_axes, set_leaves

_MAX_COORDINATE_SIZE = 64  # numbers of one point that a table of coordinates still shows


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Many simulations that differ in some numbers: what is to be computed, as data.

    `sweep` computes it; `members` are numbered from 0 in the order of the design, its replicas one after
    the other, and group after group.

    **Arguments:**

    - `model`: `(simulation, state)`; or a list of them, groups that differ in what is static.
    - `steps`: of every member, a multiple of the longest observer interval.
    - `over`: `SweepAxis(where, values)`, `cartesian_product`, `zip_axes` or another design; several are a
      product.
    - `replicas`: members at each point, which differ by their noise.
    - `key`: a JAX random key or a whole number; member m gets `fold_in(key, m)`, whatever chunk or device it
      is in.
    - `reduce`: statistics over members, updated chunk by chunk, such as `Mean("energy")`.
    - `keep`: whether frames of members are kept; False with `reduce` needs no memory for them. Or the
      names of those to keep.
    - `retry`: what to do with members that fail; nothing if left out.
    - `cost`: expected cost of the members, `[members]`, or a function of the coordinates that returns it:
      members of like cost are computed together, the costly ones first.
    - `stop_when`: `Converged("energy", error=0.01)`: no further chunk is begun once it is met.
    - `groups`: names of the groups.
    - `domain`: decompose the domain of every member over so many devices per axis, `(2, 2)`: members are
      then computed one after the other, each on all of these.

    **Errors:** `SelectionError` for a leaf that does not exist or is static, `ShapeError` for values of
    another shape, `ParameterError` for no members, `ObserverError` for steps that are no whole intervals.
    """

    model: PyTree  # (simulation, state), or a list of them
    steps: Count
    over: SweepAxis | Design | Sequence[SweepAxis | Design] | None = None
    replicas: Count = 1
    key: KeyLike | None = None
    reduce: AbstractReduction | Sequence[AbstractReduction] = ()
    keep: bool | Sequence[str] = True
    retry: Retry | None = None
    cost: ArrayLike | Callable[[Mapping[str, np.ndarray]], ArrayLike] | None = None
    stop_when: Converged | None = None
    groups: Sequence[str] | None = None
    domain: Sequence[int] | int | None = None

    # Made from the above when the sweep is built, and never given.
    models: tuple[tuple[Simulation, State], ...] = dataclasses.field(init=False)
    design: Design = dataclasses.field(init=False)
    swept: tuple[tuple[SweptLeaf, ...], ...] = dataclasses.field(init=False)  # by group
    digest: str = dataclasses.field(init=False)
    order: np.ndarray = dataclasses.field(init=False)

    def __post_init__(self):
        def set_field(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)  # the dataclass is frozen

        # Checks of single arguments come where what they need is known: points, then leaves, then names.
        models = tuple(map(as_model, as_groups(self.model)))
        set_field("design", as_design(self.over))
        set_field("steps", as_count(self.steps))
        set_field("replicas", check_replicas(self.replicas, len(self.design)))
        for sim, _ in models:
            count_blocks(sim, self.steps)
        swept = tuple(resolve_axes(self.design, model) for model in models)
        set_field("swept", swept)
        check_axes(models[0], swept[0])
        check_time_steps(models[0], swept[0])
        states = [
            states_of_points(model, leaves, self.design.rows)
            for model, leaves in zip(models, swept, strict=True)
        ]
        # Members of one batch share the shape of their neighbor lists, whatever their boxes.
        set_field("models", tuple(map(set_common_skin, models, states)))
        set_field("key", check_key(self.key, self.replicas, swept[0]))
        set_field("reduce", check_reductions(self.reduce))
        set_field("keep", check_keep(self.keep))
        set_field("groups", check_groups(self.groups, len(models)))
        for name, kind in (("retry", Retry), ("stop_when", Converged)):
            if not isinstance(given := getattr(self, name), kind | None):
                raise ParameterError(f"{name} is {kind.__name__}(…) or None; got {given!r:.80}")
        set_field("domain", check_domain(self.domain))
        if self.stop_when is not None:
            set_field("reduce", self.stop_when.required_reductions(self.reduce))
        set_field("order", self._order())
        # Last: it covers everything above, in the form in which it is kept.
        set_field("digest", self._digest())

    @property
    def num_points(self) -> int:
        """Points of the design, in each group."""
        return len(self.design)

    @property
    def group_size(self) -> int:
        """Members of a group."""
        return self.num_points * self.replicas

    @property
    def num_members(self) -> int:
        """How many simulations there are in all."""
        return len(self.models) * self.group_size

    def chunks(self, chunk_size: int) -> list[np.ndarray]:
        """Numbers of the members of each chunk: at most `chunk_size`, all of one group."""
        return split_into_chunks(self.order, self.group_size, chunk_size)

    def group_of(self, members: np.ndarray) -> int:
        """The group of members of one chunk."""
        return int(members[0]) // self.group_size

    def point_of(self, members: np.ndarray) -> np.ndarray:
        """The point of the design that each member is at."""
        return np.asarray(members) % self.group_size // self.replicas

    def values(self, group: int, members: np.ndarray) -> tuple[Any, ...]:
        """Values of every swept leaf for these members: `[len(members), …]`."""
        rows = self.design.rows[self.point_of(members)]
        # Axes with few values are stored once, and repeated by row numbers only when members are computed.
        return tuple(s.values[rows[:, s.axis]] for s in self.swept[group] if s.leaf is not None)

    def keys(self, group: int, members: np.ndarray) -> Key | None:
        """The random keys of the members; None for dynamics without noise."""
        for swept in self.swept[group]:
            if swept.leaf is None:
                keys = swept.values[self.design.rows[self.point_of(members), swept.axis]]
                # Seeds stay whole numbers up to here, since tables and files show them.
                keys = jax.vmap(jax.random.key)(keys) if isinstance(keys, np.ndarray) else keys
                if self.replicas == 1:
                    return keys  # the key itself, so that a member equals a run with this key
                return jax.vmap(jax.random.fold_in)(keys, jnp.asarray(members % self.replicas))
        if self.key is None:
            return None
        # By the number of the member alone: noise depends on neither chunks nor devices.
        return jax.vmap(jax.random.fold_in, (None, 0))(self.key, jnp.asarray(members, jnp.uint32))

    def member(self, number: int) -> tuple[Simulation, State, Key | None]:
        """Simulation, state and key of one member, to look at it alone.

        **Errors:** `ParameterError` for a number outside the sweep.
        """
        if not 0 <= number < self.num_members:
            raise ParameterError(f"there are members 0 … {self.num_members - 1}; got {number}")
        members = np.array([number])
        group = self.group_of(members)
        values = [v[0] for v in self.values(group, members)]
        sim, state = set_leaves(self.models[group], self.leaf_positions(group), values)
        keys = self.keys(group, members)
        return sim, state, None if keys is None else keys[0]

    def leaf_positions(self, group: int) -> tuple[LeafPosition, ...]:
        """Where the values go in the flattened model."""
        return tuple((s.leaf, s.index) for s in self.swept[group] if s.leaf is not None)

    @property
    def coordinates(self) -> dict[str, np.ndarray]:
        """The swept quantities by name, `[members, …]`, and `point`, `replica` and `group`.

        Of a quantity of many numbers, such as whole states, the index of its value.
        """
        members = np.arange(self.num_members)
        point = self.point_of(members)
        columns: dict[str, np.ndarray] = {}
        # All groups sweep the same design: the leaves of the first stand for those of the others.
        for swept in self.swept[0]:
            row = self.design.rows[point, swept.axis]
            values = swept.values
            if not isinstance(values, np.ndarray):
                values = np.asarray(jax.random.key_data(values))
            if values[:1].size <= _MAX_COORDINATE_SIZE:
                columns[swept.name] = values[row]
            else:
                # The leaves of one axis, such as all arrays of a state, have the same row: one column.
                columns.setdefault(f"{swept.name.partition('.')[0].partition('[')[0]}_row", row)
        if self.replicas > 1:
            columns["replica"] = members % self.replicas
        columns["point"] = point
        if len(self.models) > 1:
            columns["group"] = members // self.group_size
        return columns

    def _order(self) -> np.ndarray:
        """The members in the order in which they are computed."""
        members = np.arange(self.num_members)
        if self.cost is None:
            return members
        cost = self.cost(self.coordinates) if callable(self.cost) else self.cost
        cost = np.asarray(cost, float)
        if cost.shape != (self.num_members,) or not np.all(np.isfinite(cost)):
            raise ShapeError(
                f"cost must be one finite number for each of {self.num_members} members; got shape "
                f"{cost.shape}"
            )
        # Groups stay together (each is a program of its own); equal costs keep the order of the members.
        group = members // self.group_size
        return np.lexsort((members, -cost, group))

    @cached_property
    def identity(self) -> Identity:
        """What the sweep is, for its folder: all that decides its numbers, code included; traces each group."""
        firsts = [np.array([k * self.group_size]) for k in range(len(self.models))]
        keys = [self.keys(k, members) for k, members in enumerate(firsts)]
        options = ("steps", "replicas", "keep", "retry", "stop_when", "domain")
        return sweep_identity(
            self.models,
            self.swept,
            self.key,
            [None if key is None else key[0] for key in keys],
            self.reduce,
            {"rows": self.design.rows, "order": self.order},
            {name: repr(getattr(self, name)) for name in options},
        )

    def _digest(self) -> str:
        """A checksum of all numbers and functions, by which folders of version 0.2 know their sweep."""
        description: dict[str, str] = {"steps": str(self.steps), "replicas": str(self.replicas)}
        trees: dict[str, Any] = {f"model {k}": model for k, model in enumerate(self.models)}
        trees["rows"] = self.design.rows
        # The order decides which members share a chunk, and thereby what is in each file.
        trees["order"] = self.order
        for group, swept in enumerate(self.swept):
            # By position and value: names of terms in the model change no number.
            for leaf in swept:
                description[f"where {group} {leaf.name}"] = f"{leaf.leaf} {leaf.index}"
                trees[f"values {group} {leaf.name}"] = leaf.values
        trees["key"] = self.key
        trees["reduce"] = self.reduce
        for name in ("reduce", "keep", "retry", "stop_when", "domain"):
            description[name] = repr(getattr(self, name))
        for title, part in trees.items():
            description |= {f"{title} {path}": text for path, text in fingerprint(part).items()}
        return digest(description)

    def _repr_html_(self) -> str:
        rows = []
        for leaf in self.swept[0]:
            known = isinstance(leaf.values, np.ndarray)
            rows.append(
                (leaf.name, len(leaf.values), describe_values(leaf.values) if known else "")
            )
        about = f"{self.num_members} members of {self.steps} steps"
        if self.replicas > 1:
            about += f", {self.num_points} points × {self.replicas} replicas"
        body = f"{span('kind', 'Sweep')} {span('about', about)}"
        body += table(("over", "values", ""), rows) if rows else ""
        return fragment(body + tree(self.models[0], "each", open_depth=0))

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self.swept[0]) or "nothing"
        parts = [f"{self.num_members} members of {self.steps} steps over {names}"]
        if self.replicas > 1:
            parts.append(f"{self.num_points} points × {self.replicas} replicas")
        if len(self.models) > 1:
            parts.append(f"{len(self.models)} groups")
        return f"Sweep({'; '.join(parts)}; digest {self.digest})"


def split_into_chunks(order: np.ndarray, group_size: int, chunk_size: int) -> list[np.ndarray]:
    """Members in the order in which they are computed, in chunks of one group each."""
    # By a stable sort, which keeps the order within each group.
    by_group = order[np.argsort(order // group_size, kind="stable")]
    return [
        by_group[a : min(a + chunk_size, begin + group_size)]
        for begin in range(0, len(order), group_size)
        for a in range(begin, begin + group_size, chunk_size)
    ]
