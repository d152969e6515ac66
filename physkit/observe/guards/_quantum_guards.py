"""Guards of quantum states: total probability and positivity."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Frame, ParameterError, as_parameter, concrete_value, param, static
from physkit.quantum import DensityMatrix

from .._observer import AbstractGuard, check_optional_interval
from .._snapshot import Snapshot
from ..quantities._quantum_quantities import require_quantum_state


class NormDrift(AbstractGuard):
    """Guard: ⟨ψ|ψ⟩ of a vector, or Tr ρ of a density matrix, stays 1.

        |⟨ψ|ψ⟩ − 1| ≤ tolerance

    A step of RK4 that is too long loses norm, or gains it, long before anything is infinite.

    **Arguments:**

    - `interval`: steps between observations; None for the end of each chunk only.
    - `tolerance`: absolute.
    - `component`: the state's name, where there are several components.

    **Errors:** `ParameterError` for a tolerance that is not positive.

    **Good values:** 1e-6 in float64, 1e-3 in float32.
    """

    interval: int | None = static()
    tolerance: Float[Array, ""] = param()
    component: str | None = static()

    def __init__(
        self, interval: int | None, tolerance: ArrayLike = 1e-6, component: str | None = None
    ):
        self.interval, self.component = check_optional_interval(interval), component
        self.tolerance = _as_tolerance(tolerance)

    def __call__(self, snapshot: Snapshot, observer_state: None) -> tuple[Frame, None]:
        total = require_quantum_state(snapshot.state, self.component).total()
        return {"norm": jnp.abs(total - 1) <= self.tolerance}, observer_state


class PositiveDensity(AbstractGuard):
    """Guard: no eigenvalue of a density matrix falls below −tolerance.

    The eigenvalues cost D³ operations: an interval of many steps is enough. A vector is positive by itself.

    **Arguments:**

    - `interval`: steps between observations; None for the end of each chunk only.
    - `tolerance`: absolute.
    - `component`: the state's name, where there are several components.

    **Errors:** `ParameterError` for a tolerance that is not positive.

    **Good values:** 1e-8 in float64, 1e-5 in float32.
    """

    interval: int | None = static()
    tolerance: Float[Array, ""] = param()
    component: str | None = static()

    def __init__(
        self, interval: int | None, tolerance: ArrayLike = 1e-8, component: str | None = None
    ):
        self.interval, self.component = check_optional_interval(interval), component
        self.tolerance = _as_tolerance(tolerance)

    def __call__(self, snapshot: Snapshot, observer_state: None) -> tuple[Frame, None]:
        state = require_quantum_state(snapshot.state, self.component)
        if not isinstance(state, DensityMatrix):
            return {"positive": jnp.ones((), bool)}, observer_state
        return {"positive": state.smallest_eigenvalue() >= -self.tolerance}, observer_state


def _as_tolerance(tolerance: ArrayLike) -> Array:
    number = concrete_value(tolerance)
    if number is not None and not number > 0:
        raise ParameterError(f"a tolerance must be positive; got {tolerance}")
    return as_parameter(tolerance)
