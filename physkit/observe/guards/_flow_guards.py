"""Guards of flows: what must stay positive, and steps that waves must not outrun."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    ComponentError,
    Fault,
    Module,
    ParameterError,
    as_parameter,
    concrete_value,
    data,
    get_component,
    param,
    static,
)
from physkit.fields import AbstractFieldGroup
from physkit.geometry import Grid
from physkit.integrators import total_signal_rate

from .._observer import AbstractObserver, Frame, check_interval
from .._snapshot import Snapshot


class PositivityViolation(Module):
    """The first cell where something was not positive: which number, where, and how much."""

    broken: Bool[Array, ""] = data()
    which: Int[Array, ""] = data()
    cell: Int[Array, ""] = data()
    value: Float[Array, ""] = data()
    names: tuple[str, ...] = static()
    shape: tuple[int, ...] = static()


class PositivityGuard(AbstractObserver):
    """Guard: densities, pressures and depths stay positive; says in which cell at which step one did not.

        Simulation(…, guards=(Finite(), Positive()))

    Looks at whatever components made of fields say must be positive (`AbstractFieldGroup.positive`).

    **Arguments:**

    - `interval`: steps between looks.
    - `of`: the component's name; every one that has such fields if left out.

    **Errors:** `ComponentError` at the start if no component has anything that must be positive.
    """

    interval: int | None = static(
        default=1, converter=lambda n: n if n is None else check_interval(n)
    )
    component: str | None = static(default=None)
    fault: ClassVar[Fault] = Fault.POSITIVITY

    def init(self, snapshot: Snapshot) -> PositivityViolation:
        found, grid = self._found(snapshot.state)
        nothing = jnp.zeros((), next(iter(found.values())).dtype)
        zero = jnp.zeros((), jnp.int32)
        return PositivityViolation(jnp.array(False), zero, zero, nothing, tuple(found), grid.shape)

    def __call__(
        self, snapshot: Snapshot, memory: PositivityViolation
    ) -> tuple[Frame, PositivityViolation]:
        found, grid = self._found(snapshot.state)
        values = jnp.stack([x.reshape(-1) for x in found.values()])
        # NaN counts as least of all: `min` and `argmin` both pass it on.
        cells, least = jnp.argmin(values, axis=1), jnp.min(values, axis=1)
        which = jnp.argmin(least)
        holds = least[which] > 0
        first = ~holds & ~memory.broken
        cell = grid.global_index().reshape(-1)[cells[which]]  # its number in the whole domain
        now = (which.astype(jnp.int32), cell, least[which])
        old = (memory.which, memory.cell, memory.value)
        kept = (jnp.where(first, a, b) for a, b in zip(now, old, strict=True))
        after = PositivityViolation(memory.broken | ~holds, *kept, memory.names, memory.shape)
        return {"positive": holds}, after

    def describe(self, memory: PositivityViolation) -> str:
        cell = tuple(int(i) for i in np.unravel_index(int(memory.cell), memory.shape))
        where = cell if len(cell) > 1 else cell[0]
        return f"{memory.names[int(memory.which)]} = {float(memory.value):.4g} in cell {where}"

    def _found(self, state: Any) -> tuple[dict[str, Array], Grid]:
        state = (
            state
            if self.component is None
            else {self.component: get_component(state, self.component)}
        )
        parts = state if isinstance(state, dict) else {"": state}
        found: dict[str, Array] = {}
        grid: Any = None
        for name, part in parts.items():
            own = part.positive_quantities() if isinstance(part, AbstractFieldGroup) else {}
            found |= {f"{name} {what}".strip(): x for what, x in own.items()}
            grid = part.grid if own and grid is None else grid
        if not found:
            raise ComponentError(
                "Positive guards gases and other components that say what of them must be positive; "
                f"the state has none (available: {sorted(parts) if self.component is None else self.component})"
            )
        return found, grid


class CourantViolation(Module):
    """The Courant number when it first was too large."""

    broken: Bool[Array, ""] = data()
    cfl: Float[Array, ""] = data()


class CourantLimit(AbstractObserver):
    """Guard: no wave crosses more than `number` of a cell in a step.

        dt · max Σ_k |λ_k| / h_k ≤ number

    Trips when the flow becomes too fast for the step, before it blows up.

    **Arguments:**

    - `number`: the largest Courant number allowed.
    - `interval`: steps between looks.

    **Errors:** `ParameterError` at the start when no term tells its signal speed, or for a number that is
    not positive.

    **Good values:** 0.8 for `MUSCL` with `SSPRK2` and for `WENO5` with `SSPRK3`.

    **Notes:** sees whole steps. Inside `CFLSubsteps`, which cuts them, it is not needed.
    """

    cfl: Float[Array, ""] = param()
    interval: int | None = static()
    fault: ClassVar[Fault] = Fault.COURANT

    def __init__(self, cfl: Any = 0.8, interval: int | None = 1):
        self.cfl = as_parameter(cfl)
        self.interval = None if interval is None else check_interval(interval)
        value = concrete_value(cfl)
        if value is not None and value.dtype != object and not value > 0:
            raise ParameterError(f"a Courant number must be positive; got {cfl}")

    def init(self, snapshot: Snapshot) -> CourantViolation:
        return CourantViolation(jnp.array(False), jnp.zeros_like(self._now(snapshot)))

    def __call__(
        self, snapshot: Snapshot, memory: CourantViolation
    ) -> tuple[Frame, CourantViolation]:
        now = self._now(snapshot)
        holds = now <= self.cfl  # not for NaN
        first = ~holds & ~memory.broken
        after = CourantViolation(memory.broken | ~holds, jnp.where(first, now, memory.cfl))
        return {"courant": holds}, after

    def describe(self, memory: CourantViolation) -> str:
        found, most = float(memory.cfl), float(self.cfl)
        return f"Courant number {found:.4g}, allowed {most:.4g}: reduce dt at least {found / most:.3g} times"

    def _now(self, snapshot: Snapshot) -> Float[Array, ""]:
        rate = total_signal_rate(snapshot.terms(), snapshot.clock, snapshot.state)
        return jax.lax.stop_gradient(snapshot.clock.dt * rate)
