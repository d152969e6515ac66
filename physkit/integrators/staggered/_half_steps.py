"""Half a step of a field that is staggered in time: what one half of it adds to the other."""

from collections.abc import Callable

import jax

from physkit.core import Clock, Plan, State, get_component, put_component, replace_fields

from .._reproducible import make_reproducible


def add_half_step(
    increments: Callable,
    component: str | None,
    plan: Plan,
    clock: Clock,
    state: State,
    sign: int = 1,
) -> State:
    """`state` with one half of a step added to the field called `component`; with `sign` −1 taken from it.

    - `increments`: `(plan, clock, field)` → what is added to the field, and what absorbing layers remember.
    """

    def evaluate(clock: Clock, state: State, cache: None) -> tuple:
        return increments(plan, clock, get_component(state, component)), cache

    (delta, memory), _ = make_reproducible(evaluate, state)(clock, state, None)
    if sign < 0:
        delta = jax.tree.map(lambda x: -x, delta)
    field = get_component(state, component).shift(delta)
    if memory:
        field = replace_fields(field, {"memory": {**field.memory, **memory}})
    return put_component(state, component, field)
