"""H₂ from its integrals: published coefficients, energies, and the derivative by the distance."""

import jax
import numpy as np

from physkit.systems import hydrogen_molecule

# Seeley, Richard & Love 2012, table 2, hartree at 1.401 bohr.
PUBLISHED = {
    "IIII": -0.81261, "ZIII": 0.171201, "IZII": 0.171201, "IIZI": -0.2227965, "IIIZ": -0.2227965,
    "ZZII": 0.16862325, "ZIZI": 0.12054625, "IZIZ": 0.12054625, "ZIIZ": 0.165868, "IZZI": 0.165868,
    "IIZZ": 0.17434925, "YYXX": -0.04532175, "XXYY": -0.04532175, "XYYX": 0.04532175,
    "YXXY": 0.04532175,
}  # fmt: skip


def test_coefficients_are_those_published():
    hamiltonian = hydrogen_molecule().hamiltonian
    found = dict(zip(hamiltonian.strings, np.asarray(hamiltonian.coefficients), strict=True))
    assert found.keys() == PUBLISHED.keys()
    np.testing.assert_allclose(
        [found[s] for s in PUBLISHED], list(PUBLISHED.values()), rtol=0, atol=2e-6
    )


def test_the_bond_breaks_into_two_atoms():
    """Hartree–Fock at 1.4 bohr as Szabo and Ostlund have it; far apart two atoms of −0.466582 hartree."""

    @jax.jit
    @jax.vmap
    def energies(distance):
        molecule = hydrogen_molecule(distance)
        exact = molecule.exact_energy()
        return molecule.occupied.expectation(molecule.hamiltonian) + molecule.repulsion, exact

    hartree_fock, exact = energies(np.array([1.4, 30.0, 1.599, 1.601]))
    np.testing.assert_allclose(hartree_fock[0], -1.1167, atol=1e-4)
    np.testing.assert_allclose(exact[1], 2 * -0.4665819, atol=1e-6)
    slope = jax.jit(jax.grad(lambda r: hydrogen_molecule(r).exact_energy()))(1.6)
    np.testing.assert_allclose(slope, (exact[3] - exact[2]) / 0.002, rtol=1e-5)
