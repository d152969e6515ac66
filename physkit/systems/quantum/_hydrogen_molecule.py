"""The hydrogen molecule on four qubits."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from physkit.core import Module, einsum, param
from physkit.quantum import PauliSum, StateVector

from .._arguments import explain_system

# STO-3G of hydrogen (ζ = 1.24): exponents in bohr⁻², and the parts of normalized Gaussians.
_EXPONENTS = (3.42525091, 0.62391373, 0.16885540)
_PARTS = (0.15432897, 0.53532814, 0.44463454)
_SMALL = 1e-3  # below which F₀ is its series, to 1e-14


class Hydrogen(Module):
    """What `hydrogen_molecule` returns.

    - `hamiltonian`: of the electrons, hartree. `occupied`: the Hartree–Fock state |1100⟩.
    - `repulsion`: energy of the nuclei, hartree, which adds to that of the electrons.
    """

    hamiltonian: PauliSum
    occupied: StateVector
    repulsion: Float[Array, ""] = param()

    def exact_energy(self) -> Float[Array, ""]:
        """The lowest eigenvalue of the whole Hamiltonian, with the nuclei: −1.1373 hartree at 1.401 bohr."""
        matrix = self.hamiltonian.matrix(self.occupied.dims)
        return jnp.linalg.eigvalsh(matrix)[0] + self.repulsion


@explain_system
def hydrogen_molecule(distance: ArrayLike = 1.401) -> Hydrogen:
    """H₂ in the STO-3G basis, by Jordan and Wigner on four qubits: for variational circuits.

    Qubits are the bonding orbital with spin up and down, then the antibonding one. Coefficients of the Pauli
    strings come from integrals over Gaussians, so that energies have derivatives by the distance.

    At 1.401 bohr the exact energy is −1.1373 hartree, that of `occupied` −1.1167; the lowest of all is −1.13731
    at 1.389 bohr. Far apart it goes to that of two atoms in this basis, −0.9332.

    **Arguments:** `distance`: of the nuclei, bohr.

    **Reference:** Szabo & Ostlund, Modern Quantum Chemistry (1989), section 3.5 and appendix A; Seeley, Richard
    & Love, J. Chem. Phys. 137, 224109 (2012), whose coefficients at 1.401 bohr these are.
    """
    R = jnp.asarray(distance, float)
    return Hydrogen(
        PauliSum(_pauli_coefficients(_integrals(R))),
        StateVector.basis((2,) * 4, (1, 1, 0, 0)),
        1 / R,
    )


class _Integrals(NamedTuple):
    """Energies over the bonding orbital g and the antibonding u, hartree."""

    h_g: Array
    h_u: Array
    J_gg: Array
    J_uu: Array
    J_gu: Array
    K_gu: Array


def _pauli_coefficients(e: _Integrals) -> dict[str, Array]:
    """By nₖ = (1 − Zₖ)/2: up and down of g on qubits 0 and 1, of u on 2 and 3."""
    parallel, exchange = (e.J_gu - e.K_gu) / 4, e.K_gu / 4
    gg, uu, gu = e.J_gg / 4, e.J_uu / 4, e.J_gu / 4
    z_g, z_u = -e.h_g / 2 - gg - gu - parallel, -e.h_u / 2 - uu - gu - parallel
    return {
        "IIII": e.h_g + e.h_u + gg + uu + 2 * gu + 2 * parallel,
        "ZIII": z_g, "IZII": z_g, "IIZI": z_u, "IIIZ": z_u,
        "ZZII": gg, "IIZZ": uu, "ZIIZ": gu, "IZZI": gu, "ZIZI": parallel, "IZIZ": parallel,
        "YYXX": -exchange, "XXYY": -exchange, "XYYX": exchange, "YXXY": exchange,
    }  # fmt: skip


@jax.jit  # one program, not one for each operation
def _integrals(R: Float[Array, ""]) -> _Integrals:
    """Over the six Gaussians of both atoms, in pairs `[6, 6]`, whose products are Gaussians again."""
    exponents, parts = np.array(2 * _EXPONENTS), np.array(2 * _PARTS)
    a = jnp.asarray(exponents, R.dtype)
    weight = jnp.asarray(parts * (2 * exponents / math.pi) ** 0.75, R.dtype)
    x = R * jnp.asarray([0, 0, 0, 1, 1, 1], R.dtype)
    p = a[:, None] + a[None]
    reduced, square = a[:, None] * a[None] / p, (x[:, None] - x[None]) ** 2
    center, size = ((a * x)[:, None] + (a * x)[None]) / p, jnp.exp(-reduced * square)

    overlap = (math.pi / p) ** 1.5 * size
    kinetic = reduced * (3 - 2 * reduced * square) * overlap
    near, far = _boys(p * center**2), _boys(p * (center - R) ** 2)
    core = kinetic - 2 * math.pi / p * size * (near + far)
    # Between a pair of one electron and a pair of the other, [6, 6, 6, 6].
    one, other = (lambda y: y[:, :, None, None]), (lambda y: y[None, None])
    product, both = one(p) * other(p), one(p) + other(p)
    distance = (one(center) - other(center)) ** 2
    repulsion = 2 * math.pi**2.5 / (product * jnp.sqrt(both)) * _boys(product / both * distance)
    repulsion = repulsion * one(size) * other(size)

    signs = jnp.asarray([[1, 1, 1, 1, 1, 1], [1, 1, 1, -1, -1, -1]], R.dtype)
    orbitals = weight[None] * signs
    norm = einsum("oi,oj,ij->o", orbitals, orbitals, overlap)
    orbitals = orbitals / jnp.sqrt(norm)[:, None]
    h = einsum("oi,oj,ij->o", orbitals, orbitals, core)
    like = einsum("oi,oj->oij", orbitals, orbitals)
    mixed = orbitals[0][:, None] * orbitals[1][None]
    J = einsum("aij,bkl,ijkl->ab", like, like, repulsion)
    K = einsum("ij,kl,ijkl->", mixed, mixed, repulsion)
    return _Integrals(h[0], h[1], J[0, 0], J[1, 1], J[0, 1], K)


def _boys(x: Array) -> Array:
    """F₀(x) = ½ √(π/x) erf √x: the potential of a Gaussian charge, in its width."""
    is_small = x < _SMALL
    root = jnp.sqrt(jnp.where(is_small, 1.0, x))
    series = 1 - x / 3 + x**2 / 10 - x**3 / 42
    return jnp.where(is_small, series, math.sqrt(math.pi) / 2 * erf(root) / root)
