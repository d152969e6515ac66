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
    at_full_precision,
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

# Integers carry no tangent: without this check a derivative of the backward pass would silently be zero.
_FIRST_ORDER = (
    "Reversible() has first derivatives only; for derivatives of second order (hessian, grad of grad, "
    "jvp of grad): use adjoint=NestedCheckpoint() or Binomial(n)"
)


def advance_reversibly(sim: Simulation, carry: Carry, blocks: int) -> tuple[Carry, Frame]:
    """`blocks` blocks forward, from a state of fixed-point numbers; the derivative runs backward."""
    try:
        return _advance_in_one_program(sim, carry, blocks)
    except TypeError as error:
        if explained := explain_forward_mode(error):
            raise explained from error
        raise


def explain_forward_mode(error: TypeError) -> NotReversible | None:
    """What to raise for JAX's plain `TypeError` of forward mode through a custom VJP; None for other errors."""
    # Its text is all there is to go by.
    if "forward-mode" not in str(error):
        return None
    return NotReversible(
        "Reversible() has no forward mode (jvp, jacfwd, linearize, Hessians forward over reverse): "
        "use adjoint=NestedCheckpoint(), or Forward() for few parameters"
    )


# Jitted even where the caller does not: executed operation by operation, the first force may differ in its last
# bit from what the backward pass computes.
@eqx.filter_jit
@at_full_precision
def _advance_in_one_program(sim: Simulation, carry: Carry, blocks: int) -> tuple[Carry, Frame]:
    clock = Clock.at(carry.step, sim.t0, sim.dt, carry.key)
    require_velocity_independent(sim, clock, carry.state, carry.aux)
    return _advance(jax.tree.map(_drop_integer_tangent, (sim, carry)), blocks)


def _drop_integer_tangent(x: PyTree) -> PyTree:
    """`x`; of an integer without the tangent of type float0 that JAX may carry along with it."""
    # `x | 0` keeps the value, and a bitwise operation has the derivative zero: the tangent ends here.
    kinds = (jnp.integer, jnp.bool_)
    is_integer = eqx.is_array(x) and any(jnp.issubdtype(x.dtype, kind) for kind in kinds)
    return jax.lax.bitwise_or(x, jnp.zeros_like(x)) if is_integer else x


@eqx.filter_custom_vjp
def _advance(model: tuple[Simulation, Carry], blocks: int) -> tuple[Carry, Frame]:
    carry, records = run_forward(*model, blocks)
    return carry, records.frames


@_advance.def_fwd
@at_full_precision
def _(perturbed, model, blocks):
    del perturbed
    carry, records = run_forward(*forbid_tangents(model, _FIRST_ORDER), blocks, keep=True)
    # Shapes alone: the frames as residuals would be kept in memory until the backward pass.
    frame_shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), records.frames)
    return (carry, records.frames), (carry, records.observer_states, frame_shapes)


@_advance.def_bwd
@at_full_precision
def _(residuals, cotangents, perturbed, model, blocks):
    end, observer_states, frame_shapes = residuals
    end_cotangents, frame_cotangents = cotangents
    sim_mask, initial_mask = perturbed
    # The plan is computed again, not stored: behind a barrier as in `run_forward`, for the same bits.
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

    # Begin at the end, with the cotangents of the results.
    cotangents_at_end = _cotangents_at_end(context, end, end_cotangents)
    if context.is_observed:
        # Arrays for every frame, also where a cotangent is None: the backward loop scans over them.
        frame_cotangents = fill_zeros(_floating_shapes(frame_shapes), frame_cotangents)
    inputs = BackwardInputs(frame_cotangents if context.is_observed else None, observer_states)
    steps = jnp.int32(blocks * sim.observation_period)
    last = BackwardState(
        end.state, end.aux, end.observer_state, end.guards, steps, cotangents_at_end
    )
    first = run_backward(context, last, inputs, blocks)

    # At the start: pull back through what plan and aux were computed from, and compare with the stored start.
    first, is_complete = restore_initial_rows(context, first, initial.state)
    cotangents = pull_back_preparation(context, initial, first.cotangents)
    is_start = jnp.all(jnp.stack([is_complete, *_equal_bits(first.state, initial.state)]))
    # A compiled program cannot raise: derivatives of a backward pass that missed the start are NaN.
    poisoned = jax.tree.map(lambda x: jnp.where(is_start, x, jnp.nan), cotangents)
    return poisoned.sim, _as_carry(initial, poisoned)


def _floating_shapes(shapes: PyTree) -> PyTree:
    """`shapes` of floating arrays, None in place of all others: those have no cotangents."""

    def keep_floating(shape: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct | None:
        return shape if jnp.issubdtype(shape.dtype, jnp.inexact) else None

    return jax.tree.map(keep_floating, shapes)


def _cotangents_at_end(context: BackwardContext, end: Carry, end_cotangents: Carry) -> Cotangents:
    """Cotangents of the results, with zeros where the loss does not depend on one."""

    def fill(tree: PyTree, cotangents: PyTree) -> PyTree:
        return fill_zeros(eqx.filter(tree, eqx.is_inexact_array), cotangents)

    state = fill(drop_fixed_point(end.state), drop_fixed_point(end_cotangents.state))
    return Cotangents(
        jax.tree.map(jnp.zeros_like, eqx.filter(context.sim, context.sim_mask)),
        jax.tree.map(jnp.zeros_like, eqx.filter(context.plan, eqx.is_inexact_array)),
        eqx.filter(state, context.state_mask),
        fill(end.aux, end_cotangents.aux),
        fill(end.observer_state, end_cotangents.observer_state),
        fill(end.guards, end_cotangents.guards),
    )


def _evolving_mask(state: State, perturbed: PyTree) -> PyTree:
    """Which leaves of a state have cotangents: those that evolve, and those that are `perturbed`."""

    def mark(node, perturbed_node):
        if not is_exact_component(node):
            return perturbed_node
        # λ is carried in all evolving leaves, whichever of them the caller differentiates by.
        evolving = dict.fromkeys(node.evolving_leaves, True)
        return replace_fields(perturbed_node, {**evolving, "fixed_point": None})

    return jax.tree.map(mark, state, perturbed, is_leaf=is_exact_component)


def _equal_bits(a: State, b: State) -> list[Bool[Array, ""]]:
    pairs = zip(exact_bits(a), exact_bits(b), strict=True)
    return [jnp.all(x == y) for x, y in pairs]


def _as_carry(initial: Carry, cotangents: Cotangents) -> Carry:
    """Cotangents in the structure of the carry `initial`, with None for its integers."""

    def no_cotangents(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda _: None, tree)

    def with_fixed_point(cotangent, node):
        # Cotangents were taken of plain floats: put the integers' place in the structure back.
        if not is_exact_component(node):
            return cotangent
        return replace_fields(cotangent, {"fixed_point": no_cotangents(node.fixed_point)})

    def is_node(x: PyTree) -> bool:
        return x is None or is_exact_component(x)

    state = jax.tree.map(with_fixed_point, cotangents.state, initial.state, is_leaf=is_node)
    return no_cotangents(initial).replace(
        state=state,
        aux=cotangents.aux,
        observer_state=cotangents.observer_state,
        guards=cotangents.guards,
    )
