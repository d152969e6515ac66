"""`gradient_audit`: which derivatives of a simulation are right, and what is wrong with the others."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from physkit.core import (
    KeyLike,
    ObjectiveError,
    ParameterError,
    State,
    as_count,
    cast_floats,
    explain_call,
    float_dtype,
)
from physkit.simulate import Result, Simulation, plan_start

from .._select import Where
from ._audit_table import GradientAudit
from ._audited_leaves import AuditedLeaf, declared_parameters, select_leaves
from ._audited_run import AuditedRun
from ._nan_origin import find_nan_origin
from ._verdicts import judge_derivative


@explain_call
def gradient_audit(
    sim: Simulation,
    state: State,
    steps: int | None = None,
    *,
    where: Where | None = None,
    objective: Callable[[Result], Any] | None = None,
    ignore: tuple[str, ...] = (),
    key: KeyLike | None = None,
    seed: int = 0,
) -> GradientAudit:
    """Every derivative of a short run, held against the run itself, one line each.

        R(h) = |J(x + hv) − J(x) − h ⟨∇J, v⟩| = O(h²),   ⟨Jv, w⟩ = ⟨v, Jᵀw⟩

    For each floating parameter and each leaf of the state, along a random direction v of its own: the
    order in which the Taylor remainder falls (2 where the derivative is right), and whether forward and
    reverse mode agree. Where a derivative is exactly 0, the run is repeated with other values, which
    tells a derivative that is cut off from a number without effect. Where it is not finite, the backward
    pass is followed to the step, the term and the leaf that made it so.

        print(pk.gradient_audit(sim, state))
        pk.gradient_audit(sim, state).check()

    **Arguments:**

    - `steps`: how long a run, a multiple of the longest observer interval. If left out (and without an
      objective), 4 steps without observers. The longer, the more chaos amplifies rounding and
      remainders alike.
    - `where`: only these leaves of `(sim, state)`, as for `fit`: `lambda m: find(m, LennardJones)`.
    - `objective`: `result → scalar`, of what `simulate` returns. If left out, a random projection of the
      last state, and of the frames where `steps` are given.
    - `ignore`: parts of names of leaves that may remain unread, or act in jumps only (a Courant number,
      which decides on a number of sub-steps), or whose derivative is cut off on purpose (the mean that
      inputs of a network are measured from).
    - `key`: for dynamics with noise. `seed`: of directions and projection.

    **Returns:** what prints as a table, with `ok` and `check()`, which raises `GradientError`.

    **Errors:** those of `simulate`, where the run itself fails; `SelectionError`; `ParameterError` for
    something else than steps; `ObjectiveError` where nothing at all has an effect on the objective.

    **Good values:** float64, a state that is nowhere uniform (limiters and upwinding have kinks there),
    the few steps in which everything happens once. In float32 only errors above some 10⁻³ show.

    **Reference:** Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008); Farrell, Ham, Funke &
    Rognes, SIAM J. Sci. Comput. 35, C369 (2013), for Taylor tests.
    """
    # As `init` does it: parameters take the precision of the state.
    dtype = float_dtype(state)
    # Derivatives by the box hide its numbers, by which meshes are chosen.
    sim = plan_start(cast_floats(sim, dtype), state)
    if steps is None:
        if objective is None:
            sim = dataclasses.replace(sim, observers=(), guards=())
        # At least 4, rounded up to whole observation periods.
        steps = -(-4 // sim.observation_period) * sim.observation_period
    steps = as_count(steps, "steps", ParameterError)
    leaves, put_values = select_leaves((sim, state), where)
    values = [leaf.value for leaf in leaves]
    run = AuditedRun(sim, state, steps, values, put_values, objective, key, seed)
    gradient, reverse_mode_error = run.gradient()
    noise, double = run.estimate_noise(gradient), np.finfo(dtype).bits == 64
    parameters = declared_parameters(sim)

    def is_ignored(leaf: AuditedLeaf) -> bool:
        return any(part in leaf.name for part in ignore)

    def requires_gradient(leaf: AuditedLeaf) -> bool:
        return (leaf.of_state or leaf.name in parameters) and not is_ignored(leaf)

    rows = tuple(
        judge_derivative(
            run,
            k,
            leaf,
            None if gradient is None else gradient[k],
            noise=noise,
            double=double,
            require_gradient=requires_gradient(leaf),
            is_ignored=is_ignored(leaf),
            seed=seed,
        )
        for k, leaf in enumerate(leaves)
    )
    if objective is not None and all(row.has_no_effect for row in rows):
        # An objective that nothing changes is a mistake of the caller, not a derivative of 0.
        if where is not None:  # leaves that are not audited may have an effect
            leaves, put_values = select_leaves((sim, state), None)
            values = [leaf.value for leaf in leaves]
            run = AuditedRun(sim, state, steps, values, put_values, objective, key, seed)
        if run.is_constant():
            raise ObjectiveError(
                "objective(result) is constant: nothing in the simulation or its state has an effect "
                "on it, so that there is no derivative to audit. It is "
                f"{run.outputs_at_start['objective']} whatever they are; compute it from result.state or "
                "result.frames"
            )
    # Step by step on the host, which is slow: only where there is something to look for.
    nan_origin = None
    if any(row.verdict == "NaN" for row in rows):
        nan_origin = find_nan_origin(sim, state, steps, key=key, seed=seed)
    return GradientAudit(rows, steps, str(jax.numpy.dtype(dtype)), nan_origin, reverse_mode_error)
