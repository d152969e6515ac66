"""Forward and backward pass as one function with a derivative: the custom VJP of `Reversible`."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from physkit.core import (
    Clock,
    Frame,
    NotReversible,
    PyTree,
    State,
    drop_fixed_point,
    exact_bits,
    fusion_barrier,
    is_exact_component,
    replace_fields,
)

from ..adjoint._pullback import fill_zeros
from ..loop._carry import Carry
from ..loop._simulation import Simulation
from ._backward import BackwardInputs, run_backward
from ._backward_state import BackwardContext, BackwardState, Cotangents
from ._cotangents import pull_back_preparation
from ._forward import prepare_refresh, run_forward
from ._migrate_backward import restore_initial_rows
from ._requirements import forbid_tangents, require_velocity_independent

# Integers carry no tangent: a derivative of the backward pass would be zero without a word.
_FIRST_ORDER = (
    "Reversible() has first derivatives only; for derivatives of second order (hessian, grad of grad, "
    "jvp of grad): use adjoint=NestedCheckpoint() or Binomial(n)"
)


def advance_reversibly(sim: Simulation, carry: Carry, blocks: int) -> tuple[Carry, Frame]:
    """`blocks` blocks forward, from a state of fixed-point numbers; the derivative runs backward."""
    try:
        return _compiled(sim, carry, blocks)
    except TypeError as error:
        # JAX says no more than this of a function with a custom VJP.
        if "forward-mode" not in str(error):
            raise
        raise NotReversible(
            "Reversible() has no forward mode (jvp, jacfwd, linearize, Hessians forward over reverse): "
            "use adjoint=NestedCheckpoint(), or Forward() for few parameters"
        ) from error


# Always one program: operation by operation the first force may differ in a last bit from what the
# backward pass computes.
@eqx.filter_jit
def _compiled(sim: Simulation, carry: Carry, blocks: int) -> tuple[Carry, Frame]:
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    require_velocity_independent(sim, clock, carry.state, carry.aux)
    return _advance(jax.tree.map(_drop_integer_tangent, (sim, carry)), blocks)


def _drop_integer_tangent(x: PyTree) -> PyTree:
    """`x`, an integer without the tangent of nothing that JAX may carry along with it."""
    kinds = (jnp.integer, jnp.bool_)
    is_integer = eqx.is_array(x) and any(jnp.issubdtype(x.dtype, kind) for kind in kinds)
    return jax.lax.bitwise_or(x, jnp.zeros_like(x)) if is_integer else x


@eqx.filter_custom_vjp
def _advance(model: tuple[Simulation, Carry], blocks: int) -> tuple[Carry, Frame]:
    carry, records = run_forward(*model, blocks)
    return carry, records.frames


@_advance.def_fwd
def _(perturbed, model, blocks):
    del perturbed
    carry, records = run_forward(*forbid_tangents(model, _FIRST_ORDER), blocks, keep=True)
    shape = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)
    frame_shapes = jax.tree.map(shape, records.frames)
    return (carry, records.frames), (carry, records.observer_states, frame_shapes)


@_advance.def_bwd
def _(residuals, cotangents, perturbed, model, blocks):
    end, observer_states, frame_shapes = residuals
    end_cotangents, frame_cotangents = cotangents
    sim_mask, initial_mask = perturbed
    sim, initial = fusion_barrier(forbid_tangents(model, _FIRST_ORDER))
    plan, _ = prepare_refresh(sim, initial)
    observed = (frame_cotangents, end_cotangents.observer_state, end_cotangents.guards)
    context = BackwardContext(
        sim,
        plan,
        initial.step,
        initial.key,
        sim_mask,
        _evolving_mask(initial.state, initial_mask.state),
        is_observed=bool(jax.tree.leaves(observed)),
    )

    # Back from the end, where cotangents are those of the results.
    start = _cotangents_at_end(context, end, end_cotangents)
    if context.is_observed:
        is_float = lambda s: jnp.issubdtype(s.dtype, jnp.inexact)
        floats = jax.tree.map(lambda s: s if is_float(s) else None, frame_shapes)
        frame_cotangents = fill_zeros(floats, frame_cotangents)
    inputs = BackwardInputs(frame_cotangents if context.is_observed else None, observer_states)
    steps = jnp.int32(blocks * sim.observation_period)
    now = BackwardState(end.state, end.aux, end.observer_state, end.guards, steps, start)
    now = run_backward(context, now, inputs, blocks)

    # At the start: what plan and aux depend on, and whether this is the start, to the last bit.
    now, is_complete = restore_initial_rows(context, now, initial.state)
    found = pull_back_preparation(context, initial, now.cotangents)
    returned = jnp.all(jnp.stack([is_complete, *_equal_bits(now.state, initial.state)]))
    poisoned = jax.tree.map(lambda x: jnp.where(returned, x, jnp.nan), found)
    return poisoned.sim, _as_carry(initial, poisoned)


def _cotangents_at_end(context: BackwardContext, end: Carry, end_cotangents: Carry) -> Cotangents:
    def filled(tree: PyTree, cotangents: PyTree) -> PyTree:
        return fill_zeros(eqx.filter(tree, eqx.is_inexact_array), cotangents)

    state = filled(drop_fixed_point(end.state), drop_fixed_point(end_cotangents.state))
    return Cotangents(
        jax.tree.map(jnp.zeros_like, eqx.filter(context.sim, context.sim_mask)),
        jax.tree.map(jnp.zeros_like, eqx.filter(context.plan, eqx.is_inexact_array)),
        eqx.filter(state, context.state_mask),
        filled(end.aux, end_cotangents.aux),
        filled(end.observer_state, end_cotangents.observer_state),
        filled(end.guards, end_cotangents.guards),
    )


def _evolving_mask(state: State, perturbed: PyTree) -> PyTree:
    """Which leaves of a state have cotangents: what evolves, and what a derivative is asked by."""

    def chosen(node, asked):
        if not is_exact_component(node):
            return asked
        evolving = dict.fromkeys(node.evolving_leaves, True)
        return replace_fields(asked, {**evolving, "fixed_point": None})

    return jax.tree.map(chosen, state, perturbed, is_leaf=is_exact_component)


def _equal_bits(a: State, b: State) -> list[Bool[Array, ""]]:
    pairs = zip(exact_bits(a), exact_bits(b), strict=True)
    return [jnp.all(x == y) for x, y in pairs]


def _as_carry(initial: Carry, cotangents: Cotangents) -> Carry:
    """Cotangents in the structure of the carry `initial`, where integers have none."""
    nothing = lambda tree: jax.tree.map(lambda _: None, tree)

    def with_integers(found, node):
        if not is_exact_component(node):
            return found
        return replace_fields(found, {"fixed_point": nothing(node.fixed_point)})

    is_node = lambda x: x is None or is_exact_component(x)
    state = jax.tree.map(with_integers, cotangents.state, initial.state, is_leaf=is_node)
    return nothing(initial).replace(
        state=state,
        aux=cotangents.aux,
        observer_state=cotangents.observer_state,
        guards=cotangents.guards,
    )
