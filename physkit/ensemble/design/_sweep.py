"""The noun: what a sweep computes, and its members."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import ParameterError, ShapeError, float_dtype, replace_fields
from physkit.simulate import Carry, Direct, Simulation, count_blocks
from physkit.storage import digest, fingerprint

from ..compute._batch_init import set_common_skin
from ..statistics._convergence import Converged
from ..statistics._reductions import AbstractReduction
from ._retry import Retry
from ._sweep_axes import Design, SweptLeaf, as_design, resolve_axis

_MOST_PER_POINT = 64  # numbers of a coordinate that are kept in tables


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """Many simulations that differ in some numbers: what is to be computed, as data.

    `sweep` computes it; `members` are numbered from 0 in the order of the design, its replicas one after
    the other, and group after group.

    **Arguments:**

    - `model`: `(simulation, state)`; or a list of them, groups that differ in what is static.
    - `steps`: of every member, a multiple of the longest observer interval.
    - `over`: `Over(where, values)`, a `product`, `zipped` or another design; several are a product.
    - `replicas`: members at each point, which differ by their noise.
    - `key`: a JAX random key; member m gets `fold_in(key, m)`, whatever chunk or device it is in.
    - `reduce`: statistics over members made on the way, such as `Mean("energy")`.
    - `keep`: whether frames of members are kept; False with `reduce` needs no room for them. Or the
      names of those to keep.
    - `retry`: what to do with members that go wrong; nothing if left out.
    - `cost`: expected cost of the members, `[members]`, or a function of the coordinates that returns it:
      members of like cost are computed together, the costly ones first.
    - `stop_when`: `Converged("energy", error=0.01)`: no further chunk is begun once it is.
    - `groups`: names of the groups.
    - `domain`: cut the domain of every member over so many devices per axis, `(2, 2)`: members are then
      computed one after the other, each on all of these.

    **Errors:** `SelectionError` for a leaf that is not there or static, `ShapeError` for values of another
    shape, `ParameterError` for no members, `ObserverError` for steps that are no whole intervals.
    """

    model: Any
    steps: int
    over: Any = None
    replicas: int = 1
    key: Array | None = None
    reduce: Any = ()
    keep: bool | Sequence[str] = True
    retry: Retry | None = None
    cost: Any = None
    stop_when: Converged | None = None
    groups: Sequence[str] | None = None
    domain: Sequence[int] | int | None = None

    # Made from the above.
    models: tuple[tuple[Simulation, Any], ...] = dataclasses.field(init=False)
    design: Design = dataclasses.field(init=False)
    swept: tuple[tuple[SweptLeaf, ...], ...] = dataclasses.field(init=False)  # by group
    digest: str = dataclasses.field(init=False)
    order: np.ndarray = dataclasses.field(init=False)

    def __post_init__(self):
        put = lambda name, value: object.__setattr__(self, name, value)
        models = tuple(map(_model, _as_groups(self.model)))
        put("models", models)
        put("design", as_design(self.over))
        if isinstance(self.replicas, bool) or not isinstance(self.replicas, int):
            raise ParameterError(f"replicas is a whole number; got {self.replicas!r}")
        if self.replicas < 1 or len(self.design) < 1:
            raise ParameterError(
                f"a sweep of no members: {len(self.design)} points × {self.replicas} replicas"
            )
        for sim, _ in models:
            count_blocks(sim, self.steps)
        swept = tuple(_resolved(self.design, model) for model in models)
        put("swept", swept)
        _need_positive_steps(models[0], swept[0])
        rows = self.design.rows
        boxes = [_boxes(m, s, rows) for m, s in zip(models, swept, strict=True)]
        models = tuple(set_common_skin(m, b) for m, b in zip(models, boxes, strict=True))
        put("models", models)
        swept_key = any(s.place is None for s in self.swept[0])
        if self.replicas > 1 and self.key is None and not swept_key:
            raise ParameterError(
                f"{self.replicas} replicas differ by their noise alone: give key=jax.random.key(…)"
            )
        if self.key is not None and not _is_key(self.key):
            raise ParameterError(
                f"key is one random key, such as jax.random.key(0); got {self.key!r:.80}"
            )
        if swept_key and self.key is not None:
            raise ParameterError("keys are swept, so key= would not be used: give one of them")
        names = [s.name for s in self.swept[0]]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ParameterError(f"two swept quantities are called {twice}; give name=…")
        reduce = tuple(self.reduce) if _is_many(self.reduce) else (self.reduce,)
        if wrong := [r for r in reduce if not isinstance(r, AbstractReduction)]:
            raise ParameterError(f"reduce= takes statistics such as Mean('energy'); got {wrong}")
        titles = [r.title for r in reduce]
        if twice := sorted({t for t in titles if titles.count(t) > 1}):
            raise ParameterError(
                f"two statistics are called {twice}: take one with all quantiles or bins, or "
                "Reduction(…) with a title of its own"
            )
        put("reduce", reduce)
        if not (isinstance(self.keep, bool) or _is_many(self.keep)):
            raise ParameterError(f"keep is True, False, or names of frames; got {self.keep!r}")
        put("keep", self.keep if isinstance(self.keep, bool) else tuple(self.keep))
        if self.groups is not None:
            wrong = isinstance(self.groups, str) or not all(isinstance(n, str) for n in self.groups)
            if wrong or len(self.groups) != len(models):
                raise ParameterError(
                    f"groups are {len(models)} names, one for each model; got {self.groups!r}"
                )
            put("groups", tuple(self.groups))
        for name, kind in (("retry", Retry), ("stop_when", Converged)):
            if not isinstance(given := getattr(self, name), kind | None):
                raise ParameterError(f"{name} is {kind.__name__}(…) or None; got {given!r:.80}")
        if self.domain is not None:
            put("domain", _grid(self.domain))
        if self.stop_when is not None:
            put("reduce", self.stop_when.required_reductions(self.reduce))
        put("order", self._order())
        put("digest", self._digest())

    # --- members --------------------------------------------------------------------------------

    @property
    def points(self) -> int:
        """Points of the design, in each group."""
        return len(self.design)

    @property
    def group_size(self) -> int:
        """Members of a group."""
        return self.points * self.replicas

    @property
    def members(self) -> int:
        """How many simulations there are in all."""
        return len(self.models) * self.group_size

    def chunks(self, chunk: int) -> list[np.ndarray]:
        """Numbers of the members of each chunk: at most `chunk`, all of one group."""
        return split_into_chunks(self.order, self.group_size, chunk)

    def group_of(self, members: np.ndarray) -> int:
        """The group of members of one chunk."""
        return int(members[0]) // self.group_size

    def point_of(self, members: np.ndarray) -> np.ndarray:
        """The point of the design that each member is at."""
        return np.asarray(members) % self.group_size // self.replicas

    def values(self, group: int, members: np.ndarray) -> tuple[Any, ...]:
        """Of the members, the values of every swept leaf: `[len(members), …]`."""
        out = []
        for swept in self.swept[group]:
            if swept.place is not None:
                out.append(swept.values[self.design.rows[self.point_of(members), swept.column]])
        return tuple(out)

    def keys(self, group: int, members: np.ndarray) -> Array | None:
        """The random keys of the members; None for dynamics without noise."""
        for swept in self.swept[group]:
            if swept.place is None:
                own = swept.values[self.design.rows[self.point_of(members), swept.column]]
                own = jax.vmap(jax.random.key)(own) if isinstance(own, np.ndarray) else own
                if self.replicas == 1:
                    return own
                return jax.vmap(jax.random.fold_in)(own, jnp.asarray(members % self.replicas))
        if self.key is None:
            return None
        fold = lambda m: jax.random.fold_in(self.key, m)
        return jax.vmap(fold)(jnp.asarray(members, jnp.uint32))

    def member(self, number: int) -> tuple[Simulation, Any, Array | None]:
        """Simulation, state and key of one member, to look at it alone.

        **Errors:** `ParameterError` for a number that there is not.
        """
        if not 0 <= number < self.members:
            raise ParameterError(f"there are members 0 … {self.members - 1}; got {number}")
        one = np.array([number])
        group = self.group_of(one)
        values = [v[0] for v in self.values(group, one)]
        sim, state = set_leaves(self.models[group], self.places(group), values)
        keys = self.keys(group, one)
        return sim, state, None if keys is None else keys[0]

    def places(self, group: int) -> tuple[tuple[int, tuple], ...]:
        """Where the values go in the flattened model: (leaf, index), static."""
        return tuple((s.place, s.index) for s in self.swept[group] if s.place is not None)

    @property
    def coordinates(self) -> dict[str, np.ndarray]:
        """The swept quantities by name, `[members, …]`, and `point`, `replica` and `group`.

        Of a quantity of many numbers, such as whole states, its row is told instead.
        """
        members = np.arange(self.members)
        point = self.point_of(members)
        out: dict[str, np.ndarray] = {}
        for swept in self.swept[0]:
            row = self.design.rows[point, swept.column]
            values = swept.values
            if not isinstance(values, np.ndarray):
                values = np.asarray(jax.random.key_data(values))
            if values[:1].size <= _MOST_PER_POINT:
                out[swept.name] = values[row]
            else:
                out.setdefault(f"{swept.name.partition('.')[0].partition('[')[0]}_row", row)
        if self.replicas > 1:
            out["replica"] = members % self.replicas
        out["point"] = point
        if len(self.models) > 1:
            out["group"] = members // self.group_size
        return out

    def _order(self) -> np.ndarray:
        members = np.arange(self.members)
        if self.cost is None:
            return members
        cost = self.cost(self.coordinates) if callable(self.cost) else self.cost
        cost = np.asarray(cost, float)
        if cost.shape != (self.members,) or not np.all(np.isfinite(cost)):
            raise ShapeError(
                f"cost is one finite number for each of {self.members} members; got shape {cost.shape}"
            )
        group = members // self.group_size
        return np.lexsort((members, -cost, group))

    def _digest(self) -> str:
        said: dict[str, str] = {"steps": str(self.steps), "replicas": str(self.replicas)}
        trees: dict[str, Any] = {f"model {k}": model for k, model in enumerate(self.models)}
        trees["rows"] = self.design.rows
        trees["order"] = self.order
        for group, swept in enumerate(self.swept):
            for s in swept:
                said[f"where {group} {s.name}"] = f"{s.place} {s.index}"
                trees[f"values {group} {s.name}"] = s.values
        trees["key"] = self.key
        trees["reduce"] = self.reduce
        for name in ("reduce", "keep", "retry", "stop_when", "domain"):
            said[name] = repr(getattr(self, name))
        for title, tree in trees.items():
            said |= {f"{title} {path}": text for path, text in fingerprint(tree).items()}
        return digest(said)

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self.swept[0]) or "nothing"
        parts = [f"{self.members} members of {self.steps} steps over {names}"]
        if self.replicas > 1:
            parts.append(f"{self.points} points × {self.replicas} replicas")
        if len(self.models) > 1:
            parts.append(f"{len(self.models)} groups")
        return f"Sweep({'; '.join(parts)}; digest {self.digest})"


def split_into_chunks(order: np.ndarray, group_size: int, chunk: int) -> list[np.ndarray]:
    """Members in the order of their computing, in chunks of one group each."""
    out = []
    for group in range(len(order) // group_size):
        own = order[order // group_size == group]
        out += [own[a : a + chunk] for a in range(0, len(own), chunk)]
    return out


def set_leaves(model: Any, places: tuple[tuple[int, tuple], ...], values: Sequence[Any]) -> Any:
    """`model` with values in place of some of its leaves, in the precision that they had; traceable."""
    leaves, form = jax.tree.flatten(model)
    for (place, index), value in zip(places, values, strict=True):
        old = jnp.asarray(leaves[place])
        new = jnp.asarray(value)
        if new.dtype != old.dtype:
            new = new.astype(old.dtype)
        leaves[place] = old.at[index[0]].set(new) if index else new
    return jax.tree.unflatten(form, leaves)


def _as_groups(model: Any) -> list[Any]:
    if isinstance(model, list):
        if not model:
            raise ParameterError("a sweep over no model")
        return model
    return [model]


def _model(model: Any) -> tuple[Simulation, Any]:
    ready = isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], Simulation)
    if not ready or isinstance(model[1], Carry):
        hint = " (a carry belongs to one run: give its state)" if ready else ""
        raise ParameterError(
            f"a sweep is over a model (simulation, state), or a list of them{hint}; got {model!r:.80}"
        )
    sim, state = model
    float_dtype(state)
    arrays = lambda x: jnp.asarray(x) if eqx.is_array_like(x) and not eqx.is_array(x) else x
    # There are no derivatives here, so nothing to keep for them.
    sim = replace_fields(sim, {"adjoint": Direct()})
    on_device = lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x
    return jax.tree.map(on_device, sim), jax.tree.map(arrays, state)


def _resolved(design: Design, model: Any) -> tuple[SweptLeaf, ...]:
    return tuple(
        dataclasses.replace(swept, column=column)
        for column, over in enumerate(design.overs)
        for swept in resolve_axis(over, model)
    )


def _need_positive_steps(model: Any, swept: tuple[SweptLeaf, ...]) -> None:
    leaves = jax.tree.leaves(model)
    for s in swept:
        if s.place is not None and leaves[s.place] is model[0].dt and not np.all(s.values > 0):
            raise ParameterError(f"time steps must be positive; got {s.name} = {np.min(s.values)}")


def _boxes(model: Any, swept: tuple[SweptLeaf, ...], rows: np.ndarray) -> list[Any]:
    """A state for every box among the points; only the model's own if none is swept."""
    paths, _ = jax.tree_util.tree_flatten_with_path(model)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    own = [s for s in swept if s.place is not None and ".space" in names[s.place]]
    if not own or not len(rows):
        return [model[1]]
    places = tuple((s.place, s.index) for s in own)
    distinct = np.unique(rows[:, sorted({s.column for s in own})], axis=0, return_index=True)[1]
    picked = [[s.values[rows[point, s.column]] for s in own] for point in distinct]
    return [set_leaves(model, places, values)[1] for values in picked]


def _is_key(x: Any) -> bool:
    if not isinstance(x, jax.Array | np.ndarray):
        return False
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return x.ndim == 0
    return x.dtype == np.uint32 and x.ndim == 1  # as jax.random.PRNGKey makes them


def _grid(domain: Any) -> tuple[int, ...]:
    whole = domain if _is_many(domain) else (domain,)
    right = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in whole)
    if not right or not 1 <= len(whole) <= 3:
        raise ParameterError(f"domain= is devices per axis of space, as in (2, 2); got {domain!r}")
    return tuple(whole)


def _is_many(x: Any) -> bool:
    return isinstance(x, tuple | list)
