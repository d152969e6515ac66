"""exp(−i s H) ψ by Lanczos's recurrence, with the derivative of the exponential itself.

The recurrence divides by numbers that vanish where ψ lies in a small invariant space, an eigenstate say; its
own derivative is wrong there. With A = −i s H the exact one is

    d(e^A ψ) = e^A dψ + ∫₀¹ e^{(1−u)A} dA e^{uA} ψ du

and its transpose needs e^{uA}ψ and e^{(1−u)Aᵀ}λ only, which come from two Krylov spaces; the integral is one of
Gauss's.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from physkit.core import (
    PyTree,
    custom_jvp,
    linear_call,
    matmul,
    safe_divide,
    scale_array,
    tensordot,
    times_i,
    vdot,
)

_AT_ONCE = 2**20  # amplitudes: of so many H is applied to several vectors together


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def exponential_action(
    apply: Callable, dimension: int, operator: PyTree, x: Array, s: Float[Array, ""]
) -> tuple[Array, Float[Array, ""]]:
    """e^{−i s H} x, and an estimate of its error.

    - `apply`: hashable, (operator, x) → H x, Hermitian and linear in `x`.
    - `dimension`: of the Krylov space.
    """
    space = krylov_space(apply, dimension, operator, x)
    phases = space.exponential(s)
    # What the next vector would have had of the result: exact where the space is closed.
    error = jnp.abs(phases[-1]) * space.next_norm * jnp.abs(s)
    return space.combine(phases), jax.lax.stop_gradient(error)


@exponential_action.defjvp
def _jvp(apply: Callable, dimension: int, primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    operator, x, s = primals
    out = exponential_action(apply, dimension, operator, x, s)
    forward, transpose = _Forward(apply, dimension), _Transpose(apply, dimension)
    tangent = linear_call(forward, transpose, (operator, x, s), tangents, result=out[0])
    return out, (tangent, jnp.zeros_like(out[1]))


class _KrylovSpace(NamedTuple):
    """An orthonormal basis, `[m …]`, and the eigensystem of the tridiagonal H in it."""

    basis: Array
    values: Float[Array, " m"]
    vectors: Float[Array, "m m"]
    norm: Float[Array, ""]  # of the vector it started from
    next_norm: Float[Array, ""]  # of what the next basis vector would be before it is normalized

    def exponential(self, s: Array) -> Complex[Array, " m"]:
        """e^{−i s T} e₁ times the norm."""
        angle = -s * self.values
        first = self.vectors[0] * self.norm
        phases = jax.lax.complex(first * jnp.cos(angle), first * jnp.sin(angle))
        real, imag = matmul(self.vectors, phases.real), matmul(self.vectors, phases.imag)
        return jax.lax.complex(real, imag)

    def combine(self, coefficients: Array) -> Array:
        """Σ cⱼ vⱼ."""
        return tensordot(coefficients.astype(self.basis.dtype), self.basis, 1)


def krylov_space(apply: Callable, dimension: int, operator: PyTree, x: Array) -> _KrylovSpace:
    """The space of x, Hx, …, H^{m−1}x, whose vectors are made orthogonal to all before, twice."""
    real = x.real.dtype
    norm = jnp.sqrt(jnp.sum(x.real**2 + x.imag**2))
    basis = jnp.zeros((dimension, *x.shape), x.dtype)
    basis = basis.at[0].set(scale_array(x, safe_divide(jnp.ones((), real), norm)))

    def extend(j: Array, carried: tuple) -> tuple:
        basis, diagonal, off = carried
        w = apply(operator, basis[j])
        diagonal = diagonal.at[j].set(vdot(basis[j], w).real)
        size = _norm(w)
        for _ in range(2):
            overlaps = tensordot(jnp.conj(basis), w, w.ndim)
            w = w - tensordot(overlaps, basis, 1)
        beta = _norm(w)
        # What is left of an invariant space is rounding: the space is closed.
        is_closed = beta <= 100 * jnp.finfo(real).eps * size
        beta = jnp.where(is_closed, 0, beta)
        following = scale_array(w, safe_divide(jnp.ones((), real), beta))
        basis = basis.at[j + 1].set(following, mode="drop")
        return basis, diagonal, off.at[j].set(beta)

    zeros = jnp.zeros(dimension, real)
    basis, diagonal, off = jax.lax.fori_loop(0, dimension, extend, (basis, zeros, zeros))
    sides = jnp.diag(off[:-1], 1) + jnp.diag(off[:-1], -1)
    values, vectors = jnp.linalg.eigh(jnp.diag(diagonal) + sides)
    return _KrylovSpace(basis, values, vectors, norm, off[-1])


def _norm(x: Array) -> Float[Array, ""]:
    return jnp.sqrt(jnp.sum(x.real**2 + x.imag**2))


class _Rule:
    """A map of the derivative's rule; equal to another of the same operator's kind and dimension."""

    def __init__(self, apply: Callable, dimension: int):
        self.apply, self.dimension = apply, dimension

    def __eq__(self, other: object) -> bool:
        is_alike = type(self) is type(other)
        return is_alike and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.apply, self.dimension))

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Gauss's points in 0 … 1 and their weights: as many as resolve what the space resolves."""
        points, weights = np.polynomial.legendre.leggauss(self.dimension)
        return 0.5 * (points + 1), 0.5 * weights


