"""Ensemble Kalman inversion: parameters from residuals, by an ensemble and without derivatives."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physkit.core import (
    Clock,
    Count,
    KeyLike,
    Module,
    ObjectiveError,
    ParameterError,
    as_count,
    as_key,
    data,
    drop_outdated_programs,
    explain_call,
    static,
)
from physkit.integrators import AbstractIntegrator
from physkit.observe import Every, Finite, Snapshot
from physkit.simulate import Simulation

from ._kalman_update import kalman_update
from ._opaque import Opaque
from ._posterior import Posterior
from ._step_limit import StepLimit

_NOISE_TAG = 2**22


class InversionAux(Module):
    """The residuals of the members, `[k r]`; 0 of those that `failed`: whose residuals are not finite."""

    residuals: Float[Array, "k r"] = data()
    failed: Bool[Array, " k"] = data()


class EnsembleKalmanInversion(AbstractIntegrator):
    """Moves members of an ensemble of parameters to where the residuals are small, as their covariances say.

        zᵢ ← zᵢ + C_zr (C_rr + N I)⁻¹ (√N εᵢ − rᵢ),   N iterations, each with an N-th of the data's information

    Made by `ensemble_kalman_inversion`. The state is z of all members, `[k p]`.
    """

    posterior: Opaque
    iterations: int = static()

    def prepare(self, state: Array, dt: Any) -> None:
        del state, dt

    def init(self, plan: None, clock: Clock, state: Array) -> InversionAux:
        del plan, clock
        return self._evaluate(state)

    def refresh(self, plan: None, clock: Clock, state: Array, aux: InversionAux) -> InversionAux:
        del aux
        return self.init(plan, clock, state)

    def step(
        self, plan: None, clock: Clock, state: Array, aux: InversionAux
    ) -> tuple[Array, InversionAux]:
        del plan
        residuals, use = aux.residuals, ~aux.failed
        key = jax.random.fold_in(clock.key, _NOISE_TAG)
        noise = jax.random.normal(key, residuals.shape, residuals.dtype)
        noise = noise - jnp.mean(noise, axis=0, keepdims=True)
        # Data whose noise is √N larger, N times: together they say as much as the data do.
        count = jnp.asarray(self.iterations, state.dtype)
        variance = jnp.full(residuals.shape[1], self.iterations, state.dtype)
        moved = kalman_update(state, residuals, jnp.sqrt(count) * noise, variance, use)
        # A member whose simulation failed starts again amid the others.
        total = jnp.maximum(jnp.sum(use), 1).astype(state.dtype)
        middle = jnp.sum(jnp.where(use[:, None], moved, 0), axis=0) / total
        after = jnp.where(use[:, None], moved, middle[None])
        return after, self._evaluate(after)

    def _evaluate(self, z: Float[Array, "k p"]) -> InversionAux:
        posterior = self.posterior.open()
        residuals = jax.vmap(lambda one: posterior.problem.value(one, posterior.inputs))(z)
        failed = ~jnp.all(jnp.isfinite(residuals), axis=1)
        # What a simulation carries is finite; observers say NaN.
        return InversionAux(jnp.where(failed[:, None], 0, residuals), failed)


@explain_call
def ensemble_kalman_inversion(
    posterior: Posterior, *, members: Count = 100, iterations: Count = 10, key: KeyLike = 0
) -> tuple[Simulation, Array]:
    """An ensemble of parameters that goes from the prior to the posterior, without derivatives.

        inverting, start = ensemble_kalman_inversion(posterior, members=200, iterations=10)
        found = run(inverting, start, 10, key=1)
        found["stiffness"]                         # [11, 200, …], one for each iteration

    It returns a simulation like any other, whose steps are iterations: `run` continues it, with checkpoints.
    For objectives whose derivatives mean nothing – chaotic, noisy, discontinuous – and for starts far away. It
    records the parameters by name, and of these `misfit` ½ Σ r² of each member and `num_failed`.

    **Arguments:**

    - `posterior`: of residuals, with a prior for every parameter, from which the members are drawn.
    - `members`: more than there are parameters, as moves are combinations of the members.
    - `iterations`: N; more for objectives that are less linear.
    - `key`: of the first members.

    **Errors:** `ObjectiveError` for a loss, which has no residuals; `ParameterError` for a parameter without a
    prior, or fewer than two members.

    **Good values:** 100 to 500 members, 5 to 20 iterations. A guard stops at N: more would use the data again.

    **Notes:** exact for linear residuals and normal priors as the ensemble grows; else an approximation, whose
    spread is good to some ten per cent where the objective is mildly nonlinear. Members whose residuals are not
    finite are left out, counted, and set amid the others.

    **Reference:** Iglesias, Law & Stuart, Inverse Problems 29, 045001 (2013); Emerick & Reynolds, Comput.
    Geosci. 17, 325 (2013).
    """
    if posterior.problem.kind != "residuals":
        raise ObjectiveError(
            "ensemble Kalman inversion needs residuals, and the objective returns a loss: return what the "
            "loss sums the squares of"
        )
    drop_outdated_programs(posterior)
    members = as_count(members, "members", ParameterError)
    if members < 2:
        raise ParameterError(f"an ensemble has two members or more; got {members}")
    iterations = as_count(iterations, "iterations", ParameterError)
    drawn = posterior.sample_prior(as_key(key), members)
    start = _coordinates_of(posterior, drawn)
    if not np.all(np.isfinite(start)):
        raise ParameterError(
            "draws of the priors lie outside of the bounds: give bounds that hold them"
        )
    integrator = EnsembleKalmanInversion(Opaque.of(posterior), iterations)
    named = {name: _Values(name) for name in posterior.names}
    observer = Every(1, misfit=_misfit, num_failed=_num_failed, **named)
    guards = (Finite(), StepLimit(iterations, "iterations"))
    return Simulation(integrator, dt=1.0, observers=observer, guards=guards), start


@eqx.filter_jit
def _coordinates_of(posterior: Posterior, values: dict[str, Array]) -> Array:
    return jax.vmap(posterior.coordinates.vector)(values)


class _Values:
    """The parameter of this name, of all members, as a function of the snapshot."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, now: Snapshot) -> Array:
        posterior = now.integrator.posterior.open()
        return jax.vmap(posterior.coordinates.values)(now.state)[self.name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Values) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"the parameter {self.name}"


def _misfit(now: Snapshot) -> Array:
    return jnp.where(now.aux.failed, jnp.nan, 0.5 * jnp.sum(now.aux.residuals**2, axis=1))


def _num_failed(now: Snapshot) -> Array:
    return jnp.sum(now.aux.failed, dtype=jnp.int32)
