"""Standard errors of fitted parameters, from the residuals at the minimum."""

import abc
from typing import NamedTuple

import numpy as np
from jax.typing import DTypeLike

from physkit.core import Module, ParameterError, ShapeError, static

from .._split_flat import split_flat
from .._triangle import triangle


class Information(NamedTuple):
    """What the data say about the coordinates z at the minimum.

    - `covariance`: `[p p]`; infinite on the diagonal where the data say nothing.
    - `matrix`: Fisher's information, `[p p]`: 1 / its eigenvalue is a variance.
    - `noise`: standard deviation of a residual, estimated or given.
    """

    covariance: np.ndarray
    matrix: np.ndarray
    noise: float


class AbstractErrors(Module):
    """How standard errors come from what is left at the minimum of residuals."""

    @abc.abstractmethod
    def information(
        self, residuals: np.ndarray, jacobian: np.ndarray, shapes: tuple[tuple[int, ...], ...]
    ) -> Information:
        """For residuals `[r]` with Jacobian `[r p]`, which come from arrays of these shapes."""


class IndependentErrors(AbstractErrors):
    """Independent residuals, all equally large.

        cov = s² (JᵀJ)⁻¹,   s² = Σ r² / (residuals − parameters)

    **Arguments:**

    - `noise_known`: the objective divides by the standard deviation of the noise, so s = 1. Then
      Σ r² / (residuals − parameters) tells whether the model holds.

    **Notes:** residuals that are 0 together with all their derivatives, as those of data that a mask leaves
    out, do not count.

    **Reference:** Seber & Wild, Nonlinear Regression (1989), §2.1.
    """

    noise_known: bool = static(default=False)

    def information(
        self, residuals: np.ndarray, jacobian: np.ndarray, shapes: tuple[tuple[int, ...], ...]
    ) -> Information:
        del shapes
        residuals = residuals.astype(float)
        noise = 1.0 if self.noise_known else estimate_noise(residuals, jacobian)
        rows = fewest_rows(jacobian)
        inverse = inverse_normal_matrix(rows, jacobian.dtype)
        # A perfect fit, or one without degrees of freedom, has no noise to divide by.
        scale = noise if noise > 0 and np.isfinite(noise) else 1.0
        return Information(noise**2 * inverse, _normal_matrix(rows) / scale**2, noise)


class AutocorrelatedErrors(AbstractErrors):
    """Residuals that are correlated over time: the model leaves something out, or the noise is slow.

        cov = (JᵀJ)⁻¹ S (JᵀJ)⁻¹,   S = Σₗ wₗ Σₜ gₜ gₜ₊ₗᵀ,   gₜ = Jₜᵀ rₜ,   wₗ = 1 − |l| / (L + 1)

    Independent residuals give what `IndependentErrors` gives, up to the scatter of the estimate; slow ones
    give larger errors, as if there were fewer. Residuals need a leading axis of time. What happens
    at the same time may be correlated in any way.

    **Arguments:**

    - `lags`: L, how many frames correlations last; 4 (T/100)^(2/9) of T frames if left out, which is
      short for slow noise.

    **Reference:** Newey & West, Econometrica 55, 703 (1987).
    """

    lags: int | None = static(default=None)

    def __check_init__(self):
        if self.lags is not None and self.lags < 0:
            raise ParameterError(f"lags must be 0 or more; got {self.lags}")

    def information(
        self, residuals: np.ndarray, jacobian: np.ndarray, shapes: tuple[tuple[int, ...], ...]
    ) -> Information:
        lengths = {shape[0] if shape else 0 for shape in shapes}
        if len(lengths) != 1 or 0 in lengths:
            raise ShapeError(
                f"AutocorrelatedErrors needs residuals with one leading axis of time; got shapes {list(shapes)}"
            )
        (frames,) = lengths
        p = jacobian.shape[1]
        # Newey & West's rule for the lag.
        lags = round(4 * (frames / 100) ** (2 / 9)) if self.lags is None else self.lags
        if lags >= frames:
            raise ParameterError(f"lags={lags} need more frames than there are, {frames}")
        residuals = residuals.astype(float)
        weighted = jacobian.astype(float) * residuals[:, None]
        # What happens at one time is added up first, so that it may be correlated in any way:
        # gₜ, (frames, …, p) → (frames, p).
        parts = split_flat(weighted, shapes)
        scores = sum((x.reshape(frames, -1, p).sum(1) for x in parts), np.zeros((frames, p)))
        long_run = scores.T @ scores  # S
        # Bartlett's weights, which fall to 0, keep the estimate positive semidefinite.
        for lag in range(1, lags + 1):
            shifted = scores[lag:].T @ scores[:-lag]
            long_run += (1 - lag / (lags + 1)) * (shifted + shifted.T)
        noise, count = estimate_noise(residuals, jacobian), count_data(residuals, jacobian)
        inverse = inverse_normal_matrix(jacobian)
        # The sandwich only among coordinates that the data determine; the others stay infinite.
        determined = np.isfinite(np.diag(inverse))
        covariance = np.where(np.isfinite(inverse), 0.0, inverse)
        block = np.ix_(determined, determined)
        degrees_of_freedom = max(count - p, 1)
        covariance[block] = (
            inverse[block] @ long_run[block] @ inverse[block] * (count / degrees_of_freedom)
        )
        scale = noise if noise > 0 and np.isfinite(noise) else 1.0
        return Information(covariance, _normal_matrix(jacobian) / scale**2, noise)


