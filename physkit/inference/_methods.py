"""Methods of sampling: what is chosen about Hamiltonian Monte Carlo."""

import numpy as np

from physkit.core import Module, ParameterError, as_count, static


class NUTS(Module):
    """The no-U-turn sampler: Hamiltonian Monte Carlo whose trajectories end where they turn back.

    **Arguments:**

    - `target_acceptance`: between 0 and 1; nearer to 1 the steps are shorter, and there are fewer divergences.
    - `max_doublings`: a trajectory has at most 2 to this number of steps, each of which costs a gradient.
    - `dense_metric`: learn all covariances of the parameters, not only their variances. For strong
      correlations, and up to some hundred parameters. Left out, so it is where a Laplace approximation gives
      them (`around=`) and there are up to 100.
    - `first_step`: of the leapfrog, in coordinates of order 1; adapted in the warm-up. 0.1 if left out.

    **Errors:** `ParameterError` for numbers out of their ranges.

    **Good values:** the defaults; 0.95 or 0.99 where a run reports divergences.

    **Reference:** Hoffman & Gelman, J. Mach. Learn. Res. 15, 1593 (2014); Betancourt, arXiv:1701.02434.
    """

    target_acceptance: float = static(default=0.8)
    max_doublings: int = static(default=10)
    dense_metric: bool | None = static(default=None)
    first_step: float | None = static(default=None)

    def __check_init__(self):
        _check_method(self.target_acceptance, self.first_step)
        as_count(self.max_doublings, "max_doublings", ParameterError)


class HMC(Module):
    """Hamiltonian Monte Carlo with trajectories of a fixed number of steps.

    **Arguments:**

    - `steps`: of the leapfrog in a transition; each costs a gradient.
    - `target_acceptance`, `dense_metric`, `first_step`: as of `NUTS`.

    **Errors:** `ParameterError` for numbers out of their ranges.

    **Good values:** `NUTS` finds the number of steps by itself. A fixed one is for posteriors whose shape is
    known: all chains of a batch then take equally long.

    **Reference:** Duane, Kennedy, Pendleton & Roweth, Phys. Lett. B 195, 216 (1987).
    """

    steps: int = static(default=16)
    target_acceptance: float = static(default=0.8)
    dense_metric: bool | None = static(default=None)
    first_step: float | None = static(default=None)

    def __check_init__(self):
        _check_method(self.target_acceptance, self.first_step)
        as_count(self.steps, "steps", ParameterError)


def _check_method(target: float, first_step: float | None) -> None:
    if not 0 < target < 1:
        raise ParameterError(f"target_acceptance lies between 0 and 1; got {target}")
    if first_step is not None and not (np.isfinite(first_step) and first_step > 0):
        raise ParameterError(f"first_step must be above 0; got {first_step}")
