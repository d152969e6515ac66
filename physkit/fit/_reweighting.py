"""Averages in equilibrium, differentiable by the parameters of the energy without a trajectory."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import (
    Fault,
    Health,
    Module,
    ParameterError,
    ShapeError,
    concrete_value,
    data,
    safe_sqrt,
    static,
)

_BLOCKS = 16  # of samples, for error bars
_LEAST = 0.05  # part of the samples that must count


class EquilibriumSamples(Module):
    """States drawn from the canonical ensemble of one energy, to be weighted for others near it.

    **Arguments:**

    - `energy`: `(model, state)` → potential energy U; all that the weights depend on.
    - `model`: the model that the samples were drawn with: any tree, e.g. a pair potential.
    - `states`: stacked along a first axis, in the order in which they were drawn; one tree of arrays.
    - `temperature`: k_B T, energy.
    - `batch`: how many states are looked at side by side: memory against speed.

    **Errors:** `ShapeError` for arrays without a common first axis; `ParameterError` for a temperature
    that is not positive.

    **Notes:** no derivative goes through the states. Leave the equilibration out.
    """

    energy: Callable = static()
    states: Any
    energies: Float[Array, " m"] = data()
    temperature: Float[Array, ""] = data()
    batch: int = static(default=32)

    def __init__(
        self,
        energy: Callable[[Any, Any], Float[Array, ""]],
        model: Any,
        states: Any,
        temperature: Any,
        batch: int = 32,
    ):
        counts = {x.shape[:1] for x in jax.tree.leaves(states)}
        if len(counts) != 1 or () in counts:
            raise ShapeError(
                "samples are states stacked along one first axis; got first axes "
                f"{sorted(map(str, counts))}"
            )
        known = concrete_value(jnp.asarray(temperature))
        if known is not None and not known > 0:
            raise ParameterError(f"the temperature, k_B T, must be positive; got {temperature}")
        self.energy, self.batch = energy, int(batch)
        self.temperature = jax.lax.stop_gradient(jnp.asarray(temperature, float))
        self.states = jax.lax.stop_gradient(states)
        self.energies = jax.lax.stop_gradient(self.each(energy, model))

    @property
    def count(self) -> int:
        """How many samples."""
        return jax.tree.leaves(self.states)[0].shape[0]

    def each(self, quantity: Callable[[Any, Any], Any], model: Any) -> Any:
        """`quantity(model, state)` of every sample, stacked."""
        # Computed again where a derivative is taken: nothing of a sample is kept.
        one = jax.checkpoint(lambda state: quantity(model, state), prevent_cse=False)
        return jax.lax.map(one, self.states, batch_size=min(self.batch, self.count))


class ReweightedAverage(Module):
    """An average in equilibrium, and how much of the samples it rests on.

    - `value`: ⟨A⟩, a tree like A; NaN where too few samples count.
    - `error`: its standard error, from blocks of samples.
    - `effective`: how many samples count, 1/Σ w².
    - `health`: `check()` raises where they are too few.
    """

    value: Any
    error: Any
    effective: Float[Array, ""] = data()
    health: Health


def reweight(
    quantity: Callable[[Any, Any], Any],
    model: Any,
    samples: EquilibriumSamples,
    *,
    temperature: Any = None,
    min_fraction: float = _LEAST,
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
    - `least`: part of the samples that must count. Below it the value is NaN and `health` says so.

    **Returns:** `Reweighted`.

    **Errors:** `ParameterError` for `least` outside of 0 … 1. `Fault.SAMPLES` for too few samples that
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
        raise ParameterError(f"least is a part of the samples, 0 … 1; got {min_fraction}")
    energies = samples.each(samples.energy, model)
    drawn = samples.temperature.astype(energies.dtype)
    wanted = drawn if temperature is None else jnp.asarray(temperature, energies.dtype)
    # Differences first: energies are large, and their change is small.
    drop = (samples.energies - energies) / drawn + energies * (1 / drawn - 1 / wanted)
    weights = jax.nn.softmax(drop)
    effective = 1 / jnp.sum(jax.lax.stop_gradient(weights) ** 2)
    # Not the opposite test: NaN energies must not pass.
    short = ~(effective >= min_fraction * samples.count)
    as_float = lambda a: a if jnp.issubdtype(a.dtype, jnp.inexact) else a.astype(weights.dtype)
    values = jax.tree.map(as_float, samples.each(quantity, model))  # counts are numbers, too

    def mean(a):
        w = weights.reshape((-1,) + (1,) * (a.ndim - 1)).astype(a.dtype)
        return jnp.where(short, jnp.nan, jnp.sum(w * a, axis=0))

    value = jax.tree.map(mean, values)
    error = jax.tree.map(
        lambda a, m: _error(weights, a, m), *jax.lax.stop_gradient((values, value))
    )
    return ReweightedAverage(
        value, error, effective, Health(jnp.where(short, jnp.int32(Fault.LOW_ESS), jnp.int32(0)))
    )


def _error(weights: Array, values: Array, mean: Array) -> Array:
    """Standard error of a ratio of sums, Σ w A / Σ w, from blocks of its linear part."""
    blocks = min(_BLOCKS, len(values))
    w = jax.lax.stop_gradient(weights).reshape((-1,) + (1,) * (values.ndim - 1))
    parts = w.astype(values.dtype) * (values - mean[None])
    sums = jnp.stack([jnp.sum(part, axis=0) for part in jnp.array_split(parts, blocks)])
    return safe_sqrt(jnp.sum(sums**2, axis=0) * blocks / max(blocks - 1, 1))