class Likelihood(Module):
    """The loss is a negative logarithm of a likelihood: its Hessian at the minimum is the information.

    cov = (∂²L/∂z²)⁻¹
    """


def likelihood_information(hessian: np.ndarray) -> Information:
    """Information of a loss that is −log likelihood, from its Hessian at the minimum."""
    symmetric = ((hessian + hessian.T) / 2).astype(float)
    # For coordinates in which all curvatures are alike: what is rounding must not depend on their units.
    diagonal = np.abs(np.diag(symmetric))
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(symmetric / np.outer(scale, scale))
    # Where the curvature is negative, nothing, or the rounding of larger ones, the likelihood says nothing
    # about the direction.
    rounding = 10 * len(values) * np.finfo(hessian.dtype).eps * np.max(np.abs(values), initial=0)
    # A root of the Hessian is a Jacobian with JᵀJ = H.
    root = np.sqrt(np.where(values > rounding, values, 0))[:, None] * vectors.T * scale
    return Information(inverse_normal_matrix(root, hessian.dtype), symmetric, 1.0)


def count_data(residuals: np.ndarray, jacobian: np.ndarray) -> int:
    """How many residuals there are data for: those that a mask sets to 0 say nothing about the noise."""
    return int(np.sum((residuals != 0) | np.any(jacobian != 0, axis=1)))


def estimate_noise(residuals: np.ndarray, jacobian: np.ndarray) -> float:
    """s of Σ r² / (residuals − parameters); NaN where nothing is left to estimate it from."""
    degrees_of_freedom = count_data(residuals, jacobian) - jacobian.shape[1]
    if degrees_of_freedom <= 0:
        return float("nan")
    return float(np.sqrt(np.sum(residuals**2) / degrees_of_freedom))


def singular_value_cutoff(precision: DTypeLike) -> float:
    """Relative singular value below which a direction is rounding: the data do not determine it."""
    return float(np.finfo(precision).eps ** 0.7)


def transform_covariance(covariance: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
    """J cov Jᵀ; infinite for what depends on a coordinate whose variance is infinite."""
    # Infinities apart: 0 · ∞ would make every entry NaN.
    unknown = ~np.isfinite(np.diag(covariance))
    finite = np.where(unknown[:, None] | unknown[None, :], 0.0, covariance)
    transformed = jacobian @ finite @ jacobian.T
    affected = np.any((jacobian != 0) & unknown[None, :], axis=1)
    transformed[affected, :] = transformed[:, affected] = np.nan
    transformed[affected, affected] = np.inf
    return transformed


def _normal_matrix(jacobian: np.ndarray) -> np.ndarray:
    """JᵀJ in double precision."""
    double = jacobian.astype(float)
    return double.T @ double


def fewest_rows(matrix: np.ndarray) -> np.ndarray:
    """In double precision p rows, or fewer, M′ for `[n p]` M with M′ᵀM′ = MᵀM."""
    rows = matrix.astype(float)
    return triangle(rows) if len(rows) > rows.shape[1] else rows


def inverse_normal_matrix(jacobian: np.ndarray, precision: DTypeLike | None = None) -> np.ndarray:
    """(JᵀJ)⁻¹; infinite variances for coordinates with a part in the null space of J.

    `precision`: of the numbers that J comes from, if it is not its own.
    """
    precision, jacobian = precision or jacobian.dtype, fewest_rows(jacobian)
    length = np.linalg.norm(jacobian, axis=0)
    safe_length = np.where(length > 0, length, 1.0)
    # Columns of one length: what counts as determined must not depend on the coordinates' units.
    _, singular, directions = np.linalg.svd(jacobian / safe_length, full_matrices=False)
    cutoff = singular_value_cutoff(precision) * max(singular[0], 1e-300)
    determined = singular > cutoff
    known = directions[determined]
    inverse = (known.T / singular[determined] ** 2) @ known / np.outer(safe_length, safe_length)
    # A coordinate with a part in the null space has an infinite variance, however well the rest is known.
    unknown = np.any(np.abs(directions[~determined]) > 1e-4, axis=0) | (length == 0)
    inverse[unknown, :] = inverse[:, unknown] = np.nan
    inverse[unknown, unknown] = np.inf
    return inverse
