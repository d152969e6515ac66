"""The derivative of a unitary circuit: its states are computed again backwards, not stored.

ψ_{k−1} = U_k† ψ_k,   λ_{k−1} = U_kᵀ λ_k,   θ̄_k = λ_kᵀ (∂U_k/∂θ) ψ_{k−1}
"""

import jax
from jaxtyping import Array

from physkit.core import linear_call

from ._gates import AbstractGate

Gates = tuple[AbstractGate, ...]


@jax.custom_jvp
def apply_gates(gates: Gates, x: Array) -> Array:
    """The gates one after the other on the leading axes of `x`."""
    for gate in gates:
        x = gate.apply(x)
    return x


@apply_gates.defjvp
def _apply_gates_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    gates, x = primals
    end = apply_gates(gates, x)
    return end, linear_call(_push_forward, _pull_back, (gates, end), tangents)


def _push_forward(residuals: tuple[Gates, Array], tangents: tuple[Gates, Array]) -> Array:
    """The tangent of the end, beside the states from the start on."""
    gates, x = residuals
    gate_tangents, tangent = tangents
    for gate in reversed(gates):
        x = gate.inverse().apply(x)
    for gate, gate_tangent in zip(gates, gate_tangents, strict=True):
        x, tangent = jax.jvp(_apply, (gate, x), (gate_tangent, tangent))
    return tangent


def _pull_back(residuals: tuple[Gates, Array], cotangent: Array) -> tuple[Gates, Array]:
    """The cotangents of gates and start, from the end on."""
    gates, x = residuals
    found = []
    for gate in reversed(gates):
        x = gate.inverse().apply(x)
        _, pullback = jax.vjp(_apply, gate, x)
        gate_cotangent, cotangent = pullback(cotangent)
        found.append(gate_cotangent)
    return tuple(reversed(found)), cotangent


def _apply(gate: AbstractGate, x: Array) -> Array:
    return gate.apply(x)
