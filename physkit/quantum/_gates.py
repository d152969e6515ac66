"""Gates: unitary operations on a few subsystems, whose angles are parameters."""

import abc
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from physkit.core import (
    Module,
    ParameterError,
    ShapeError,
    as_parameter,
    param,
    replace_fields,
    static,
)

from ._contraction import apply_matrix, as_whole, check_sites
from ._operators import as_elements
from ._pauli_sum import apply_pauli

_UNITARY = 1e-6  # by how much U†U of a matrix that somebody gives may differ from 1


class AbstractGate(Module):
    """A unitary operation on the subsystems `sites`.

    Write `apply`, `inverse` and `conjugate` for one of your own: circuits are differentiated by running them
    backwards.
    """

    sites: eqx.AbstractVar[tuple[int, ...]]

    @abc.abstractmethod
    def apply(self, x: Array) -> Array:
        """The gate on the leading axes of `x`, one for each subsystem; others are carried along."""

    @abc.abstractmethod
    def inverse(self) -> Any:
        """The gate that undoes this one."""

    @abc.abstractmethod
    def conjugate(self) -> Any:
        """The gate with the complex conjugate matrix: what acts on the columns of a density matrix."""

    def on(self, *sites: int) -> Any:
        """The same gate on other subsystems."""
        return replace_fields(self, {"sites": as_site_tuple(sites)})

    def matrix(self, dims: tuple[int, ...], dtype: DTypeLike | None = None) -> Array:
        """The gate as `[D D]` on subsystems of dimensions `dims`, one for each of its sites."""
        size = math.prod(dims)
        dtype = np.result_type(jnp.result_type(float), np.complex64) if dtype is None else dtype
        identity = jnp.eye(size, dtype=dtype).reshape(*dims, size)
        return self.on(*range(len(dims))).apply(identity).reshape(size, size)

    def controlled(self, *controls: int) -> "Controlled":
        """This gate where the subsystems `controls` are all in level 1, and nothing elsewhere."""
        return Controlled(self, *controls)


class Unitary(AbstractGate):
    """Any unitary matrix on a few subsystems, as a constant of the program.

    **Arguments:**

    - `matrix`: `[D D]`, D the product of the dimensions of `sites`, the first most significant.
    - `sites`: the subsystems.
    - `name`: by which it is shown, and written to OpenQASM where that has it.

    **Errors:** `ParameterError` unless U†U = 1 to 1e-6.
    """

    elements: tuple[tuple[complex, ...], ...] = static(repr=False)
    sites: tuple[int, ...] = static()
    name: str = static(default="unitary")

    def __init__(self, matrix: ArrayLike | Sequence, *sites: int, name: str = "unitary"):
        self.elements, self.sites, self.name = as_elements(matrix), as_site_tuple(sites), name
        u = np.array(self.elements)
        error = float(np.max(np.abs(u.conj().T @ u - np.eye(len(u)))))
        if not error <= _UNITARY:
            raise ParameterError(
                f"the matrix of a gate is unitary; U†U of this one differs from 1 by {error:.2g}. A channel "
                "is Kraus(…)"
            )

    def apply(self, x: Array) -> Array:
        return apply_matrix(np.array(self.elements), x, self.sites)

    def inverse(self) -> "Unitary":
        name = {"s": "sdg", "sdg": "s", "t": "tdg", "tdg": "t"}.get(self.name)
        matrix = np.array(self.elements).conj().T
        if name is None:
            is_own_inverse = np.array_equal(matrix, np.array(self.elements))
            name = self.name if is_own_inverse else "unitary"
        return Unitary(matrix, *self.sites, name=name)

    def conjugate(self) -> "Unitary":
        matrix = np.array(self.elements).conj()
        is_real = np.array_equal(matrix, np.array(self.elements))
        return Unitary(matrix, *self.sites, name=self.name if is_real else "unitary")


class PauliRotation(AbstractGate):
    """exp(−i θ/2 P) for a product P of Pauli matrices on some qubits: RX, RZ, RXX and their like.

    **Arguments:**

    - `angle`: θ, radians.
    - `paulis`: a letter X, Y or Z for each of `sites`.
    - `sites`: the qubits.
    """

    angle: Float[Array, ""] = param()
    paulis: str = static()
    sites: tuple[int, ...] = static()

    def __init__(self, angle: ArrayLike, paulis: str, *sites: int):
        self.angle, self.paulis, self.sites = as_parameter(angle), paulis, as_site_tuple(sites)
        if not paulis or set(paulis) - set("XYZ") or len(paulis) != len(sites):
            raise ParameterError(
                f"a rotation has a letter X, Y or Z for each qubit; got {paulis!r} for {list(sites)}"
            )

    def apply(self, x: Array) -> Array:
        letters = ["I"] * (max(self.sites) + 1)
        for letter, site in zip(self.paulis, self.sites, strict=True):
            letters[site] = letter
            if x.shape[site] != 2:
                raise ShapeError(
                    f"a Pauli rotation on subsystem {site} of dimension {x.shape[site]}: it takes qubits"
                )
        half = 0.5 * self.angle.astype(x.real.dtype)
        y = apply_pauli("".join(letters), x)
        # cos x − i sin y, by the parts of x and y.
        cos, sin = jnp.cos(half), jnp.sin(half)
        return jax.lax.complex(x.real * cos + y.imag * sin, x.imag * cos - y.real * sin)

    def inverse(self) -> "PauliRotation":
        return PauliRotation(-self.angle, self.paulis, *self.sites)

    def conjugate(self) -> "PauliRotation":
        # P* = P but for a sign for each Y.
        sign = -1 if self.paulis.count("Y") % 2 == 0 else 1
        return PauliRotation(sign * self.angle, self.paulis, *self.sites)


