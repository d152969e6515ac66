"""Diffusion coefficients with error bars, from the summaries of correlation observers."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from physkit.core import Frame, ObserverError, concrete_value, explain_call

from ._curve_mean import weighted_mean


class Estimate(NamedTuple):
    """A value and its standard error."""

    value: ArrayLike
    error: ArrayLike

    def __str__(self) -> str:
        pairs = np.broadcast(np.asarray(self.value), np.asarray(self.error))
        texts = [f"{value:.4g} ± {error:.2g}" for value, error in pairs]
        return (
            texts[0]
            if pairs.ndim == 0
            else np.array2string(np.reshape(texts, pairs.shape), formatter={"str_kind": str})
        )


@explain_call
def diffusion_coefficient(
    msd: Frame, dimension: int, start: float = 0.0, stop: float = float("inf")
) -> Estimate:
    """Diffusion coefficient by Einstein's relation.

        MSD(l) = 2 d D l + c,   fitted over start ≤ l ≤ stop

    The error bar comes from the scatter of the same fit to blocks of the run.

    **Arguments:**

    - `msd`: the summary of a `MeanSquareDisplacement`.
    - `dimension`: number of axes, d.
    - `start`, `stop`: window of lags, time. Leave out the ballistic start.

    **Returns:** `Estimate(value, error)`, length² / time; differentiable.

    **Errors:** `ObserverError` for a window with fewer than two lags that the run reached.

    **Good values:** start after some collision times; a run ten times longer than `stop`. The
    error bar itself is good to about a quarter.

    **Notes:** in a periodic cell D comes out low by about 2.837 k_B T / (6π η L) (Yeh & Hummer 2004).

    **Reference:** Einstein, Ann. Phys. 322, 549 (1905).
    """
    lag, window = _window(msd, start, stop)

    def slope(values: Float[Array, " lags"]) -> Float[Array, ""]:
        """Least squares of a line, over 2 d."""
        weight = window.astype(values.dtype)
        num_lags = jnp.sum(weight)
        # Lags from their mean sum to 0, so that the offset c drops out of Σ x y.
        x = lag - jnp.sum(weight * lag) / num_lags
        y = jnp.where(window, values, 0)  # NaN where the run did not reach, and 0 · NaN is NaN
        return jnp.sum(weight * x * y) / jnp.sum(weight * x * x) / (2 * dimension)

    return _estimate(msd, window, slope)


@explain_call
def green_kubo(vacf: Frame, dimension: int, stop: float = float("inf")) -> Estimate:
    """Diffusion coefficient by Green and Kubo's relation.

        D = (1/d) ∫₀^stop ⟨v(0)·v(l)⟩ dl

    **Arguments:**

    - `vacf`: the summary of a `VelocityAutocorrelation`.
    - `dimension`: number of axes, d.
    - `stop`: where to end the integral, time: past the decay, before noise takes over.

    **Returns:** `Estimate(value, error)`, length² / time; differentiable. Trapezoidal rule.

    **Errors:** `ObserverError` for a window with fewer than two lags that the run reached.

    **Reference:** Frenkel & Smit, Understanding Molecular Simulation, 2nd ed., eq. 4.4.11.
    """
    lag, window = _window(vacf, 0.0, stop)

    def integral(values: Float[Array, " lags"]) -> Float[Array, ""]:
        """The trapezoidal rule, over d."""
        values = jnp.where(window, values, 0)
        trapezes = 0.5 * (values[1:] + values[:-1]) * (lag[1:] - lag[:-1])
        return jnp.sum(jnp.where(window[1:], trapezes, 0)) / dimension

    return _estimate(vacf, window, integral)


def _window(
    curve: Frame, start: float, stop: float
) -> tuple[Float[Array, " lags"], Bool[Array, " lags"]]:
    """The lags of a curve, and which of them are in the window and were reached by the run.

    **Errors:** `ObserverError` for fewer than two, where no trace hides them.
    """
    lag, value = jnp.asarray(curve["lag"]), jnp.asarray(curve["value"])
    # Lags are rounded products: an end of the window that is typed as 0.3 must not miss the lag 0.3.
    slack = 1e-4 * (lag[1] - lag[0])
    window = (lag >= start - slack) & (lag <= stop + slack) & jnp.isfinite(value)
    concrete_window = concrete_value(window)
    if concrete_window is not None and np.sum(concrete_window) < 2:
        reached = np.asarray(lag)[np.isfinite(np.asarray(value))]
        raise ObserverError(
            f"the window of lags from {start:g} to {stop:g} holds {int(np.sum(concrete_window))} "
            f"lags; the run reached {len(reached)}, up to {reached.max(initial=0.0):g}"
        )
    return lag, window


def _estimate(
    curve: Frame, window: Bool[Array, " lags"], fit: Callable[[Array], Array]
) -> Estimate:
    """`fit` to the whole curve, with the scatter of fits to those blocks that have all lags of the window."""
    # (blocks, lags)
    blocks, weights = jnp.asarray(curve["blocks"]), jnp.asarray(curve["weights"])
    is_complete = jnp.all(jnp.where(window[None], weights > 0, True), axis=1)
    num_samples = jnp.sum(jnp.where(window[None], weights, 0), axis=1)
    # Blocks of weight 0 are fitted, too: their NaN become 0, or they would reach the derivative.
    fits: Float[Array, " blocks"] = jnp.stack(
        [fit(jnp.where(jnp.isfinite(block), block, 0)) for block in blocks]
    )
    _, error = weighted_mean(fits, jnp.where(is_complete, num_samples, 0))
    value = fit(jnp.where(window, jnp.asarray(curve["value"]), 0))
    return Estimate(value, error)
