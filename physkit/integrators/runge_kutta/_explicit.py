"""Explicit Runge–Kutta methods: one implementation for all tableaux."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import (
    AbstractTerm,
    Clock,
    DeclarationError,
    NotReversible,
    ShapeError,
    StepCount,
    Tendencies,
    combine_rates,
    float_dtype,
    shift,
)
from physkit.particles.forces import AbstractForce, Forces

from .._integrator import AbstractIntegrator
from .._reproducible import evaluate_reproducibly
from ..particle._equations_of_motion import EquationsOfMotion
from ._tableau import Tableau


class AbstractRungeKutta(AbstractIntegrator):
    """An explicit Runge–Kutta method for the sum of any number of tendencies.

    States may be one component, a dict of components, or any pytree of arrays. Stages are states
    themselves (`state ⊕ rate·dt`, each component by its own `shift`); their sums are one linear
    combination each, which the compiler fuses.
    """

    tableau: eqx.AbstractVar[Tableau]
    tendency: Tendencies

    def __init__(self, *tendencies: Any):
        self.tendency = as_tendencies(*tendencies)

    def prepare(self, state: Any, dt: Any) -> None:
        del state, dt

    def init(self, plan: None, clock: Clock, state: Any) -> Any:
        caches = self.tendency.init(state)
        check_rate_shapes(self.tendency, clock, state, caches)
        return caches

    def refresh(self, plan: None, clock: Clock, state: Any, aux: Any) -> Any:
        return aux

    def is_stale(self, before: Any, after: Any) -> bool:
        del before, after
        return False  # every rate is computed where it is used

    def step(self, plan: None, clock: Clock, state: Any, aux: Any) -> tuple[Any, Any]:
        rates: list[Any] = []
        for node, row in zip(self.tableau.nodes, self.tableau.matrix, strict=True):
            here = _advanced(state, clock.dt, row, rates)
            rate, aux = evaluate_reproducibly(self.tendency, clock.at_fraction(node), here, aux)
            rates.append(rate)
        return _advanced(state, clock.dt, self.tableau.weights, rates), aux

    @property
    def is_shear(self) -> bool:
        """Whether a step adds rates of the state before it only: one stage, at its start."""
        return self.tableau.matrix == ((),)

    def require_reversible(self, state: Any) -> None:
        if not self.is_shear:
            super().require_reversible(state)
        require_shear(self.tendency, state, type(self).__name__)

    def reverse_step(
        self, plan: None, clock: Clock, state: Any, aux: Any, begun: Clock
    ) -> tuple[Any, Any]:
        rate, aux = evaluate_reproducibly(self.tendency, clock.at_fraction(0.0), state, aux)
        weights = tuple(-w for w in self.tableau.weights)
        return _advanced(state, clock.dt, weights, [rate]), aux

    def terms(self, aux: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
        return terms_with_caches(self.tendency, aux)


def _advanced(state: Any, dt: Any, weights: tuple[float, ...], rates: list[Any]) -> Any:
    """state ⊕ dt·Σ wᵢ·rateᵢ, without the terms whose weight is zero."""
    used = [(w * dt, rate) for w, rate in zip(weights, rates, strict=True) if w != 0]
    return shift(state, combine_rates(*zip(*used, strict=True))) if used else state


def require_shear(tendency: Tendencies, state: Any, name: str) -> None:
    """**Errors:** `NotReversible` unless rates depend on no component that they move.

    One Euler step is then exact to take back: what it added can be computed again.
    """
    dtype = float_dtype(state)
    clock = Clock.at(StepCount.of(0), jnp.zeros((), dtype), jnp.ones((), dtype))
    go = lambda state, caches: tendency(clock, state, caches)[0]
    terms = ", ".join(type(term).__name__ for term in tendency.terms)
    advice = (
        f"{name}({terms}) cannot be taken back step by step: Reversible() needs rates that do not "
        "depend on what they move, as those of `wave.kick` and `wave.drift`"
    )
    if not isinstance(state, dict):
        raise NotReversible(advice)
    caches = tendency.init(state)
    driven = eqx.filter_eval_shape(go, state, caches)
    hidden = {k: v for k, v in state.items() if k not in driven}
    try:
        eqx.filter_eval_shape(go, hidden, caches)
    except KeyError as error:
        raise NotReversible(f"{advice}: it reads {error}") from error


def as_tendencies(*tendencies: Any) -> Tendencies:
    """The sum of tendencies and plain functions; forces are asked to say how they act."""
    if not tendencies:
        raise DeclarationError("give at least one tendency, e.g. RK4(lambda t, y: -y)")
    for term in tendencies:
        if isinstance(term, AbstractForce | Forces):
            raise DeclarationError(
                f"{type(term).__name__} gives forces, not rates of change; wrap it: EquationsOfMotion(force) "
                "makes rates of positions and velocities from it"
            )
    return Tendencies.of(*tendencies)


def terms_with_caches(tendency: Tendencies, caches: Any) -> tuple[tuple[AbstractTerm, Any], ...]:
    """Terms with their caches; the forces inside `EquationsOfMotion` one by one, so that energies are found."""
    found: list[tuple[AbstractTerm, Any]] = []
    for term, cache in zip(tendency.terms, caches, strict=True):
        found.extend(term.forces(cache) if isinstance(term, EquationsOfMotion) else [(term, cache)])
    return tuple(found)


def check_rate_shapes(tendency: Tendencies, clock: Clock, state: Any, caches: Any) -> None:
    """Before anything runs: adding the rate must leave every array's shape and precision alone."""

    def moved(clock, state, caches):
        rate, _ = tendency(clock, state, caches)
        return shift(state, combine_rates([clock.dt], [rate]))

    after = eqx.filter_eval_shape(moved, clock, state, caches)
    pairs = zip(jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(after), strict=False)
    for (path, x), y in pairs:
        if x.shape != y.shape or x.dtype != y.dtype:
            name = jax.tree_util.keystr(path) or "the state"
            raise ShapeError(
                f"the rate does not fit {name}: {x.dtype}{list(x.shape)} would become "
                f"{y.dtype}{list(y.shape)}; a rate has the shape and precision of what it changes"
            )
