"""Fidelity: of states that are pure, too, it has a derivative."""

import jax
import numpy as np

import physkit as pk


def test_the_fidelity_of_pure_states_has_a_derivative():
    def rotated(angle):
        return pk.quantum.Circuit(pk.quantum.RY(angle, 0))(pk.quantum.DensityMatrix.basis((2,)))

    fidelity = lambda a: pk.quantum.fidelity(rotated(a), rotated(0.3))
    found, slope = jax.value_and_grad(fidelity)(0.5)
    np.testing.assert_allclose(found, np.cos(0.1) ** 2, rtol=1e-6)
    np.testing.assert_allclose(slope, -0.5 * np.sin(0.2), rtol=1e-5)
    mixed = pk.quantum.DensityMatrix(np.diag([0.7, 0.3]), (2,))
    for f in (
        lambda a: pk.quantum.fidelity(rotated(a), mixed),
        lambda a: pk.quantum.fidelity(mixed, rotated(a)),
    ):
        expected = lambda a: 0.7 * np.cos(a / 2) ** 2 + 0.3 * np.sin(a / 2) ** 2
        found, slope = jax.value_and_grad(f)(0.5)
        np.testing.assert_allclose(found, expected(0.5), rtol=1e-6)
        np.testing.assert_allclose(slope, -0.2 * np.sin(0.5), rtol=1e-5)
