"""Explicit Runge–Kutta methods by name: Euler, RK4, SSPRK3, …"""

from typing import ClassVar

from physkit.core import static

from . import _tableau as table
from ._explicit import AbstractRungeKutta
from ._tableau import Tableau
from ._tendencies import TendencyLike, as_tendencies


class RungeKutta(AbstractRungeKutta):
    """The explicit Runge–Kutta method of any `Tableau`.

    **Arguments:**

    - `tableau`: the method's coefficients.
    - the other arguments: tendencies, or functions `(t, state) → rate`, which are summed.
    """

    tableau: Tableau = static()

    def __init__(self, tableau: Tableau, *tendencies: TendencyLike):
        self.tableau = tableau
        self.tendency = as_tendencies(*tendencies)


class Euler(AbstractRungeKutta):
    """Explicit Euler method. Order 1, one evaluation a step.

        y' = y + dt·f(t, y)

    Energy grows exponentially for oscillations; for teaching, and as a part of other methods.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed.

    **Reference:** Euler, Institutionum calculi integralis (1768), §650.
    """

    tableau: ClassVar[Tableau] = table.EULER


class Midpoint(AbstractRungeKutta):
    """Explicit midpoint rule. Order 2, two evaluations a step.

        y' = y + dt·f(t + ½dt, y + ½dt·f(t, y))

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed.

    **Reference:** Runge, Math. Ann. 46, 167 (1895).
    """

    tableau: ClassVar[Tableau] = table.MIDPOINT


class Heun(AbstractRungeKutta):
    """Heun's method: trapezoidal rule with an Euler predictor. Order 2, two evaluations a step.

        y' = y + ½dt·(k₁ + k₂),   k₂ = f(t + dt, y + dt·k₁)

    The same coefficients as `SSPRK2`.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed.

    **Reference:** Heun, Z. Math. Phys. 45, 23 (1900).
    """

    tableau: ClassVar[Tableau] = table.HEUN


class Ralston(AbstractRungeKutta):
    """Ralston's method: the smallest error bound of order 2. Two evaluations a step.

        y' = y + dt·(¼k₁ + ¾k₂),   k₂ = f(t + ⅔dt, y + ⅔dt·k₁)

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed.

    **Reference:** Ralston, Math. Comput. 16, 431 (1962).
    """

    tableau: ClassVar[Tableau] = table.RALSTON


class SSPRK2(AbstractRungeKutta):
    """Strong-stability-preserving Runge–Kutta. Order 2, two evaluations a step.

    A convex combination of Euler steps: what one Euler step keeps (positivity, total variation) a
    step keeps too, up to the same dt.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed.

    **Reference:** Shu & Osher, J. Comput. Phys. 77, 439 (1988), eq. 2.16.
    """

    tableau: ClassVar[Tableau] = table.HEUN


class SSPRK3(AbstractRungeKutta):
    """Strong-stability-preserving Runge–Kutta. Order 3, three evaluations a step.

    A convex combination of Euler steps: what one Euler step keeps (positivity, total variation) a
    step keeps too, up to the same dt. The usual choice for finite-volume flow.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed.

    **Reference:** Shu & Osher, J. Comput. Phys. 77, 439 (1988), eq. 2.18.
    """

    tableau: ClassVar[Tableau] = table.SSPRK3


class RK4(AbstractRungeKutta):
    """The classical Runge–Kutta method. Order 4, four evaluations a step.

        y' = y + dt/6·(k₁ + 2k₂ + 2k₃ + k₄)

    Stable on the imaginary axis up to |ω|dt < 2.83: a good all-round choice for smooth,
    non-stiff problems.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed:
    `RK4(lambda t, y: -y)`, `RK4(EquationsOfMotion(force), drag)`.

    **Reference:** Kutta, Z. Math. Phys. 46, 435 (1901).
    """

    tableau: ClassVar[Tableau] = table.RK4


class RK38(AbstractRungeKutta):
    """Kutta's 3/8 rule. Order 4, four evaluations a step.

        y' = y + dt/8·(k₁ + 3k₂ + 3k₃ + k₄)

    Smaller error constants than `RK4`, at the cost of denser stage sums.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed.

    **Reference:** Kutta, Z. Math. Phys. 46, 435 (1901).
    """

    tableau: ClassVar[Tableau] = table.RK38


class DormandPrince5(AbstractRungeKutta):
    """Dormand and Prince's method of order 5 at a fixed step. Six evaluations a step.

    For steps that adapt themselves use `Diffrax(diffrax.Dopri5(), …)`.

    **Arguments:** tendencies, or functions `(t, state) → rate`, which are summed.

    **Reference:** Dormand & Prince, J. Comput. Appl. Math. 6, 19 (1980), table 2.
    """

    tableau: ClassVar[Tableau] = table.DORMAND_PRINCE_5
