"""Gates and channels that others write: what keeps no probability is found before it acts."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import (
    DeclarationError,
    ParameterError,
    concrete_value,
    einsum,
    evaluate_now,
    matmul,
)

from .._channels import AbstractChannel
from .._gates import AbstractGate, Controlled

_OFF_BY = 1e-5  # single precision, with room


def check_own_operations(operations: Sequence[Any], dims: tuple[int, ...]) -> None:
    """Gates and channels of classes that do not come with physkit, where their numbers can be seen.

    **Errors:** `DeclarationError` for a gate that is not unitary, or whose `inverse` or `conjugate` is not its
    own; `ParameterError` for a channel that does not keep the trace.
    """
    own = [x for x in operations if not _kind(x).__module__.startswith("physkit.")]
    own = [x for x in own if all(concrete_value(n) is not None for n in jax.tree.leaves(x))]
    if not own:
        return
    with evaluate_now():
        errors = _deviations(own, tuple(tuple(dims[s] for s in x.sites) for x in own))
    for x, found in zip(own, errors, strict=True):
        name = _kind(x).__name__
        wrong = {what: float(e) for what, e in found.items() if not float(e) <= _OFF_BY}
        for what, error in wrong.items():
            kind = ParameterError if isinstance(x, AbstractChannel) else DeclarationError
            raise kind(f"{name} on subsystems {list(x.sites)}: {what}; off by {error:.2g}")


@eqx.filter_jit
def _deviations(own: Sequence[Any], dims: tuple[tuple[int, ...], ...]) -> list[dict[str, Array]]:
    return [
        _of_channel(x) if isinstance(x, AbstractChannel) else _of_gate(x, d)
        for x, d in zip(own, dims, strict=True)
    ]


def _of_gate(gate: AbstractGate, dims: tuple[int, ...]) -> dict[str, Array]:
    u = gate.matrix(dims)
    one = jnp.eye(u.shape[0], dtype=u.dtype)
    return {
        "a gate is unitary, U†U = 1 (a channel is an AbstractChannel)": _largest(
            matmul(jnp.conj(u.T), u) - one
        ),
        "its `inverse` does not undo it": _largest(matmul(gate.inverse().matrix(dims), u) - one),
        "its `conjugate` has not the complex conjugate matrix": _largest(
            gate.conjugate().matrix(dims) - jnp.conj(u)
        ),
    }


def _of_channel(channel: AbstractChannel) -> dict[str, Array]:
    k, weights = channel.operators(), channel.weights()
    total = einsum("k,kba,kbc->ac", weights.astype(k.dtype), jnp.conj(k), k)
    return {
        "weights of Kraus operators are not negative": jnp.max(-weights),
        "a channel keeps the trace, Σ w K†K = 1": _largest(
            total - jnp.eye(k.shape[-1], dtype=k.dtype)
        ),
    }


def _largest(x: Array) -> Array:
    return jnp.max(jnp.abs(x))


def _kind(x: Any) -> type:
    while isinstance(x, Controlled):
        x = x.gate
    return type(x)
