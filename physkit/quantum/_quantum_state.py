"""What pure and mixed quantum states have in common."""

import abc
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, Int

from physkit.core import (
    AbstractComponent,
    DeviceError,
    Key,
    ParameterError,
    Rate,
    ShapeError,
    as_count,
    as_key,
    replace_fields,
    safe_divide,
    scale_array,
)

from ._contraction import as_whole, check_sites
from ._operators import AbstractOperator

Sites: TypeAlias = Sequence[int] | int | None  # subsystems; None for all
_FEW_OUTCOMES = 2**12  # that a number in single precision tells apart well
_OFF_BY = 1e-3  # from 1: what a state that somebody wrote down by hand may be off by rounding


class AbstractQuantumState(AbstractComponent):
    """The state of n subsystems of dimensions d₀ … d_{n−1}; subsystem 0 is the leading axis."""

    @property
    @abc.abstractmethod
    def dims(self) -> tuple[int, ...]:
        """Dimensions of the subsystems."""

    @property
    @abc.abstractmethod
    def array(self) -> Array:
        """The numbers: `[d₀ …]` of a vector, `[d₀ … d₀ …]` of a density matrix."""

    @abc.abstractmethod
    def with_array(self, array: Array) -> Any:
        """The same kind of state with other numbers, unchecked."""

    @abc.abstractmethod
    def total(self) -> Float[Array, ""]:
        """The total probability, which is 1: ⟨ψ|ψ⟩ or Tr ρ."""

    @abc.abstractmethod
    def expectation(self, operator: AbstractOperator, t: ArrayLike = 0.0) -> Float[Array, ""]:
        """The real part of ⟨operator⟩, at time `t` where the operator is driven."""

    @abc.abstractmethod
    def density(self) -> Any:
        """The state as a `DensityMatrix`."""

    @abc.abstractmethod
    def reduced(self, sites: Sites) -> Any:
        """The `DensityMatrix` of some subsystems, in the order given; the others are traced out."""

    @abc.abstractmethod
    def diagonal(self) -> Float[Array, "..."]:
        """The probability of every basis state, `[d₀ …]`."""

    def marginal(self, kept: tuple[int, ...]) -> Float[Array, "..."]:
        """`diagonal()` summed over all subsystems but `kept`, those in the state's order."""
        others = tuple(k for k in range(len(self.dims)) if k not in kept)
        return jnp.sum(self.diagonal(), axis=others)

    @property
    def is_pure(self) -> bool:
        """Whether it is a state vector."""
        return self.array.ndim == len(self.dims)

    # --- measures -------------------------------------------------------------------------------

    def probabilities(self, sites: Sites = None) -> Float[Array, "..."]:
        """Probabilities of the outcomes of some subsystems (all if left out), an axis for each in order."""
        kept = as_sites(sites, self.dims)
        order = sorted(kept)
        return jnp.transpose(self.marginal(kept), [order.index(k) for k in kept])

    def sample(self, key: Any, shots: int, sites: Sites = None) -> Int[Array, "shots sites"]:
        """Outcomes of measuring some subsystems (all if left out) `shots` times, each on a new copy.

        Column k is subsystem `sites[k]`: written as text, subsystem 0 is the leftmost digit.
        """
        p, shots = self.probabilities(sites), as_count(shots, "shots", ParameterError)
        index = _draw(as_key(key), p.reshape(-1), shots)
        return jnp.stack(jnp.unravel_index(index, p.shape), axis=-1).astype(jnp.int32)

    def purity(self) -> Float[Array, ""]:
        """Tr ρ²: 1 of a pure state, 1/D of the maximally mixed one."""
        if self.is_pure:
            return self.total() ** 2
        return jnp.sum(self.array.real**2 + self.array.imag**2)

    def entropy(self, sites: Sites = None) -> Float[Array, ""]:
        """Von Neumann's entropy −Tr ρ ln ρ of some subsystems, in nats; of all of them if left out.

        Of a part of a pure state it is the entanglement entropy.
        """
        kept = as_sites(sites, self.dims)
        others = tuple(k for k in range(len(self.dims)) if k not in kept)
        # Both parts of a pure state have the same entropy: the smaller matrix will do.
        if self.is_pure and _size(others, self.dims) < _size(kept, self.dims):
            kept = others
        if not kept:
            return jnp.zeros((), self.array.real.dtype)
        return _entropy(self.reduced(kept).matrix())

    def normalized(self) -> Any:
        """The state over its total probability; zeros stay zeros."""
        # By the root for vectors, whose total is quadratic.
        total = self.total()
        scale = jnp.sqrt(total) if self.is_pure else total
        return self.with_array(scale_array(self.array, safe_divide(jnp.ones_like(scale), scale)))

    # --- as a component of a state ----------------------------------------------------------------

    def shift(self, delta: Rate) -> Any:
        delta = delta.array if isinstance(delta, AbstractQuantumState) else jnp.asarray(delta)
        if delta.shape != self.array.shape:
            raise ShapeError(
                f"a rate of shape {list(delta.shape)} for amplitudes {list(self.array.shape)}: a rate has "
                "one number for each"
            )
        return self.with_array(self.array + delta)

    def increment(self) -> Array:
        return self.array

    def shard(self, devices: tuple[int, ...]) -> Any:
        if math.prod(devices) > 1:
            raise DeviceError(
                f"a {type(self).__name__} is not cut over devices: run it on one device, trajectories of state "
                "vectors over several (sweep)"
            )
        return super().shard(devices)


