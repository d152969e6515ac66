"""The ensemble Kalman filter as a simulation: a step is a forecast of all members and an analysis."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Clock,
    Count,
    Module,
    ParameterError,
    PyTree,
    ShapeError,
    as_count,
    as_parameter,
    as_state,
    call_user_function,
    concrete_value,
    data,
    explain_call,
    param,
    replace_fields,
    static,
)
from physkit.integrators import AbstractIntegrator, Replicas
from physkit.observe import Every, Finite, Snapshot
from physkit.particles import AbstractBodies
from physkit.simulate import Simulation, count_blocks, simulate

from ._kalman_update import Localization, kalman_update
from ._opaque import Opaque
from ._square_root_update import square_root_update
from ._step_limit import StepLimit

_NOISE_TAG = 2**22  # of the noise of observations; members tag theirs by their numbers


class FilterAux(Module):
    """What the filter tells of its last analysis.

    - `forecast_mean`, `forecast_std`: of the state before it, `[n]`. `innovation`: observation − mean of what
      the members predicted, `[m]`; `innovation_std`: what it should be, √(C_yy + R), `[m]`.
    """

    forecast_mean: Float[Array, " n"] = data()
    forecast_std: Float[Array, " n"] = data()
    innovation: Float[Array, " m"] = data()
    innovation_std: Float[Array, " m"] = data()


class EnsembleKalmanFilter(AbstractIntegrator):
    """Forecasts every member by `interval` steps of a simulation, and corrects all by an observation.

        xᵢ ← xᵢ + K (y + εᵢ − h(xᵢ)),   K = C_xh (C_hh + R)⁻¹

    with the ensemble's own covariances and noise εᵢ for each member (Burgers), or by `square_root_update`. Made
    by `ensemble_kalman_filter`. The state is `Replicas` of the members.
    """

    simulation: Opaque
    observations: Float[Array, "t m"] = param()
    noise: Float[Array, " m"] = param()
    inflation: Float[Array, ""] = param()
    localization: Localization | None
    observe: Callable[[PyTree], Array] = static()
    interval: int = static()
    square_root: bool = static(default=False)

    def prepare(self, state: Replicas, dt: Any) -> None:
        del state, dt

    def init(self, plan: None, clock: Clock, state: Replicas) -> FilterAux:
        del plan, clock
        table, _ = ravel_members(state.states)
        predicted = self._predict(state)
        zero = jnp.zeros(predicted.shape[1], table.dtype)
        mean, std = jnp.mean(table, axis=0), jnp.std(table, axis=0, ddof=1)
        return FilterAux(mean, std, zero, zero)

    def refresh(self, plan: None, clock: Clock, state: Replicas, aux: FilterAux) -> FilterAux:
        del aux
        return self.init(plan, clock, state)

    def step(
        self, plan: None, clock: Clock, state: Replicas, aux: FilterAux
    ) -> tuple[Replicas, FilterAux]:
        del plan, aux
        forecast = self._forecast(clock, state)
        table, restore = ravel_members(forecast.states)
        mean = jnp.mean(table, axis=0)
        # Inflation: small ensembles underestimate their spread, most of all after an analysis.
        table = mean[None] + self.inflation * (table - mean[None])
        predicted = self._predict(Replicas(restore(table)))
        count = clock.step.high * 2**24 + clock.step.low
        observation = self.observations[jnp.clip(count, 0, len(self.observations) - 1)]
        analysis = self._analyze(clock, table, predicted, observation)
        spread = jnp.sqrt(jnp.var(predicted, axis=0, ddof=1) + self.noise**2)
        told = FilterAux(
            mean, jnp.std(table, axis=0, ddof=1), observation - jnp.mean(predicted, axis=0), spread
        )
        return Replicas(restore(analysis)), told

    def _analyze(self, clock: Clock, table: Array, predicted: Array, observation: Array) -> Array:
        variance = self.noise**2
        if self.square_root:
            return square_root_update(table, predicted, observation, variance, self.localization)
        key = jax.random.fold_in(clock.key, _NOISE_TAG)
        noise = self.noise[None] * jax.random.normal(key, predicted.shape, predicted.dtype)
        # Noise without a mean, so that the analysis mean has no scatter of its own from it.
        target = observation[None] + noise - jnp.mean(noise, axis=0, keepdims=True)
        everyone = jnp.ones(len(table), bool)
        return kalman_update(table, predicted, target, variance, everyone, self.localization)

    def _forecast(self, clock: Clock, state: Replicas) -> Replicas:
        simulation = replace_fields(self.simulation.open(), {"t0": clock.t})
        keys = jax.random.split(jax.random.fold_in(clock.key, 0), state.num_replicas)

        def one(state: PyTree, key: Array) -> PyTree:
            return simulate(simulation, state, self.interval, key=key).state

        return Replicas(eqx.filter_vmap(one)(state.states, keys))

    def _predict(self, state: Replicas) -> Float[Array, "k m"]:
        def one(state: PyTree) -> Array:
            return _observed(self.observe, state)

        return eqx.filter_vmap(one)(state.states)


@explain_call
def ensemble_kalman_filter(
    sim: Simulation,
    states: PyTree,
    observations: Any,
    *,
    observe: Callable[[PyTree], Array],
    noise: ArrayLike,
    interval: Count,
    inflation: float = 1.0,
    localization: Localization | None = None,
    square_root: bool = False,
) -> tuple[Simulation, Replicas]:
    """A filter that follows a system through noisy observations, with an ensemble of simulations.

        filtering, members = ensemble_kalman_filter(
            sim, states, observations, observe=lambda state: state[::2], noise=1.0, interval=10)
        run(filtering, members, len(observations), key=0, to="analysis", checkpoint="checkpoints")

    It returns a simulation like any other: each of its steps is a forecast of `interval` steps of `sim` for
    every member, and an analysis with the next observation. `run` continues it bitwise after a kill, `sweep(…,
    replicas=8)` repeats it with other noise. It records, after each analysis, `mean` and `std` of the members
    (of the shape of the state if that is one array, else of all its numbers in a row), `forecast_mean`,
    `forecast_std`, `innovation` and `innovation_std`.

    **Arguments:**

    - `sim`: of one member; its own noise, if it has any, is the model's error.
    - `states`: of the members at the start, every array `[members, …]`.
    - `observations`: `[times]` or `[times m]`, the first of them `interval` steps after the start. A guard
      stops a run of more steps than there are.
    - `observe`: a function of one member's state that returns what is observed, `[m]` or a number.
    - `noise`: standard deviation of the observations, a number or `[m]`; independent of one another.
    - `interval`: steps between observations.
    - `inflation`: factor by which members are spread about their mean before each analysis.
    - `localization`: a `Localization`, for ensembles smaller than the state.
    - `square_root`: whether members are corrected together, without noise added to the observation: the
      ensemble transform Kalman filter; with a localization the local one (LETKF).

    **Errors:** `ShapeError` for members or observations that do not go together, `ParameterError` for fewer
    than two members, noise that is not above 0, observations that are not finite, an inflation below 1, or
    particles in a box that repeats.

    **Good values:** 20 to 100 members with localization and an inflation of 1.02 to 1.1; without, more members
    than the system has growing directions. Trust it where innovations have the size of `innovation_std`.

    A square root serves small ensembles, up to 40 members, whose corrections noise would spoil.

    **Notes:** exact for linear models with normal noise as the ensemble grows, with errors of order 1/√members.
    No derivatives of the model are needed. One device.

    **Reference:** Burgers, van Leeuwen & Evensen, Mon. Weather Rev. 126, 1719 (1998); Hunt, Kostelich &
    Szunyogh, Physica D 230, 112 (2007).
    """
    interval = as_count(interval, "interval", ParameterError)
    count_blocks(sim, interval)
    # Observers of the model would record every forecast of every member: only its last state is of use.
    bare = replace_fields(sim, {"observers": (), "guards": ()})
    states = as_state(states)
    arrays = [x for x in jax.tree.leaves(states) if eqx.is_array(x)]
    counts = {x.shape[0] if x.ndim else 0 for x in arrays}
    if len(counts) != 1:
        raise ShapeError(f"every array of states is [members, …]; got first axes {sorted(counts)}")
    if min(counts) < 2:
        raise ParameterError(f"an ensemble has two members or more; got {min(counts)}")
    if not any(map(eqx.is_inexact_array, arrays)):
        raise ParameterError(
            f"members hold no floating numbers, which alone are corrected: their arrays are {arrays[0].dtype}"
        )
    _require_means(states)
    members = Replicas(states)
    shape = jax.eval_shape(lambda s: _observed(observe, s), members.replica(0)).shape
    values = np.asarray(observations, float)
    table = values[:, None] if values.ndim == 1 and shape == (1,) else values
    if table.ndim != 2 or table.shape[1:] != shape or not len(table):
        raise ShapeError(
            f"observations are [times, {shape[0]}], as observe returns {shape[0]} numbers; got {values.shape}"
        )
    if not np.all(np.isfinite(table)):
        raise ParameterError(f"{np.sum(~np.isfinite(table))} observations are not finite")
    try:
        std = np.broadcast_to(np.asarray(noise, float), shape)
    except ValueError as error:
        raise ShapeError(f"noise is a number or [{shape[0]}]; got {np.shape(noise)}") from error
    if not np.all(np.isfinite(std) & (std > 0)):
        raise ParameterError(f"noise is a standard deviation above 0; got {noise}")
    if not (np.isfinite(inflation) and inflation >= 1):
        raise ParameterError(f"inflation is 1 or more; got {inflation}")
    if localization is not None:
        _require_positions(localization, ravel_members(states)[0].shape[1], shape[0])
    integrator = EnsembleKalmanFilter(
        Opaque.of(bare), as_parameter(table), as_parameter(std), as_parameter(inflation),
        localization, observe, interval, bool(square_root),
    )  # fmt: skip
    recorded = Every(
        1, mean=_mean, std=_std, forecast_mean=_forecast_mean, forecast_std=_forecast_std,
        innovation=_innovation, innovation_std=_innovation_std,
    )  # fmt: skip
    guards = (Finite(), StepLimit(len(table), "observations"))
    dt = interval * sim.dt
    return Simulation(integrator, dt=dt, observers=recorded, guards=guards, t0=sim.t0), members


def ravel_members(states: PyTree) -> tuple[Float[Array, "k n"], Callable[[Array], PyTree]]:
    """The floating numbers of every member in a row, and how to put them back."""
    floats, rest = eqx.partition(states, eqx.is_inexact_array)
    _, restore_one = ravel_pytree(jax.tree.map(lambda x: x[0], floats))
    table = jax.vmap(lambda s: ravel_pytree(s)[0])(floats)
    return table, lambda table: eqx.combine(jax.vmap(restore_one)(table), rest)


def _require_means(states: PyTree) -> None:
    """**Errors:** `ParameterError` for positions that jump at the edges of a box: their means mean nothing."""

    def is_bodies(node: PyTree) -> bool:
        return isinstance(node, AbstractBodies)

    for node in filter(is_bodies, jax.tree.leaves(states, is_leaf=is_bodies)):
        if any(node.space.periodic_axes(node.dimension)):
            raise ParameterError(
                "members with particles in a box that repeats have no mean: a position jumps at its edges, and "
                "two members beside an edge would seem a box apart. Give particles space=pk.Free(), or walls"
            )


def _observed(observe: Callable[[PyTree], Array], state: PyTree) -> Array:
    value = call_user_function(observe, (state,), "observe", "(state)")
    return jnp.atleast_1d(value).reshape(-1)


def _require_positions(localization: Localization, numbers: int, observed: int) -> None:
    for name, count in (("state_position", numbers), ("observed_position", observed)):
        value = concrete_value(getattr(localization, name))
        if value is not None and len(value) != count:
            raise ShapeError(
                f"Localization({name}=…) has a row for each of {count} numbers; got {len(value)}"
            )


def _like_state(now: Snapshot, row: Array) -> Array:
    """Numbers of a state in a row, in its shape where the state is one array."""
    states = now.state.states
    return row.reshape(states.shape[1:]) if eqx.is_array(states) else row


def _mean(now: Snapshot) -> Array:
    return _like_state(now, jnp.mean(ravel_members(now.state.states)[0], axis=0))


def _std(now: Snapshot) -> Array:
    return _like_state(now, jnp.std(ravel_members(now.state.states)[0], axis=0, ddof=1))


def _forecast_mean(now: Snapshot) -> Array:
    return _like_state(now, now.aux.forecast_mean)


def _forecast_std(now: Snapshot) -> Array:
    return _like_state(now, now.aux.forecast_std)


def _innovation(now: Snapshot) -> Array:
    return now.aux.innovation


def _innovation_std(now: Snapshot) -> Array:
    return now.aux.innovation_std
