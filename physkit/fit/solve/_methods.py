"""Methods of minimization: each holds a solver of optimistix or optax, and its limits."""

import abc
from typing import Any, ClassVar, Literal, TypeAlias

import equinox as eqx
import lineax
import numpy as np
import optax
import optimistix
from jax.typing import DTypeLike

from physkit.core import Module, ParameterError, as_count, static

Kind: TypeAlias = Literal["residuals", "loss"]
MethodLike: TypeAlias = (
    Any  # a method, an optimizer of optax, or None; `as_method` says what is wrong
)
Solver: TypeAlias = optimistix.AbstractLeastSquaresSolver | optimistix.AbstractMinimiser


_MAX_OF_BFGS = 1000  # numbers: its matrix is 8 MB then


class AbstractMethod(Module):
    """A way to a minimum, for one kind of objective."""

    kind: ClassVar[Kind]  # what the objective returns

    @property
    @abc.abstractmethod
    def step_limit(self) -> int:
        """The steps that it may take."""


class AbstractIterative(AbstractMethod):
    """A method that knows by itself when it is done."""

    max_steps: int = static(default=300)
    tolerance: float | None = static(default=None)

    def __check_init__(self):
        if self.max_steps < 1:
            raise ParameterError(f"max_steps must be at least 1; got {self.max_steps}")

    @property
    def step_limit(self) -> int:
        return self.max_steps

    def tolerance_for(self, dtype: DTypeLike) -> float:
        """The tolerance, by default the root of the precision."""
        return float(np.sqrt(np.finfo(dtype).eps)) if self.tolerance is None else self.tolerance

    @abc.abstractmethod
    def solver(self, dtype: DTypeLike) -> Solver:
        """The solver for numbers of this precision."""


class LevenbergMarquardt(AbstractIterative):
    """Gauss–Newton, damped where the residuals are not straight: the first choice for residuals.

        (JᵀJ + λ) Δ = −Jᵀr,   λ falls when a step does what was predicted, and rises when not

    **Arguments:**

    - `max_steps`: evaluations of the residuals and their Jacobian.
    - `tolerance`: relative change of coordinates and residuals at which it stops.

    **Notes:** coordinates are scaled by the columns of the Jacobian at the start, and again where it
    stops short of the minimum.

    **Reference:** Marquardt, J. SIAM 11, 431 (1963).
    """

    kind: ClassVar[Kind] = "residuals"

    def solver(self, dtype: DTypeLike) -> Solver:
        tolerance = self.tolerance_for(dtype)
        # QR of the stacked [J; √λ I]: its condition is that of J, where JᵀJ would square it.
        solver = optimistix.LevenbergMarquardt(tolerance, tolerance, linear_solver=lineax.QR())
        # By default steps grow only after a prediction that was met to a hundredth.
        search = optimistix.ClassicalTrustRegion(high_cutoff=0.75, high_constant=10.0)
        return eqx.tree_at(lambda s: s.search, solver, search)


class GaussNewton(AbstractIterative):
    """Full steps to the minimum of the linearized residuals: fewest steps near it, no safety far away.

        JᵀJ Δ = −Jᵀr

    **Arguments:** as `LevenbergMarquardt`.
    """

    kind: ClassVar[Kind] = "residuals"

    def solver(self, dtype: DTypeLike) -> Solver:
        tolerance = self.tolerance_for(dtype)
        # Least norm where columns depend on one another: an undetermined direction takes no step.
        return optimistix.GaussNewton(
            tolerance, tolerance, linear_solver=lineax.AutoLinearSolver(well_posed=False)
        )


class BFGS(AbstractIterative):
    """Quasi-Newton descent of a smooth loss, from gradients alone.

    With `errors=Likelihood()` the last steps are Newton's, by the Hessian of the standard errors. Without, it
    may stop early along combinations of parameters that the loss hardly depends on; residuals are better. It
    keeps a matrix of all pairs of numbers: of thousands take `LBFGS`.

    **Arguments:**

    - `max_steps`: evaluations of the loss.
    - `tolerance`: relative change of coordinates and loss at which it stops.

    **Reference:** Nocedal & Wright, Numerical Optimization, 2nd ed., §6.1.
    """

    kind: ClassVar[Kind] = "loss"
    max_steps: int = static(default=300)

    def solver(self, dtype: DTypeLike) -> Solver:
        tolerance = self.tolerance_for(dtype)
        return optimistix.BFGS(tolerance, tolerance)


