"""First-passage times: when a condition is first true."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import Frame, ObserverError, static

from .._observer import AbstractObserver, AbstractQuantity, as_quantity, check_interval
from .._snapshot import Snapshot


class FirstPassage(AbstractObserver):
    """The time at which a condition is first true, observed every `interval` steps.

        FirstPassage(1, escape=lambda now: now.state.position[:, 0] >= 1.0)

    Summary, by name: the time of the first sample at which it was true, NaN where there is none. It has the
    shape of the condition: a condition per particle gives a time per particle. `passage_rate` makes it a rate.

    **Arguments:** conditions by name: functions of a `Snapshot` that return bools of any shape.

    **Good values:** interval 1. Crossings between samples are missed: a barrier of diffusing particles acts as
    if it were 0.58 √(2 D dt) further away.

    **Notes:** the time has no derivative; a smooth objective is needed to optimize it.

    **Reference:** Broadie, Glasserman & Kou, Math. Finance 7, 325 (1997), for the shift.
    """

    interval: int = static()
    conditions: dict[str, AbstractQuantity]

    def __init__(self, interval: int, **conditions: Any):
        self.interval = check_interval(interval)
        if not conditions:
            raise ObserverError(
                "FirstPassage(n, …) needs a condition, e.g. far=lambda now: now.state.position > 1"
            )
        self.conditions = {name: as_quantity(name, c) for name, c in conditions.items()}

    def init(self, snapshot: Snapshot) -> dict[str, Array]:
        observer_state = {}
        for name, condition in self.conditions.items():
            shape = eqx.filter_eval_shape(lambda now, c=condition: jnp.asarray(c(now)), snapshot)
            if shape.dtype != bool:
                raise ObserverError(
                    f"{name} is a condition, true or false; it returns {shape.dtype}"
                )
            # NaN means not yet, and is the result where it never becomes true.
            observer_state[name] = jnp.full(shape.shape, jnp.nan, snapshot.t.dtype)
        return observer_state

    def __call__(
        self, snapshot: Snapshot, observer_state: dict[str, Array]
    ) -> tuple[Frame, dict[str, Array]]:
        new_state = {}
        for name, condition in self.conditions.items():
            passage_time = observer_state[name]
            # A time that is set is no longer NaN, so it stays.
            is_first = jnp.isnan(passage_time) & condition(snapshot)
            # The loop's carry must keep its dtype.
            now = snapshot.t.astype(passage_time.dtype)
            new_state[name] = jnp.where(is_first, now, passage_time)
        return {}, new_state

    def summary(self, observer_state: dict[str, Array]) -> Frame:
        return observer_state
