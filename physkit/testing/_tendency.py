"""`check_tendency`: a tendency's rates, names and structure, beside what holds for all terms."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import numpy as np

from physkit.core import (
    AbstractTerm,
    ComponentError,
    DeclarationError,
    Function,
    Rate,
    ShapeError,
    State,
    explain_call,
    shift,
)
from physkit.particles.forces import AbstractForce, Forces

from ._compare import check_structure, double_precision
from ._term import Examination

_EPSILON = float(np.finfo(np.float64).eps)


@explain_call
@double_precision()
def check_tendency(
    tendency: AbstractTerm | Callable,
    state: State,
    *,
    drives: Sequence[str] | None = None,
    t: float | int = 0.3,
    key: jax.Array | None = None,
    ignore: Sequence[str] = (),
    noise: float = _EPSILON,
    compare: str = "sum",
) -> None:
    """A tendency keeps every promise that integrators and fits build on.

        check_tendency(Drag(0.3), state, drives=["drops", "gas"])

    In double precision: the rate is finite and can be added to the state, whose structure stays;
    it drives the components it should, and no others; compiled equals not compiled; the cache
    keeps its structure, and a carried one gives what a fresh one gives; float32 is near float64;
    `vmap` equals a loop; derivatives by every parameter and by the state equal finite differences.

    **Arguments:**

    - `tendency`: a term that returns rates, or a plain function `(t, state) → rate`.
    - `drives`: names of the components that it returns rates of, if that is to be checked.
    - `t`, `key`: time and random key of the clock that it is called with.
    - `ignore`, `noise`, `compare`: as for `check_force`.

    **Errors:** `AssertionError` that names what is wrong, by how much, and where.
    """
    if isinstance(tendency, AbstractForce | Forces):
        raise DeclarationError(
            f"{type(tendency).__name__} is a force: check_force(force, state) examines it"
        )
    if not isinstance(tendency, AbstractTerm):
        tendency = Function(tendency)
    try:
        exam = Examination(tendency, state, t, key, ignore)
        rate = exam.value(exam.term, exam.state, exam.cache)
    except (ComponentError, ShapeError) as error:
        raise AssertionError(f"{type(tendency).__name__}: {error}") from error
    _check_names(rate, exam.state, drives, exam.what)
    # Abstract evaluation: the shapes of state ⊕ increment matter here, not its numbers.
    small = jax.tree.map(lambda x: 1e-3 * x if eqx.is_inexact_array(x) else x, rate)
    try:
        after = eqx.filter_eval_shape(shift, exam.state, small)
    except Exception as error:
        raise AssertionError(
            f"{exam.what}: its rate cannot be added to the state: {error}"
        ) from error
    before = eqx.filter_eval_shape(lambda s: s, exam.state)
    check_structure(after, before, f"{exam.what}: the state after adding dt·rate")
    exam.run_all(ignore=ignore, noise=noise, compare=compare)


def _check_names(rate: Rate, state: State, drives: Sequence[str] | None, what: str) -> None:
    if rate is None or not jax.tree.leaves(rate):
        raise AssertionError(f"{what}: returns no rate at all")
    if not isinstance(state, dict):
        return
    if not isinstance(rate, dict):
        raise AssertionError(
            f"{what}: the state has components {sorted(state)}; the rate must be a dict of rates by "
            f"component, got {type(rate).__name__}"
        )
    unknown = sorted(set(rate) - set(state))
    if unknown:
        raise AssertionError(f"{what}: drives {unknown}, but the state has only {sorted(state)}")
    if drives is not None and set(rate) != set(drives):
        raise AssertionError(f"{what}: drives {sorted(rate)}, expected {sorted(drives)}")
