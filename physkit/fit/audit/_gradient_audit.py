"""`gradient_audit`: which derivatives of a simulation are right, and what is wrong with the others."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from physkit.core import ObjectiveError, ParameterError, cast_floats, float_dtype
from physkit.simulate import Simulation

from .._select import Where
from ._audit_table import GradientAudit
from ._audited_leaves import declared_parameters, select_leaves
from ._audited_run import AuditedRun
from ._nan_origin import find_nan_origin
from ._verdicts import FiniteDifferences, judge_derivative


def gradient_audit(
    sim: Simulation,
    state: Any,
    steps: int | None = None,
    *,
    where: Where | None = None,
    objective: Callable | None = None,
    ignore: tuple[str, ...] = (),
    key: Array | None = None,
    seed: int = 0,
) -> GradientAudit:
    """Every derivative of a short run, held against the run itself, one line each.

        R(h) = |J(x + hv) − J(x) − h ⟨∇J, v⟩| = O(h²),   ⟨Jv, w⟩ = ⟨v, Jᵀw⟩

    For each floating parameter and each leaf of the state, along a random direction v of its own: the
    order in which the Taylor remainder falls (2 where the derivative is right), and whether forward and
    reverse mode agree. Where a derivative is exactly 0, the run is repeated with other values, which
    tells a derivative that is cut off from a number without effect. Where it is not finite, the backward
    pass is walked through to the step, the term and the leaf that made it so.

        print(pk.gradient_audit(sim, state))
        pk.gradient_audit(sim, state).check()

    **Arguments:**

    - `steps`: how long a run, a multiple of the longest observer interval. If left out (and without an
      objective), 4 steps in which nobody observes. The longer, the more chaos amplifies rounding and
      remainders alike.
    - `where`: only these leaves of `(sim, state)`, as for `fit`: `lambda m: m[0].integrator.force`.
    - `objective`: `result → scalar`, of what `simulate` returns. If left out, a random projection of the
      last state, and of the frames where `steps` are given.
    - `ignore`: parts of names of leaves that may remain unread, or act in jumps only (a Courant number,
      which decides on a number of sub-steps).
    - `key`: for dynamics with noise. `seed`: of directions and projection.

    **Returns:** what prints as a table, with `ok` and `check()`, which raises `GradientError`.

    **Errors:** those of `simulate`, where the run itself fails; `SelectionError`; `ParameterError` for
    something else than steps; `ObjectiveError` where nothing at all has an effect on the objective.

    **Good values:** float64, a state that is nowhere uniform (limiters and upwinding have kinks there),
    the few steps in which everything happens once. In float32 only errors above some 10⁻³ are seen.

    **Reference:** Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008); Farrell, Ham, Funke &
    Rognes, SIAM J. Sci. Comput. 35, C369 (2013), for Taylor tests.
    """
    dtype = float_dtype(state)
    sim = cast_floats(sim, dtype)
    if steps is None:
        if objective is None:
            sim = dataclasses.replace(sim, observers=(), guards=())
        steps = -(-4 // sim.observation_period) * sim.observation_period
    if not isinstance(steps, int) or steps < 1:
        raise ParameterError(f"steps is a whole number from 1; got {steps!r}")
    leaves, join = select_leaves((sim, state), where)
    program = AuditedRun(
        sim, state, steps, [leaf.value for leaf in leaves], join, objective, key, seed
    )
    gradient, trouble = program.gradient()
    noise = program.noise(gradient)
    probe = FiniteDifferences(program, noise, np.finfo(dtype).bits == 64)
    needed = declared_parameters(sim)
    rows = [
        judge_derivative(
            probe,
            number,
            leaf,
            None if gradient is None else gradient[number],
            require_gradient=(leaf.name in needed or leaf.of_state)
            and not any(part in leaf.name for part in ignore),
            seed=seed,
        )
        for number, leaf in enumerate(leaves)
    ]
    if objective is not None and all(row.has_no_effect for row in rows):
        if where is not None:  # other leaves than those looked at may have one
            others, join = select_leaves((sim, state), None)
            values = [leaf.value for leaf in others]
            program = AuditedRun(sim, state, steps, values, join, objective, key, seed)
        if program.constant():
            raise ObjectiveError(
                "objective(result) is constant: nothing in the simulation or its state has an effect "
                f"on it, so that there is no derivative to audit. It is {program.start['objective']} "
                "whatever they are; compute it from result.state or result.frames"
            )
    born = None
    if any(row.verdict == "NaN" for row in rows):
        born = find_nan_origin(sim, state, steps, key=key, seed=seed)
    return GradientAudit(tuple(rows), steps, str(jax.numpy.dtype(dtype)), born, trouble)
