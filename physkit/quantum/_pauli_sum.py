"""Hamiltonians of qubits as sums of Pauli strings."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PyTree

from physkit.core import (
    ParameterError,
    ShapeError,
    as_parameter,
    param,
    scale_array,
    static,
    times_i,
)

from ._contraction import check_sites, merge_other_axes
from ._local_parts import LocalPart
from ._operators import AbstractOperator, LocalOperator
from ._register import Register

Operator = TypeVar("Operator", bound=AbstractOperator)
_SPARSE = re.compile(r"([XYZ])(\d+)")


class PauliSum(AbstractOperator):
    """Σ cₖ Pₖ with products Pₖ of Pauli matrices: Hermitian, and applied without any matrix.

        PauliSum({"ZZI": 1.0, "IZZ": 1.0, "XII": 0.5})      # letter k acts on qubit k
        PauliSum({"Z0 Z1": 1.0, "X5": 0.5}, qubits=6)

    **Arguments:**

    - `terms`: real coefficients by string; of as many letters as there are qubits, or of letters with the
      numbers of their qubits. The identity is "III", or "" with `qubits`.
    - `qubits`: their number, where the strings do not say it.

    The coefficients are one array of parameters, `[terms]`, in the order given.

    **Errors:** `ParameterError` for a string that is none; `ShapeError` on subsystems that are no qubits, or on
    a state with more qubits than letters.
    """

    coefficients: Float[Array, " terms"] = param()
    strings: tuple[str, ...] = static()

    def __init__(self, terms: Mapping[str, ArrayLike], qubits: int | None = None):
        if not terms:
            raise ParameterError("a PauliSum has at least one term, e.g. {'ZZ': 1.0}")
        self.strings = tuple(_full_string(s, qubits) for s in terms)
        if len({len(s) for s in self.strings}) > 1:
            raise ParameterError(f"Pauli strings of one length; got {list(self.strings)}")
        if len(set(self.strings)) < len(self.strings):
            raise ParameterError(f"a Pauli string occurs twice among {list(self.strings)}")
        values = list(terms.values())
        if any(np.iscomplexobj(v) for v in values):
            raise ParameterError("coefficients of a PauliSum are real: it is Hermitian")
        is_plain = all(isinstance(v, int | float | np.number) for v in values)
        array = np.array(values, float) if is_plain else jnp.stack([jnp.asarray(v) for v in values])
        self.coefficients = as_parameter(array)

    @property
    def num_qubits(self) -> int:
        """How many qubits the strings are for."""
        return len(self.strings[0])

    def apply(self, x: Array, t: ArrayLike = 0.0) -> Array:
        return self.apply_over(Register(x.shape), x, t)

    def apply_over(self, register: Register, x: Array, t: ArrayLike = 0.0) -> Array:
        del t
        if register.dims[: self.num_qubits] != (2,) * self.num_qubits:
            raise ShapeError(
                f"Pauli strings of {self.num_qubits} qubits on subsystems of dimensions "
                f"{list(register.dims)}"
            )
        coefficients = self.coefficients.astype(x.real.dtype)
        total = jnp.zeros_like(x)
        # Strings that flip the same qubits share one flip: all that is diagonal, say.
        for (flipped, is_imaginary), members in _group_strings(self.strings).items():
            signs = sum(coefficients[k] * _signs(self.strings[k], x, register) for k in members)
            turned = _flip_and_turn(scale_array(x, signs), flipped, is_imaginary, register)
            total = total + turned
        return total

    def local_parts(self, t: ArrayLike = 0.0) -> list[LocalPart]:
        del t
        parts = []
        for k, string in enumerate(self.strings):
            # The identity acts on some subsystem, too.
            sites = tuple(q for q, letter in enumerate(string) if letter != "I") or (0,)
            matrix = pauli_matrix("".join(string[q] for q in sites))
            parts.append(LocalPart(sites, matrix, (self.coefficients[k],)))
        return parts

    def adjoint(self) -> "PauliSum":
        return self


def require_subsystems(operators: PyTree, dims: Sequence[int]) -> None:
    """**Errors:** `ShapeError` for strings with fewer or more letters than the state has qubits, and for local
    operators on subsystems that it does not have.

    Applied to numbers alone, fewer letters are those of the leading qubits, and more reach the columns of ρ, as
    subsystems beyond the last do.
    """
    for local in _parts(operators, LocalOperator):
        check_sites(local.sites, dims)
    for part in _parts(operators, PauliSum):
        n = part.num_qubits
        if n > len(dims) or 2 in dims[n:]:
            raise ShapeError(
                f"Pauli strings of {n} qubits, such as {part.strings[0]!r}, on subsystems of dimensions "
                f"{list(dims)}: write I for a qubit that is left alone, or PauliSum({{'Z0': …}}, qubits=…)"
            )


def has_pauli_strings(operator: AbstractOperator) -> bool:
    """Whether some of the operator is a `PauliSum`."""
    return bool(_parts(operator, PauliSum))


def _parts(operators: PyTree, kind: type[Operator]) -> list[Operator]:
    found = jax.tree.leaves(operators, is_leaf=lambda x: isinstance(x, kind))
    return [part for part in found if isinstance(part, kind)]


def apply_pauli(string: str, x: Array) -> Array:
    """A product of Pauli matrices on the leading axes of `x`, letter k on axis k."""
    ((flipped, is_imaginary),) = _group_strings([string])
    here = Register(x.shape)
    return _flip_and_turn(scale_array(x, _signs(string, x, here)), flipped, is_imaginary, here)


def _flip_and_turn(
    x: Array, flipped: Sequence[int], is_imaginary: bool, register: Register
) -> Array:
    """`x` with the two entries of some axes exchanged; times i if `is_imaginary`."""
    for k in flipped:
        if k < register.num_cut:
            x = register.flip(x, k)
    flipped = [k for k in flipped if k >= register.num_cut]
    if flipped:
        block, places = merge_other_axes(x, flipped)
        x = jnp.flip(block, places).reshape(x.shape)
    return times_i(x) if is_imaginary else x


def _group_strings(strings: Sequence[str]) -> dict[tuple[tuple[int, ...], bool], list[int]]:
    """Numbers of strings by the qubits that they flip, and whether their numbers are imaginary."""
    groups: dict[tuple[tuple[int, ...], bool], list[int]] = {}
    for k, string in enumerate(strings):
        flipped = tuple(q for q, letter in enumerate(string) if letter in "XY")
        groups.setdefault((flipped, string.count("Y") % 2 == 1), []).append(k)
    return groups


def _signs(string: str, x: Array, register: Register) -> Array:
    """(−1) to the number of ones that Z and Y see, ready to broadcast to `x`; Y = i X Z, of two i's −1."""
    sign = -1 if string.count("Y") % 4 in (2, 3) else 1
    signs = jnp.full((1,) * x.ndim, sign, x.real.dtype)
    for k, letter in enumerate(string):
        if letter in "ZY":
            signs = signs * register.signs(k, x.real.dtype)
    return signs


