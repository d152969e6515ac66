"""Rates of waves are those of the equations, worked out by hand: each sign and each factor counts."""

import jax.numpy as jnp
import numpy as np
import pytest

import physkit as pk
from physkit.fields import Field
from physkit.fields.operators import Central
from physkit.geometry import Grid

eq = pk.equations
CELLS, K = 64, 2  # K waves on a line of length 2π
X = 2 * np.pi / CELLS * (0.5 + np.arange(CELLS))
SIN, COS, TURNED = np.sin(K * X), np.cos(K * X), np.exp(1j * K * X)

# ∂u/∂t of u = sin kx, or of ψ = exp ikx, as each equation's docstring has it.
CASES = {
    "Burgers": (eq.Burgers(0.3), SIN, -0.3 * K**2 * SIN - K * SIN * COS),
    "Burgers, by differences": (
        eq.Burgers(0.3, scheme=Central(6)),
        SIN,
        -0.3 * K**2 * SIN - K * SIN * COS,
    ),
    "KortewegDeVries": (
        eq.KortewegDeVries(5.0, 0.7),
        SIN,
        -5 * K * SIN * COS + 0.7 * K**3 * COS,
    ),
    "KuramotoSivashinsky, slope": (
        eq.KuramotoSivashinsky(0.9, 0.4, 1.3),
        SIN,
        (0.9 * K**2 - 0.4 * K**4) * SIN - 1.3 * K * SIN * COS,
    ),
    "KuramotoSivashinsky, height": (
        eq.KuramotoSivashinsky(0.9, 0.4, 1.3, form="height"),
        SIN,
        (0.9 * K**2 - 0.4 * K**4) * SIN - 0.65 * K**2 * COS**2,
    ),
    # ω = ħk²/2m + (V + g)/ħ.
    "Schroedinger": (
        eq.Schroedinger(0.6, mass=2.0, hbar=0.5, interaction=0.3),
        TURNED,
        -1j * (0.5 * K**2 / 4 + 0.9 / 0.5) * TURNED,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rates_of_waves_are_those_by_hand(name):
    equation, wave, expected = CASES[name]
    state = Field(jnp.asarray(wave), Grid([2 * np.pi], (CELLS,)))
    rate = equation.rate(pk.components.Clock.at(pk.core.StepCount.of(0), 0.0, 0.1), state)
    error = 1e-5 if "differences" in name else 1e-11
    found = state.shift(rate).data - wave
    np.testing.assert_allclose(found, expected, atol=error * np.max(np.abs(expected)))