class LBFGS(AbstractIterative):
    """`BFGS` with a limited memory: for a loss of thousands of numbers or more, like a field or a network.

    It keeps the last changes of point and gradient in place of a matrix of all pairs of numbers: memory and
    work of a step grow with p, not with p².

    **Arguments:**

    - `max_steps`: evaluations of the loss.
    - `tolerance`: relative change of coordinates and loss at which it stops.
    - `history`: how many changes are kept.

    **Good values:** 5 to 20 changes.

    **Reference:** Byrd, Nocedal & Schnabel, Math. Program. 63, 129 (1994).
    """

    kind: ClassVar[Kind] = "loss"
    history: int = static(default=10)

    def __check_init__(self):
        as_count(self.history, "history", ParameterError)

    def solver(self, dtype: DTypeLike) -> Solver:
        tolerance = self.tolerance_for(dtype)
        return optimistix.LBFGS(tolerance, tolerance, history_length=self.history)


class Optax(AbstractMethod):
    """First-order descent of a loss by any optimizer of optax, its schedules included.

    **Arguments:**

    - `optimizer`: e.g. `optax.adam(optax.cosine_decay_schedule(0.05, 500))`.
    - `steps`: at most so many.
    - `patience`: stop when for so many steps the loss fell by less than `tolerance` of itself; never before
      the end if left out.
    - `tolerance`: also, the fit counts as converged when the loss fell by less than this part of itself in the
      last tenth of the steps. First-order descent cannot tell a plateau from a minimum: compare the loss
      with what the noise of the data explains.
    - `batch_rows`: each step sees so many rows of the data (the first axis of all its arrays: trajectories,
      observations) instead of all of them. The loss is then a mean over the rows that it is given. Every row
      comes once in an epoch, but for those that do not fill a batch, others each time; in an order drawn from
      `fit`'s key and the number of the epoch: gradients are unbiased, and the same whenever the fit is
      repeated or continued. The last point is then the result, not the best, as losses of batches do not
      compare; let the step fall, by a schedule. It counts as converged when the last tenth of the epochs is
      no lower than the tenth before, within twice the scatter.

    **Good values:** `optax.adam(0.03)`, 300 steps: coordinates are scaled to order 1, so a step of
    0.03 changes each by some 3 %.
    """

    kind: ClassVar[Kind] = "loss"
    optimizer: optax.GradientTransformation = static()
    steps: int = static(default=300)
    patience: int | None = static(default=None)
    tolerance: float = static(default=1e-3)
    batch_rows: int | None = static(default=None)

    def __check_init__(self):
        if self.batch_rows is not None:
            as_count(self.batch_rows, "batch_rows", ParameterError)
            if self.patience is not None:
                raise ParameterError(
                    "patience compares losses, and those of different batches do not compare: leave it out"
                )
        if self.steps < 1 or (self.patience is not None and self.patience < 1):
            raise ParameterError(
                f"steps and patience must be at least 1; got {self.steps} and {self.patience}"
            )

    @property
    def step_limit(self) -> int:
        return self.steps


def as_method(method: MethodLike, kind: Kind, num_parameters: int) -> AbstractMethod:
    """`method`, or the first choice for this kind of objective of so many numbers.

    **Errors:** `ParameterError` for something that is no method.
    """
    if method is None:
        if kind == "residuals":
            return LevenbergMarquardt()
        return BFGS() if num_parameters <= _MAX_OF_BFGS else LBFGS()
    if isinstance(method, optax.GradientTransformation):
        return Optax(method)
    if isinstance(method, AbstractMethod):
        return method
    raise ParameterError(
        "method is an object: LevenbergMarquardt(), GaussNewton(), BFGS(), LBFGS(), Optax(optax.adam(0.03)), "
        f"an optimizer of optax, or CMAES(), OpenES(), DifferentialEvolution(); got {method!r}"
    )
