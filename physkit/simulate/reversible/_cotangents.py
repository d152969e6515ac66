"""The cotangent recursion.

With x the state, a what the integrator carries, θ and p the parameters of simulation and plan, m what
observers hold and y their frames, the forward pass is

    (xₙ₊₁, aₙ₊₁) = Φ(xₙ, aₙ; θ, p),      (y, m′) = Y(x, a, m; θ, p)   after every interval,

and for a loss L with given ȳ = ∂L/∂y, running n downward,

    (λₙ, āₙ) = (∂Φ/∂(x, a))ᵀ (λₙ₊₁, āₙ₊₁),        (θ̄, p̄) += (∂Φ/∂(θ, p))ᵀ (λₙ₊₁, āₙ₊₁)
    (λ, ā)  += (∂Y/∂(x, a))ᵀ (ȳ, m̄′),             (θ̄, p̄) += (∂Y/∂(θ, p))ᵀ (ȳ, m̄′),      m̄ = (∂Y/∂m)ᵀ (ȳ, m̄′)

Φ is differentiated as the plain step in floating point at the states that the inverse step has rebuilt.
"""

from functools import partial

import equinox as eqx
import jax
from jaxtyping import Array, Int

from physkit.core import Aux, Frame, PyTree, State, drop_fixed_point, fusion_barrier

from ..adjoint._pullback import add_trees, inexact_mask, pullback
from ..loop._carry import Carry
from ..loop._observe import observe
from ._backward_state import BackwardContext, BackwardState, Cotangents
from ._forward import prepare_refresh
from ._inverse_step import clock_of_aux


def pull_back_step(
    context: BackwardContext,
    step: Int[Array, ""],
    state: State,
    aux: Aux,
    aux_after: Aux,
    cotangents: Cotangents,
) -> Cotangents:
    """Pull cotangents back through Φ of one step, from `state` and `aux` to some state and `aux_after`."""

    def plain_step(sim, plan, state, aux):
        clock = context.clock_at(step, sim)
        return sim.integrator.step_given_aux(plan, clock, state, aux, aux_after)

    # The state as plain floats: integers have no derivative. The optimization barrier keeps XLA from fusing
    # the derivative with the inverse step, whose last bits must not depend on it.
    floats, carried, cotangents = fusion_barrier((drop_fixed_point(state), aux, cotangents))
    sim, plan, state_cotangents, aux_cotangents = pullback(
        plain_step,
        (context.sim, context.plan, floats, carried),
        _masks(context, aux),
        (cotangents.state, cotangents.aux),
    )
    return cotangents._replace(
        sim=add_trees(cotangents.sim, sim),
        plan=add_trees(cotangents.plan, plan),
        state=state_cotangents,
        aux=aux_cotangents,
    )


def pull_back_observation(
    context: BackwardContext, current: BackwardState, frame_cotangents: Frame, interval: int
) -> Cotangents:
    """Pull cotangents back through Y of one interval; `current` holds what observers held before it.

    - `frame_cotangents`: of all frames of this stretch of time; the last one is of this instant.
    """
    step = context.initial_step.plus(current.step)

    def observation(sim, plan, state, aux, observer_state, guards):
        carry = Carry(step, state, aux, observer_state, guards, context.key)
        carry, frames = observe(sim, plan, carry, interval)
        return frames, carry.observer_state, carry.guards

    before = current.observer_state, current.guards
    arguments = context.sim, context.plan, drop_fixed_point(current.state), current.aux, *before
    masks = (*_masks(context, current.aux), *map(inexact_mask, before))
    cotangents = current.cotangents
    # Traced for the names alone: which frames belong to this interval.
    names = eqx.filter_eval_shape(observation, *arguments)[0]
    last = {name: jax.tree.map(lambda x: x[-1], frame_cotangents[name]) for name in names}
    results = (last, cotangents.observer_state, cotangents.guards)
    through = pullback(observation, arguments, masks, results)
    # (θ̄, p̄, λ, ā) are sums over all observations and steps; m̄ of this interval is replaced by that before.
    return Cotangents(*map(add_trees, cotangents[:4], through[:4]), through[4], through[5])


def pull_back_refresh(context: BackwardContext, current: BackwardState) -> Cotangents:
    """Pull ā back through a = refresh(x; θ, p), to the state and the parameters that aux follows from."""

    def refresh(sim, plan, state, aux):
        # The clock is made here: a force that depends on time depends on dt and t0.
        clock = clock_of_aux(sim, partial(context.clock_at, sim=sim), current.step)
        return sim.integrator.refresh(plan, clock, state, aux)

    # Optimization barrier, as in `pull_back_step`.
    cotangents, state = fusion_barrier((current.cotangents, drop_fixed_point(current.state)))
    sim, plan, state_cotangents, aux_cotangents = pullback(
        refresh,
        (context.sim, context.plan, state, current.aux),
        _masks(context, current.aux),
        cotangents.aux,
    )
    return cotangents._replace(
        sim=add_trees(cotangents.sim, sim),
        plan=add_trees(cotangents.plan, plan),
        state=add_trees(cotangents.state, state_cotangents),
        aux=aux_cotangents,
    )


def pull_back_preparation(
    context: BackwardContext, initial: Carry, cotangents: Cotangents
) -> Cotangents:
    """Pull p̄ and ā back through p = prepare(x₀; θ) and a₀ = refresh(x₀; θ, p): p̄ becomes None."""

    def prepare(sim, state, aux):
        plan, refresh = prepare_refresh(sim, initial.replace(state=state))
        return plan, refresh(state, aux)

    arguments = context.sim, drop_fixed_point(initial.state), initial.aux
    masks = context.sim_mask, context.state_mask, inexact_mask(initial.aux)
    sim, state, aux = pullback(prepare, arguments, masks, (cotangents.plan, cotangents.aux))
    return cotangents._replace(
        sim=add_trees(cotangents.sim, sim),
        plan=None,
        state=add_trees(cotangents.state, state),
        aux=aux,
    )


def _masks(context: BackwardContext, aux: Aux) -> tuple[PyTree, PyTree, PyTree, PyTree]:
    """Which leaves of (sim, plan, state, aux) have cotangents."""
    return context.sim_mask, inexact_mask(context.plan), context.state_mask, inexact_mask(aux)
