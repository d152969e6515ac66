"""Setting members up: neighbor lists that many boxes can share, and large members one by one."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from physkit.core import AbstractGrowable, ShapeError, find_growables, get_component, replace_fields
from physkit.particles.forces import Pairwise
from physkit.particles.neighbors import Cells, ListedPairs
from physkit.simulate import Carry

SKIN = 0.12  # of the cutoff, as where the box is not seen


def set_common_skin(model: Any, boxes: Sequence[Any]) -> Any:
    """`model`, its pair forces of unsaid skin with one that fits the box of every member.

    A list's reach is part of the program, so that members of different density must share it. Members
    whose box is too small even for the cutoff are left to be found wrong by themselves.
    """
    sim, state = model
    is_pairwise = lambda x: isinstance(x, Pairwise)

    def common(force):
        if not is_pairwise(force) or force.cutoff is None or force.skin is not None:
            return force
        limits = np.array([_limit(force, box, state) for box in boxes])
        room = limits[limits >= force.cutoff] - force.cutoff
        skin = SKIN * force.cutoff
        if len(room) and room.min() < skin:
            return replace_fields(force, {"skin": float(max(0.0, room.min() * (1 - 1e-6)))})
        return force

    return jax.tree.map(common, sim, is_leaf=is_pairwise), state


def _limit(force: Pairwise, box: Any, state: Any) -> float:
    particles = get_component(box, force.component)
    return float(
        particles.space.max_cutoff(get_component(state, force.component).position.shape[1])
    )


def stack_carries(carries: list[Carry], rows: int) -> Carry:
    """Carries that were started one by one as one batch, with the largest of their capacities.

    **Errors:** `ShapeError` where they differ in more than that.
    """
    lists = [[n for n in find_growables(c.aux) if isinstance(n, ListedPairs)] for c in carries]
    rows = max([rows, *(n.capacity for own in lists for n in own)])
    cells = [[n for n in find_growables(c.aux) if isinstance(n, Cells)] for c in carries]
    shared = [_coarsest(column) for column in zip(*cells, strict=True)]
    made = [_alike(carry, rows, shared) for carry in carries]
    forms = {jax.tree.structure(carry) for carry in made}
    if len(forms) > 1:
        raise ShapeError(
            "members are set up differently, so that they cannot be computed side by side: give "
            "Pairwise(…, skin=…) one skin that fits all boxes, or make groups of them"
        )
    return jax.tree.map(lambda *x: jnp.stack(x), *made)


def _coarsest(nodes: Sequence[Cells]) -> Cells:
    least = min(nodes, key=lambda n: n.count)
    return Cells.of(least.shape, max(n.slots for n in nodes))


def _alike(carry: Carry, rows: int, cells: list[Cells]) -> Carry:
    left = iter(cells)
    is_growable = lambda n: isinstance(n, AbstractGrowable)

    def fit(node):
        if isinstance(node, ListedPairs):
            return node.resize(rows)
        return next(left) if isinstance(node, Cells) else node

    return carry.replace(aux=jax.tree.map(fit, carry.aux, is_leaf=is_growable))
