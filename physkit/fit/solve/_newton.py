"""The last steps to the minimum of a likelihood: Newton's, by the Hessian that standard errors need anyway."""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Float

from physkit.core import as_device_array, replace_fields

from .._program import compile_by_content
from ..uncertainty._standard_errors import Information, likelihood_information
from ._coordinates import natural_coordinates
from ._methods import AbstractIterative, AbstractMethod
from ._problem import ObjectiveInputs, Problem
from ._restarts import MAX_STEP_LEFT, SearchResult, on_host

_CLOSE = 0.01  # in standard errors: a minimum that is nearer is found
_MOST_STEPS, _MOST_HALVINGS = 10, 6


def refine_likelihood(
    problem: Problem, method: AbstractMethod, inputs: ObjectiveInputs, found: SearchResult
) -> tuple[SearchResult, Information]:
    """The minimum of a loss that is −log likelihood, and its information there.

        z' = z − H⁻¹ ∂L/∂z

    A quasi-Newton descent stops where its Hessian is bad, many standard errors away along directions in which
    the loss hardly curves. Steps that do not lower the loss are halved. Descents of first order stay where
    they are.

    **Returns:** the search, which has not converged where a Newton step would still be long; the information.
    """
    program = compile_by_content(problem.with_jacobian)
    hessian = _hessian(problem)
    steps = _MOST_STEPS if isinstance(method, AbstractIterative) else 0
    while True:
        at = inputs._replace(coordinates=found.coordinates)
        information = likelihood_information(np.asarray(hessian(found.coordinates.origin, at)))
        step, left = newton_step(found.jacobian, information.covariance)
        if steps == 0 or not left > _CLOSE:
            return _judged(found, left), information
        steps -= 1
        for halvings in range(_MOST_HALVINGS):
            z = as_device_array((step / 2**halvings).astype(found.coordinates.precision))
            value, gradient = on_host(program(z, at), found.coordinates.precision)
            # Near the minimum of a large loss rounding hides the gain, and not the derivative.
            gained = value <= found.value + 4 * np.finfo(value.dtype).eps * abs(found.value)
            if gained and np.all(np.isfinite(gradient)):
                break
        else:
            return _judged(found, left), information
        coordinates = natural_coordinates(found.coordinates, z, inputs.coordinates.scale)
        value, gradient = on_host(
            program(coordinates.origin, inputs._replace(coordinates=coordinates)),
            coordinates.precision,
        )
        found = found._replace(
            coordinates=coordinates,
            value=value,
            jacobian=gradient,
            steps=found.steps + 1,
            losses=np.append(found.losses, value),
            gradients=np.append(found.gradients, np.linalg.norm(gradient)),
        )


def _judged(found: SearchResult, left: float) -> SearchResult:
    """Not converged where the minimum is far in standard errors, and not for rounding of the loss."""
    gain = 0.5 * len(found.jacobian) * left**2
    is_rounding = gain <= 10 * np.finfo(found.value.dtype).eps * abs(found.value)
    if not left > MAX_STEP_LEFT or is_rounding:
        return found
    reason = f"a Newton step more would be {left:.1g} standard errors"
    return found._replace(converged=False, reason=reason)


def newton_step(
    gradient: Float[np.ndarray, " p"], covariance: Float[np.ndarray, "p p"]
) -> tuple[Float[np.ndarray, " p"], float]:
    """−H⁻¹ g and its length in standard errors, √(gᵀ H⁻¹ g/p); none where the curvature is not known."""
    g = gradient.astype(float)
    if not np.all(np.isfinite(covariance)):
        return np.zeros_like(g), 0.0
    step = -covariance @ g
    return step, float(np.sqrt(max(-g @ step, 0) / len(g)))


def _hessian(problem: Problem) -> Callable[[Array, ObjectiveInputs], Array]:
    # Not every adjoint has second derivatives: forward over reverse, with checkpoints.
    twice = replace_fields(problem, {"mode": "twice"})

    def hessian(z: Array, inputs: ObjectiveInputs) -> Array:
        return jax.hessian(lambda y: twice.value(y, inputs))(z)

    return compile_by_content(hessian)
