"""The run that an audit differentiates: leaves → what is projected, with both kinds of derivatives."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from physkit.core import AbstractGrowable, ObjectiveError
from physkit.particles import Particles
from physkit.simulate import Simulation, init, simulate

Outputs = dict[str, Any]


class AuditedRun:
    """One run as a function of the leaves looked at; compiled once for values, once for each mode."""

    def __init__(
        self,
        sim: Simulation,
        state: Any,
        steps: int,
        values: list[Array],
        join: Callable[[list[Any]], Any],
        objective: Callable | None,
        key: Array | None,
        seed: int,
    ):
        carry = init(sim, state, key=key)
        room = max((node.capacity for node in _growables(carry.aux)), default=None)
        self.values, self.steps = values, steps

        def outputs(values: list[Any]) -> tuple[Outputs, Any]:
            own_sim, own_state = join(values)
            begin = init(own_sim, own_state, key=key, capacity=room)
            result = simulate(own_sim, begin, steps)
            if objective is not None:
                return {"objective": _scalar(objective(result))}, result.health
            return _floating((_unwrapped(result.state), result.frames)), result.health

        self._outputs = eqx.filter_jit(outputs)
        self.start, health = self._outputs(values)
        health.check("in the audit")
        for name, x in self.start.items():
            if not np.all(np.isfinite(np.asarray(x))):
                raise ObjectiveError(
                    f"the value itself is not finite after {steps} steps: {name}. See diagnose"
                )
        rng = np.random.default_rng(seed)
        sizes = {name: float(np.max(np.abs(x), initial=0)) for name, x in self.start.items()}
        least = 1e-6 * max(sizes.values()) or 1.0  # what is 0 but for rounding shall not count
        self.weights = {
            name: np.ones(()) if objective else _random(rng, x) / max(sizes[name], least)
            for name, x in self.start.items()
        }
        only = lambda v: outputs(v)[0]
        self._jvp = eqx.filter_jit(lambda v: jax.jvp(only, (values,), (v,))[1])
        self._vjp = eqx.filter_jit(lambda w: jax.vjp(only, values)[1](w)[0])

    def change(self, values: list[Any]) -> float:
        """⟨w, outputs − outputs at the start⟩; not a number where the run has left its domain."""
        out, _ = self._outputs(values)
        return self.dot(
            {name: np.asarray(x) - np.asarray(self.start[name]) for name, x in out.items()}
        )

    def differs(self, values: list[Any]) -> bool:
        """Whether one bit of the outputs is another."""
        out, _ = self._outputs(values)
        return any(
            not np.array_equal(np.asarray(x), np.asarray(self.start[name]))
            for name, x in out.items()
        )

    def constant(self) -> bool:
        """Whether nothing changes when all leaves are moved at once, as far as runs stay finite."""
        rng, changes = np.random.default_rng(0), []
        for h in (1e-2, 0.1, 0.5, 1.0):
            factors = [1 + h * rng.uniform(0.5, 1.0, x.shape) for x in self.values]
            moved = [
                jnp.asarray(np.where(np.asarray(x) == 0, f - 1, x * f), x.dtype)
                for x, f in zip(self.values, factors, strict=True)
            ]
            changes.append(self.change(moved))
        finite = [c for c in changes if np.isfinite(c)]
        return bool(finite) and not any(finite)

    def tangent(self, direction: list[Any]) -> Outputs:
        """Jv, by forward mode."""
        return self._jvp(direction)

    def gradient(self) -> tuple[list[np.ndarray] | None, str]:
        """Jᵀw, by reverse mode; or None, and why not."""
        like = {name: jnp.asarray(w, self.start[name].dtype) for name, w in self.weights.items()}
        try:
            return [np.asarray(g) for g in self._vjp(like)], ""
        except (TypeError, ValueError, NotImplementedError) as error:
            return None, f"reverse mode fails: {str(error).splitlines()[0]}"

    def dot(self, outputs: Outputs) -> float:
        """⟨w, outputs⟩ in double precision."""
        return float(sum(np.sum(self.weights[n] * np.asarray(x)).real for n, x in outputs.items()))

    def noise(self, gradient: list[np.ndarray] | None) -> float:
        """How far rounding moves ⟨w, outputs⟩: that of the outputs, and of the leaves, grown on the way."""
        total = sum(np.sum(np.abs(self.weights[n] * np.asarray(x))) for n, x in self.start.items())
        for g, x in zip(gradient or (), self.values, strict=bool(gradient)):
            terms = np.abs(np.asarray(g) * np.asarray(x))
            total += np.sum(np.where(np.isfinite(terms), terms, 0))
        kind = jnp.finfo(self.values[0].dtype)
        return 4 * float(kind.eps) * float(total) * max(1.0, self.steps) ** 0.5


def _growables(tree: Any) -> list[AbstractGrowable]:
    is_growable = lambda x: isinstance(x, AbstractGrowable)
    return [x for x in jax.tree.leaves(tree, is_leaf=is_growable) if is_growable(x)]


def _unwrapped(state: Any) -> Any:
    """Particles where they went, which is smooth: a position in a box jumps at the box's end."""
    is_particles = lambda x: isinstance(x, Particles)
    there = lambda x: x.replace(position=x.unwrapped) if is_particles(x) else x
    return jax.tree.map(there, state, is_leaf=is_particles)


def _floating(tree: Any) -> Outputs:
    named, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(p): x for p, x in named if eqx.is_inexact_array(x) and x.size}


def _scalar(value: Any) -> Array:
    value = jnp.asarray(value)
    if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        raise ObjectiveError(
            f"objective(result) must be one floating number; got {value.dtype}{list(value.shape)}"
        )
    return value


def _random(rng: np.random.Generator, like: Any) -> np.ndarray:
    out = rng.normal(size=np.shape(like))
    return out + 1j * rng.normal(size=np.shape(like)) if np.iscomplexobj(like) else out
