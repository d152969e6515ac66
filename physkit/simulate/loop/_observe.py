"""Running the observers and guards of a simulation."""

from collections.abc import Iterable

import jax
import jax.numpy as jnp

from physkit.core import Frame, ObserverError, Plan, at_full_precision

from ._carry import Carry, snapshot
from ._simulation import Simulation


@at_full_precision
def observe(
    sim: Simulation, plan: Plan, carry: Carry, interval: int | None, *, is_current: bool = False
) -> tuple[Carry, Frame]:
    """Run the observers and guards whose interval is `interval` (None: those of the ends of chunks).

    - `is_current`: as of `snapshot`.

    **Errors:** `ObserverError` when two observers record one name.
    """
    now = snapshot(sim, plan, carry, is_current=is_current)
    frames: Frame = {}
    observer_states, guards = [], []
    for observer, observer_state in zip(sim.observers, carry.observer_state, strict=True):
        if observer.interval == interval:
            frame, observer_state = observer(now, observer_state)
            frames = merge_frames(frames, jax.tree.map(jnp.asarray, frame))
        observer_states.append(observer_state)
    for guard, (observer_state, guard_state) in zip(sim.guards, carry.guards, strict=True):
        if guard.interval == interval:
            frame, observer_state = guard(now, observer_state)
            # A guard's frame is booleans of any shape, which must all be true.
            holds = jnp.all(jnp.stack([jnp.all(x) for x in jax.tree.leaves(frame)]))
            guard_state = guard_state.update(holds, carry.step)
        guards.append((observer_state, guard_state))
    return carry.replace(observer_state=tuple(observer_states), guards=tuple(guards)), frames


def merge_frames(frames: Frame, more: Frame) -> Frame:
    """What different observers record, as one.

    **Errors:** `ObserverError` when two record one name.
    """
    require_different_names(frames, more)
    return {**frames, **more}


def require_different_names(recorded: Iterable[str], others: Iterable[str]) -> None:
    """**Errors:** `ObserverError` for names that are in both."""
    if twice := sorted(set(recorded) & set(others)):
        raise ObserverError(f"two observers record {twice}; give each its own name")
