"""The examination of what says that it can be reversed."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from physkit.core import NotReversible, State, cast_floats
from physkit.fields import Field
from physkit.integrators import AbstractIntegrator
from physkit.particles import Particles
from physkit.simulate import Direct, Reversible, Simulation, init, reversibility_report, simulate

from ._compare import check_equal, double_precision
from ._trees import random_like


@double_precision()
def check_reversible(
    integrator: AbstractIntegrator,
    state: State,
    dt: float | int,
    *,
    steps: int = 64,
    differentiated: int = 4,
) -> None:
    """An integrator keeps the promise of `Reversible`: it goes back, bit by bit, with derivatives.

        check_reversible(VelocityVerlet(force), state, dt=0.01)

    `steps` steps forward and as many back meet the start to the last bit, in both precisions; the
    derivatives of a short run by parameters and state are those of `Direct`.

    **Arguments:**

    - `steps`: how far forward and back.
    - `differentiated`: steps of the run whose derivatives are compared.

    **Errors:** `AssertionError` says where the ways part, or which derivative is wrong;
    `NotReversible` for what does not claim to be reversible.
    """
    what = type(integrator).__name__
    for dtype in (jnp.float32, jnp.float64):
        model, begin = cast_floats((integrator, state), dtype)
        sim = Simulation(model, jnp.asarray(dt, dtype), guards=(), adjoint=Reversible())
        found = eqx.filter_jit(lambda s, c: reversibility_report(s, c, steps))(
            sim, init(sim, begin)
        )
        try:
            found.check()
        except NotReversible as error:
            raise AssertionError(f"{what} in {jnp.dtype(dtype).name}: {error}") from error

    model, begin = cast_floats((integrator, state), jnp.float64)
    slopes = [_slope(model, begin, dt, differentiated, a) for a in (Reversible(), Direct())]
    check_equal(*slopes, f"{what}: derivatives by Reversible against those by Direct", "solve")


def _slope(
    integrator: AbstractIntegrator, state: State, dt: ArrayLike, steps: int, adjoint: Any
) -> Any:
    moving, still = eqx.partition((integrator, state, jnp.asarray(dt)), eqx.is_inexact_array)

    def objective(moving):
        integrator, state, dt = eqx.combine(moving, still)
        sim = Simulation(integrator, dt, guards=(), adjoint=adjoint)
        last = simulate(sim, state, steps).state
        return sum(
            jnp.sum(random_like(x, (31, i)) * x) for i, x in enumerate(_moved_components(last))
        )

    return jax.jit(jax.grad(objective))(moving)


def _moved_components(state: State) -> list[Any]:
    """Unwrapped positions, velocities, and values of fields."""
    is_component = lambda x: isinstance(x, Particles | Field)
    found = []
    for node in jax.tree.leaves(state, is_leaf=is_component):
        if isinstance(node, Particles):
            found += [node.unwrapped, node.velocity]
        elif isinstance(node, Field):
            found.append(node.data)
    return found
