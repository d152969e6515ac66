"""Averages in equilibrium, differentiable by the parameters of the energy without a trajectory."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import (
    Fault,
    Health,
    Module,
    ParameterError,
    PyTree,
    ShapeError,
    State,
    concrete_value,
    data,
    explain_call,
    poison_where,
    safe_sqrt,
    static,
)

_NUM_BLOCKS = 16  # of samples, for error bars
_MIN_FRACTION = 0.05  # of the samples must count


class EquilibriumSamples(Module):
    """States drawn from the canonical ensemble of one energy, to be weighted for others near it.

    **Arguments:**

    - `energy`: `(model, state)` → potential energy U; all that the weights depend on.
    - `model`: the model that the samples were drawn with: any tree, e.g. a pair potential.
    - `states`: stacked along a first axis, in the order in which they were drawn; one tree of arrays.
    - `temperature`: k_B T, energy.
    - `batch`: how many states are computed side by side: memory against speed.

    **Errors:** `ShapeError` for arrays without a common first axis; `ParameterError` for a temperature
    that is not positive.

    **Notes:** no derivative goes through the states. Leave the equilibration out.
    """

    energy: Callable = static()
    states: State
    energies: Float[Array, " m"] = data()
    temperature: Float[Array, ""] = data()
    batch: int = static(default=32)

    def __init__(
        self,
        energy: Callable[[PyTree, State], Float[Array, ""]],
        model: PyTree,
        states: State,
        temperature: ArrayLike,
        batch: int = 32,
    ):
        counts = {x.shape[:1] for x in jax.tree.leaves(states)}
        if len(counts) != 1 or () in counts:
            raise ShapeError(
                "samples are states stacked along one first axis; got first axes "
                f"{sorted(map(str, counts))}"
            )
        concrete = concrete_value(jnp.asarray(temperature))
        if concrete is not None and not concrete > 0:
            raise ParameterError(f"the temperature, k_B T, must be positive; got {temperature}")
        self.energy, self.batch = energy, int(batch)
        # The samples are data. Only the energies that weights compare these with are differentiated.
        self.temperature = jax.lax.stop_gradient(jnp.asarray(temperature, float))
        self.states = jax.lax.stop_gradient(states)
        self.energies = jax.lax.stop_gradient(self.map(energy, model))

    @property
    def count(self) -> int:
        """How many samples."""
        return jax.tree.leaves(self.states)[0].shape[0]

    def map(self, quantity: Callable[[PyTree, State], PyTree], model: PyTree) -> PyTree:
        """`quantity(model, state)` of every sample, stacked."""
        # Computed again where a derivative is taken: nothing of a sample is kept.
        of_sample = jax.checkpoint(lambda state: quantity(model, state), prevent_cse=False)
        return jax.lax.map(of_sample, self.states, batch_size=min(self.batch, self.count))


class ReweightedAverage(Module):
    """An average in equilibrium, and how many of the samples count for it.

    - `value`: ⟨A⟩, a tree like A; NaN where too few samples count.
    - `error`: its standard error, from blocks of samples.
    - `effective`: how many samples count, 1/Σ w².
    - `health`: `check()` raises where they are too few.
    """

    value: PyTree
    error: PyTree
    effective: Float[Array, ""] = data()
    health: Health


@explain_call
def reweight(
    quantity: Callable[[PyTree, State], PyTree],
    model: PyTree,
    samples: EquilibriumSamples,
    *,
    temperature: ArrayLike | None = None,
    min_fraction: float = _MIN_FRACTION,
) -> ReweightedAverage:
    """The average of a quantity in equilibrium, for other parameters than its samples were drawn with.

        ⟨A⟩ = Σ wᵢ Aᵢ,   wᵢ ∝ exp(β₀ U(xᵢ; θ₀) − β U(xᵢ; θ))

        ∂⟨A⟩/∂θ = ⟨∂A/∂θ⟩ − β (⟨A ∂U/∂θ⟩ − ⟨A⟩⟨∂U/∂θ⟩)

    `jax.grad`, `jvp` and `jacfwd` by `model` give the second line, exactly: no path through the
    trajectory, whose derivative in chaos says nothing of averages. Works however the samples were made:
    molecular dynamics with a thermostat, Langevin, Monte Carlo.

    **Arguments:**

    - `quantity`: `(model, state)` → number, array or tree; may depend on the parameters itself.
    - `model`: the parameters wanted; a tree like the samples' own.
    - `samples`: `EquilibriumSamples`.
    - `temperature`: k_B T wanted, differentiable; that of the samples if left out.
    - `min_fraction`: fraction of the samples that must count. Below it the value is NaN and `health` says so.

    **Returns:** a `ReweightedAverage`.

    **Errors:** `ParameterError` for `min_fraction` outside of 0 … 1. `Fault.LOW_ESS` for too few samples that
    count: draw new ones, nearer to `model`.

    **Good values:** thousands of samples a correlation time or more apart. The change of energy that
    weights bear is a few k_B T *of the whole system*: derivatives are good for any size, finite steps
    for small ones.

    **Notes:** error bars come from 16 blocks of consecutive samples and are right when a block is
    longer than the correlation time.

    **Reference:** Zwanzig, J. Chem. Phys. 22, 1420 (1954); Thaler & Zavadlav, Nat. Commun. 12, 6884
    (2021), eqs. 4–6; Kish, Survey Sampling (1965), for the effective number.
    """
    if not 0 <= min_fraction <= 1:
        raise ParameterError(
            f"min_fraction is a fraction of the samples, 0 … 1; got {min_fraction}"
        )
    energies = samples.map(samples.energy, model)
    sampled_temperature = samples.temperature.astype(energies.dtype)
    # What cannot be under the new model, such as overlapping spheres, has the weight 0: ∞ − ∞ would be none.
    is_possible = ~jnp.isposinf(energies)
    energies = jnp.where(is_possible, energies, samples.energies)
    # ln w = β₀ U₀ − β U = β₀ (U₀ − U) + U (β₀ − β). Differences first: energies are large, and their
    # change is small.
    log_weights = (samples.energies - energies) / sampled_temperature
    if temperature is not None:
        new_temperature = jnp.asarray(temperature, energies.dtype)
        log_weights += energies * (1 / sampled_temperature - 1 / new_temperature)
    log_weights = jnp.where(is_possible, log_weights, -jnp.inf)
    # Softmax subtracts the largest exponent: no weight overflows.
    weights = jax.nn.softmax(log_weights)
    effective = 1 / jnp.sum(jax.lax.stop_gradient(weights) ** 2)
    # Not the opposite test: NaN energies must not pass.
    too_few = ~(effective >= min_fraction * samples.count)

    def as_floating(a: Array) -> Array:
        return a if jnp.issubdtype(a.dtype, jnp.inexact) else a.astype(weights.dtype)

    values = jax.tree.map(as_floating, samples.map(quantity, model))  # counts are numbers, too

    def mean(a: Array) -> Array:  # over the samples, the first axis
        w = weights.reshape((-1,) + (1,) * (a.ndim - 1)).astype(a.dtype)
        return poison_where(jnp.sum(w * a, axis=0), too_few)

    value = jax.tree.map(mean, values)
    error = jax.tree.map(
        lambda a, mean: _error(weights, a, mean), *jax.lax.stop_gradient((values, value))
    )
    bits = jnp.where(too_few, jnp.int32(Fault.LOW_ESS), jnp.int32(0))
    return ReweightedAverage(value, error, effective, Health(bits))


def _error(weights: Array, values: Array, mean: Array) -> Array:
    """Standard error of a ratio of sums, Σ w A / Σ w, from blocks of its linear part."""
    # Linearized about the mean, a ratio of sums is Σ w (A − ⟨A⟩), as the weights add up to 1.
    blocks = min(_NUM_BLOCKS, len(values))
    w = jax.lax.stop_gradient(weights).reshape((-1,) + (1,) * (values.ndim - 1))
    parts = w.astype(values.dtype) * (values - mean[None])
    # Consecutive samples are correlated; blocks longer than the correlation time are not.
    sums = jnp.stack([jnp.sum(part, axis=0) for part in jnp.array_split(parts, blocks)])
    # The deviations add up to 0, so one block is not independent: n / (n − 1).
    return safe_sqrt(jnp.sum(sums**2, axis=0) * blocks / max(blocks - 1, 1))
