"""Guards of flows: what must stay positive, and the Courant number of the steps."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    ComponentError,
    Fault,
    Frame,
    Module,
    ParameterError,
    State,
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

from .._observer import AbstractObserver, check_optional_interval
from .._snapshot import Snapshot


class PositivityViolation(Module):
    """The first cell where something was not positive: which quantity, in which cell, and its value."""

    broken: Bool[Array, ""] = data()
    which: Int[Array, ""] = data()
    cell: Int[Array, ""] = data()
    value: Float[Array, ""] = data()
    names: tuple[str, ...] = static()
    shape: tuple[int, ...] = static()


class PositivityGuard(AbstractObserver):
    """Guard: densities, pressures and depths stay positive; says in which cell at which step one did not.

        Simulation(…, guards=(Finite(), Positive()))

    Checks what components made of fields say must be positive (`AbstractFieldGroup.positive_quantities`).

    **Arguments:**

    - `interval`: steps between observations.
    - `component`: the component's name; every one that has such fields if left out.

    **Errors:** `ComponentError` at the start if no component has anything that must be positive.
    """

    interval: int | None = static(default=1, converter=check_optional_interval)
    component: str | None = static(default=None)
    fault: ClassVar[Fault] = Fault.POSITIVITY

    def init(self, snapshot: Snapshot) -> PositivityViolation:
        quantities, grid = self._guarded_quantities(snapshot.state)
        value = jnp.zeros((), next(iter(quantities.values())).dtype)
        zero = jnp.zeros((), jnp.int32)
        names = tuple(quantities)
        return PositivityViolation(jnp.array(False), zero, zero, value, names, grid.shape)

    def __call__(
        self, snapshot: Snapshot, observer_state: PositivityViolation
    ) -> tuple[Frame, PositivityViolation]:
        quantities, grid = self._guarded_quantities(snapshot.state)
        values = jnp.stack([x.reshape(-1) for x in quantities.values()])
        # NaN counts as least of all: `min` and `argmin` both pass it on.
        cells, least = jnp.argmin(values, axis=1), jnp.min(values, axis=1)
        which = jnp.argmin(least)
        holds = least[which] > 0
        first = ~holds & ~observer_state.broken
        cell = grid.global_index().reshape(-1)[
            cells[which]
        ]  # over devices, its index in the domain
        # Once broken, the first violation stays.
        now = (which.astype(jnp.int32), cell, least[which])
        before = (observer_state.which, observer_state.cell, observer_state.value)
        kept = (jnp.where(first, a, b) for a, b in zip(now, before, strict=True))
        after = PositivityViolation(
            observer_state.broken | ~holds, *kept, observer_state.names, observer_state.shape
        )
        return {"positive": holds}, after

    def describe(self, observer_state: PositivityViolation) -> str:
        cell = np.unravel_index(int(observer_state.cell), observer_state.shape)
        where = tuple(map(int, cell)) if len(cell) > 1 else int(cell[0])
        name = observer_state.names[int(observer_state.which)]
        return f"{name} = {float(observer_state.value):.4g} in cell {where}"

    def _guarded_quantities(self, state: State) -> tuple[dict[str, Array], Grid]:
        """What must be positive, by component and name, and the grid that it is on.

        **Errors:** `ComponentError` when there is nothing.
        """
        if self.component is not None:
            state = {self.component: get_component(state, self.component)}
        parts = state if isinstance(state, dict) else {"": state}
        found: dict[str, Array] = {}
        grid: Grid | None = None
        for name, part in parts.items():
            own = part.positive_quantities() if isinstance(part, AbstractFieldGroup) else {}
            found |= {f"{name} {what}".strip(): x for what, x in own.items()}
            grid = part.grid if own and grid is None else grid
        if grid is None:
            raise ComponentError(
                "PositivityGuard is for gases and other components that say what of them must be positive; "
                f"the state has none (available: {sorted(parts) if self.component is None else self.component})"
            )
        return found, grid


class CourantViolation(Module):
    """The Courant number when it first exceeded the limit."""

    broken: Bool[Array, ""] = data()
    cfl: Float[Array, ""] = data()


class CourantLimit(AbstractObserver):
    """Guard: no wave crosses more than `cfl` of a cell in a step.

        dt · max Σ_k |λ_k| / h_k ≤ cfl

    Trips when the flow becomes too fast for the step, before it blows up.

    **Arguments:**

    - `cfl`: the largest Courant number allowed.
    - `interval`: steps between observations.

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
        self.interval = check_optional_interval(interval)
        value = concrete_value(cfl)
        if value is not None and value.dtype != object and not value > 0:
            raise ParameterError(f"a Courant number must be positive; got {cfl}")

    def init(self, snapshot: Snapshot) -> CourantViolation:
        return CourantViolation(jnp.array(False), jnp.zeros_like(self._now(snapshot)))

    def __call__(
        self, snapshot: Snapshot, observer_state: CourantViolation
    ) -> tuple[Frame, CourantViolation]:
        now = self._now(snapshot)
        holds = now <= self.cfl  # not for NaN
        first = ~holds & ~observer_state.broken
        after = CourantViolation(
            observer_state.broken | ~holds, jnp.where(first, now, observer_state.cfl)
        )
        return {"courant": holds}, after

    def describe(self, observer_state: CourantViolation) -> str:
        found, most = float(observer_state.cfl), float(self.cfl)
        return f"Courant number {found:.4g}, allowed {most:.4g}: reduce dt at least {found / most:.3g} times"

    def _now(self, snapshot: Snapshot) -> Float[Array, ""]:
        rate = total_signal_rate(snapshot.terms(), snapshot.clock, snapshot.state)
        return jax.lax.stop_gradient(snapshot.clock.dt * rate)
