"""Noise channels: what an environment does to a few subsystems in one go."""

import abc
from collections.abc import Sequence
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Complex, Float

from physkit.core import (
    Module,
    ParameterError,
    ShapeError,
    as_parameter,
    concrete_value,
    einsum,
    param,
    replace_fields,
    safe_divide,
    scale_array,
    static,
)

from ._contraction import apply_matrix
from ._gates import as_site_tuple
from ._operators import as_elements
from ._pauli_sum import pauli_matrix

_COMPLETE = 1e-6  # by how much Σ K†K of matrices that somebody gives may differ from 1


class AbstractChannel(Module):
    """A completely positive map that keeps the trace, in Kraus's form.

        ρ → Σₖ wₖ Kₖ ρ Kₖ†,   Σₖ wₖ Kₖ†Kₖ = 1

    A channel of your own declares `sites` and says `weights` and `operators`. Probabilities belong into the
    weights: roots of them would have no derivative at 0.
    """

    sites: eqx.AbstractVar[tuple[int, ...]]

    @abc.abstractmethod
    def weights(self) -> Float[Array, " k"]:
        """wₖ ≥ 0."""

    @abc.abstractmethod
    def operators(self) -> Complex[Array, "k D D"]:
        """Kₖ, the first of `sites` most significant."""

    def apply(self, rho: Array) -> Array:
        """The channel on the elements of a density matrix, `[d₀ … d₀ …]`."""
        n = rho.ndim // 2
        # As one matrix on rows and columns together: one pass over ρ.
        axes = (*self.sites, *(n + s for s in self.sites))
        return apply_matrix(self.superoperator(), rho, axes)

    def superoperator(self) -> Complex[Array, "DD DD"]:
        """Σₖ wₖ Kₖ ⊗ Kₖ*: the channel as a matrix on rows and columns together."""
        k = self.operators()
        size = k.shape[-1] ** 2
        matrix = einsum("k,kab,kcd->acbd", self.weights().astype(k.dtype), k, jnp.conj(k))
        return matrix.reshape(size, size)

    def on(self, *sites: int) -> Any:
        """The same channel on other subsystems."""
        return replace_fields(self, {"sites": as_site_tuple(sites)})

    def sample(self, x: Array, key: Array) -> Array:
        """One of the Kraus operators on a state vector, drawn by its probability; normalized."""
        branches = jax.vmap(lambda k: apply_matrix(k, x, self.sites))(self.operators())
        size = branches.real**2 + branches.imag**2
        norms = jnp.sum(size.reshape(size.shape[0], -1), axis=1)
        cumulative = jnp.cumsum(self.weights().astype(norms.dtype) * norms)
        drawn = jax.random.uniform(key, (), norms.dtype) * cumulative[-1]
        chosen = jnp.minimum(jnp.searchsorted(cumulative, drawn, side="right"), len(norms) - 1)
        scale = safe_divide(jnp.ones((), norms.dtype), jnp.sqrt(norms[chosen]))
        return scale_array(branches[chosen], scale)


