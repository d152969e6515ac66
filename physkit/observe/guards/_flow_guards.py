"""Guards of flows: positive densities, pressures and depths, and a limit to the Courant number."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from physkit.core import (
    ComponentError,
    Fault,
    Frame,
    Module,
    ObserverError,
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

from .._observer import AbstractGuard, check_optional_interval
from .._snapshot import Snapshot


class PositivityViolation(Module):
    """The first violation: which quantity was not positive, in which cell, and its value.

    - `broken`: whether there was one; until then the other arrays mean nothing.
    - `which`: index into `names`, of the quantities that are guarded.
    - `cell`: row-major index of the cell in the domain, whose grid has `shape`.
    """

    broken: Bool[Array, ""] = data()
    which: Int[Array, ""] = data()
    cell: Int[Array, ""] = data()
    value: Float[Array, ""] = data()
    names: tuple[str, ...] = static()
    shape: tuple[int, ...] = static()


class PositivityGuard(AbstractGuard):
    """Guard: densities, pressures and depths stay positive; its error names the cell and the step.

        Simulation(…, guards=PositivityGuard())

    Checks the quantities that components made of fields declare (`AbstractFieldGroup.positive_quantities`).

    **Arguments:**

    - `interval`: steps between observations.
    - `component`: the component's name; every one that has such quantities if left out.

    **Errors:** at the start `ComponentError` if no component declares a quantity that must be positive,
    `ObserverError` if several do on grids of different shapes.
    """

    interval: int | None = static(default=1, converter=check_optional_interval)
    component: str | None = static(default=None)
    fault: ClassVar[Fault] = Fault.POSITIVITY

    def init(self, snapshot: Snapshot) -> PositivityViolation:
        quantities, grid = self._guarded_quantities(snapshot.state)
        # As in the loop, whose carry must keep its dtypes.
        value = jnp.zeros((), next(iter(quantities.values())).dtype)
        zero = jnp.zeros((), jnp.int32)
        names = tuple(quantities)
        return PositivityViolation(jnp.array(False), zero, zero, value, names, grid.shape)

    def __call__(
        self, snapshot: Snapshot, observer_state: PositivityViolation
    ) -> tuple[Frame, PositivityViolation]:
        quantities, grid = self._guarded_quantities(snapshot.state)
        values = jnp.stack([x.reshape(-1) for x in quantities.values()])  # (quantities, cells)
        # NaN counts as the smallest: `min` and `argmin` both pass it on.
        cells, minima = jnp.argmin(values, axis=1), jnp.min(values, axis=1)
        # Over devices each looks at its own block; a run describes the guard that broke first.
        which = jnp.argmin(minima)
        holds = minima[which] > 0
        is_first = ~holds & ~observer_state.broken
        # Over devices a block has its own numbering of cells: report the index in the domain.
        cell = grid.global_index().reshape(-1)[cells[which]]
        # The loop goes on to the end of its chunk: keep the first violation.
        new = (which.astype(jnp.int32), cell, minima[which])
        old = (observer_state.which, observer_state.cell, observer_state.value)
        first = (jnp.where(is_first, a, b) for a, b in zip(new, old, strict=True))
        new_state = PositivityViolation(
            observer_state.broken | ~holds, *first, observer_state.names, observer_state.shape
        )
        return {"positive": holds}, new_state

    def describe(self, observer_state: PositivityViolation) -> str:
        cell = np.unravel_index(int(observer_state.cell), observer_state.shape)
        index = tuple(map(int, cell)) if len(cell) > 1 else int(cell[0])
        name = observer_state.names[int(observer_state.which)]
        return f"{name} = {float(observer_state.value):.4g} in cell {index}"

    def _guarded_quantities(self, state: State) -> tuple[dict[str, Array], Grid]:
        """The quantities that must be positive, by component and name, and their grid.

        **Errors:** `ComponentError` when there are none.
        """
        if self.component is not None:
            state = {self.component: get_component(state, self.component)}
        components = state if isinstance(state, dict) else {"": state}
        found: dict[str, Array] = {}
        grid: Grid | None = None
        for name, part in components.items():
            quantities = part.positive_quantities() if isinstance(part, AbstractFieldGroup) else {}
            found |= {f"{name} {label}".strip(): x for label, x in quantities.items()}
            if quantities and grid is not None and part.grid.shape != grid.shape:
                raise ObserverError(
                    f"a PositivityGuard looks at one grid; {name!r} has {part.grid.shape} cells, another "
                    f"component {grid.shape}: give each its own, PositivityGuard(component={name!r})"
                )
            grid = part.grid if quantities and grid is None else grid
        if grid is None:
            available = sorted(components) if self.component is None else self.component
            raise ComponentError(
                "PositivityGuard is for gases and other components that say what of them must be positive; "
                f"the state has none (available: {available})"
            )
        return found, grid


class CourantViolation(Module):
    """The Courant number when it first exceeded the limit."""

    broken: Bool[Array, ""] = data()
    cfl: Float[Array, ""] = data()


class CourantLimit(AbstractGuard):
    """Guard: no wave crosses more than `cfl` of a cell in a step.

        dt · max Σ_k |λ_k| / h_k ≤ cfl

    Trips when the flow becomes too fast for the step, before it blows up.

    **Arguments:**

    - `cfl`: the largest Courant number allowed.
    - `interval`: steps between observations.

    **Errors:** `ParameterError` at the start when no term tells its signal speed, or for a number that is
    not positive.

    **Good values:** 0.8 for `MUSCL` with `SSPRK2` and for `WENO5` with `SSPRK3`.

    **Notes:** it sees whole steps. With `CFLSubsteps`, which divides them, it is not needed.
    """

    cfl: Float[Array, ""] = param()
    interval: int | None = static()
    fault: ClassVar[Fault] = Fault.COURANT

    def __init__(self, cfl: ArrayLike = 0.8, interval: int | None = 1):
        self.cfl = as_parameter(cfl)
        self.interval = check_optional_interval(interval)
        value = concrete_value(cfl)
        if value is not None and not value > 0:
            raise ParameterError(f"a Courant number must be positive; got {cfl}")

    def init(self, snapshot: Snapshot) -> CourantViolation:
        return CourantViolation(jnp.array(False), jnp.zeros_like(self._courant_number(snapshot)))

    def __call__(
        self, snapshot: Snapshot, observer_state: CourantViolation
    ) -> tuple[Frame, CourantViolation]:
        number = self._courant_number(snapshot)
        # In this order: a comparison with NaN is false, and so NaN breaks the guard.
        holds = number <= self.cfl
        is_first = ~holds & ~observer_state.broken
        new_state = CourantViolation(
            observer_state.broken | ~holds, jnp.where(is_first, number, observer_state.cfl)
        )
        return {"courant": holds}, new_state

    def describe(self, observer_state: CourantViolation) -> str:
        found, limit = float(observer_state.cfl), float(self.cfl)
        return f"Courant number {found:.4g}, allowed {limit:.4g}: reduce dt at least {found / limit:.3g} times"

    def _courant_number(self, snapshot: Snapshot) -> Float[Array, ""]:
        rate = total_signal_rate(snapshot.terms(), snapshot.clock, snapshot.state)
        # A check has no part in derivatives: keep it out of the backward pass.
        return jax.lax.stop_gradient(snapshot.clock.dt * rate)
