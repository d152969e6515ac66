"""Thermodynamic integration: free energies from mean slopes."""

import numpy as np
from jax.typing import ArrayLike

from physkit.core import ParameterError, ShapeError, explain_call
from physkit.observe import Estimate, block_average


@explain_call
def thermodynamic_integration(coupling: ArrayLike, slopes: ArrayLike) -> Estimate:
    """The free energy difference between the ends of a series of states, from dU/dλ in each.

        ΔF = ∫ ⟨∂U/∂λ⟩ dλ,   of the cubic spline through the means

    **Arguments:**

    - `coupling`: λ of the states, `[states]`, rising, four and more.
    - `slopes`: ∂U/∂λ in the frames of each, `[states frames]`: what `EnergyDerivative` records in a sweep.

    **Returns:** `Estimate(value, error)`, energy; the error from block averages of correlated frames. The error
    of the spline between states is not part of it.

    **Errors:** `ShapeError` for other shapes, `ParameterError` for λ that do not rise.

    **Reference:** Kirkwood, J. Chem. Phys. 3, 300 (1935).
    """
    from scipy.interpolate import CubicSpline  # here: it takes part of a second to import

    coupling, slopes = np.asarray(coupling, float), np.asarray(slopes, float)
    if coupling.ndim != 1 or slopes.shape[:1] != coupling.shape or slopes.ndim != 2:
        raise ShapeError(
            f"slopes must be [states frames] for {coupling.shape} values of λ; got {slopes.shape}"
        )
    if len(coupling) < 4 or not np.all(np.diff(coupling) > 0):
        raise ParameterError(f"λ must rise through four values and more; got {coupling.tolist()}")
    # The integral of a spline is linear in its values: its weights are the integrals of unit vectors.
    spline = CubicSpline(coupling, np.eye(len(coupling)))
    weights = spline.integrate(coupling[0], coupling[-1])
    found = block_average(slopes.T)
    variance = np.sum((weights * np.asarray(found.error)) ** 2)
    return Estimate(float(weights @ np.asarray(found.mean)), float(np.sqrt(variance)))