def as_sites(sites: Sites, dims: Sequence[int]) -> tuple[int, ...]:
    """Numbers of subsystems, checked.

    **Errors:** `ShapeError` for one that does not exist, or is named twice.
    """
    if sites is None:
        return tuple(range(len(dims)))
    found = as_whole(sites if isinstance(sites, Sequence | np.ndarray) else (sites,))
    check_sites(found, dims)
    return found


def _size(sites: Sequence[int], dims: Sequence[int]) -> int:
    return math.prod(dims[k] for k in sites)


def as_complex(value: ArrayLike | Sequence, dtype: DTypeLike | None = None) -> Array:
    """`value` as a complex array: of its own precision, or of JAX's default float's."""
    # NumPy's numbers and lists take the default precision, arrays of JAX keep theirs.
    own = value.dtype if isinstance(value, jax.Array) else jnp.result_type(float)
    dtype = own if dtype is None else dtype
    return jnp.asarray(
        value, np.result_type(dtype if jnp.issubdtype(dtype, jnp.inexact) else float, np.complex64)
    )


def check_total(total: complex | None, kind: str, what: str) -> None:
    """**Errors:** `ParameterError` for a total probability that is not 1; a trace hides it (None)."""
    if total is not None and not abs(total - 1) <= _OFF_BY:
        raise ParameterError(
            f"{what} of a {kind} is {total.real:.6g}, not 1: its probabilities would not add up; divide, or "
            f"take {kind}.unnormalized(…).normalized()"
        )


def basis_array(
    dims: int | Sequence[int], levels: int | Sequence[int] | None, dtype: DTypeLike | None
) -> Array:
    """The amplitudes of a basis state, made on the host; one number for `dims` is one subsystem."""
    dims = tuple(np.atleast_1d(dims).tolist())
    levels = (0,) * len(dims) if levels is None else tuple(np.atleast_1d(levels).tolist())
    fits = len(levels) == len(dims) and all(0 <= i < d for i, d in zip(levels, dims, strict=True))
    if not fits or not dims:
        raise ShapeError(
            f"levels {list(levels)} of subsystems of dimensions {list(dims)}: one for each, 0 … d − 1"
        )
    amplitudes = np.zeros(tuple(dims))
    amplitudes[levels] = 1
    return as_complex(amplitudes, dtype)


def replace_array(state: AbstractQuantumState, name: str, array: Array) -> Any:
    """A copy of a state with other numbers, unchecked."""
    return replace_fields(state, {name: array})


@jax.jit
def _entropy(rho: Array) -> Float[Array, ""]:
    p = jnp.linalg.eigvalsh(rho)
    is_some = p > jnp.finfo(p.dtype).eps
    return -jnp.sum(jnp.where(is_some, p * jnp.log(jnp.where(is_some, p, 1)), 0))


def _draw(key: Key, p: Float[Array, " d"], shots: int) -> Int[Array, " shots"]:
    """Which of d outcomes of probabilities `p` comes, `shots` times."""
    if p.size <= _FEW_OUTCOMES:
        cumulative = jnp.cumsum(p)
        uniform = jax.random.uniform(key, (shots,), p.dtype)
        # Rightmost: an outcome of probability 0 has an empty interval, and is never drawn.
        index = jnp.searchsorted(cumulative, uniform * cumulative[-1], side="right")
        return jnp.minimum(index, p.size - 1)
    # A row of outcomes first, then one in it: a number in single precision tells 2²³ outcomes apart.
    columns = 1 << (p.size.bit_length() // 2)
    table = jnp.pad(p, (0, -p.size % columns)).reshape(-1, columns)
    for_row, for_column = jax.random.split(key)
    row = _draw(for_row, jnp.sum(table, axis=1), shots)
    cumulative = jnp.cumsum(table, axis=1)
    drawn = jax.random.uniform(for_column, (shots,), p.dtype) * cumulative[row, -1]
    column = jnp.zeros_like(row)
    for step in (1 << k for k in reversed(range(columns.bit_length() - 1))):
        column = jnp.where(cumulative[row, column + step - 1] <= drawn, column + step, column)
    return jnp.minimum(row * columns + column, p.size - 1)
