"""Stochastic differential equations: numbers of a process from its paths, and the two senses of noise."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import AbstractTendency, Clock, Module, param
from physkit.fit import Likelihood, fit
from physkit.integrators import EulerMaruyama, StochasticHeun
from physkit.observe import Every
from physkit.simulate import Simulation, simulate

from .._case import Case, Published

_RATE, _DIFFUSION = 1.0, 0.5


class _Relaxation(AbstractTendency):
    rate_constant: Array = param(_RATE)

    def rate(self, clock: Clock, state: Array) -> Array:
        return -self.rate_constant * state


class _OrnsteinUhlenbeck(Module):
    rate: Array = param(0.7)
    diffusion: Array = param(0.7)


def ornstein_uhlenbeck() -> dict[str, Any]:
    """Rate θ and diffusion D of dx = −θ x dt + √(2D) dW from 40 000 transitions over 0.5 / θ, simulated by
    Euler and Maruyama's method at dt = 0.005: exact likelihood, deviations in standard errors of the fit."""
    interval, dt, key = 0.5, 0.005, jax.random.key(1)
    start = (_DIFFUSION / _RATE) ** 0.5 * jax.random.normal(key, (400,))
    every = round(interval / dt)
    record = Every(every, x=lambda now: now.state)
    method = EulerMaruyama(_Relaxation(), diffusion=(2 * _DIFFUSION) ** 0.5)
    x = simulate(Simulation(method, dt, record), start, 100 * every, key=2).frames["x"]

    def loss(model: _OrnsteinUhlenbeck) -> Array:
        decay = jnp.exp(-model.rate * interval)
        variance = model.diffusion / model.rate * (1 - decay**2)
        miss = x[1:] - decay * x[:-1]
        return 0.5 * jnp.sum(miss**2 / variance + jnp.log(variance))

    free = {"rate": lambda m: m.rate, "diffusion": lambda m: m.diffusion}
    found = fit(loss, _OrnsteinUhlenbeck(), where=free, errors=Likelihood(), progress=False).check()
    errors = found.standard_errors
    assert errors is not None  # a likelihood has them
    return {
        "deviation of the rate": (found.values["rate"] - _RATE) / errors["rate"],
        "deviation of D": (found.values["diffusion"] - _DIFFUSION) / errors["diffusion"],
        "standard error of the rate": errors["rate"],
    }


def senses_of_noise() -> dict[str, Any]:
    """⟨y(1)⟩ of dy = 0.2 y dt + 0.6 y dW from y = 1: e^0.2 in Itô's sense, e^(0.2 + 0.18) in Stratonovich's."""

    def mean(kind: type[EulerMaruyama] | type[StochasticHeun]) -> Array:
        method = kind(lambda t, y: 0.2 * y, diffusion=lambda t, y: 0.6 * y)
        end = simulate(Simulation(method, 0.01), jnp.ones(200_000), 100, key=3).state
        return jnp.mean(end)

    return {"Itô": mean(EulerMaruyama), "Stratonovich": mean(StochasticHeun)}


CASES = (
    Case(
        "drift-and-diffusion",
        ornstein_uhlenbeck,
        (
            Published("deviation of the rate", 0, 3),
            Published("deviation of D", 0, 3),
            Published("standard error of the rate", 0.0131, 0.0005),
        ),
        "Uhlenbeck & Ornstein, Phys. Rev. 36, 823 (1930); Tang & Chen, J. Econometrics 149, 65 (2009)",
    ),
    Case(
        "senses-of-noise",
        senses_of_noise,
        (Published("Itô", 1.221403, 0.007), Published("Stratonovich", 1.462285, 0.009)),
        "Kloeden & Platen, Numerical Solution of Stochastic Differential Equations (1992), §4.4, §4.9",
    ),
)