def _full_string(string: str, qubits: int | None) -> str:
    """`string` with a letter for each qubit.

    **Errors:** `ParameterError` for what is no Pauli string.
    """
    compact = string.replace(" ", "")
    if compact and set(compact) <= set("IXYZ"):
        if qubits is not None and len(compact) != qubits:
            raise ParameterError(
                f"the Pauli string {string!r} has not the {qubits} letters of qubits="
            )
        return compact
    found = _SPARSE.findall(compact)
    sites = [int(k) for _, k in found]
    is_string = "".join(letter + k for letter, k in found) == compact
    if not is_string or len(set(sites)) < len(sites):
        raise ParameterError(
            f"a Pauli string is letters I, X, Y, Z, one a qubit ('ZZI'), or letters with numbers ('Z0 X3'); "
            f"got {string!r}"
        )
    if qubits is None:
        raise ParameterError(
            f"the Pauli string {string!r} does not say how many qubits: give qubits="
        )
    if sites and max(sites) >= qubits:
        raise ParameterError(f"the Pauli string {string!r} has a qubit beyond {qubits - 1}")
    letters = ["I"] * qubits
    for letter, k in found:
        letters[int(k)] = letter
    return "".join(letters)


def pauli_matrix(string: str) -> np.ndarray:
    """A product of Pauli matrices as a matrix `[2ⁿ 2ⁿ]`."""
    single = {
        "I": np.eye(2),
        "X": np.array([[0, 1], [1, 0]]),
        "Y": np.array([[0, -1j], [1j, 0]]),
        "Z": np.diag([1, -1]),
    }
    matrix = np.ones((1, 1))
    for letter in string:
        matrix = np.kron(matrix, single[letter])
    return matrix
