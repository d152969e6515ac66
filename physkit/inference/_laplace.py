"""Laplace's approximation: the normal density about the mode of a posterior."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import (
    Count,
    KeyLike,
    ObjectiveError,
    ParameterError,
    as_count,
    as_key,
    explain_call,
)
from physkit.fit import BFGS, Fit, Likelihood, fit

from ._posterior import Posterior


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LaplaceApproximation:
    """A normal density of the coordinates z about the mode of their posterior.

    - `posterior`: what it approximates. `fit`: of z to the mode, which has its history.
    - `mode`, `covariance`: of z, `[p]` and `[p p]`.
    - `log_evidence`: ln ∫ p(data | z) p(z) dz, of the normalized priors, flat ones within bounds too, and of
      exp(−½ Σ r²) or exp(−loss) as they are; to compare models. NaN where a parameter has neither a prior nor
      bounds on all sides: then there is none.
    """

    posterior: Posterior
    fit: Fit
    mode: np.ndarray
    covariance: np.ndarray
    log_evidence: float

    @property
    def values(self) -> dict[str, np.ndarray]:
        """The parameters at the mode, by name."""
        z = jnp.asarray(self.mode, self.posterior.coordinates.center.dtype)
        return {n: np.asarray(x) for n, x in self.posterior.coordinates.values(z).items()}

    @property
    def model(self):
        """The model with the parameters at the mode."""
        return self.posterior.model_at(
            jnp.asarray(self.mode, self.posterior.coordinates.center.dtype)
        )

    def sample(self, count: Count, *, key: KeyLike) -> dict[str, np.ndarray]:
        """Draws, `[count *shape]` by name; within the bounds, as they are drawn in z.

        **Errors:** `ParameterError` for a count that is none.
        """
        count = as_count(count, "count", ParameterError)
        dtype = self.posterior.coordinates.center.dtype
        unit = np.asarray(jax.random.normal(as_key(key), (count, len(self.mode)), dtype))
        z = self.mode + unit @ np.linalg.cholesky(self.covariance).T
        values = jax.vmap(self.posterior.coordinates.values)(jnp.asarray(z, dtype))
        return {name: np.asarray(values[name]) for name in self.posterior.names}

    def __repr__(self) -> str:
        draws = self.sample(2000, key=0)
        lines = [
            f"Laplace approximation of {len(self.mode)} numbers, log evidence {self.log_evidence:.6g}"
        ]
        for name, values in draws.items():
            mode = self.values[name]
            for index in np.ndindex(*mode.shape):
                label = f"{name}[{', '.join(map(str, index))}]" if index else name
                x = values[(slice(None), *index)]
                low, high = np.quantile(x, (0.05, 0.95))
                lines.append(f"  {label}  {mode[index]:.5g}, 90 % within {low:.4g} … {high:.4g}")
        return "\n".join(lines)


@explain_call
def laplace_approximation(
    posterior: Posterior, *, max_steps: Count = 300, progress: bool = False
) -> LaplaceApproximation:
    """The mode of a posterior and the curvature there: a normal density in the coordinates of the fit.

        p(z | data) ≈ N(z*, H⁻¹),   H = −∂² ln p / ∂z² at the mode z*
        ln evidence ≈ ln p(data, z*) + ½ p ln 2π − ½ ln det H

    The mode is found by `fit`, from the model's own numbers. It is that of the density of z, in which bounds
    are infinitely far away, so that draws stay inside of them; with bounds it is not the mode of the values.

    **Arguments:**

    - `max_steps`: of the fit.

    **Returns:** a `LaplaceApproximation`; `sample_posterior(…, around=…)` starts from it.

    **Errors:** `ObjectiveError` where the density has no maximum there: the data and priors leave a
    combination of parameters open. A fit that has not converged warns.

    **Notes:** costs a fit and p gradients. Exact where the posterior is normal, of order 1/n for n data.

    **Reference:** Tierney & Kadane, J. Am. Stat. Assoc. 81, 82 (1986).
    """

    def negative_log_density(tree: dict[str, Float[Array, " p"]]) -> Float[Array, ""]:
        return -posterior.log_density(tree["z"])

    posterior.require_gradient()
    start = {"z": posterior.coordinates.origin}
    size = start["z"].size
    found = fit(
        negative_log_density,
        start,
        where=lambda tree: {"z": tree["z"]},
        method=BFGS(max_steps=as_count(max_steps, "max_steps", ParameterError)),
        errors=Likelihood(),
        jac=posterior.problem.mode if posterior.problem.mode != "twice" else None,
        progress=progress,
        title="mode",
    )
    covariance = found.covariance
    if covariance is None or not np.all(np.isfinite(covariance)):
        open_directions = found.spectrum.unidentifiable if found.spectrum is not None else []
        raise ObjectiveError(
            "the posterior has no maximum of finite width: data and priors leave open "
            f"{'; '.join(open_directions) or 'a combination'} of {posterior.coordinates.labels}"
        )
    sign, log_determinant = np.linalg.slogdet(covariance)
    if sign <= 0:
        raise ObjectiveError("the posterior curves upwards at the end of the fit: no maximum")
    log_evidence = -found.loss + 0.5 * size * np.log(2 * np.pi) + 0.5 * log_determinant
    if not posterior.is_proper:
        log_evidence = np.nan
    return LaplaceApproximation(
        posterior, found, found.values["z"].astype(float), covariance, float(log_evidence)
    )
