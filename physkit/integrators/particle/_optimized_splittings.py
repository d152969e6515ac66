"""Splittings optimized for kinetic plus potential energy: orders 4 and 6."""

import equinox as eqx

from physkit.core import Cache, Clock, ParameterError, State, static
from physkit.particles.forces import Forces

from .._splitting_coefficients import BLANES_MOAN, PEFRL_STAGES, Stages
from ._kicks_and_drifts import (
    AbstractDriftFirst,
    AbstractKicksAndDrifts,
    drift_kick_drift,
    reverse_drift_kick_drift,
)


class BlanesMoan(AbstractKicksAndDrifts):
    """Blanes and Moan's Runge–Kutta–Nyström splittings. Order 4 or 6, symplectic, time-symmetric.

    Made for forces of positions (and time) with a kinetic energy quadratic in v, where fewer order
    conditions hold and the stages left over bring the error down. 6 and 11 force evaluations a
    step. At equal cost the error is hundreds of times below that of `Yoshida` of the same order.

    **Arguments:**

    - `force`: a force or a sum of forces, on positions and time.
    - `order`: 4 or 6.

    **Errors:** `ParameterError` for another order.

    **Reference:** Blanes & Moan, J. Comput. Appl. Math. 142, 313 (2002), SRKN₆ᵇ and SRKN₁₁ᵇ.
    """

    force: Forces = eqx.field(converter=Forces.of)
    order: int = static(default=4)

    def __check_init__(self):
        if self.order not in BLANES_MOAN:
            raise ParameterError(f"BlanesMoan has orders {sorted(BLANES_MOAN)}; got {self.order!r}")

    @property
    def stages(self) -> Stages:
        """Kicks and drifts of one step, in fractions of it."""
        return BLANES_MOAN[self.order]


class PEFRL(AbstractDriftFirst):
    """Position-extended Forest–Ruth-like splitting. Order 4, symplectic, time-symmetric.

    Four force evaluations a step, one more than `Yoshida(order=4)`, for an error about 30 times
    smaller at equal cost. It starts and ends with a drift and carries no force.

    **Arguments:**

    - `force`: a force or a sum of forces, on positions and time.

    **Reference:** Omelyan, Mryglod & Folk, Comput. Phys. Commun. 146, 188 (2002), eqs. 20 and 22.
    """

    force: Forces = eqx.field(converter=Forces.of)

    def step(self, plan: None, clock: Clock, state: State, aux: Cache) -> tuple[State, Cache]:
        return drift_kick_drift(self.force, PEFRL_STAGES, clock, state, aux)

    def require_reversible(self, state: State) -> None:
        self.force.require_reversible(state)

    def reverse_step(
        self, plan: None, clock: Clock, state: State, aux: Cache, aux_clock: Clock
    ) -> tuple[State, Cache]:
        return reverse_drift_kick_drift(self.force, PEFRL_STAGES, clock, state, aux)
