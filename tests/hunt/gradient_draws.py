"""Draws of derivatives through `simulate`: adjoint × way of asking × parameter, against finite differences."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import physkit as pk

from .bases import STEPS, Base, build, draw_base, movable_leaves, numbers_of
from .kinks import Line, is_kink
from .outcome import Outcome, judge

ADJOINTS = {
    "nested": pk.NestedCheckpoint, "direct": pk.adjoints.Direct, "reversible": pk.Reversible,
    "one": lambda: pk.adjoints.Binomial(1), "three": lambda: pk.adjoints.Binomial(3),
    "forward": pk.adjoints.Forward,
}  # fmt: skip
WAYS = {0: "jvp", 1: "vmap", 2: "carry", 3: "pieces"}


@dataclasses.dataclass(frozen=True)
class Structure:
    base: Base
    adjoint: str

    def __str__(self) -> str:
        return f"gradients: adjoint={self.adjoint}, {self.base}"


@dataclasses.dataclass(frozen=True)
class Numbers:
    seed: int
    way: str
    leaf: float  # which of the leaves, as a fraction; above 1 all together

    def __str__(self) -> str:
        return f"seed={self.seed}, way={self.way}, leaf={self.leaf:.3f}"


def draw_structure(rng: np.random.Generator, block: int) -> Structure:
    adjoint = list(ADJOINTS)[block % len(ADJOINTS)]
    base = draw_base(rng, int(rng.integers(5)), dtype="float64")
    if getattr(base.structure, "equation", "") == "gas":
        # One evaluation a step: with three, batched derivatives compile for two minutes.
        base = Base(base.family, dataclasses.replace(base.structure, integrator="euler"))
    if adjoint == "reversible" and base.family == "particles" and rng.integers(3):
        s = dataclasses.replace(base.structure, exact=True, integrator="verlet")
        base = Base(base.family, s)
    return Structure(base, adjoint)


def draw_numbers(rng: np.random.Generator, place: int) -> Numbers:
    return Numbers(int(rng.integers(2**31)), WAYS.get(place, "grad"), float(rng.uniform(0, 1.3)))


def examine(s: Structure, n: Numbers) -> Outcome:
    causes = ["revers|exact"] if s.adjoint == "reversible" else []
    return judge(lambda: difference(s, n), causes)


def outputs(moving, fixed, way: str, key) -> list[jax.Array]:
    sim, state = eqx.combine(moving, fixed)
    start = pk.init(sim, state, key=key) if way in ("carry", "pieces") else state
    if way == "pieces":
        half = pk.simulate(sim, start, STEPS // 2)
        result = pk.simulate(sim, half.carry, STEPS // 2)
    else:
        result = pk.simulate(sim, start, STEPS, key=key if start is state else None)
    return [*numbers_of(result.state), result.frames["means"], result.summary["average"]["mean"]]


def loss(moving, fixed, weights, way, key):
    return sum(jnp.sum(w * x) for w, x in zip(weights, outputs(moving, fixed, way, key)))


_outputs = eqx.filter_jit(outputs)
_loss = eqx.filter_jit(loss)
_gradient = eqx.filter_jit(eqx.filter_grad(loss))
_tangent = eqx.filter_jit(
    lambda moving, direction, *rest: jax.jvp(
        lambda x: loss(x, *rest), (moving,), (direction,)
    )[1]
)  # fmt: skip


@eqx.filter_jit
def _batched_gradient(moving, fixed, *rest):
    """That of the first of two, which differ by nothing."""
    both = jax.tree.map(lambda x: jnp.stack([x, x]), moving)
    gradient = eqx.filter_vmap(lambda x: eqx.filter_grad(loss)(x, fixed, *rest))(both)
    return jax.tree.map(lambda x: x[0], gradient)


def difference(s: Structure, n: Numbers) -> str:
    """What the derivative along a direction has that differences have not."""
    model, key = build(s.base, n.seed, ADJOINTS[s.adjoint]())
    rng = np.random.default_rng(n.seed)
    # With the box, where it belongs to one component alone.
    chosen = movable_leaves(model)
    if n.leaf < 1:
        chosen = [chosen[int(n.leaf * len(chosen))]]
    leaves, tree = jax.tree.flatten(model)
    moving = [None] * len(leaves)
    steps = [None] * len(leaves)
    for k, _ in chosen:
        x = np.asarray(leaves[k])
        size = np.max(np.abs(x), initial=0.0)
        if size == 0 and s.base.structure.units == "one":
            size = 1.0
        u = rng.normal(size=x.shape) * size
        moving[k] = leaves[k]
        steps[k] = jnp.asarray(
            u + 1j * rng.normal(size=x.shape) * size if x.dtype == complex else u
        )
    fixed = tree.unflatten([None if m is not None else x for m, x in zip(moving, leaves)])
    moving, direction = tree.unflatten(moving), tree.unflatten(steps)
    way = n.way if n.way in ("carry", "pieces") else "grad"
    out = [np.asarray(x) for x in _outputs(moving, fixed, way, key)]
    sizes = [np.max(np.abs(x), initial=0.0) for x in out]
    weights = [jnp.asarray(rng.normal(size=x.shape) / (z or 1.0)) for x, z in zip(out, sizes)]
    if not all(np.all(np.isfinite(x)) for x in out):
        return "chaotic: the run is not finite"
    rest = (fixed, weights, way, key)
    # `Reversible` has no forward mode, and says so.
    if n.way == "jvp" and s.adjoint != "reversible":
        got = float(_tangent(moving, direction, *rest))
        parts = abs(got)
    else:
        gradient = (_batched_gradient if n.way == "vmap" else _gradient)(moving, *rest)
        dots = [
            float(np.sum(np.real(np.asarray(g) * np.asarray(u))))
            for g, u in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction))
        ]
        got, parts = sum(dots), sum(map(abs, dots))
    size = sum(float(np.sum(np.abs(w * x))) for w, x in zip(weights, out))

    def line(u) -> Line:
        move = lambda s: jax.tree.map(lambda x, u: x + s * u, moving, u)
        loss = lambda s: float(_loss(move(s), *rest))
        return Line(loss, lambda s: float(_tangent(move(s), u, *rest)), size, parts)

    along = line(direction)
    near, allowed, is_steady = along.slope()
    if not np.isfinite(near) or not is_steady:
        return "chaotic, or a kink"
    if abs(got - near) <= allowed:
        return ""
    half = jax.tree.map(lambda u: u * rng.normal(size=u.shape), direction)
    rest_of_it = jax.tree.map(lambda u, v: u - v, direction, half)
    if is_kink(along, (line(half), line(rest_of_it)), abs(got - near)):
        return "kink: the derivative depends on the direction, and is right beside"
    names = [name for _, name in chosen]
    return f"derivative by {names} is {got:.9g}, differences give {near:.9g} ± {allowed:.2g}"
