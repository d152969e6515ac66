"""Correlations of long series on the host, by transforms."""

import numpy as np
from jaxtyping import Float


def lagged_products(series: Float[np.ndarray, "m t *shape"]) -> Float[np.ndarray, "m t *shape"]:
    """Σ_t y(t) y(t + k) of each series y about its own mean, for the lags k = 0 … t − 1 along axis 1.

    Lag k has t − k terms: divided by their number it is the autocovariance, divided by t the biased one, whose
    spectrum is nowhere negative.
    """
    count = series.shape[1]
    centered = series - np.mean(series, axis=1, keepdims=True)
    # Padded with as many zeros, the transform's circular correlation is the plain one.
    size = 2 ** int(np.ceil(np.log2(2 * count)))
    power = np.abs(np.fft.rfft(centered, size, axis=1)) ** 2
    return np.fft.irfft(power, size, axis=1)[:, :count]
