"""Sums of tendencies: how they are declared, what they must return, and which of them can be reversed."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp

from physkit.core import (
    AbstractTerm,
    Cache,
    Clock,
    DeclarationError,
    NotReversible,
    Rate,
    ShapeError,
    State,
    StepCount,
    StepSizeError,
    Tendencies,
    combine_rates,
    concrete_value,
    float_dtype,
    shift,
)
from physkit.particles.forces import AbstractForce, Forces

from .._integrator import StepSize, TermsWithCaches
from ..particle._equations_of_motion import EquationsOfMotion
from ._tableau import Tableau

_IMPLICIT = ", or a method that solves for diffusion: ETDRK2 on grids that repeat, ARS222 on any"

TendencyLike: TypeAlias = AbstractTerm | Callable[..., Rate]  # a function (t, state) → rate


def as_tendencies(*tendencies: TendencyLike) -> Tendencies:
    """The sum of tendencies and plain functions.

    **Errors:** `DeclarationError` for none at all, and for forces, which do not say how they act.
    """
    if not tendencies:
        raise DeclarationError("give at least one tendency, e.g. RK4(lambda t, y: -y)")
    for term in tendencies:
        if isinstance(term, AbstractForce | Forces):
            raise DeclarationError(
                f"{type(term).__name__} gives forces, not rates of change; wrap it: "
                "EquationsOfMotion(force) makes rates of positions and velocities from it"
            )
    return Tendencies.of(*tendencies)


def terms_with_caches(tendency: Tendencies, caches: Cache) -> TermsWithCaches:
    """The terms of a sum, each with its cache.

    Of `EquationsOfMotion` the forces one by one: quantities look for potential energies among them.
    """
    pairs: list[tuple[AbstractTerm, Cache]] = []
    for term, cache in zip(tendency.terms, caches, strict=True):
        pairs.extend(term.forces(cache) if isinstance(term, EquationsOfMotion) else [(term, cache)])
    return tuple(pairs)


def check_rate_shapes(tendency: Tendencies, clock: Clock, state: State, caches: Cache) -> None:
    """**Errors:** `ShapeError` where adding the rate would change an array's shape or precision.

    Traced once, before anything runs.
    """

    def add_rate(clock, state, caches):
        rate, _ = tendency(clock, state, caches)
        return shift(state, combine_rates([clock.dt], [rate]))

    # Precision, too: a float64 rate of a float32 state would break the loop's carry far from its cause.
    after = eqx.filter_eval_shape(add_rate, clock, state, caches)
    pairs = zip(jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(after), strict=False)
    for (path, x), y in pairs:
        if x.shape != y.shape or x.dtype != y.dtype:
            name = jax.tree_util.keystr(path) or "the state"
            if jnp.issubdtype(x.dtype, jnp.integer) or x.dtype == bool:
                raise ShapeError(
                    f"{name} holds {x.dtype}, and its rate is {y.dtype}: what moves is made of floats, e.g. "
                    "jnp.array([1.0, 2.0]) for jnp.array([1, 2])"
                )
            advice = "a rate has the shape and precision of what it changes"
            if y.dtype == jnp.result_type(x.dtype, jnp.complex64) != x.dtype:
                advice = "a state with a complex rate starts complex, e.g. y.astype(complex)"
            raise ShapeError(
                f"the rate does not fit {name}: {x.dtype}{list(x.shape)} would become "
                f"{y.dtype}{list(y.shape)}; {advice}"
            )


def require_shear(tendency: Tendencies, state: State, method: str) -> None:
    """**Errors:** `NotReversible` unless the rates depend on no component that they move.

    An Euler step is then a shear, which can be undone exactly: what it added can be computed again
    from the state after it.
    """
    # Any clock will do: only shapes are traced.
    dtype = float_dtype(state)
    clock = Clock.at(StepCount.of(0), jnp.zeros((), dtype), jnp.ones((), dtype))

    def rate_of(state, caches):
        return tendency(clock, state, caches)[0]

    terms = ", ".join(type(term).__name__ for term in tendency.terms)
    advice = (
        f"{method}({terms}) cannot be taken back step by step: Reversible() needs rates that do not "
        "depend on what they move, as those of `wave.kick` and `wave.drift`"
    )
    if not isinstance(state, dict):
        raise NotReversible(advice)
    caches = tendency.init(state)
    driven = eqx.filter_eval_shape(rate_of, state, caches)
    # Trace the rates once more without what they move: a rate that reads it raises KeyError.
    undriven = {name: part for name, part in state.items() if name not in driven}
    try:
        eqx.filter_eval_shape(rate_of, undriven, caches)
    except KeyError as error:
        raise NotReversible(f"{advice}: it reads {error}") from error


def require_short_steps(
    method: str, tableau: Tableau, terms: Sequence[AbstractTerm], state: State, dt: StepSize
) -> None:
    """**Errors:** `StepSizeError` where a step is far beyond what a tableau bears of one of `terms`, as far as
    numbers can be seen."""
    step = concrete_value(dt)
    if step is None or step.ndim:
        return
    for term in terms:
        rate = term.stiffest_rate(state)
        # Slow growth may be damped by other terms; this cannot.
        if rate is None or (growth := tableau.growth(rate * float(step))) <= 2:
            continue
        raise StepSizeError(
            f"dt = {float(step):.3g} is too long for {method} of {type(term).__name__}: every step would make "
            f"its shortest waves grow {growth:.3g} times. Take dt ≤ {tableau.longest_step(rate):.3g}"
            + (_IMPLICIT if isinstance(rate, float) and rate < 0 else "")
        )
