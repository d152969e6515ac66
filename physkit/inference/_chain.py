"""A Markov chain of Hamiltonian Monte Carlo as a simulation: its state is z, a step is a transition."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physkit.core import Clock, MissingExtraError, Module, data, param, static, vdot
from physkit.integrators import AbstractIntegrator
from physkit.observe import Every, Snapshot
from physkit.simulate import Simulation

from ._adaptation import Adaptation, adapt, first_adaptation, warmup_windows
from ._methods import HMC, NUTS
from ._opaque import Opaque
from ._posterior import Posterior

_FIRST_STEP = 0.1  # in coordinates of order 1; dual averaging finds the right one


class Transition(NamedTuple):
    """What a transition tells of itself.

    - `is_divergent`: 1 where the energy error passed 1000: the trajectory left the posterior. `num_steps`: of
      the leapfrog. `acceptance`: mean probability along the trajectory. `energy`: of the draw.
    """

    is_divergent: Int[Array, ""]
    num_steps: Int[Array, ""]
    acceptance: Float[Array, ""]
    energy: Float[Array, ""]


class ChainAux(Module):
    """What a chain carries beside z.

    - `log_density`, `gradient`: at z. `adaptation`: step and metric. `transition`: the last one.
    """

    log_density: Float[Array, ""] = data()
    gradient: Float[Array, " p"] = data()
    adaptation: Adaptation
    transition: Transition


class MarkovChain(AbstractIntegrator):
    """Draws from a posterior: each step is one transition of Hamiltonian Monte Carlo.

    The first `warmup` steps adapt step and metric. The state is z, `[p]`. Time has no meaning: dt = 1.

    - `posterior`: a closed `Posterior`.
    - `start_metric`: the inverse mass of the first step, `[p]` or `[p p]`; `prior_metric`: what the one that is
      learned is shrunk to.
    """

    posterior: Opaque
    start_metric: Float[Array, "..."] = param()
    prior_metric: Float[Array, "..."] = param()
    method: NUTS | HMC = static()
    warmup: int = static()

    def prepare(self, state: Array, dt: Any) -> None:
        del state, dt

    def init(self, plan: None, clock: Clock, state: Array) -> ChainAux:
        del plan, clock
        value, gradient = self.posterior.open().value_and_gradient(state)
        metric = self.start_metric.astype(state.dtype)
        step = jnp.asarray(self.method.first_step or _FIRST_STEP, state.dtype)
        zero = jnp.zeros((), jnp.int32)
        nothing = Transition(zero, zero, jnp.zeros_like(value), -value)
        return ChainAux(value, gradient, first_adaptation(step, metric), nothing)

    def refresh(self, plan: None, clock: Clock, state: Array, aux: ChainAux) -> ChainAux:
        del plan, clock
        value, gradient = self.posterior.open().value_and_gradient(state)
        return ChainAux(value, gradient, aux.adaptation, aux.transition)

    def step(self, plan: None, clock: Clock, state: Array, aux: ChainAux) -> tuple[Array, ChainAux]:
        del plan
        posterior, adaptation = self.posterior.open(), aux.adaptation
        count = clock.step.high * 2**24 + clock.step.low
        warming = count < self.warmup
        log_step = jnp.where(warming, adaptation.log_step, adaptation.log_step_average)
        z, value, gradient, transition = transit(
            self.method, posterior.value_and_gradient, clock.key,
            (state, aux.log_density, aux.gradient), jnp.exp(log_step), adaptation.inverse_mass,
        )  # fmt: skip
        if self.warmup:
            learns, ends = (jnp.asarray(x) for x in warmup_windows(self.warmup))
            now = jnp.clip(count, 0, self.warmup - 1)
            target = jnp.asarray(self.method.target_acceptance, z.dtype)
            adapted = adapt(
                adaptation, z, transition.acceptance, target, learns[now], ends[now],
                self.prior_metric.astype(z.dtype),
            )  # fmt: skip
            adaptation = jax.tree.map(
                lambda new, old: jnp.where(warming, new, old), adapted, adaptation
            )
        return z, ChainAux(value, gradient, adaptation, transition)


def transit(
    method: NUTS | HMC,
    value_and_gradient: Callable[[Array], tuple[Array, Array]],
    key: Array,
    at: tuple[Array, Array, Array],
    step: Array,
    inverse_mass: Array,
) -> tuple[Array, Array, Array, Transition]:
    """One transition by blackjax from `at`: (z, log density, gradient)."""
    blackjax = require_blackjax()

    def log_density(z: Array) -> Array:
        # blackjax differentiates this: the value, and a linear part whose slope is the gradient that came
        # with it, in whatever mode of derivatives the posterior has chosen.
        here = jax.lax.stop_gradient(z)
        value, gradient = jax.lax.stop_gradient(value_and_gradient(here))
        return value + vdot(gradient, z - here)

    state = blackjax.mcmc.hmc.HMCState(*at)
    # blackjax relies on JAX's promotions, whatever the caller has set.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        if isinstance(method, NUTS):
            kernel, limit = blackjax.nuts.build_kernel(), method.max_doublings
        else:
            kernel, limit = blackjax.hmc.build_kernel(), method.steps
        metric = blackjax.mcmc.metrics.default_metric(inverse_mass)

        def sample_momentum(key: Array, position: Array) -> Array:
            # Of a dense metric blackjax draws it in JAX's default precision.
            return metric.sample_momentum(key, position).astype(position.dtype)

        metric_alike = metric._replace(sample_momentum=sample_momentum)
        new, info = kernel(key, state, log_density, step, metric_alike, limit)
    z, value, gradient = (x.astype(old.dtype) for x, old in zip(new, at, strict=True))
    transition = Transition(
        info.is_divergent.astype(jnp.int32),
        jnp.asarray(info.num_integration_steps, jnp.int32),
        jnp.where(jnp.isfinite(info.acceptance_rate), info.acceptance_rate, 0).astype(z.dtype),
        jnp.asarray(info.energy, z.dtype),
    )
    return z, value, gradient, transition


def require_blackjax() -> Any:
    """The package blackjax.

    **Errors:** `MissingExtraError` without the extra `physkit[sample]`.
    """
    try:
        import blackjax
    except ImportError as error:
        raise MissingExtraError(
            "sampling a posterior needs blackjax: pip install physkit[sample]"
        ) from error
    return blackjax


def chain_simulation(
    posterior: Posterior,
    method: NUTS | HMC,
    warmup: int,
    start_metric: np.ndarray,
    prior_metric: np.ndarray,
) -> Simulation:
    """The simulation of one chain, which records draws and what its transitions tell."""
    require_blackjax()
    chain = MarkovChain(Opaque.of(posterior), start_metric, prior_metric, method, warmup)
    observer = Every(
        1, z=_z, log_density=_log_density, is_divergent=_is_divergent, num_steps=_num_steps,
        acceptance=_acceptance, energy=_energy, step_size=_step_size,
    )  # fmt: skip
    return Simulation(chain, dt=1.0, observers=observer)


def _z(now: Snapshot) -> Array:
    return now.state


def _log_density(now: Snapshot) -> Array:
    return now.aux.log_density


def _is_divergent(now: Snapshot) -> Array:
    return now.aux.transition.is_divergent


def _num_steps(now: Snapshot) -> Array:
    return now.aux.transition.num_steps


def _acceptance(now: Snapshot) -> Array:
    return now.aux.transition.acceptance


def _energy(now: Snapshot) -> Array:
    return now.aux.transition.energy


def _step_size(now: Snapshot) -> Array:
    return jnp.exp(now.aux.adaptation.log_step_average)
