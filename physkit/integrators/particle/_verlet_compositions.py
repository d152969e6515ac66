"""Symmetric compositions of velocity Verlet: orders 4, 6 and 8."""

import equinox as eqx

from physkit.core import ParameterError, static
from physkit.particles.forces import Forces

from .._splitting_coefficients import KAHAN_LI, SUZUKI, YOSHIDA, Stages, Weights, kicks_and_drifts
from ._kicks_and_drifts import AbstractKicksAndDrifts


def _check_order(order: int, table: dict[int, Weights], name: str) -> None:
    if order not in table:
        raise ParameterError(f"{name} has orders {sorted(table)}; got order={order!r}")


class Yoshida(AbstractKicksAndDrifts):
    """Yoshida's symmetric compositions of velocity Verlet. Order 4, 6 or 8, symplectic.

        Φ_dt = V_{γ₁dt} ∘ … ∘ V_{γₛdt},   V = velocity Verlet

    The fewest force evaluations that reach the order: 3, 7 and 15 a step. Some sub-steps are longer
    than the step, others go back in time (γ < 0): at equal cost the error of order 4 is 30 times
    that of `PEFRL` and hundreds of times that of `BlanesMoan`.

    **Arguments:**

    - `force`: a force or a sum of forces, on positions and time.
    - `order`: 4, 6 or 8.

    **Errors:** `ParameterError` for another order.

    **Reference:** Yoshida, Phys. Lett. A 150, 262 (1990).
    """

    force: Forces = eqx.field(converter=Forces.of)
    order: int = static(default=4)

    def __check_init__(self):
        _check_order(self.order, YOSHIDA, "Yoshida")

    @property
    def stages(self) -> Stages:
        """Kicks and drifts of one step, in fractions of it."""
        return kicks_and_drifts(YOSHIDA[self.order])


class Suzuki(AbstractKicksAndDrifts):
    """Suzuki's fractal compositions of velocity Verlet. Order 4, 6 or 8, symplectic.

        Φ⁽ᵏ⁺²⁾_dt = (Φ⁽ᵏ⁾_{p dt})² ∘ Φ⁽ᵏ⁾_{(1−4p) dt} ∘ (Φ⁽ᵏ⁾_{p dt})²,   p = 1/(4 − 4^{1/(k+1)})

    5, 25 and 125 force evaluations a step. Sub-steps stay shorter than the step: at equal cost the
    error of order 4 is a tenth of `Yoshida`'s. Order 8 does not pay: use `KahanLi`.

    **Arguments:**

    - `force`: a force or a sum of forces, on positions and time.
    - `order`: 4, 6 or 8.

    **Errors:** `ParameterError` for another order.

    **Reference:** Suzuki, Phys. Lett. A 146, 319 (1990).
    """

    force: Forces = eqx.field(converter=Forces.of)
    order: int = static(default=4)

    def __check_init__(self):
        _check_order(self.order, SUZUKI, "Suzuki")

    @property
    def stages(self) -> Stages:
        """Kicks and drifts of one step, in fractions of it."""
        return kicks_and_drifts(SUZUKI[self.order])


class KahanLi(AbstractKicksAndDrifts):
    """Kahan and Li's optimized compositions of velocity Verlet. Order 6 or 8, symplectic.

    Two more stages than the fewest possible (9 and 17 force evaluations a step), spent on short
    sub-steps: about 10 times more accurate than `Yoshida` at the same step, up to twice at the same
    cost. Order 8 is the choice for orbits to near rounding.

    **Arguments:**

    - `force`: a force or a sum of forces, on positions and time.
    - `order`: 6 or 8.

    **Errors:** `ParameterError` for another order.

    **Reference:** Kahan & Li, Math. Comput. 66, 1089 (1997).
    """

    force: Forces = eqx.field(converter=Forces.of)
    order: int = static(default=8)

    def __check_init__(self):
        _check_order(self.order, KAHAN_LI, "KahanLi")

    @property
    def stages(self) -> Stages:
        """Kicks and drifts of one step, in fractions of it."""
        return kicks_and_drifts(KAHAN_LI[self.order])
