"""Measurement: outcomes drawn by their probability, and the state that is left."""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from physkit.core import (
    DeclarationError,
    ShapeError,
    as_key,
    at_full_precision,
    custom_jvp,
    describe,
    safe_divide,
    scale_array,
    vdot,
)

from ._density_matrix import DensityMatrix
from ._quantum_state import AbstractQuantumState, Sites, as_sites
from ._state_vector import StateVector

Q = TypeVar("Q", bound=AbstractQuantumState)


def measure(state: Q, key: Any, sites: Sites = None) -> tuple[Int[Array, " sites"], Q]:
    """Measure some subsystems in their basis: the outcomes, and the state after it.

    **Arguments:** `state`: a `StateVector` or a `DensityMatrix`. `key`: a JAX random key or a whole number.
    `sites`: the subsystems, all if left out.

    **Returns:** the level of each of `sites`, and the projected state, normalized.
    """
    return _measure(state, as_key(key), as_sites(sites, state.dims))


def reset(state: Q, key: Any, sites: Sites = None) -> Q:
    """Put some subsystems into level 0: they are measured, and what was found is undone.

    **Arguments:** those of `measure`. The mean over keys is what the channel `Reset` does.
    """
    return _reset(state, as_key(key), as_sites(sites, state.dims))


@eqx.filter_jit
def _measure(state: Any, key: Array, sites: tuple[int, ...]) -> tuple[Any, Any]:
    if isinstance(state, StateVector):
        state.register.require_whole("a measurement")
    outcome = state.sample(key, 1, sites)[0]
    n, x = len(state.dims), state.array
    for level, site in zip(outcome, sites, strict=True):
        for axis in range(site, x.ndim, n):
            shape = [1] * x.ndim
            shape[axis] = x.shape[axis]
            kept = jnp.arange(x.shape[axis], dtype=level.dtype) == level
            x = jnp.where(kept.reshape(shape), x, 0)
    return outcome, state.with_array(x).normalized()


@eqx.filter_jit
def _reset(state: Any, key: Array, sites: tuple[int, ...]) -> Any:
    outcome, state = _measure(state, key, sites)
    n, x = len(state.dims), state.array
    for level, site in zip(outcome, sites, strict=True):
        for axis in range(site, x.ndim, n):
            x = jnp.roll(x, -level, axis)
    return state.with_array(x)


def fidelity(a: AbstractQuantumState, b: AbstractQuantumState) -> Float[Array, ""]:
    """How alike two states are, 0 … 1.

        |⟨a|b⟩|²,   ⟨a|ρ|a⟩,   (Tr √(√ρ σ √ρ))²

    of two pure states, a pure and a mixed one, two mixed ones.

    **Errors:** `ShapeError` for states of other dimensions; `DeclarationError` for what is no state.
    """
    for state in (a, b):
        if not isinstance(state, AbstractQuantumState):
            raise DeclarationError(
                f"a fidelity is one of a StateVector or a DensityMatrix; got {describe(state)}"
            )
    if a.dims != b.dims:
        raise ShapeError(f"states of dimensions {list(a.dims)} and {list(b.dims)} have no fidelity")
    return _fidelity(a, b)


@jax.jit
@at_full_precision
def _fidelity(a: Any, b: Any) -> Float[Array, ""]:
    if isinstance(a, StateVector) and isinstance(b, StateVector):
        overlap = a.register.sum(vdot(a.array.reshape(-1), b.array.reshape(-1)))
        return overlap.real**2 + overlap.imag**2
    if isinstance(a, DensityMatrix) and isinstance(b, StateVector):
        a, b = b, a
    if isinstance(a, StateVector):
        flat = a.array.reshape(-1)
        return vdot(flat, b.matrix() @ flat).real
    root = _root(a.matrix())
    return _trace_of_root(root @ b.matrix() @ root) ** 2


@custom_jvp
def _root(matrix: Array) -> Array:
    """√A of a positive semidefinite matrix."""
    return _root_and_its_parts(matrix)[0]


@_root.defjvp
def _root_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # √A d√A + d√A √A = dA. A state stays one to first order, so that nothing changes where both roots are 0;
    # the derivative of eigenvectors would not exist there.
    root, roots, v = _root_and_its_parts(*primals)
    change = jnp.conj(v.T) @ tangents[0] @ v
    both = roots[:, None] + roots[None]
    return root, v @ scale_array(change, safe_divide(jnp.ones_like(both), both)) @ jnp.conj(v.T)


def _root_and_its_parts(matrix: Array) -> tuple[Array, Array, Array]:
    w, v = jnp.linalg.eigh(matrix)
    roots = _roots(w)
    return scale_array(v, roots) @ jnp.conj(v.T), roots, v


@custom_jvp
def _trace_of_root(matrix: Array) -> Array:
    """tr √A of a positive semidefinite matrix."""
    return jnp.sum(_roots(jnp.linalg.eigvalsh(matrix)))


@_trace_of_root.defjvp
def _trace_of_root_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    _, roots, v = _root_and_its_parts(*primals)
    change = jnp.real(jnp.sum(jnp.conj(v) * (tangents[0] @ v), axis=0))
    return jnp.sum(roots), jnp.sum(change * safe_divide(jnp.full_like(roots, 0.5), roots))


def _roots(eigenvalues: Array) -> Array:
    """Their roots; 0 for what rounding leaves of an eigenvalue 0."""
    rounding = len(eigenvalues) * jnp.finfo(eigenvalues.dtype).eps * jnp.max(eigenvalues)
    return jnp.sqrt(jnp.where(eigenvalues > rounding, eigenvalues, 0))