class Phase(AbstractGate):
    """diag(1, e^{iφ}): P(φ) of OpenQASM, a rotation about z that leaves |0⟩ alone.

    **Arguments:** `angle`: φ, radians. `site`: the subsystem, whose level 1 is turned, of any dimension.
    """

    angle: Float[Array, ""] = param()
    sites: tuple[int, ...] = static()

    def __init__(self, angle: ArrayLike, site: int):
        self.angle, self.sites = as_parameter(angle), as_site_tuple((site,))

    def apply(self, x: Array) -> Array:
        angle = self.angle.astype(x.real.dtype)
        turn = jax.lax.complex(jnp.cos(angle), jnp.sin(angle))
        (site,) = self.sites
        shape = [1] * x.ndim
        shape[site] = x.shape[site]
        is_one = (jnp.arange(x.shape[site]) == 1).reshape(shape)
        return jnp.where(is_one, x * turn.astype(x.dtype), x)

    def inverse(self) -> "Phase":
        return Phase(-self.angle, *self.sites)

    def conjugate(self) -> "Phase":
        return self.inverse()


class EulerRotation(AbstractGate):
    """U(θ, φ, λ) of OpenQASM 3: any gate of one qubit.

        U = [[cos θ/2, −e^{iλ} sin θ/2], [e^{iφ} sin θ/2, e^{i(φ+λ)} cos θ/2]]

    **Arguments:** `theta`, `phi`, `lam`: radians. `site`: the qubit.
    """

    theta: Float[Array, ""] = param()
    phi: Float[Array, ""] = param()
    lam: Float[Array, ""] = param()
    sites: tuple[int, ...] = static()

    def __init__(self, theta: ArrayLike, phi: ArrayLike, lam: ArrayLike, site: int):
        self.theta, self.phi, self.lam = map(as_parameter, (theta, phi, lam))
        self.sites = as_site_tuple((site,))

    def _elements(self) -> Array:
        c, s = jnp.cos(0.5 * self.theta), jnp.sin(0.5 * self.theta)

        def turned(size: Array, angle: Array) -> Array:
            return jax.lax.complex(size * jnp.cos(angle), size * jnp.sin(angle))

        zero = jnp.zeros_like(c)
        first = [turned(c, zero), turned(-s, self.lam)]
        second = [turned(s, self.phi), turned(c, self.phi + self.lam)]
        return jnp.stack([jnp.stack(first), jnp.stack(second)])

    def apply(self, x: Array) -> Array:
        return apply_matrix(self._elements(), x, self.sites)

    def inverse(self) -> "EulerRotation":
        return EulerRotation(-self.theta, -self.lam, -self.phi, *self.sites)

    def conjugate(self) -> "EulerRotation":
        return EulerRotation(self.theta, -self.phi, -self.lam, *self.sites)


class Controlled(AbstractGate):
    """A gate that acts where the controlling subsystems are all in level 1.

    **Arguments:** `gate`: what acts. `controls`: subsystems, none of them one of the gate's.
    """

    gate: AbstractGate
    controls: tuple[int, ...] = static()

    def __init__(self, gate: AbstractGate, *controls: int):
        self.gate, self.controls = gate, as_site_tuple(controls)
        as_site_tuple((*controls, *gate.sites))

    @property
    def sites(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Controls first, then what the gate acts on."""
        return (*self.controls, *self.gate.sites)

    def on(self, *sites: int) -> "Controlled":
        k = len(self.controls)
        return Controlled(self.gate.on(*sites[k:]), *sites[:k])

    def apply(self, x: Array) -> Array:
        return _apply_where_one(self.gate, self.controls, x)

    def inverse(self) -> "Controlled":
        return Controlled(self.gate.inverse(), *self.controls)

    def conjugate(self) -> "Controlled":
        return Controlled(self.gate.conjugate(), *self.controls)


def _apply_where_one(gate: AbstractGate, controls: tuple[int, ...], x: Array) -> Array:
    """`gate` where all `controls` are in level 1: that part keeps its axes, of length one."""
    if not controls:
        return gate.apply(x)
    axis, *others = controls
    below, rest = jnp.split(x, [1], axis)
    one, above = jnp.split(rest, [1], axis)
    one = _apply_where_one(gate, tuple(others), one)
    return jnp.concatenate([below, one, above], axis)


def as_site_tuple(sites: tuple[int, ...]) -> tuple[int, ...]:
    """Subsystems as whole numbers.

    **Errors:** `ShapeError` for none, a negative one, one named twice, or what is no whole number.
    """
    found = as_whole(sites)
    if not found:
        raise ShapeError("a gate acts on subsystems: give their numbers, e.g. X(0)")
    if min(found) < 0:
        raise ShapeError(f"subsystems are numbered from 0; got {list(sites)}")
    check_sites(found, (2,) * (max(found) + 1))
    return found
