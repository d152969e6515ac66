"""The run that an audit differentiates: chosen leaves → outputs, and both kinds of derivatives."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import (
    AbstractComponent,
    Key,
    ObjectiveError,
    PyTree,
    State,
    as_generator,
    find_growables,
)
from physkit.simulate import Result, Simulation, init, simulate

Outputs: TypeAlias = dict[str, Array]


class AuditedRun:
    """One run as a function of the audited leaves, x ↦ J(x); compiled once for values, once for each mode.

    - `values`: of the leaves, x. `outputs_at_start`: the run's outputs for them, by name.
    - `weights`: w, which project the outputs on one number, ⟨w, outputs⟩.
    """

    def __init__(
        self,
        sim: Simulation,
        state: State,
        steps: int,
        values: list[Array],
        put_values: Callable[[list[Array]], PyTree],
        objective: Callable[[Result], Array] | None,
        key: Key | None,
        seed: int,
    ):
        first_carry = init(sim, state, key=key)
        # All runs get the capacity of the first: a cache of another shape would be another program.
        capacity = max((node.capacity for node in find_growables(first_carry.aux)), default=None)
        self.values, self.steps = values, steps

        def outputs_and_health(values: list[Array]):
            changed_sim, changed_state = put_values(values)
            carry = init(changed_sim, changed_state, key=key, capacity=capacity)
            result = simulate(changed_sim, carry, steps)
            if objective is not None:
                return {"objective": _require_scalar(objective(result))}, result.health
            smooth = (_with_unwrapped_positions(result.state), result.frames)
            return _floating_leaves(smooth), result.health

        def outputs(values: list[Array]) -> Outputs:
            return outputs_and_health(values)[0]

        self._outputs_and_health = eqx.filter_jit(outputs_and_health)
        self.outputs_at_start, health = self._outputs_and_health(values)
        # A run that fails anyway is its own error, not one of derivatives.
        health.check("in the audit")
        for name, x in self.outputs_at_start.items():
            if not np.all(np.isfinite(np.asarray(x))):
                raise ObjectiveError(
                    f"the value itself is not finite after {steps} steps: {name}. See diagnose"
                )
        rng = as_generator(seed)
        sizes = {
            name: float(np.max(np.abs(x), initial=0)) for name, x in self.outputs_at_start.items()
        }
        largest = max(sizes.values()) or 1.0
        # Outputs that are 0 but for rounding do not count; of those that are 0, at rest, no size is known.
        sizes = {
            name: max(size, 1e-6 * largest) if size else largest for name, size in sizes.items()
        }
        # Random, so that no error cancels in the sum; over the size, so that all outputs count alike.
        self.weights = {
            name: np.ones(()) if objective else _random_like(rng, x) / sizes[name]
            for name, x in self.outputs_at_start.items()
        }
        self._jvp = eqx.filter_jit(lambda tangents: jax.jvp(outputs, (values,), (tangents,))[1])
        self._vjp = eqx.filter_jit(lambda cotangents: jax.vjp(outputs, values)[1](cotangents)[0])

    def increment(self, values: list[Array]) -> float:
        """⟨w, outputs − outputs at the start⟩; NaN where the run has left its domain."""
        outputs, _ = self._outputs_and_health(values)
        # Differences before the sum: the change of a large output keeps its digits.
        return self.project(
            {
                name: np.asarray(x) - np.asarray(self.outputs_at_start[name])
                for name, x in outputs.items()
            }
        )

    def changes_outputs(self, values: list[Array]) -> bool:
        """Whether any bit of the outputs differs from those at the start."""
        outputs, _ = self._outputs_and_health(values)
        return any(
            not np.array_equal(np.asarray(x), np.asarray(self.outputs_at_start[name]))
            for name, x in outputs.items()
        )

    def is_constant(self) -> bool:
        """Whether nothing changes when all leaves change at once, as far as runs stay finite."""
        rng, increments = np.random.default_rng(0), []
        # All in proportion; zeros, which a factor leaves as they are, by the amount itself.
        for h in (1e-2, 0.1, 0.5, 1.0):
            factors = [1 + h * rng.uniform(0.5, 1.0, x.shape) for x in self.values]
            changed = [
                jnp.asarray(np.where(np.asarray(x) == 0, f - 1, x * f), x.dtype)
                for x, f in zip(self.values, factors, strict=True)
            ]
            increments.append(self.increment(changed))
        # A run that left its domain tells nothing.
        finite = [d for d in increments if np.isfinite(d)]
        return bool(finite) and not any(finite)

    def jvp(self, tangents: list[Array]) -> Outputs:
        """J v, by forward mode."""
        return self._jvp(tangents)

    def gradient(self) -> tuple[list[np.ndarray] | None, str]:
        """Jᵀw, by reverse mode; or None, and why not."""
        cotangents = {
            name: jnp.asarray(w, self.outputs_at_start[name].dtype)
            for name, w in self.weights.items()
        }
        try:
            return [np.asarray(g) for g in self._vjp(cotangents)], ""
        except (TypeError, ValueError, NotImplementedError) as error:
            # What JAX raises for a rule that exists for forward mode only.
            return None, f"reverse mode fails: {str(error).splitlines()[0]}"

    def project(self, outputs: Mapping[str, Array | np.ndarray | np.generic]) -> float:
        """⟨w, outputs⟩ in double precision."""
        return float(sum(np.sum(self.weights[n] * np.asarray(x)).real for n, x in outputs.items()))

    def estimate_noise(self, gradient: list[np.ndarray] | None) -> float:
        """How far rounding moves ⟨w, outputs⟩: that of the outputs, and that of the leaves, amplified."""
        total = sum(
            np.sum(np.abs(self.weights[n] * np.asarray(x)))
            for n, x in self.outputs_at_start.items()
        )
        # A leaf is rounded by ε x at most, which the gradient amplifies.
        for g, x in zip(gradient or (), self.values, strict=bool(gradient)):
            terms = np.abs(np.asarray(g) * np.asarray(x))
            total += np.sum(np.where(np.isfinite(terms), terms, 0))
        precision = jnp.finfo(self.values[0].dtype)
        # Rounding errors of the steps add up like a random walk.
        return 4 * float(precision.eps) * float(total) * max(1.0, self.steps) ** 0.5


def _with_unwrapped_positions(state: State) -> State:
    """Particles where they went, which is smooth: a position in a box jumps at the box's end."""

    def is_component(node: PyTree) -> bool:
        return isinstance(node, AbstractComponent)

    def unwrap(node: PyTree) -> PyTree:
        return node.unwrap() if is_component(node) else node

    return jax.tree.map(unwrap, state, is_leaf=is_component)


def _floating_leaves(tree: PyTree) -> Outputs:
    with_paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        jax.tree_util.keystr(path): x
        for path, x in with_paths
        if eqx.is_inexact_array(x) and x.size
    }


def _require_scalar(value: Any) -> Array:
    value = jnp.asarray(value)
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ObjectiveError(
            f"objective(result) must be one floating number; got {value.dtype}{list(value.shape)}"
        )
    return value


def _random_like(rng: np.random.Generator, like: Array) -> np.ndarray:
    out = rng.normal(size=np.shape(like))
    return out + 1j * rng.normal(size=np.shape(like)) if np.iscomplexobj(like) else out
