"""What `Reversible` refuses: forces that depend on velocities, and tangents that integers cannot carry."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from physkit.core import (
    AbstractTerm,
    Aux,
    Cache,
    Clock,
    NotReversible,
    PyTree,
    State,
    custom_jvp,
    drop_fixed_point,
    is_exact_component,
    replace_fields,
)
from physkit.particles.forces import AbstractForce

from ..loop._simulation import Simulation


def require_velocity_independent(sim: Simulation, clock: Clock, state: State, aux: Aux) -> None:
    """Check that no force depends on velocities: a kick is reversed with the force that it was made with.

    The check differentiates the forces by velocities, so it sees no dependence hidden by `stop_gradient`.

    **Errors:** `NotReversible` names a force that depends on velocities, which damp or drive.
    """
    state = drop_fixed_point(state)
    nodes = jax.tree.leaves(state, is_leaf=is_exact_component)
    components = [node for node in nodes if is_exact_component(node)]
    velocities = [{name: getattr(c, name) for name in c.kicked_leaves} for c in components]

    def force_by_velocities(term: AbstractTerm, cache: Cache, message: str, velocities: list):
        """The force as a function of velocities, which raises where these have a tangent in it."""
        replacements = iter(velocities)

        def with_velocities(node):
            return replace_fields(node, next(replacements)) if is_exact_component(node) else node

        with_tangents = jax.tree.map(with_velocities, state, is_leaf=is_exact_component)
        return forbid_tangents(term(clock, with_tangents, cache)[0], message)

    for term, cache in sim.integrator.terms(aux):
        if not isinstance(term, AbstractForce):
            continue
        message = (
            f"{_name(term)} depends on velocities, and what damps or drives cannot be reversed: "
            "use adjoint=NestedCheckpoint() or Binomial(n)"
        )
        force = partial(force_by_velocities, term, cache, message)

        def differentiate(velocities, force=force):
            # Any tangent would do: JAX calls the rule that raises only where one arrives.
            return jax.jvp(force, (velocities,), (velocities,))[0]

        jax.eval_shape(differentiate, velocities)  # traced, never computed


def forbid_tangents(tree: PyTree, message: str) -> PyTree:
    """`tree`, none of whose numbers may have a tangent: `NotReversible` with the message where one has."""

    def forbid(x: PyTree) -> PyTree:
        return _forbid_tangent(message, x) if eqx.is_inexact_array(x) else x

    return jax.tree.map(forbid, tree)


# The identity, whose derivative rule raises while it is traced.
@partial(custom_jvp, nondiff_argnums=(0,))
def _forbid_tangent(message: str, x: Array) -> Array:
    del message
    return x


@_forbid_tangent.defjvp
def _(message, primals, tangents):
    del primals, tangents
    raise NotReversible(message)


def _name(term: Any) -> str:
    inner = getattr(term, "inner", None)
    kind = type(term).__name__
    return f"{kind}({_name(inner)})" if isinstance(inner, AbstractForce) else kind