class ChannelOnAxes(Module):
    """A channel as an operation on axes of a density matrix, those of rows and of columns: as gates are."""

    channel: AbstractChannel
    sites: tuple[int, ...] = static()

    def on(self, *sites: int) -> "ChannelOnAxes":
        """The same channel on other axes."""
        return ChannelOnAxes(self.channel.on(*range(len(sites) // 2)), sites)

    def matrix(self, dims: tuple[int, ...], dtype: DTypeLike) -> Array:
        """The channel as a matrix on those axes together."""
        del dims
        return self.channel.superoperator().astype(dtype)

    def apply(self, x: Array) -> Array:
        return apply_matrix(self.channel.superoperator(), x, self.sites)


class Kraus(AbstractChannel):
    """Any channel, by its Kraus operators as constants of the program.

    **Arguments:**

    - `matrices`: `[k D D]`, D the product of the dimensions of `sites`.
    - `sites`: the subsystems.

    **Errors:** `ParameterError` unless Σ K†K = 1 to 1e-6: the trace would not be kept.
    """

    matrices: tuple[tuple[tuple[complex, ...], ...], ...] = static(repr=False)
    sites: tuple[int, ...] = static()

    def __init__(self, matrices: ArrayLike | Sequence, *sites: int):
        self.matrices = tuple(as_elements(m) for m in matrices)  # pyright: ignore
        self.sites = as_site_tuple(sites)
        if len({len(m) for m in self.matrices}) != 1:
            raise ShapeError(
                f"Kraus operators are matrices of one size, [k D D]; got {[len(m) for m in self.matrices]}"
            )
        k = np.array(self.matrices)
        total = np.einsum("kba,kbc->ac", k.conj(), k)
        error = float(np.max(np.abs(total - np.eye(len(total)))))
        if not error <= _COMPLETE:
            raise ParameterError(
                f"Kraus operators are complete, Σ K†K = 1; of these it differs from 1 by {error:.2g}"
            )

    def weights(self) -> Float[Array, " k"]:
        return jnp.ones(len(self.matrices))

    def operators(self) -> Complex[Array, "k D D"]:
        return jnp.array(self.matrices)


class PauliChannel(AbstractChannel):
    """Pauli errors with given probabilities: bit flips, phase flips, both.

        ρ → (1 − Σ p) ρ + Σ pₖ Pₖ ρ Pₖ

    **Arguments:**

    - `errors`: probabilities by string of letters, one for each of `sites`: {"X": 0.01} is a bit flip.
    - `sites`: the qubits.

    **Errors:** `ParameterError` for probabilities that are negative or sum to more than 1.
    """

    probabilities: Float[Array, " k"] = param()
    strings: tuple[str, ...] = static()
    sites: tuple[int, ...] = static()

    def __init__(self, errors: dict[str, ArrayLike], *sites: int):
        self.sites, self.strings = as_site_tuple(sites), tuple(errors)
        for s in self.strings:
            if len(s) != len(sites) or set(s) - set("IXYZ") or set(s) == {"I"}:
                raise ParameterError(
                    f"an error is a letter I, X, Y, Z a qubit, not all I; got {s!r}"
                )
        values = list(errors.values())
        is_plain = all(isinstance(v, int | float | np.number) for v in values)
        self.probabilities = as_parameter(np.array(values) if is_plain else jnp.stack(values))
        numbers = concrete_value(self.probabilities)
        if numbers is not None and not (np.all(numbers >= 0) and np.sum(numbers) <= 1 + 1e-6):
            raise ParameterError(f"probabilities are 0 … 1 and sum to 1 at most; got {numbers}")

    def weights(self) -> Float[Array, " k"]:
        p = self.probabilities
        return jnp.concatenate([1 - jnp.sum(p, keepdims=True), p])

    def operators(self) -> Complex[Array, "k D D"]:
        identity = "I" * len(self.sites)
        return jnp.array([pauli_matrix(s) for s in (identity, *self.strings)], complex)


class Depolarizing(AbstractChannel):
    """With probability p some qubits are replaced by the maximally mixed state.

        ρ → (1 − p) ρ + p 1/D ⊗ Tr_sites ρ

    **Arguments:** `probability`: p, which may be up to D²/(D² − 1). `sites`: the qubits.
    """

    probability: Float[Array, ""] = param()
    sites: tuple[int, ...] = static()

    def __init__(self, probability: ArrayLike, *sites: int):
        self.probability, self.sites = as_parameter(probability), as_site_tuple(sites)
        size = 4 ** len(sites)
        _check_probability(self.probability, "Depolarizing", size / (size - 1))

    def weights(self) -> Float[Array, " k"]:
        size = 4 ** len(self.sites)
        # All Pauli strings alike make the mixed state; the identity is one of them.
        return jnp.full(size, self.probability / size).at[0].add(1 - self.probability)

    def operators(self) -> Complex[Array, "k D D"]:
        strings = map("".join, product("IXYZ", repeat=len(self.sites)))
        return jnp.array([pauli_matrix(s) for s in strings], complex)


class AmplitudeDamping(AbstractChannel):
    """|1⟩ of a qubit decays to |0⟩ with probability γ: over a time t, γ = 1 − e^{−t/T₁}.

    **Arguments:** `probability`: γ. `site`: the qubit.
    """

    probability: Float[Array, ""] = param()
    sites: tuple[int, ...] = static()

    def __init__(self, probability: ArrayLike, site: int):
        self.probability, self.sites = as_parameter(probability), as_site_tuple((site,))
        _check_probability(self.probability, "AmplitudeDamping", 1.0)

    def weights(self) -> Float[Array, " k"]:
        return jnp.stack([jnp.ones_like(self.probability), self.probability])

    def operators(self) -> Complex[Array, "k D D"]:
        return _stay_and_leave(jnp.sqrt(1 - self.probability), [[0, 1], [0, 0]])


class PhaseDamping(AbstractChannel):
    """The environment learns with probability λ that a qubit is in |1⟩: coherences shrink by √(1 − λ).

    Over a time t of pure dephasing, √(1 − λ) = e^{−t/T_φ}.

    **Arguments:** `probability`: λ. `site`: the qubit.
    """

    probability: Float[Array, ""] = param()
    sites: tuple[int, ...] = static()

    def __init__(self, probability: ArrayLike, site: int):
        self.probability, self.sites = as_parameter(probability), as_site_tuple((site,))
        _check_probability(self.probability, "PhaseDamping", 1.0)

    def weights(self) -> Float[Array, " k"]:
        return jnp.stack([jnp.ones_like(self.probability), self.probability])

    def operators(self) -> Complex[Array, "k D D"]:
        return _stay_and_leave(jnp.sqrt(1 - self.probability), [[0, 0], [0, 1]])


class Reset(AbstractChannel):
    """Puts a subsystem into level 0, whatever it was in.

    **Arguments:** `site`: the subsystem. `dimension`: of it.
    """

    sites: tuple[int, ...] = static()
    dimension: int = static(default=2)

    def __init__(self, site: int, dimension: int = 2):
        self.sites, self.dimension = as_site_tuple((site,)), dimension
        if dimension < 2:
            raise ShapeError(f"a subsystem has two levels or more; got dimension={dimension}")

    def weights(self) -> Float[Array, " k"]:
        return jnp.ones(self.dimension)

    def operators(self) -> Complex[Array, "k D D"]:
        k = np.zeros((self.dimension,) * 3, complex)
        k[np.arange(self.dimension), 0, np.arange(self.dimension)] = 1
        return jnp.array(k)


def BitFlip(probability: ArrayLike, site: int) -> PauliChannel:
    """X with probability p."""
    return PauliChannel({"X": probability}, site)


def PhaseFlip(probability: ArrayLike, site: int) -> PauliChannel:
    """Z with probability p."""
    return PauliChannel({"Z": probability}, site)


def _stay_and_leave(stay: Array, leave: list) -> Complex[Array, "k D D"]:
    """diag(1, `stay`), and what happens else."""
    first = jnp.diag(jnp.stack([jnp.ones_like(stay), stay]))
    both = jnp.stack([first, jnp.array(leave, first.dtype)])
    return jax.lax.complex(both, jnp.zeros_like(both))


def _check_probability(p: Array, what: str, most: float) -> None:
    number = concrete_value(p)
    if number is not None and not 0 <= float(number) <= most * (1 + 1e-6):
        raise ParameterError(f"{what}: a probability is 0 … {most:.6g}; got {float(number):.6g}")
