"""`check_reversible`: a reversible integrator runs back to the last bit, with derivatives."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.core import NotReversible, State, cast_floats, explain_call, is_exact_component
from physkit.integrators import AbstractIntegrator
from physkit.simulate import Direct, Reversible, Simulation, init, reversibility_report, simulate

from ._compare import check_equal, double_precision
from ._trees import random_like


@explain_call
@double_precision()
def check_reversible(
    integrator: AbstractIntegrator,
    state: State,
    dt: float | int,
    *,
    steps: int = 64,
    differentiated: int = 4,
) -> None:
    """An integrator keeps the promise of `Reversible`: it runs backwards bit by bit, with derivatives.

        check_reversible(VelocityVerlet(force), state, dt=0.01)

    `steps` steps forward and as many back end at the start to the last bit, in both precisions; the
    derivatives of a short run by parameters and state are those of `Direct`.

    **Arguments:**

    - `steps`: how far forward and back.
    - `differentiated`: steps of the run whose derivatives are compared.

    **Errors:** `AssertionError` says at which step forward and backward differ, or which derivative is wrong;
    `NotReversible` for what does not claim to be reversible.
    """
    what = type(integrator).__name__
    # Both precisions: positions and velocities become 64-bit integers in either, forces keep theirs.
    for dtype in (jnp.float32, jnp.float64):
        model, start = cast_floats((integrator, state), dtype)
        sim = Simulation(model, jnp.asarray(dt, dtype), guards=(), adjoint=Reversible())
        compiled = eqx.filter_jit(lambda s, c: reversibility_report(s, c, steps))
        report = compiled(sim, init(sim, start))
        try:
            report.check()
        except NotReversible as error:
            raise AssertionError(f"{what} in {jnp.dtype(dtype).name}: {error}") from error

    # Not bit for bit: `Direct` runs on floats, `Reversible` on fixed-point numbers rounded from them.
    model, start = cast_floats((integrator, state), jnp.float64)
    reversible = _gradient(model, start, dt, differentiated, Reversible())
    direct = _gradient(model, start, dt, differentiated, Direct())
    check_equal(
        reversible, direct, f"{what}: derivatives by Reversible against those by Direct", "solve"
    )


def _gradient(
    integrator: AbstractIntegrator, state: State, dt: ArrayLike, steps: int, adjoint: Any
) -> Any:
    floats, rest = eqx.partition((integrator, state, jnp.asarray(dt)), eqx.is_inexact_array)

    def objective(floats):
        integrator, state, dt = eqx.combine(floats, rest)
        sim = Simulation(integrator, dt, guards=(), adjoint=adjoint)
        last = simulate(sim, state, steps).state
        # Random weights, so that no symmetry of the state hides an error.
        leaves = _evolving_leaves(last)
        return sum(jnp.sum(random_like(x, (31, i)) * x) for i, x in enumerate(leaves))

    return jax.jit(jax.grad(objective))(floats)


def _evolving_leaves(state: State) -> list[Any]:
    """What a step changes: the arrays whose cotangents a backward pass carries."""
    nodes = jax.tree.leaves(state, is_leaf=is_exact_component)
    components = [node for node in nodes if is_exact_component(node)]
    return [getattr(node, name) for node in components for name in node.evolving_leaves]
