"""Draws of sweeps: what is swept × design × chunks × files; each member against a simulation alone."""

import dataclasses
import tempfile
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk

from .bases import STEPS, Base, build, draw_base, movable_leaves
from .outcome import Outcome, compare, judge, show_fields


@dataclasses.dataclass(frozen=True)
class Structure:
    base: Base

    def __str__(self) -> str:
        return f"sweeps: {self.base}"


@dataclasses.dataclass(frozen=True)
class Numbers:
    seed: int
    design: str
    members: int  # along each axis
    chunk_size: int | None
    files: str
    failing: bool

    __str__ = show_fields


def draw_structure(rng: np.random.Generator, block: int) -> Structure:
    return Structure(draw_base(rng, block))


def draw_numbers(rng: np.random.Generator, place: int) -> Numbers:
    del place
    pick = lambda *options: options[rng.integers(len(options))]
    return Numbers(
        int(rng.integers(2**31)), pick("one", "one", "product", "zip", "states", "keys", "replicas"),
        pick(1, 2, 3), pick(None, None, 1, 2, 4), pick("", "", "folder", "stopped"),
        bool(rng.integers(4) == 0),
    )  # fmt: skip


def examine(s: Structure, n: Numbers) -> Outcome:
    causes = ["positive|finite|nan"] if n.failing else []
    return judge(lambda: difference(s, n), causes)


_alone = eqx.filter_jit(lambda sim, state, key: pk.simulate(sim, state, STEPS, key=key))


def difference(s: Structure, n: Numbers) -> str:
    """What members of a sweep have that simulations of their own have not."""
    model, key = build(s.base, n.seed)
    rng = np.random.default_rng(n.seed)
    over, expected = _design(s, n, model, key, rng)
    replicas = n.members if n.design == "replicas" and key is not None else 1
    if replicas > 1:
        expected = [(m, k) for m, k in expected for _ in range(replicas)]
    if key is not None and n.design != "keys":
        expected = [(m, jax.random.fold_in(key, i)) for i, (m, _) in enumerate(expected)]
    sweep = pk.Sweep(
        model, STEPS, over=over, replicas=replicas, key=None if n.design == "keys" else key,
        reduce=pk.reductions.Mean("means"),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        where = {"to": Path(folder) / "s"} if n.files else {}
        if n.files == "stopped":
            pk.sweep(sweep, chunk_size=n.chunk_size, progress=False, wall_time=0.0, **where)
        found = pk.sweep(sweep, chunk_size=n.chunk_size, progress=False, **where)
        return _compare(s, found, expected)


def _compare(s: Structure, found, expected) -> str:
    alone = [_alone(sim, state, key) for (sim, state), key in expected]
    ok = np.array([bool(one.health.ok) for one in alone])
    if not np.array_equal(found.ok, ok):
        return f"ok is {found.ok}, expected {ok}; complete: {found.complete}"
    if not ok.any():
        return ""
    times = np.broadcast_to(found.times["means"], (len(ok), len(alone[0].times["means"])))
    means = np.array([one.frames["means"] for one in alone], float)[ok]
    want = np.array([one.times["means"] for one in alone], float)[ok]
    # Batched programs round differently; a few steps make of it what they make.
    epsilon = 2e4 * np.finfo(s.base.structure.dtype).eps
    sizes = np.max(np.abs(means), (0, 1)) + 1e-3 * np.max(np.abs(means))
    reduced = np.asarray(found.reduced["mean means"], float).reshape(means.shape[1:])
    return (
        compare("times", times[ok], want, 1e-6 * np.max(np.abs(want)))
        + compare("means", found["means"][:][ok], means, epsilon * sizes)
        + compare("the mean over members", reduced, np.mean(means, 0), epsilon * sizes)
    )


def _design(s: Structure, n: Numbers, model, key, rng):
    """The design, and the model and key of every member, put together by hand."""
    leaves, tree = jax.tree.flatten(model)
    if n.design == "keys" and key is not None:
        seeds = [int(k) for k in rng.integers(1000, size=n.members)]
        return pk.SweepAxis("key", seeds), [(model, jax.random.key(k)) for k in seeds]
    if n.design == "states":
        states = [build(s.base, n.seed + k)[0][1] for k in range(n.members)]
        states = [_like(state, model[1]) for state in states]
        return pk.SweepAxis("state", states), [((model[0], x), None) for x in states]
    places = [k for k, _ in movable_leaves(model) if np.any(np.asarray(leaves[k]) != 0)]
    chosen = [int(k) for k in rng.choice(places, 2, replace=False)]
    if n.design in ("one", "replicas", "keys"):
        chosen = chosen[:1]
    values = []
    for place in chosen:
        factors = 1 + 0.03 * rng.normal(size=n.members)
        leaf = np.asarray(leaves[place])
        shape = (n.members, *[1] * leaf.ndim)
        values.append((leaf[None] * factors.reshape(shape)).astype(leaf.dtype))
    if n.failing:
        values[0][-1] = np.nan
    axes = [
        pk.SweepAxis(lambda m, k=place: jax.tree.leaves(m)[k], v, name=f"axis{i}")
        for i, (place, v) in enumerate(zip(chosen, values))
    ]
    if n.design == "zip":
        over, rows = pk.designs.zip_axes(*axes), [(i, i) for i in range(n.members)]
    elif n.design == "product":
        over = pk.designs.cartesian_product(*axes)
        rows = [(i, j) for i in range(n.members) for j in range(n.members)]
    else:
        over, rows = axes[0], [(i,) for i in range(n.members)]
    models = []
    for row in rows:
        mine = list(leaves)
        for place, v, i in zip(chosen, values, row):
            mine[place] = jnp.asarray(v[i])
        models.append((tree.unflatten(mine), None))
    return over, models


def _like(state, model):
    """The numbers of `state` in the structure of `model`, whose functions are others but do the same."""
    return jax.tree.unflatten(jax.tree.structure(model), jax.tree.leaves(state))