class _Forward(_Rule):
    def __call__(self, residuals: tuple, tangents: tuple) -> Array:
        """e^A dx − i s ∫ e^{(1−u)A} dH e^{uA} x du − i ds H e^A x."""
        (operator, x, s), (d_operator, dx, ds) = residuals, tangents
        space = krylov_space(self.apply, self.dimension, operator, x)

        def evolve(y: Array, length: Array) -> Array:
            inner = krylov_space(self.apply, self.dimension, operator, y)
            return inner.combine(inner.exponential(length))

        def add(total: Array, node: tuple) -> tuple[Array, None]:
            u, weight = node
            y = space.combine(space.exponential(u * s))
            dh_y = jax.jvp(lambda o: self.apply(o, y), (operator,), (d_operator,))[1]
            part = evolve(dh_y, (1 - u) * s)
            return total + scale_array(jax.lax.complex(part.imag, -part.real), weight * s), None

        end = space.combine(space.exponential(s))
        turned = self.apply(operator, end)
        start = evolve(dx, s) + scale_array(jax.lax.complex(turned.imag, -turned.real), ds)
        points, weights = (jnp.asarray(a, s.dtype) for a in self.nodes())
        return jax.lax.scan(add, start, (points, weights))[0]


class _Transpose(_Rule):
    def __call__(self, residuals: tuple, cotangent: Array) -> tuple:
        """The same, transposed: λ is carried back by Aᵀ = −i s H*, which is e^{−isH} between two
        conjugations.
        """
        operator, x, s = residuals
        # e^{−isHᵀ} λ = (e^{+isH} λ*)*, since Hᵀ = H*. Both spaces grow in one loop.
        starts = jnp.stack([x, jnp.conj(cotangent)])
        both = jax.vmap(lambda y: krylov_space(self.apply, self.dimension, operator, y))(starts)
        space, back = (jax.tree.map(lambda a, k=k: a[k], both) for k in (0, 1))

        # −i s ∫ λ(1−u)ᵀ dH ψ(u) du, with ψ = Σ pⱼ vⱼ and λ* = Σ qₖ wₖ, is Σⱼ (Σₖ cₖⱼ wₖ*)ᵀ dH vⱼ.
        points, weights = (jnp.asarray(a, s.dtype) for a in self.nodes())
        p = jax.vmap(space.exponential)(points * s)
        q = jax.vmap(back.exponential)(-(1 - points) * s)
        c = times_i(tensordot(jnp.conj(q), scale_array(p, -s * weights[:, None]), (0, 0)))
        pairs = tensordot(c.astype(x.dtype), jnp.conj(back.basis), (0, 0))
        d_operator = self._pull_back(operator, space.basis, pairs)

        end = space.combine(space.exponential(s))
        turned = self.apply(operator, end)
        ds = jnp.sum(cotangent * jax.lax.complex(turned.imag, -turned.real)).real
        return d_operator, jnp.conj(back.combine(back.exponential(-s))), ds

    def _pull_back(self, operator: PyTree, basis: Array, cotangents: Array) -> PyTree:
        """Σⱼ of the cotangents of `operator` in H vⱼ: of several vectors at once, if they are small."""
        m = self.dimension
        fitting = max(1, _AT_ONCE // basis[0].size)
        num_rows = next(k for k in range(min(fitting, m), 0, -1) if m % k == 0)

        def add(total: PyTree, rows: tuple) -> tuple[PyTree, None]:
            ys, of_ys = rows
            _, pullback = jax.vjp(lambda o: jax.vmap(lambda y: self.apply(o, y))(ys), operator)
            return jax.tree.map(jnp.add, total, pullback(of_ys)[0]), None

        rows = [a.reshape(m // num_rows, num_rows, *a.shape[1:]) for a in (basis, cotangents)]
        zeros = jax.tree.map(jnp.zeros_like, operator)
        return jax.lax.scan(add, zeros, tuple(rows))[0]
