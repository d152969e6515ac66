"""A fit with a known answer: a decay with noise."""

import jax.numpy as jnp
import numpy as np

import physkit as pk

T = np.linspace(0.0, 2.0, 30)
SAMPLE = 3.0 * np.exp(-1.5 * T) + 0.05 * np.random.default_rng(1).normal(size=30)
START = {"size": jnp.asarray(1.0), "rate": jnp.asarray(0.5)}


def decay(m):
    return m["size"] * jnp.exp(-m["rate"] * T.astype(m["rate"].dtype))


def residuals_of(m, data):
    return decay(m) - data.astype(m["rate"].dtype)


def everything(m):
    return m


def fit_decay(objective=residuals_of, model=START, where=everything, data=SAMPLE, **options):
    return pk.fit(objective, model, where=where, data=data, progress=False, **options)


def linear_errors(values):
    """Standard errors by the textbook."""
    jacobian = np.stack(
        [np.exp(-values["rate"] * T), -values["size"] * T * np.exp(-values["rate"] * T)], axis=1
    )
    residuals = values["size"] * np.exp(-values["rate"] * T) - SAMPLE
    variance = residuals @ residuals / (len(T) - 2)
    return np.sqrt(np.diag(variance * np.linalg.inv(jacobian.T @ jacobian)))
